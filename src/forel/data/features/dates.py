"""Columns of dates and times: hour, weekday and month as categories, and the date itself as a number.

A date of column ``day`` is the features ``hour=13`` (if there is a time), ``weekday=wed`` and ``month=3`` of namespace
``day``, and ``day``, the years since the beginning of 2020.
"""

from datetime import UTC, date, datetime, time
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from forel.data.features.hashing import hash_name
from forel.data.features.label_words import MISSING

__all__ = ["EXPECTED", "date_features", "date_hashes", "is_date", "parse_date"]

EXPECTED = "a date, such as 2024-01-31, 2024-01-31 13:45 or 31.01.2024"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
START, YEAR = datetime(2020, 1, 1), 365.25 * 24 * 3600
FIRST, LAST = 1e8, 1e10  # seconds since 1970 that are times rather than other numbers: 1973 to 2286
Feature = tuple[str, float]


@lru_cache(1 << 16)
def parse_date(text: str) -> tuple[datetime, bool] | None:
    """Return the date and time of a text, and whether it has a time; None if it is missing; raise ValueError otherwise.

    Dates are in ISO 8601, or as 2024/01/31 or 31.01.2024; or seconds or milliseconds since 1970.

    >>> parse_date("2024-01-31T13:45")
    (datetime.datetime(2024, 1, 31, 13, 45), True)
    >>> parse_date("31.1.2024")
    (datetime.datetime(2024, 1, 31, 0, 0), False)
    """
    word = text.strip()
    if word in MISSING:
        return None
    day, _, rest = word.replace("T", " ", 1).partition(" ")
    parts = day.replace("/", "-").replace(".", "-").split("-")
    if len(parts) == 3 and all(part.isdecimal() for part in parts):
        year, month, number = parts if len(parts[0]) == 4 else parts[::-1]
        if len(year) == 4 and (len(parts[0]) == 4 or "." in day):
            word = f"{year}-{month:0>2}-{number:0>2}" + (f" {rest}" if rest else "")
    elif word.replace(".", "", 1).isdecimal() and len(word) != 8:
        return _since_1970(float(word)), True
    found = datetime.fromisoformat(word)
    return found, bool(rest) or len(word) > 10


def _since_1970(number: float) -> datetime:
    seconds = number / 1000 if number >= LAST else number
    if not FIRST <= seconds < LAST:
        raise ValueError(number)
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def date_features(value: str | float | date) -> list[Feature]:
    """Return the names and values of a date's features, with "" for the date itself; raise ValueError for others.

    >>> date_features("2024-01-31 13:45")
    [('hour=13', 1.0), ('weekday=wed', 1.0), ('month=1', 1.0), ('', 4.083...)]
    """
    if isinstance(value, datetime):
        found: tuple[datetime, bool] | None = value, True
    elif isinstance(value, date):
        found = datetime.combine(value, time()), False
    else:
        found = parse_date(value if isinstance(value, str) else f"{value:.15g}")
    if found is None:
        return []
    when, timed = found
    universal = when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo is not None else when
    names = [*([f"hour={when.hour}"] if timed else []), f"weekday={DAYS[when.weekday()]}", f"month={when.month}"]
    return [*((name, 1.0) for name in names), ("", (universal - START).total_seconds() / YEAR)]


def is_date(text: str) -> bool:
    """Return whether a text is a date in words, not a number.

    >>> is_date("2024-01-31"), is_date("1706659200")
    (True, False)
    """
    try:
        return not text.strip().replace(".", "", 1).isdecimal() and parse_date(text) is not None
    except ValueError:
        return False


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
