"""From a dict to a row, by the interpreter's own functions: Python would take longer to hand it over than to learn.

Compiled code asks the interpreter for every entry, and holds its lock meanwhile. What it is given are addresses of
objects, as ``id`` tells them; who calls it keeps the objects alive.
"""

from typing import Any

import numpy as np
from numba import types

from forel.jit import disabled
from forel.jit.compiling import cached_njit
from forel.kernels import plain

__all__ = ["CELLS", "FRONT", "read"]

CELLS = 3  # at the end of the places, for what the interpreter writes: how far it is, a key and a value
FRONT = 3  # label, importance and shape come before the values
WORD = np.uint64(8)
KINDS: Any = types
OBJECT, NUMBER, WHOLE, CODE, NOTHING = types.uint64, types.float64, types.int64, types.int32, types.void

compiled = cached_njit(__file__, nogil=False)


def asked(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of the interpreter."""
    return KINDS.ExternalFunction(name, result(*arguments))


next_of = asked("PyDict_Next", CODE, OBJECT, OBJECT, OBJECT, OBJECT)
item_of = asked("PyDict_GetItemWithError", OBJECT, OBJECT, OBJECT)
put = asked("PyDict_SetItem", CODE, OBJECT, OBJECT, OBJECT)
size_of = asked("PyDict_Size", WHOLE, OBJECT)
float_of = asked("PyFloat_AsDouble", NUMBER, OBJECT)
int_of = asked("PyLong_AsLongLong", WHOLE, OBJECT)
int_from = asked("PyLong_FromLongLong", OBJECT, WHOLE)
hold = asked("Py_IncRef", NOTHING, OBJECT)
let_go = asked("Py_DecRef", NOTHING, OBJECT)
failed = asked("PyErr_Occurred", OBJECT)
forgive = asked("PyErr_Clear", NOTHING)


@compiled
def slot_of(name, names, adding):
    """Return the slot of a name as below, or −1 where the interpreter cannot tell."""
    if names == 0:
        return int_of(name)
    held = item_of(names, name)
    if held != 0:
        return int_of(held)
    if failed() != 0:
        return -1
    if not adding:
        return 0
    slot = size_of(names) + 1
    new = int_from(slot)
    if new == 0:
        return -1
    done = put(names, name, new)
    let_go(new)
    return slot if done == 0 else -1


@compiled
def read(x, names, numbers, places, label, importance, adding):
    """Write a dict of names and values as a row, and return whether it could be, and all of x was read.

    Numbers get label, importance and, after the shape, values; places get the ends of the row, 0 and how many entries
    there are, and slots. ``names`` is a dict that knows the slot of each name, or 0 where names are slots. Others get
    the next slot if they are to be added, and 0 otherwise. Values come first: a row of which one cannot be written
    leaves no names behind.
    """
    cells = places[places.size - CELLS :]
    at, room = np.uint64(cells.ctypes.data), places.size - CELLS - 2
    count = size_of(x)
    numbers[0], numbers[1], places[0], places[1] = label, importance, 0, count
    cells[0], k = 0, 0
    while next_of(x, at, at + WORD, at + WORD + WORD) != 0:
        value = np.uint64(cells[2])
        # Turning something into a number may run anybody's code, even some that takes it out of the dict.
        hold(value)
        found = float_of(value)
        let_go(value)
        wrong = found == -1.0 and failed() != 0
        if wrong or k == room:
            forgive()
            return False
        numbers[FRONT + k] = found
        k += 1
    cells[0], j = 0, 0
    while j < k and next_of(x, at, at + WORD, at + WORD + WORD) != 0:
        slot = slot_of(np.uint64(cells[1]), names, adding)
        if slot < 0:
            forgive()
            return False
        places[2 + j] = slot
        j += 1
    return j == count and k == count


if disabled():
    read = plain.read
