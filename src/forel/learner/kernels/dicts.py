"""Conversion of dicts to rows in compiled code, by functions of CPython's C API.

In Python, the conversion of a row takes longer than learning from it.

The code holds the GIL. It reads only names and numbers of built-in and numpy types, whose hash, comparison and
conversion run no Python code, so that the dict cannot change meanwhile and keeps its objects alive. Other rows are
converted in Python.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from forel.jit import disabled
from forel.jit.compiling import cached_njit
from forel.learner.kernels.intrinsics import address
from forel.learner.kernels.intrinsics.address import carray, pointer

__all__ = ["CELLS", "FRONT", "KEYS", "VALUES", "plain", "read", "usable"]

KEYS = (str, int, bool, float, type(None))  # and tuples of these; bytes may warn when they are compared
VALUES = (float, int, bool, np.float64, np.float32, np.int64)
FRONT = 3  # numbers before the values: label, importance and shape
CELLS = 4 + len(KEYS) + len(VALUES)  # at the end of ``places``: position, key, value; addresses of types
AT_KEYS, AT_VALUES = 4, 4 + len(KEYS)
WORD = np.uint64(8)
KINDS: Any = types
OBJECT, NUMBER, WHOLE, CODE, NOTHING = types.uint64, types.float64, types.int64, types.int32, types.void
ADDRESSES = np.array([0, 0, 0, *(id(kind) for kind in (tuple, *KEYS, *VALUES))], np.int64)
C_FUNCTIONS: list[str] = []

compiled: Callable[..., Any] = cached_njit(__file__, address.__file__, nogil=False)


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """Declare a function of CPython's C API."""
    C_FUNCTIONS.append(name)
    return KINDS.ExternalFunction(name, result(*arguments))


dict_next = c_function("PyDict_Next", CODE, OBJECT, OBJECT, OBJECT, OBJECT)
dict_get = c_function("PyDict_GetItemWithError", OBJECT, OBJECT, OBJECT)
dict_set = c_function("PyDict_SetItem", CODE, OBJECT, OBJECT, OBJECT)
dict_size = c_function("PyDict_Size", WHOLE, OBJECT)
float_value = c_function("PyFloat_AsDouble", NUMBER, OBJECT)
int_value = c_function("PyLong_AsLongLong", WHOLE, OBJECT)
new_int = c_function("PyLong_FromLongLong", OBJECT, WHOLE)
tuple_size = c_function("PyTuple_Size", WHOLE, OBJECT)
tuple_item = c_function("PyTuple_GetItem", OBJECT, OBJECT, WHOLE)
decref = c_function("Py_DecRef", NOTHING, OBJECT)
error_occurred = c_function("PyErr_Occurred", OBJECT)
clear_error = c_function("PyErr_Clear", NOTHING)


def usable() -> bool:
    """Return whether this interpreter is supported: a GIL, these functions, and the expected layout of objects."""
    from llvmlite import binding

    if disabled() or sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    # An object starts with its reference count and its type.
    samples = ("a", 1, True, 1.0, None, (), np.float64(1))
    kinds = [ctypes.c_ssize_t.from_address(id(one) + int(WORD)).value for one in samples]
    expected = object.__basicsize__ == 2 * WORD and kinds == [id(type(one)) for one in samples]
    # Linking a missing symbol would abort the process.
    return expected and all(binding.address_of_symbol(name) for name in C_FUNCTIONS)


def plain(name: Any) -> bool:
    """Return whether the hash and comparison of a name run no Python code.

    >>> plain("a"), plain(("a", 1)), plain(np.str_("a")), plain(("a", ("b",)))
    (True, True, False, False)
    """
    kind = type(name)
    return kind in KEYS or (kind is tuple and all(type(each) in KEYS for each in name))


@compiled
def type_of(thing):
    """Return the address of an object's type."""
    return carray(pointer(thing + WORD), (1,), np.int64)[0]  # type: ignore[call-arg]


@compiled
def type_in(kind, cells, start, stop):
    """Return whether a type is in ``cells[start:stop]``."""
    for k in range(start, stop):  # noqa: SIM110
        if cells[k] == kind:
            return True
    return False


@compiled
def is_plain(name, cells):
    """The compiled version of ``plain``."""
    kind = type_of(name)
    if type_in(kind, cells, AT_KEYS, AT_VALUES):
        return True
    if kind != cells[3]:
        return False
    for k in range(tuple_size(name)):  # noqa: SIM110
        if not type_in(type_of(tuple_item(name, k)), cells, AT_KEYS, AT_VALUES):
            return False
    return True


@compiled
def slot_of(name, names, limit):
    """Return the slot of a name as ``read`` describes it, or −1 after an error."""
    stored = dict_get(names, name)
    if stored != 0:
        slot = int_value(stored)
        return slot if limit < 0 or slot < limit else 0
    if error_occurred() != 0:
        return -1
    if limit >= 0:
        return 0
    slot = dict_size(names) + 1
    new = new_int(slot)
    if new == 0:
        return -1
    status = dict_set(names, name, new)
    decref(new)
    return slot if status == 0 else -1


@compiled
def read(x, names, numbers, places, importance, limit):
    """Write a dict of names and values as a row; return False if it has to be converted in Python.

    ``numbers`` gets the importance and, after the shape, the values; ``places`` gets the start and the end of the row,
    0 and the number of entries, then slots. ``names`` maps plain names to slots. If ``limit`` is negative, new names
    are added; otherwise new names, and names whose slot is not below ``limit``, get slot 0. Values are converted first,
    so that a row with a value that is not a finite number of the type of ``numbers`` adds no names.
    """
    cells = places[places.size - CELLS :]
    at, room = np.uint64(cells.ctypes.data), places.size - CELLS - 2
    count = dict_size(x)
    if count > room:
        return False
    numbers[1], places[0], places[1] = importance, 0, count
    cells[0], k = 0, 0
    while dict_next(x, at, at + WORD, at + WORD + WORD) != 0:
        value = np.uint64(cells[2])
        if not (is_plain(np.uint64(cells[1]), cells) and type_in(type_of(value), cells, AT_VALUES, CELLS)):
            return False
        found = float_value(value)
        if found == -1.0 and error_occurred() != 0:
            clear_error()
            return False
        numbers[FRONT + k] = found
        if not np.isfinite(numbers[FRONT + k]):
            return False
        k += 1
    cells[0], j = 0, 0
    while dict_next(x, at, at + WORD, at + WORD + WORD) != 0:
        slot = slot_of(np.uint64(cells[1]), names, limit)
        if slot < 0:
            clear_error()
            return False
        places[2 + j] = slot
        j += 1
    return True
