"""The losses of a row, and the slopes along which lanes step.

Slopes of the step and of the loss are the same, except for implicit updates, which step along the slope at the point
that they step to.
"""

import numpy as np

from forel.learner.kernels.coordinates import lane
from forel.learner.kernels.filters import margin_curvature
from forel.learner.kernels.many_lanes import AFTER, X, cell, coordinate
from forel.learner.kernels.rates import accumulate, root, strength
from forel.learner.kernels.reference import (
    BIAS,
    FILTERS,
    IMPLICIT,
    JOINT,
    LANES,
    MAX,
    PER_CLASS,
    REAL,
    ROW_CURVATURE,
    ROW_NEXT,
    ROW_SLOPE,
    ROW_STEP,
    SETTINGS,
    SIGNED,
    UNIT,
    USER_LOSS,
    inline,
    inline_ir,
    loss,
)
from forel.learner.kernels.units import in_units
from forel.learner.kernels.updates import argmin


@inline
def target(label, k):
    """Return the label of lane k: that of the row, or whether the row is of the lane's class."""
    if PER_CLASS:
        other = -UNIT if SIGNED else UNIT - UNIT
        return UNIT if label == k // SETTINGS else other
    return label


@inline
def value_and_slope(margin, label, shape):
    """Return the loss and its slope; a user's function has no shape parameter."""
    if USER_LOSS:
        return loss(margin, label)
    return loss(margin, label, shape)


@inline
def margin_losses(w, label, importance, shape):
    """Write losses and slopes of all lanes."""
    row, sums = w.row, w.sums
    for k in range(LANES):
        value, slope = value_and_slope(row[k], target(label, k), shape)
        sums[LANES + k] = np.float64(importance) * np.float64(value)
        row[ROW_STEP + k] = row[ROW_SLOPE + k] = importance * slope
        if FILTERS > 0:
            row[ROW_CURVATURE + k] = margin_curvature(row[k], importance)


@inline
def softmax_losses(w, label, importance):
    """Write the loss of each setting, log Σ_j e^{m_j − m_y}, and the slopes of its classes."""
    row, sums = w.row, w.sums
    for s in range(SETTINGS):
        hit, top = np.intp(label) * SETTINGS + s, s
        for k in range(s, LANES, SETTINGS):
            top = k if row[k] > row[top] else top
        rest = 0.0
        for k in range(s, LANES, SETTINGS):
            row[ROW_STEP + k] = np.exp(row[k] - row[top])
            rest += 0.0 if k == top else np.float64(row[ROW_STEP + k])
        sums[LANES + s] = np.float64(importance) * (np.float64(row[top] - row[hit]) + np.log1p(rest))
        others = 0.0
        for k in range(s, LANES, SETTINGS):
            row[ROW_STEP + k] *= importance / REAL(1 + rest)
            others += 0.0 if k == hit else np.float64(row[ROW_STEP + k])
        row[ROW_STEP + hit] = -others
        for k in range(s, LANES, SETTINGS):
            row[ROW_SLOPE + k] = row[ROW_STEP + k]


@inline
def implicit_slopes(w, indices, values, lo, hi, label, importance, shape, penalty):
    """Replace the slopes of the step by s = ℓ'(m(s)), with m(s) the margin after a step along s.

    The solution is between 0 and the slope at the present point. Secant steps and bisections alternate: fast where the
    slope is smooth, and certain where it jumps.
    """
    row, scratch = w.row, w.scratch
    for k in range(LANES):
        p = lane(w.parameters, k)
        for i in range(hi - lo + BIAS):
            v, penalised, s, n, _, _ = coordinate(w, indices, values, lo, hi, i, k)
            g = row[ROW_SLOPE + k] * v
            n = min(accumulate(n, g * g, row[ROW_NEXT + k], UNIT - UNIT), MAX)
            scratch[cell(i, k) + AFTER] = strength(root(n), s, row[ROW_NEXT + k], p)
        here, there = 0.0, np.float64(row[ROW_SLOPE + k])
        below, above = -there, 0.0
        for turn in range(200):
            s = there if turn == 0 else (here + there) / 2
            if turn > 0 and s in (here, there):
                break
            if turn % 2 == 0 and turn > 0:
                secant = here - below * (there - here) / (above - below)
                s = secant if min(here, there) < secant < max(here, there) else s
            m = UNIT - UNIT
            for i in range(hi - lo + BIAS):
                v, penalised, _, _, u, inverse = coordinate(w, indices, values, lo, hi, i, k)
                x, after, pull, own = (
                    scratch[cell(i, k) + X],
                    scratch[cell(i, k) + AFTER],
                    penalty * penalised,
                    in_units(p, u, inverse),
                )
                m += v * argmin(REAL(s) * v - after * x, after, pull * own.l1, pull * own.l2, own.radius)
            _, slope = value_and_slope(m, target(label, k), shape)
            excess = s - np.float64(importance) * np.float64(slope)
            if excess == 0:
                here = there = s
                break
            if (excess > 0) == (row[ROW_SLOPE + k] > 0):
                there, above = s, excess
            else:
                here, below = s, excess
        row[ROW_STEP + k] = there


@inline_ir
def row_losses(w, indices, values, lo, hi, label, importance, shape, penalty):
    """Write losses and slopes of the row in every lane."""
    if JOINT:
        softmax_losses(w, label, importance)
    else:
        margin_losses(w, label, importance, shape)
        if IMPLICIT:
            implicit_slopes(w, indices, values, lo, hi, label, importance, shape, penalty)
