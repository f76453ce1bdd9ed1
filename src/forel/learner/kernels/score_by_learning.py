"""Predictions and weights by the function that learns: a row that is held out is only predicted.

A process that has learned, or that finds the code of ``learn`` in the code cache, need not compile ``score`` as well.
Both have the same bits, because they compute margins by the same inlined functions.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from forel.jit import CachedFunction
from forel.jit.deferred import AT_ONCE

__all__ = ["score_by"]


def score_by(learn: CachedFunction, *arguments: Any) -> Callable[..., int] | None:
    """Return a function with the arguments of ``score`` that calls ``learn``, or None if that is not compiled yet."""
    if AT_ONCE in os.environ or not learn.cached(*_held_out(*arguments)):
        return None
    return lambda *arguments: learn(*_held_out(*arguments))


def _held_out(indptr: Any, indices: Any, values: Any, *others: Any) -> tuple[Any, ...]:
    """Return the arguments of ``learn`` for the same rows, all held out."""
    *arrays, parameters, totals, of_weights, out = others
    rows, real = indptr.size - 1, parameters.dtype.type
    labels, importance = np.zeros(rows, real), np.full(rows, -1, real)
    longest = int(np.diff(indptr).max(initial=0)) + 1
    arrays += [parameters, real(0), longest, totals, of_weights, out]
    return indptr, indices, values, labels, importance, *arrays
