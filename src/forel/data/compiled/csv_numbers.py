"""Numbers in cells of CSV and TSV, one column or many at a time."""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.csv_rows import blank
from forel.data.compiled.hashing import only
from forel.data.compiled.layout import ABSENT, THERE, UNSURE
from forel.data.compiled.numbers import LARGEST, NUMBER, exactly, number
from forel.data.compiled.words import address, byte, load

__all__ = ["fill_numbers", "read_cells"]

ONE = np.uint64(1)
LONGEST = np.uint64(5)  # bytes of the longest special word; the caller handles others


def as_words(*words):
    """Return short words as the integers that they are loaded as."""
    return np.array([int.from_bytes(word, "little") for word in words], np.uint64)


NOTHING = as_words(b"NA", b"N/A", b"NULL", b"null", b"None", b"nan", b"NaN", b"?")
YES, NO = as_words(b"true", b"True", b"TRUE"), as_words(b"false", b"False", b"FALSE")


@inner
def read_cell(i, stop):
    """Return the number in a cell, the status of the cell, and the span without whitespace."""
    while i < stop and blank(byte(i)):
        i += ONE
    while i < stop and blank(byte(stop - ONE)):
        stop -= ONE
    value, status = np.float32(0), ABSENT
    if i == stop:
        return value, status, i, stop
    found, end, kind = number(i)
    if end == stop and kind == NUMBER:
        return found, THERE, i, stop
    status = UNSURE
    if stop - i <= LONGEST and byte(stop - ONE) != 0:  # a trailing zero byte looks like padding
        word = only(load(i), stop - i)
        for k in range(NOTHING.size):
            if word == NOTHING[k]:
                status = ABSENT
        for k in range(YES.size):
            if word == YES[k]:
                value, status = np.float32(1), THERE
            elif word == NO[k]:
                status = THERE
    # An empty span: a word is not read again as a number.
    return value, status, stop, stop


@fast
def read_cells(text, starts, stops, exact, values, kinds):
    """Write the numbers of a column and the status of each: THERE, ABSENT, or UNSURE, which the caller resolves."""
    base = address(text)
    for r in range(np.uint64(starts.size)):
        found, kind, i, end = read_cell(base + np.uint64(starts[r]), base + np.uint64(stops[r]))
        values[r], kinds[r] = found, kind
        if exact and i < end:
            values[r], sure = exactly(i, end)
            kinds[r] = THERE if sure else UNSURE


@fast
def fill_numbers(text, starts, stops, columns, places, column_slots, slots, values, there, odd):
    """Fill columns of cells with numbers; ``odd`` receives the columns with a cell that the caller has to resolve."""
    base = address(text)
    for r in range(np.uint64(starts.shape[0])):
        for k in range(np.uint64(columns.size)):
            column, place = np.uint64(columns[k]), np.uint64(places[k])
            start, stop = base + np.uint64(starts[r, column]), base + np.uint64(stops[r, column])
            found, kind, _, _ = read_cell(start, stop)
            slots[r, place] = column_slots[k]
            values[r, place] = found
            there[r, place] = kind == THERE
            if kind == UNSURE or not abs(found) <= LARGEST:
                odd[k] = True
