"""Margin losses as scalar functions of margin, label and shape, the compiled versions of those in ``forel.losses``.

A loss returns its value and its slope together, because both need the same exponential. Losses compute in the type of
their arguments, so that a float32 kernel stays in float32, and are finite for finite margins: values that may be large
are float64. The shape is the parameter of losses that have one.
"""

import numpy as np

from forel.learner.kernels.elementary import exp_minus, log1p
from forel.learner.kernels.reference import inline

ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)  # a Python float would promote float32 to float64


@inline
def logistic(m, y, shape):
    """Return log(1 + eᵐ) − ym and p − y, both without cancellation, from e^{−|m|}, which does not overflow."""
    e = exp_minus(abs(m))
    near, far = ONE / (ONE + e), e / (ONE + e)
    p, q = (near, far) if m > 0 else (far, near)
    value = log1p(e) + (ONE - y) * max(m, ZERO) + y * max(-m, ZERO)
    return value, (ONE - y) * p - y * q


@inline
def logistic_curvature(m):
    """Return p(1 − p)."""
    e = exp_minus(abs(m))
    return e / ((ONE + e) * (ONE + e))


@inline
def squared(m, y, shape):
    """Return ½(m − y)² and m − y."""
    d = m - y
    return HALF * np.float64(d) * d, d


@inline
def squared_curvature(m):
    """Return 1, in the type of the margin."""
    return m - m + ONE


@inline
def squared_error(m, y, shape):
    """Return (m − y)² and 2(m − y)."""
    d = m - y
    return np.float64(d) * d, d + d


@inline
def hinge(m, y, shape):
    """Return max(0, 1 − ym), and −y where ym < 1."""
    shortfall = ONE - y * m
    return max(shortfall, ZERO), (-y if shortfall > 0 else y - y)


@inline
def squared_hinge(m, y, shape):
    """Return ½ max(0, 1 − ym)² and −y max(0, 1 − ym)."""
    shortfall = max(ONE - y * m, ZERO)
    return HALF * np.float64(shortfall) * shortfall, -y * shortfall


@inline
def absolute(m, y, shape):
    """Return |m − y| and the sign of m − y."""
    d = m - y
    return abs(d), (np.copysign(ONE, d) + (d - d) if d != 0 else d - d)


@inline
def epsilon_insensitive(m, y, shape):
    """Return max(0, |m − y| − ε), and the sign of m − y outside of the tolerance ε."""
    d = m - y
    over = abs(d) - shape
    return max(over, ZERO), (np.copysign(ONE, d) + (d - d) if over > 0 else d - d)


@inline
def huber(m, y, shape):
    """Return ½d² up to |d| = δ and δ(|d| − δ/2) beyond, for d = m − y, and d clipped to ±δ."""
    d = m - y
    clipped = min(max(d, -shape), shape)
    return np.float64(clipped) * (d - HALF * clipped), clipped


@inline
def quantile(m, y, shape):
    """Return max(q(y − m), (1 − q)(m − y)), and −q below the label, 1 − q above."""
    d = m - y
    slope = (ONE - shape if d > 0 else -shape) if d != 0 else d
    return slope * d, slope


@inline
def poisson(m, y, shape):
    """Return eᵐ − ym and eᵐ − y, with the tangent beyond the cap."""
    mean = np.exp(min(m, shape))
    return np.float64(mean) * (ONE + max(m - shape, ZERO)) - np.float64(y) * m, mean - y
