"""Conversion of dicts to rows of hashed names, by functions of CPython's C API; names hash as they do in files.

A number is the feature of its key, a string the feature of that name in the namespace of its key. Only rows whose keys
are strings and whose values have the types of ``dicts`` are converted here, so that no Python code runs meanwhile.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from forel.data import compiled as scanners
from forel.data.compiled.hashing import START, hash_piece
from forel.data.compiled.merge import merge_row
from forel.jit.compiling import cached_njit
from forel.learner.kernels import dicts
from forel.learner.kernels.dicts import (
    AT_KEYS,
    AT_VALUES,
    CELLS,
    FRONT,
    OBJECT,
    WORD,
    c_function,
    clear_error,
    dict_get,
    dict_next,
    dict_size,
    error_occurred,
    float_value,
    int_value,
    type_in,
    type_of,
)
from forel.learner.kernels.intrinsics import address

__all__ = ["CATEGORY", "NUMBER", "read", "usable"]

NUMBER, CATEGORY = 0, 1  # kinds of columns
TABLE = 1024

compiled: Callable[..., Any] = cached_njit(__file__, address.__file__, dicts.__file__, *scanners.__path__, nogil=False)
utf8_of = c_function("PyUnicode_AsUTF8AndSize", OBJECT, OBJECT, OBJECT)
usable = dicts.usable


@compiled
def read(x, kinds, numbers, places, importance, mask):
    """Write a dict of names and values as a row of slots; return False if it has to be converted in Python.

    Arguments are those of :func:`forel.learner.kernels.dicts.read`, except for ``kinds``, a dict of the known kinds of
    columns, or 0, and ``mask``, the number of slots minus 1. Values that share a slot are added in the order of the
    row. A row with a value of another kind than its column is converted in Python.
    """
    cells = places[places.size - CELLS :]
    at, room = np.uint64(cells.ctypes.data), places.size - CELLS - 2
    if dict_size(x) > room:
        return False
    length = np.uint64(places.ctypes.data) + WORD  # of the last text
    text, bits = cells[AT_KEYS], np.uint64(mask)
    numbers[1], places[0] = importance, 0
    cells[0], k = 0, 0
    while dict_next(x, at, at + WORD, at + WORD + WORD) != 0:
        key, value = np.uint64(cells[1]), np.uint64(cells[2])
        if type_of(key) != text:
            return False
        begin = utf8_of(key, length)
        if begin == 0:  # a lone surrogate
            clear_error()
            return False
        is_text = type_of(value) == text
        if kinds != 0:
            known = dict_get(kinds, key)
            if known != 0 and (int_value(known) == CATEGORY) != is_text:
                return False
        end = begin + np.uint64(places[1])
        if is_text:
            start = hash_piece(begin, end, end, START) if begin < end else START
            begin = utf8_of(value, length)
            if begin == 0:
                clear_error()
                return False
            end = begin + np.uint64(places[1])
            if begin == end:  # an empty category is absent
                continue
            hashed, found = hash_piece(begin, end, end, start), 1.0
        else:
            if not type_in(type_of(value), cells, AT_VALUES, CELLS):
                return False
            hashed, found = hash_piece(begin, end, end, START), float_value(value)
            if found == -1.0 and error_occurred() != 0:
                clear_error()
                return False
        numbers[FRONT + k] = found
        if not np.isfinite(numbers[FRONT + k]):
            return False
        places[2 + k] = np.int64(hashed & bits)
        k += 1
    stop, _, finite = merge_row(places[2:], numbers[FRONT:], 0, k, 0, np.full(TABLE, -1, np.int32))
    places[1] = stop
    return finite
