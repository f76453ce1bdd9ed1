"""Predicting and learning one row at a time, with all arrays given by their addresses.

Passing a dozen arrays from Python takes longer than a short row. ``block`` has the address and the length of each
array, in this order: places, numbers, state, scales, last_round, drift_marks, parameters, totals, out; and the key of
the rounding noise last. Places are the two ends of the row and its indices; numbers are label, importance, the loss's
shape parameter, and values.
"""

import numpy as np

from forel.learner.kernels.loops import learn, predict
from forel.learner.kernels.reference import REAL, carray, entry_with_gil, inline_ir, pointer


@inline_ir
def reals(block, k):
    """Return the k-th array of the block, of the type of the state."""
    return carray(pointer(block[2 * k]), (block[2 * k + 1],), REAL)


@inline_ir
def doubles(block, k):
    """Return the k-th array of the block, of float64."""
    return carray(pointer(block[2 * k]), (block[2 * k + 1],), np.float64)


@inline_ir
def integers(block, k):
    """Return the k-th array of the block, of int64."""
    return carray(pointer(block[2 * k]), (block[2 * k + 1],), np.int64)


@entry_with_gil
def predict_one(block, t):
    """Write the margins of a row after t rounds, and return the first of them."""
    places, values, out = integers(block, 0), reals(block, 1)[3:], reals(block, 8)
    state, scales, last_round, drift_marks = reals(block, 2), reals(block, 3), integers(block, 4), doubles(block, 5)
    predict(
        places[:2], places[2:], values, state, scales, last_round, drift_marks, t, block[18], reals(block, 6),
        doubles(block, 7), out,
    )  # fmt: skip
    return float(out[0])


@entry_with_gil
def learn_one(block, t, label):
    """Learn from a row whose label is given, and return 1, or 0 if that is not possible."""
    places, numbers = integers(block, 0), reals(block, 1)
    state, scales, last_round, drift_marks = reals(block, 2), reals(block, 3), integers(block, 4), doubles(block, 5)
    numbers[0] = label
    values = numbers[3:]
    return learn(
        places[:2], places[2:], values, numbers[:1], numbers[1:2], state, scales, last_round, drift_marks, t, block[18],
        reals(block, 6), numbers[2], places[1] + 1, doubles(block, 7), values[:0],
    )  # fmt: skip
