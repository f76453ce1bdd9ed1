"""The losses of a row, and the slopes of the lanes' steps.

The slope of the step is that of the loss, except for implicit updates, which use the slope at the point after the step.
"""

import numpy as np

from forel.learner.kernels.coordinates import lane, row_lanes
from forel.learner.kernels.filters import row_curvature
from forel.learner.kernels.many_lanes import AFTER, X, coordinate, scratch_offset
from forel.learner.kernels.rates import accumulate, root, strength
from forel.learner.kernels.reference import (
    BIAS,
    FILTERS,
    IMPLICIT,
    JOINT,
    LANES,
    MAX,
    PADDED,
    PER_CLASS,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    ROW_CURVATURE,
    ROW_NEXT_STRENGTH,
    ROW_SLOPE,
    ROW_STEP,
    SETTINGS,
    SIGNED,
    USER_LOSS,
    inline,
    inline_ir,
    loss,
)
from forel.learner.kernels.units import in_units
from forel.learner.kernels.updates import argmin


@inline
def target(label, k):
    """Return the label of lane k: the label of the row, or whether the row belongs to the lane's class."""
    if PER_CLASS:
        other = -REAL_ONE if SIGNED else REAL_ZERO
        return REAL_ONE if label == k // SETTINGS else other
    return label


@inline
def value_and_slope(margin, label, shape):
    """Return the loss and its slope; a user-defined loss has no shape parameter."""
    if USER_LOSS:
        return loss(margin, label)
    return loss(margin, label, shape)


@inline
def margin_losses(w, label, importance, shape):
    """Write losses and slopes of all lanes."""
    row, sums = w.row, w.sums
    for k in range(row_lanes(w.parameters)):
        value, slope = value_and_slope(row[k], target(label, k), shape)
        sums[PADDED + k] = np.float64(importance) * np.float64(value)
        row[ROW_STEP + k] = row[ROW_SLOPE + k] = importance * slope
        if FILTERS > 0:
            row[ROW_CURVATURE + k] = row_curvature(row[k], importance)


@inline
def softmax_losses(w, label, importance):
    """Write the loss of each setting, log Σ_j e^{m_j − m_y}, and the slopes of its classes."""
    row, sums = w.row, w.sums
    for s in range(SETTINGS):
        label_lane, top = np.intp(label) * SETTINGS + s, s
        for k in range(s, LANES, SETTINGS):
            top = k if row[k] > row[top] else top
        rest = 0.0
        for k in range(s, LANES, SETTINGS):
            row[ROW_STEP + k] = np.exp(row[k] - row[top])
            rest += 0.0 if k == top else np.float64(row[ROW_STEP + k])
        sums[PADDED + s] = np.float64(importance) * (np.float64(row[top] - row[label_lane]) + np.log1p(rest))
        others = 0.0
        for k in range(s, LANES, SETTINGS):
            row[ROW_STEP + k] *= importance / REAL(1 + rest)
            others += 0.0 if k == label_lane else np.float64(row[ROW_STEP + k])
        row[ROW_STEP + label_lane] = -others
        for k in range(s, LANES, SETTINGS):
            row[ROW_SLOPE + k] = row[ROW_STEP + k]


@inline
def implicit_slopes(w, indices, values, lo, hi, label, importance, shape, penalty):
    """Replace the slopes of the step by s = ℓ'(m(s)), with m(s) the margin after a step along s.

    The solution is between 0 and the slope at the current point. Secant steps and bisection alternate: fast where the
    slope is smooth, and convergent where it jumps.
    """
    row, scratch = w.row, w.scratch
    for k in range(LANES):
        p = lane(w.parameters, k)
        for i in range(hi - lo + BIAS):
            v, penalized, s, n, _, _ = coordinate(w, indices, values, lo, hi, i, k)
            g = row[ROW_SLOPE + k] * v
            n = min(accumulate(n, g * g, row[ROW_NEXT_STRENGTH + k], REAL_ZERO), MAX)
            scratch[scratch_offset(i, k) + AFTER] = strength(root(n), s, row[ROW_NEXT_STRENGTH + k], p)
        inner, outer = 0.0, np.float64(row[ROW_SLOPE + k])  # ends of the bracket
        inner_excess, outer_excess = -outer, 0.0
        for iteration in range(200):
            s = outer if iteration == 0 else (inner + outer) / 2
            if iteration > 0 and s in (inner, outer):
                break
            if iteration % 2 == 0 and iteration > 0:
                secant = inner - inner_excess * (outer - inner) / (outer_excess - inner_excess)
                s = secant if min(inner, outer) < secant < max(inner, outer) else s
            m = REAL_ZERO
            for i in range(hi - lo + BIAS):
                v, penalized, _, _, u, inverse = coordinate(w, indices, values, lo, hi, i, k)
                c, alpha, scaled = scratch_offset(i, k), penalty * penalized, in_units(p, u, inverse)
                x, after = scratch[c + X], scratch[c + AFTER]
                m += v * argmin(REAL(s) * v - after * x, after, alpha * scaled.l1, alpha * scaled.l2, scaled.radius)
            _, slope = value_and_slope(m, target(label, k), shape)
            excess = s - np.float64(importance) * np.float64(slope)
            if excess == 0:
                inner = outer = s
                break
            if (excess > 0) == (row[ROW_SLOPE + k] > 0):
                outer, outer_excess = s, excess
            else:
                inner, inner_excess = s, excess
        row[ROW_STEP + k] = outer


@inline_ir
def row_losses(w, indices, values, lo, hi, label, importance, shape, penalty):
    """Write losses and slopes of the row in every lane."""
    if JOINT:
        softmax_losses(w, label, importance)
    else:
        margin_losses(w, label, importance, shape)
        if IMPLICIT:
            implicit_slopes(w, indices, values, lo, hi, label, importance, shape, penalty)
