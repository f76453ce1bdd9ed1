"""Rows read in Python: dicts of any names and numbers, whose methods may run user code."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.nulls import is_null
from forel.river.arguments import number_of
from forel.river.slots import hashed_features
from forel.validation import refuse

__all__ = ["Hashing", "read_row"]


class Hashing(NamedTuple):
    """How names are hashed: to 2**bits slots, with the known ``kinds`` of columns.

    >>> Hashing(10, {"zip": "category"}).codes
    {'zip': 1}
    """

    bits: int
    kinds: Mapping[str, str] = {}

    @property
    def codes(self) -> dict[str, int]:
        """The kinds as the codes of compiled code."""
        from forel.learner.kernels.hashed_dicts import CATEGORY, NUMBER

        codes = {"number": NUMBER, "category": CATEGORY}
        return {name: codes[kind] for name, kind in self.kinds.items() if kind in codes}


def read_row(x: Mapping[Hashable, Any], hashing: Hashing | None, dtype: Any) -> tuple[list[Any], NDArray[Any]]:
    """Return the names, or slots, and the values of a dict without missing values; errors name the value."""
    items = [item for item in (x if type(x) is dict else dict(x)).items() if not is_null(item[1])]
    if hashing is None:
        return [name for name, _ in items], _narrow(x, [number_of(name, value, dtype) for name, value in items], dtype)
    features = list(hashed_features(items, *hashing))
    values = _narrow(x, [number_of(name, value, dtype) for name, _, value in features], dtype)
    sums = merge(((slot, value) for (_, slot, _), value in zip(features, values, strict=True)))
    return list(sums), _narrow(x, list(sums.values()), dtype)


def merge(entries: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """Return the sums of values that share a slot, in the order in which slots first occur."""
    sums: dict[int, Any] = {}
    with np.errstate(over="ignore"):
        for slot, value in entries:
            sums[slot] = sums[slot] + value if slot in sums else value
    return sums


def _narrow(x: Any, values: list[Any], dtype: Any) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        narrow = np.array(values, np.float64).astype(dtype)
    if not np.isfinite(narrow).all():
        raise refuse("x", x, f"numbers whose sum in a slot is within the range of {dtype}")
    return narrow
