"""The best sequence of experts in hindsight, by dynamic programming."""

import numpy as np
from numpy.typing import ArrayLike

from forel.validation import Vector, floats, refuse, whole

__all__ = ["best_switching"]


def best_switching(losses: ArrayLike, switches: int) -> Vector:
    r"""Return the smallest total loss of a sequence of experts with at most 0, 1, …, m switches.

    $D_{t}(j, k) = \ell_{t,k} + \min\bigl(D_{t-1}(j, k), \min_i D_{t-1}(j - 1, i)\bigr)$, in time T·m·K.

    Parameters
    ----------
    losses : one row per round, one column per expert; may be infinite
    switches : m

    >>> best_switching([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], switches=1)
    array([1., 0.])

    Survey: section 3.6; M. Herbster and M. Warmuth, "Tracking the best expert" (1998)
    """
    table, m = floats("losses", losses, "a table of numbers"), whole("switches", switches)
    if table.ndim != 2 or table.size == 0 or not (table > -np.inf).all():
        raise refuse("losses", f"shape {table.shape}", "a table of numbers, one row per round, without NaN")
    best = np.zeros((m + 1, table.shape[1]))
    for row in table:
        best[1:] = np.minimum(best[1:], best[:-1].min(axis=1, keepdims=True))
        best += row
    return np.asarray(best.min(axis=1))
