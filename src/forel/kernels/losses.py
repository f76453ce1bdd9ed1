"""Margin losses as scalar functions of margin and label, each the twin of one in ``forel.losses``.

They compute in the type they are given, so that a float32 kernel stays in float32, and are finite for finite margins.
"""

import math

from numba import njit

fast = njit(error_model="numpy", nogil=True, fastmath=True)


@fast
def softplus(m):
    """Return log(1 + eᵐ)."""
    return max(m, m * 0) + math.log1p(math.exp(-abs(m)))


@fast
def sigmoid(m):
    """Return 1/(1 + e⁻ᵐ), from the exponential that does not overflow."""
    e = math.exp(-abs(m))
    return (e if m < 0 else e * 0 + 1) / (1 + e)


@fast
def logistic_value(m, y):
    """Return log(1 + eᵐ) − ym, without cancellation."""
    return y * softplus(-m) + (1 - y) * softplus(m)


@fast
def logistic_slope(m, y):
    """Return p − y."""
    return (1 - y) * sigmoid(m) - y * sigmoid(-m)


@fast
def squared_value(m, y):
    """Return ½(m − y)²."""
    return (m - y) * (m - y) / 2


@fast
def squared_slope(m, y):
    """Return m − y."""
    return m - y


@fast
def hinge_value(m, y):
    """Return max(0, 1 − ym)."""
    return max(1 - y * m, m * 0)


@fast
def hinge_slope(m, y):
    """Return −y where ym < 1."""
    return -y if y * m < 1 else y * 0


@fast
def squared_hinge_value(m, y):
    """Return ½ max(0, 1 − ym)²."""
    short = max(1 - y * m, m * 0)
    return short * short / 2


@fast
def squared_hinge_slope(m, y):
    """Return −y max(0, 1 − ym)."""
    return -y * max(1 - y * m, m * 0)


@fast
def absolute_value(m, y):
    """Return |m − y|."""
    return abs(m - y)


@fast
def absolute_slope(m, y):
    """Return the sign of m − y."""
    d = m - y
    return math.copysign(d * 0 + 1, d) if d != 0 else d * 0
