"""From a dict to a row, by the interpreter's own functions: Python would take longer to hand it over than to learn.

Compiled code asks the interpreter for every entry, and holds its lock meanwhile. It takes only names and numbers of
types whose hash, comparison and conversion are the interpreter's or numpy's own, so that nobody's code runs in between,
nothing changes meanwhile, and every object is held by its dict as long as it is used. Other rows are left to Python.
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
FRONT = 3  # label, importance and shape come before the values
CELLS = 4 + len(KEYS) + len(VALUES)  # at the end of the places: position, key, value; tuple, and the types above
AT_KEYS, AT_VALUES = 4, 4 + len(KEYS)
WORD = np.uint64(8)
KINDS: Any = types
OBJECT, NUMBER, WHOLE, CODE, NOTHING = types.uint64, types.float64, types.int64, types.int32, types.void
ADDRESSES = np.array([0, 0, 0, *(id(kind) for kind in (tuple, *KEYS, *VALUES))], np.int64)
ASKED: list[str] = []

compiled: Callable[..., Any] = cached_njit(__file__, address.__file__, nogil=False)


def asked(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of the interpreter."""
    ASKED.append(name)
    return KINDS.ExternalFunction(name, result(*arguments))


next_of = asked("PyDict_Next", CODE, OBJECT, OBJECT, OBJECT, OBJECT)
item_of = asked("PyDict_GetItemWithError", OBJECT, OBJECT, OBJECT)
put = asked("PyDict_SetItem", CODE, OBJECT, OBJECT, OBJECT)
size_of = asked("PyDict_Size", WHOLE, OBJECT)
float_of = asked("PyFloat_AsDouble", NUMBER, OBJECT)
int_of = asked("PyLong_AsLongLong", WHOLE, OBJECT)
int_from = asked("PyLong_FromLongLong", OBJECT, WHOLE)
length_of = asked("PyTuple_Size", WHOLE, OBJECT)
element_of = asked("PyTuple_GetItem", OBJECT, OBJECT, WHOLE)
let_go = asked("Py_DecRef", NOTHING, OBJECT)
failed = asked("PyErr_Occurred", OBJECT)
forgive = asked("PyErr_Clear", NOTHING)


def usable() -> bool:
    """Tell whether this knows the interpreter: it has a lock and these functions, and objects are laid out so."""
    from llvmlite import binding

    if disabled() or sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    # An object begins with a count of references and its type.
    samples = ("a", 1, True, 1.0, None, (), np.float64(1))
    kinds = [ctypes.c_ssize_t.from_address(id(one) + int(WORD)).value for one in samples]
    expected = object.__basicsize__ == 2 * WORD and kinds == [id(type(one)) for one in samples]
    # A symbol that is missing would end the process when the function is linked.
    return expected and all(binding.address_of_symbol(name) for name in ASKED)


def plain(name: Any) -> bool:
    """Tell whether a name is of a type whose hash and comparison run nobody's code.

    >>> plain("a"), plain(("a", 1)), plain(np.str_("a")), plain(("a", ("b",)))
    (True, True, False, False)
    """
    kind = type(name)
    return kind in KEYS or (kind is tuple and all(type(each) in KEYS for each in name))


@compiled
def kind_of(thing):
    """Return the address of an object's type."""
    return carray(pointer(thing + WORD), (1,), np.int64)[0]  # type: ignore[call-arg]


@compiled
def among(kind, cells, start, stop):
    """Tell whether a type is in some cells."""
    for k in range(start, stop):  # noqa: SIM110
        if cells[k] == kind:
            return True
    return False


@compiled
def harmless(name, cells):
    """Do what ``plain`` does."""
    kind = kind_of(name)
    if among(kind, cells, AT_KEYS, AT_VALUES):
        return True
    if kind != cells[3]:
        return False
    for k in range(length_of(name)):  # noqa: SIM110
        if not among(kind_of(element_of(name, k)), cells, AT_KEYS, AT_VALUES):
            return False
    return True


@compiled
def slot_of(name, names, most):
    """Return the slot of a name as below, or −1 where the interpreter cannot tell."""
    held = item_of(names, name)
    if held != 0:
        slot = int_of(held)
        return slot if most < 0 or slot < most else 0
    if failed() != 0:
        return -1
    if most >= 0:
        return 0
    slot = size_of(names) + 1
    new = int_from(slot)
    if new == 0:
        return -1
    done = put(names, name, new)
    let_go(new)
    return slot if done == 0 else -1


@compiled
def read(x, names, numbers, places, importance, most):
    """Write a dict of names and values as a row, and return whether it could be; where not, Python has to.

    Numbers get importance and, after the shape, values; places get the ends of the row, 0 and how many entries there
    are, and slots. ``names`` is a dict of plain names that knows the slot of each. With ``most`` below 0 others are
    added; otherwise they, and names whose slots are not below it, get slot 0. Values come first: a row of which one is
    not a finite number of the type of ``numbers`` leaves no names behind.
    """
    cells = places[places.size - CELLS :]
    at, room = np.uint64(cells.ctypes.data), places.size - CELLS - 2
    count = size_of(x)
    if count > room:
        return False
    numbers[1], places[0], places[1] = importance, 0, count
    cells[0], k = 0, 0
    while next_of(x, at, at + WORD, at + WORD + WORD) != 0:
        value = np.uint64(cells[2])
        if not (harmless(np.uint64(cells[1]), cells) and among(kind_of(value), cells, AT_VALUES, CELLS)):
            return False
        found = float_of(value)
        if found == -1.0 and failed() != 0:
            forgive()
            return False
        numbers[FRONT + k] = found
        if not np.isfinite(numbers[FRONT + k]):
            return False
        k += 1
    cells[0], j = 0, 0
    while next_of(x, at, at + WORD, at + WORD + WORD) != 0:
        slot = slot_of(np.uint64(cells[1]), names, most)
        if slot < 0:
            forgive()
            return False
        places[2 + j] = slot
        j += 1
    return True
