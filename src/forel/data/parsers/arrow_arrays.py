"""Arrow arrays as numpy arrays, without importing ``pyarrow.compute`` or pandas.

``to_numpy`` and ``pa.array`` import pandas where it is installed, and ``pyarrow.compute`` builds the documentation of
all its functions: together more than half a second, most of the time of reading a small table.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.parsers.cells import Spans
from forel.validation import refuse

__all__ = ["is_number", "is_string", "plain", "string_spans", "valid"]

PLAIN = {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
PLAIN |= {"float": "f4", "double": "f8"}


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


@lru_cache(1 << 12)
def is_number(kind: Any) -> bool:
    """Return whether a type is one of numbers."""
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


@lru_cache(1 << 12)
def is_string(kind: Any) -> bool:
    """Return whether a type is one of strings."""
    from pyarrow import types

    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )


def string_spans(array: Any, name: str) -> Spans:
    """Return strings as spans of their bytes."""
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    view = types.is_string_view(kind) or types.is_binary_view(kind)
    if not (is_string(kind) or view):
        raise refuse(f"column {name}", f"type {kind}", f"numbers, booleans or strings; ignore=[{name!r}] leaves it out")
    if view:
        array = array.cast(pa.large_string() if types.is_string_view(kind) else pa.large_binary())
    _, offsets, data = array.buffers()
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    ends = np.frombuffer(offsets or b"\0" * 8, np.int64 if wide else np.int32)[array.offset :][: len(array) + 1]
    # Read-only, as all Arrow buffers are, so that scanners are compiled for one type.
    text = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
    return Spans(text, ends[:-1], ends[1:])
