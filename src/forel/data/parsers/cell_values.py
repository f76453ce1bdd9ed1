"""What a cell of text says as a number; compiled code leaves to this what it is not sure of."""

from typing import Any

import numpy as np

__all__ = ["NOTHING", "is_missing", "parse_number", "written"]

# A numeric cell that says "none"; a category is absent only where the cell is empty.
NOTHING = ("", "NA", "N/A", "NULL", "null", "None", "nan", "NaN")
TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
WHOLE = 1e15  # below it, whole numbers are written by their digits


def is_missing(cell: bytes) -> bool:
    """Tell whether a cell holds no value.

    >>> is_missing(b" NA "), is_missing(b"0")
    (True, False)
    """
    return _text(cell) in NOTHING


def parse_number(cell: bytes) -> float | None:
    """Return the number that a cell holds, None for nothing; raise ValueError for anything else.

    >>> parse_number(b" 1e3"), parse_number(b"True"), parse_number(b"N/A")
    (1000.0, 1.0, None)
    """
    word = _text(cell)
    if word in NOTHING:
        return None
    if word in TRUTH:
        return TRUTH[word]
    if "_" in word or not word.isascii():
        raise ValueError(word)
    return float(word)


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "backslashreplace").strip()


def written(number: Any) -> str:
    """Return a number as text would have it, where it stands for a category: 7.0 is the same code as 7.

    >>> written(7), written(7.0), written(0.5), written(True)
    ('7', '7', '0.5', 'True')
    """
    if isinstance(number, float | np.floating) and abs(float(number)) < WHOLE and number == int(number):
        return str(int(number))
    return str(number)
