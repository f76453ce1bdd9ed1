"""Values of cells and dicts: missing ones, numbers, and categories."""

import math
import re
import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "JSON_NAN", "MISSING", "NEVER_NULL", "SIGNS", "category_of", "common_sign", "formatted_number", "is_missing",
    "is_null", "nearest_float32", "parse_number", "plain_number", "signed_log1p",
]  # fmt: skip

# Missing values of numeric columns and labels; a category is missing only if the cell is empty.
MISSING = ("", "NA", "N/A", "NULL", "null", "None", "nan", "NaN", "?")
NEVER_NULL = frozenset((str, int, bool, dict, list, tuple))  # types without missing values
TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
DIGITS = frozenset("0123456789")
COMMA = re.compile(r"[-+]?\d+,\d+")
SIGNS = ("$", "€", "£", "¥", "%")  # of amounts, before or after the number
GAP = "[ \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}]?"
AMOUNT = rf"([-+]?)([$€£¥]?){GAP}([-+]?)([0-9]+|[1-9][0-9]{{0,2}}(?:%s[0-9]{{3}})+)(?:%s([0-9]+))?{GAP}([$€£¥%%]?)"
AMOUNTS = {mark: re.compile(AMOUNT % pair) for mark, pair in {".": (",", r"\."), ",": (r"\.", ",")}.items()}
WHOLE = 1e15  # integers below it are written without an exponent


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


def parse_number(cell: bytes, sign: str | None = None, decimal: str = ".") -> float | None:
    """Return the number in a cell, None if it is missing; raise ValueError otherwise.

    With a sign of currency or percent, or "", also that of an amount, as :func:`plain_number` reads it.

    >>> parse_number(b" 1e3"), parse_number(b"True"), parse_number(b"N/A"), parse_number(b"$1,000", "$")
    (1000.0, 1.0, None, 1000.0)
    """
    word = _text(cell) if sign is None else plain_number(_text(cell), sign, decimal)
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
    ("decimal=',' (--decimal) reads decimal commas", 'all values of a column need th', None)
    """
    found = _amount(word, ".")
    if found is None and (COMMA.fullmatch(word) or _amount(word, ",")):
        return "decimal=',' (--decimal) reads decimal commas"
    return None if found is None else "all values of a column need the same sign, from the first on, or none"


def plain_number(word: str, sign: str, decimal: str = ".") -> str:
    """Return an amount without its sign, which may be missing, and without thousands separators; others as they are.

    >>> plain_number("-$1,234.50", "$"), plain_number("12.5 %", "%"), plain_number("1.234,5 €", "€", ",")
    ('-1234.50', '12.5', '1234.5')
    >>> plain_number("€5", "$"), plain_number("0,512", ""), plain_number("1.234", "", ",")
    ('€5', '0,512', '1.234')
    """
    found = _amount(word, decimal)
    return word if found is None or found[1] not in ("", sign) else found[0]


def common_sign(words: Iterable[str], decimal: str = ".") -> str | None:
    """Return the sign of amounts, "" if they have separators only; None if not all are amounts of one sign.

    >>> common_sign(["$5", "12", "$1,000"]), common_sign(["1,000", "5"]), common_sign(["$5", "€5"]), common_sign(["5"])
    ('$', '', None, None)
    """
    signs, amounts = {""}, False
    for word in words:
        if (found := _amount(word, decimal)) is not None:
            signs.add(found[1])
            amounts = True
        elif not _is_plain(word):
            return None
        if len(signs) > 2:
            return None
    return max(signs) if amounts else None


def _amount(word: str, decimal: str) -> tuple[str, str] | None:
    """Return the number and the sign of an amount; None for plain numbers and other words."""
    if not word or (word[0] in DIGITS and word[-1] in DIGITS and "," not in word and word.count(".") < 2):
        return None
    found = AMOUNTS[decimal].fullmatch(word)
    if found is None:
        return None
    minus, before, inner, whole, part, after = found.groups()
    sign = before or after
    if (minus and inner) or (before and after) or (not sign and _is_plain(word)):
        return None
    digits = whole.replace(",", "").replace(".", "")
    return f"{minus}{inner}{digits}.{part}" if part else f"{minus}{inner}{digits}", sign


def _is_plain(word: str) -> bool:
    try:
        return math.isfinite(float(word)) and word.isascii()
    except ValueError:
        return False


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
    side = int(Decimal(word).compare(Decimal(double)))
    if side and not np.float64(double).view(np.int64) & 1:
        # Rounded to odd, an inexact double is no midpoint between two float32, and on the number's side of each.
        double = math.nextafter(double, side * math.inf)
    with np.errstate(all="ignore"):
        return np.float32(double)


def signed_log1p(values: Any) -> NDArray[np.float64]:
    r"""Return $\mathrm{sign}(x)\,\log(1 + |x|)$.

    >>> signed_log1p([0.0, -1.0, 1e6]).round(3)
    array([ 0.   , -0.693, 13.816])
    """
    wide = np.asarray(values, np.float64)
    signed: NDArray[np.float64] = np.copysign(np.log1p(np.abs(wide)), wide)
    return signed
