"""Numbers in cells of text, for cells that compiled code leaves to Python."""

from typing import Any

import numpy as np

from forel.data.features.label_words import MISSING

__all__ = ["category_of", "is_missing", "parse_number"]

TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
WHOLE = 1e15  # integers below it are written without an exponent


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
