"""Missing values of dicts."""

import sys
from typing import Any

import numpy as np

__all__ = ["JSON_NAN", "NEVER_NULL", "is_null"]

NEVER_NULL = frozenset((str, int, bool, dict, list, tuple))  # types without missing values


class JsonNaN(float):
    """NaN in JSON text, which is malformed: a missing value is null there."""


JSON_NAN = JsonNaN("nan")


def is_null(value: Any) -> bool:
    """Return whether a value of a dict is missing: None, NaN, or NA or NaT of pandas.

    >>> import pandas as pd
    >>> [is_null(value) for value in (None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, 0.0, "", JSON_NAN)]
    [True, True, True, True, True, False, False, False]
    """
    kind = type(value)
    if kind is float:
        return bool(value != value)
    if value is None or kind in NEVER_NULL:
        return value is None
    if isinstance(value, float | np.floating):
        return bool(value != value) and value is not JSON_NAN
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    pandas = sys.modules.get("pandas")  # imported wherever there are such objects
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)
