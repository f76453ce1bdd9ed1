"""Prediction and learning of one row at a time, with all arrays given by their addresses.

Passing a dozen arrays from Python takes longer than a short row. ``arrays`` has the address and the length of each
array, in this order: places, numbers, state, scales, last_round, parameters, totals, out; and the key of
the rounding noise last. Places are the start and the end of the row and its indices; numbers are label, importance,
shape parameter of the loss, and values.
"""

import numpy as np

from forel.learner.kernels.loops import learn, score
from forel.learner.kernels.reference import REAL, carray, entry_with_gil, inline_ir, pointer


@inline_ir
def reals(arrays, k):
    """Return the k-th array of ``arrays``, of the type of the state."""
    return carray(pointer(arrays[2 * k]), (arrays[2 * k + 1],), REAL)


@inline_ir
def doubles(arrays, k):
    """Return the k-th array of ``arrays``, of float64."""
    return carray(pointer(arrays[2 * k]), (arrays[2 * k + 1],), np.float64)


@inline_ir
def integers(arrays, k):
    """Return the k-th array of ``arrays``, of int64."""
    return carray(pointer(arrays[2 * k]), (arrays[2 * k + 1],), np.int64)


@entry_with_gil
def predict_one(arrays, t):
    """Write the margins of a row after t rounds and return the first of them."""
    places, values, out = integers(arrays, 0), reals(arrays, 1)[3:], reals(arrays, 7)
    state, scales, last_round = reals(arrays, 2), reals(arrays, 3), integers(arrays, 4)
    score(
        places[:2], places[2:], values, state, scales, last_round, t, arrays[16], reals(arrays, 5),
        doubles(arrays, 6), False, out,
    )  # fmt: skip
    return float(out[0])


@entry_with_gil
def learn_one(arrays, t, label):
    """Learn from a row and its label, and write its margins before; return 1, or 0 if its loss is not finite."""
    places, numbers = integers(arrays, 0), reals(arrays, 1)
    state, scales, last_round = reals(arrays, 2), reals(arrays, 3), integers(arrays, 4)
    numbers[0] = label
    values = numbers[3:]
    return learn(
        places[:2], places[2:], values, numbers[:1], numbers[1:2], state, scales, last_round, t,
        arrays[16], reals(arrays, 5), numbers[2], places[1] + 1, doubles(arrays, 6), reals(arrays, 7),
    )  # fmt: skip
