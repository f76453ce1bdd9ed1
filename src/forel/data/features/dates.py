"""Columns of dates and times: hour, weekday and month as categories, and the date itself as a number.

A date of column ``day`` is the features ``hour=13`` (if there is a time), ``weekday=wed`` and ``month=3`` of namespace
``day``, and ``day``, the years since the beginning of 2020.
"""

from datetime import UTC, date, datetime, time
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from forel.data.features.date_text import parse_date
from forel.data.features.hashing import hash_name

__all__ = ["date_features", "date_hashes"]

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
START, YEAR = datetime(2020, 1, 1), 365.25 * 24 * 3600
Feature = tuple[str, float]


def date_features(value: str | float | date, order: str = "") -> list[Feature]:
    """Return the names and values of a date's features, with "" for the date itself; raise ValueError for others.

    Text is read as :func:`forel.data.features.date_text.parse_date` does, with an order of day, month and year.

    >>> date_features("2024-01-31 13:45")
    [('hour=13', 1.0), ('weekday=wed', 1.0), ('month=1', 1.0), ('', 4.083...)]
    """
    if isinstance(value, datetime):
        found: tuple[datetime, bool] | None = value, True
    elif isinstance(value, date):
        found = datetime.combine(value, time()), False
    else:
        found = parse_date(value if isinstance(value, str) else f"{value:.15g}", order)
    if found is None:
        return []
    when, timed = found
    universal = when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo is not None else when
    names = [*([f"hour={when.hour}"] if timed else []), f"weekday={DAYS[when.weekday()]}", f"month={when.month}"]
    return [*((name, 1.0) for name in names), ("", (universal - START).total_seconds() / YEAR)]


@lru_cache(1 << 16)
def _hash(name: str, column: str) -> int:
    key = column.encode("utf-8", "surrogatepass")
    return hash_name(name.encode(), hash_name(key)) if name else hash_name(key)


def date_hashes(
    rows: list[list[Feature]], column: str
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]:
    """Return the offsets of rows, and the hashes and values of their features."""
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    hashes = np.array([_hash(name, column) for row in rows for name, _ in row], np.uint64)
    return indptr, hashes, np.array([value for row in rows for _, value in row], np.float32)
