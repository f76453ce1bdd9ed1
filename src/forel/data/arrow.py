"""Arrow's arrays without what takes long to import: pyarrow.compute, and pandas where it is installed.

``pyarrow.compute`` words the documentation of all its functions when it is imported, and ``to_numpy`` and ``pa.array``
import pandas: together more than half a second, which is most of reading a small table.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["call", "cast", "numbers", "plain", "strings", "valid"]

PLAIN = {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
PLAIN |= {"float": "f4", "double": "f8"}


def call(name: str, *arrays: Any, options: Any = None) -> Any:
    """Return what a function of Arrow's makes of some arrays."""
    from pyarrow import _compute

    return _compute.call_function(name, list(arrays), options)


def cast(array: Any, kind: Any) -> Any:
    """Return an array as one of another type, or raise ``pa.ArrowInvalid``."""
    from pyarrow import _compute

    return call("cast", array, options=_compute.CastOptions.safe(kind))


def strings(words: Iterable[str]) -> Any:
    """Return an array of strings."""
    import pyarrow as pa

    held = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, held)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(held), pa.py_buffer(ends), pa.py_buffer(b"".join(held)))


def numbers(values: list[float | None]) -> Any:
    """Return an array of numbers, some of which may be missing."""
    import pyarrow as pa

    held = np.array([0.0 if value is None else value for value in values], np.float64)
    there = np.packbits(np.array([value is not None for value in values], bool), bitorder="little")
    return pa.Array.from_buffers(pa.float64(), len(values), [pa.py_buffer(there), pa.py_buffer(held)])


def plain(array: Any) -> NDArray[Any] | None:
    """Return numbers as they lie in memory, whatever is where one is missing; None for types that do not lie so."""
    kind = PLAIN.get(str(array.type))
    if kind is None:
        return None
    data = array.buffers()[1]
    return np.frombuffer(data if data is not None else b"", kind)[array.offset :][: len(array)]


def valid(array: Any) -> NDArray[np.bool_]:
    """Return which rows of an array are there."""
    bits = array.buffers()[0] if array.null_count else None
    if bits is None:
        return np.full(len(array), array.null_count == 0)
    return np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[array.offset :][: len(array)].astype(bool)
