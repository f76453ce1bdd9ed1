"""Rows of dicts: names or hashed slots, and values that are finite numbers."""

from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.features.hashing import slot
from forel.data.values import category_of, is_null, parse_number
from forel.river.arguments import number_of
from forel.validation import refuse

__all__ = ["SLOT", "Hashing", "read_row"]

NUMBERS = (int, float, np.number, np.bool_)
SLOT = np.dtype(np.int64).char
slot_of = lru_cache(1 << 16)(slot)


class Hashing(NamedTuple):
    """How names are hashed: to 2**bits slots, with the known ``kinds`` of columns."""

    bits: int
    kinds: Mapping[str, str] = {}


def read_row(x: Mapping[Hashable, Any], hashing: Hashing | None, dtype: Any) -> tuple[Any, Any]:
    """Return the names, or slots, and the values of a dict without missing values; errors name the value."""
    row = x if type(x) is dict else dict(x)
    names, objects = list(row), list(row.values())  # conversions may run code that changes the row
    with suppress(TypeError, ValueError, OverflowError):
        found = (names, objects) if hashing is None else _plain_features(names, objects, hashing)
        values: Any = array(dtype.char, found[1])
        if isfinite(sum(values)):  # and so are its terms
            return found[0], values
    items = [item for item in zip(names, objects, strict=True) if not is_null(item[1])]
    features: Iterable[tuple[Any, Any, Any]] = ((name, name, value) for name, value in items)
    if hashing is not None:
        features = list(hashed_features(items, *hashing))
    numbers = [(key, number_of(name, value, dtype)) for name, key, value in features]
    values = _narrow(x, [value for _, value in numbers], dtype)
    if hashing is None:
        return [name for name, _ in numbers], values
    sums = merge((slot, value) for (slot, _), value in zip(numbers, values, strict=True))
    return array(SLOT, sums), _narrow(x, list(sums.values()), dtype)


def _plain_features(names: list[Any], objects: list[Any], hashing: Hashing) -> tuple[Any, list[Any]]:
    """Return slots and values of names that are text and have no kind; raise for rows that need :func:`merge`."""
    if hashing.kinds or not {str}.issuperset(map(type, names)):
        raise TypeError
    bits, present = (
        hashing.bits,
        [item for item in zip(names, objects, strict=True) if type(item[1]) is not str or item[1]],
    )
    slots = [slot_of(value, name, bits) if type(value) is str else slot_of(name, "", bits) for name, value in present]
    if len(set(slots)) < len(slots):
        raise ValueError
    return array(SLOT, slots), [1.0 if type(value) is str else value for _, value in present]


def merge(entries: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """Return the sums of values that share a slot, in the order in which slots first occur."""
    sums: dict[int, Any] = {}
    with np.errstate(over="ignore"):
        for slot, value in entries:
            sums[slot] = sums[slot] + value if slot in sums else value
    return sums


def hashed_features(
    items: Iterable[tuple[Hashable, Any]], bits: int, kinds: Mapping[str, str]
) -> Iterator[tuple[Hashable, int, Any]]:
    """Yield the name, the slot and the value of each feature of a dict, as :func:`forel.read` reads it.

    A string is a category: the feature of that name in the namespace of its key; an empty string is a missing value.
    ``kinds`` overrides this for columns that are a "category" or a "number".

    >>> list(hashed_features({"age": 7, "city": "Rome", "street": ""}.items(), 10, {}))
    [('age', 600, 7), ('city', 12, 1.0)]
    """
    for name, value in items:
        key = _bytes(name if isinstance(name, str) else str(name))
        kind = kinds.get(name) if isinstance(name, str) else None
        if kind == "category" and isinstance(value, NUMBERS):
            value = category_of(value)
        elif kind == "number" and isinstance(value, str):
            with suppress(ValueError):  # text that is not a number stays a category
                value = parse_number(_bytes(value))
            if value is None:
                continue
        if not isinstance(value, str):
            yield name, slot(key, bits=bits), value
        elif value:
            yield name, slot(_bytes(value), key, bits), 1.0


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _narrow(x: Any, values: list[Any], dtype: Any) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        narrow = np.array(values, np.float64).astype(dtype)
    if not np.isfinite(narrow).all():
        raise refuse("x", x, f"numbers whose sum in a slot is within the range of {dtype}")
    return narrow
