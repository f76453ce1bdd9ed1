"""Importances and values of a row, validated."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from forel.validation import number, refuse

__all__ = ["WORDS", "importance", "number_of"]

WORDS = "with bits=22, words are categories, or put river's preprocessing.OneHotEncoder before the model"


def importance(w: Any) -> float:
    """Return the weight of a row's loss."""
    if isinstance(w, str | bytes | bytearray):
        raise refuse("w", w, "a number of at least 0")
    return number("w", w, "a number of at least 0", low=0.0, high=float(np.finfo(np.float32).max))


def number_of(name: Hashable, value: Any, dtype: Any) -> float:
    """Return a value as a float, or raise an error that names it."""
    if isinstance(value, str | bytes | bytearray):
        raise refuse(f"x[{name!r}]", value, f"a number; {WORDS}")
    try:
        found = float(value)
        fine = abs(found) <= float(np.finfo(dtype).max)
    except (TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise refuse(f"x[{name!r}]", value, f"a finite number within the range of {dtype}")
    return found
