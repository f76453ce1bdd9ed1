"""Values of cells and dicts: missing ones, numbers, and categories."""

import math
import re
import sys
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = [
    "JSON_NAN", "MISSING", "NEVER_NULL", "category_of", "formatted_number", "is_missing", "is_null", "nearest_float32",
    "parse_number",
]  # fmt: skip

# Missing values of numeric columns and labels; a category is missing only if the cell is empty.
MISSING = ("", "NA", "N/A", "NULL", "null", "None", "nan", "NaN", "?")
NEVER_NULL = frozenset((str, int, bool, dict, list, tuple))  # types without missing values
TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
COMMA = re.compile(r"[-+]?\d+,\d+")
FORMATTED = re.compile(r"[-+(]?[$€£¥]? ?[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)? ?[%$€£¥]?\)?")
WHOLE = 1e15  # integers below it are written without an exponent
TOP = 2.0**128  # the successor of the largest float32, if it had one


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


def is_missing(cell: bytes) -> bool:
    """Return whether a cell has a missing value.

    >>> is_missing(b" NA "), is_missing(b"0")
    (True, False)
    """
    return _text(cell) in MISSING


def parse_number(cell: bytes) -> float | None:
    """Return the number in a cell, None if it is missing; raise ValueError otherwise.

    >>> parse_number(b" 1e3"), parse_number(b"True"), parse_number(b"N/A")
    (1000.0, 1.0, None)
    """
    word = _text(cell)
    if word in MISSING:
        return None
    if word in TRUTH:
        return TRUTH[word]
    if "_" in word or not word.isascii():
        raise ValueError(word)
    return float(word)


def formatted_number(word: str) -> str | None:
    """Return what to do with a number that is written for people; None for other words.

    >>> formatted_number("2,5"), formatted_number("$2.39")[:30], formatted_number("red")
    ("decimal=',' (--decimal) reads decimal commas", 'remove thousands separators an', None)
    """
    if COMMA.fullmatch(word) and not FORMATTED.fullmatch(word):
        return "decimal=',' (--decimal) reads decimal commas"
    if any(character in word for character in ",$€£¥%") and FORMATTED.fullmatch(word):
        return "remove thousands separators and signs of currency and percent to have numbers"
    return None


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "backslashreplace").strip()


def category_of(number: Any) -> str:
    """Return a number as a category: 7.0 is the same code as 7.

    >>> category_of(7), category_of(7.0), category_of(0.5), category_of(True)
    ('7', '7', '0.5', 'True')
    """
    if isinstance(number, float | np.floating) and abs(float(number)) < WHOLE and number == int(number):
        return str(int(number))
    return str(number)


def nearest_float32(text: bytes) -> np.float32:
    """Return the float32 nearest to a decimal number, ties to even; infinity if it is too large.

    Conversion through float64 would round some numbers twice:

    >>> below = b"1.00000005960464477539062499999"  # a little less than half-way from 1 to the next float32
    >>> float(nearest_float32(below)), float(nearest_float32(b"1.0000000596046448"))
    (1.0, 1.0000001192092896)
    """
    word = text.decode("ascii")
    double = float(word)
    with np.errstate(all="ignore"):
        found = np.float32(double)
        near = TOP * math.copysign(1, double) if np.isinf(found) else float(found)
        if near == double or math.isinf(double):
            return found
        other = np.nextafter(found, np.float32(math.copysign(np.inf, double - near)))
    beyond = TOP * math.copysign(1, double) if np.isinf(other) else float(other)
    middle = (near + beyond) / 2
    if double != middle:
        return found
    # The double is a midpoint; the number itself may be on either side of it, or equal, where ``found`` is correct.
    side = Decimal(word).compare(Decimal(middle))
    if side == 0:
        return found
    return max(found, other) if side > 0 else min(found, other)
