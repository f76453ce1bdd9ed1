"""Arrow arrays from and to numpy, without importing ``pyarrow.compute`` or pandas.

``to_numpy`` and ``pa.array`` import pandas where it is installed, and ``pyarrow.compute`` builds the documentation of
all its functions: together more than half a second, most of the time of reading a small table.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["float_array", "plain", "string_array", "valid"]

PLAIN = {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
PLAIN |= {"float": "f4", "double": "f8"}


def float_array(values: NDArray[np.float64], present: NDArray[np.bool_]) -> Any:
    """Return an array of float64, null where a value is not present."""
    import pyarrow as pa

    bitmap = np.packbits(present, bitorder="little")
    return pa.Array.from_buffers(pa.float64(), values.size, [pa.py_buffer(bitmap), pa.py_buffer(values)])


def string_array(text: NDArray[np.uint8], starts: NDArray[Any], stops: NDArray[Any]) -> Any:
    """Return an array of strings from spans of UTF-8 text."""
    import pyarrow as pa

    sizes = stops - starts
    ends = np.append(0, np.cumsum(sizes)).astype(np.int32)
    data = text[np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes)]
    return pa.StringArray.from_buffers(sizes.size, pa.py_buffer(ends), pa.py_buffer(data))


def plain(array: Any) -> NDArray[Any] | None:
    """Return a view of the numbers of an array, undefined where one is null; None for other types."""
    kind = PLAIN.get(str(array.type))
    if kind is None:
        return None
    data = array.buffers()[1]
    return np.frombuffer(data if data is not None else b"", kind)[array.offset :][: len(array)]


def valid(array: Any) -> NDArray[np.bool_]:
    """Return the mask of rows that are not null."""
    bits = array.buffers()[0] if array.null_count else None
    if bits is None:
        return np.full(len(array), array.null_count == 0)
    return np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[array.offset :][: len(array)].astype(bool)
