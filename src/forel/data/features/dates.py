"""Dates and times as features: hour, weekday and month as categories, and the date itself as a number.

A date of column ``day`` is the features ``hour=13`` (if there is a time), ``weekday=wed`` and ``month=3`` of namespace
``day``, and ``day``, the years since the beginning of 2020. Text is read as ISO 8601, as seconds since 1970, or as
numbers in a given order of day, month and year.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from forel.data.features.hashing import hash_name
from forel.data.values import MISSING

__all__ = [
    "AMBIGUOUS", "date_features", "date_hashes", "date_order", "expected_date", "parse_date", "parse_date_column",
]  # fmt: skip

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
START, YEAR = datetime(2020, 1, 1), 365.25 * 24 * 3600
Feature = tuple[str, float]
ORDERS = ("dmy", "mdy", "ymd")  # of day, month and year
AMBIGUOUS = "dmy or mdy"
DAY = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})")
TIME = re.compile(r"(\d{1,2})(:\d{2}(?::\d{2}(?:\.\d+)?)?)(?: ?([AaPp])\.?[Mm]\.?)?(Z|[-+]\d{2}:?\d{2})?")
PIVOT = 69  # years of two digits from here on are in the 20th century, as in POSIX
FIRST, LAST = 1e8, 1e10  # seconds since 1970 that are times rather than other numbers: 1973 to 2286


def date_features(value: str | float | date, order: str = "") -> list[Feature]:
    """Return the names and values of a date's features, with "" for the date itself; raise ValueError for others.

    Text is read as :func:`parse_date` does, with an order of day, month and year.

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


@lru_cache(1 << 16)
def parse_date(text: str, order: str = "") -> tuple[datetime, bool] | None:
    """Return the date and time of a text, and whether it has a time; None if it is missing; raise ValueError otherwise.

    Parameters
    ----------
    text : in ISO 8601, or as 2024/01/31 or 31.01.2024; or seconds or milliseconds since 1970
    order : of numbers, "dmy", "mdy" or "ymd", with which years may have two digits; "" for the forms above alone

    >>> parse_date("2024-01-31T13:45")
    (datetime.datetime(2024, 1, 31, 13, 45), True)
    >>> parse_date("31.1.2024")
    (datetime.datetime(2024, 1, 31, 0, 0), False)
    >>> parse_date("1/31/24 1:45 PM", "mdy")
    (datetime.datetime(2024, 1, 31, 13, 45), True)
    """
    word = text.strip()
    if word in MISSING:
        return None
    day, _, rest = word.replace("T", " ", 1).partition(" ")
    if (match := DAY.fullmatch(day)) is not None:
        word = _iso_day(match[1], match[3], match[4], order or ("dmy" if match[2] == "." else "ymd"), bool(order))
        word += f" {_iso_time(rest)}" if rest else ""
    elif word.replace(".", "", 1).isdecimal() and len(word) != 8:
        return _since_1970(float(word)), True
    found = datetime.fromisoformat(word)
    return found, bool(rest) or len(word) > 10


def _iso_day(first: str, second: str, third: str, order: str, short: bool) -> str:
    """Return a day in ISO 8601; ``short`` allows years of two digits. A first number of four digits is the year."""
    parts = dict(zip("ymd" if len(first) == 4 else order, (first, second, third), strict=True))
    year = parts["y"]
    if short and len(year) == 2:
        year = f"{'19' if int(year) >= PIVOT else '20'}{year}"
    if len(year) != 4 or len(parts["d"]) > 2 or len(parts["m"]) > 2:
        raise ValueError(f"{first} {second} {third}")
    return f"{year}-{parts['m']:0>2}-{parts['d']:0>2}"


def _iso_time(text: str) -> str:
    """Return a time of day in ISO 8601, of 24 hours; any other text as it is.

    >>> _iso_time("1:45 PM"), _iso_time("12:05am"), _iso_time("7:05")
    ('13:45', '00:05', '07:05')
    """
    match = TIME.fullmatch(text.strip())
    if match is None:
        return text
    hour, half = int(match[1]), (match[3] or "").lower()
    if half and not 1 <= hour <= 12:
        raise ValueError(text)
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    return f"{hour:02}{match[2]}{match[4] or ''}"


def _since_1970(number: float) -> datetime:
    seconds = number / 1000 if number >= LAST else number
    if not FIRST <= seconds < LAST:
        raise ValueError(number)
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def parse_date_column(text: str) -> tuple[str, str]:
    """Parse ``column`` or ``column:order`` into the column and the order of day, month and year.

    >>> parse_date_column("when"), parse_date_column("when:dmy")
    (('when', ''), ('when', 'dmy'))
    """
    name, _, order = text.rpartition(":")
    return (name, order.lower()) if name and order.lower() in ORDERS else (text, "")


def date_order(texts: Iterable[str]) -> str | None:
    """Return the order in which all texts are dates: "" for none, ``AMBIGUOUS`` for two, None if they are no dates.

    >>> date_order(["2024-01-31"]), date_order(["31/01/2024"]), date_order(["01/02/2024"]), date_order(["soon"])
    ('', 'dmy', 'dmy or mdy', None)
    """
    orders = ["", *ORDERS]
    for text in texts:
        number = text.strip().replace(".", "", 1).isdecimal()
        orders = [] if number else [order for order in orders if _is_date(text, order)]
        if not orders:
            return None
    day_first, month_first = "dmy" in orders, "mdy" in orders
    return "" if "" in orders else AMBIGUOUS if day_first and month_first else orders[0]


def _is_date(text: str, order: str) -> bool:
    try:
        return parse_date(text, order) is not None
    except ValueError:
        return False


def expected_date(name: str, order: str) -> str:
    """Return what a column of dates should have, for errors.

    >>> expected_date("when", "dmy")
    'a date with the order dmy, such as 31/01/2024 or 31.1.24 13:45, or 2024-01-31'
    """
    if order:
        example = {"dmy": "31/01/2024 or 31.1.24 13:45", "mdy": "01/31/2024 or 1/31/24 1:45 PM", "ymd": "24-01-31"}
        return f"a date with the order {order}, such as {example[order]}, or 2024-01-31"
    orders = f"or use date=['{name}:dmy'] for 31/01/2024, date=['{name}:mdy'] for 01/31/2024"
    return f"a date, such as 2024-01-31, 2024-01-31 13:45 or 31.01.2024; {orders}"
