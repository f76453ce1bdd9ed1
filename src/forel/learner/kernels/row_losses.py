"""The losses of a row and their slopes, and the slopes in the form that the steps of many lanes need."""

import numpy as np

from forel.learner.kernels.coordinates import certified_lane, row_lanes
from forel.learner.kernels.reference import (
    CERTIFIED_LANES,
    FILTERS,
    GRADIENT_LIMIT,
    JOINT,
    LANES,
    PADDED,
    PER_CLASS,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    ROW_CLIPPED,
    ROW_CURVATURE,
    ROW_DAMPED,
    ROW_KEPT,
    ROW_KEPT_NOISE,
    ROW_SLOPE,
    ROW_VARIANCE,
    SETTINGS,
    SIGNED,
    USER_LOSS,
    inline,
    inline_ir,
    loss,
)
from forel.learner.kernels.updates import row_curvature


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
        row[ROW_SLOPE + k] = importance * slope
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
            row[ROW_SLOPE + k] = np.exp(row[k] - row[top])
            rest += 0.0 if k == top else np.float64(row[ROW_SLOPE + k])
        sums[PADDED + s] = np.float64(importance) * (np.float64(row[top] - row[label_lane]) + np.log1p(rest))
        others = 0.0
        for k in range(s, LANES, SETTINGS):
            row[ROW_SLOPE + k] *= importance / REAL(1 + rest)
            others += 0.0 if k == label_lane else np.float64(row[ROW_SLOPE + k])
        row[ROW_SLOPE + label_lane] = -others


@inline_ir
def row_losses(w, label, importance, shape):
    """Write losses and slopes of the row in every lane."""
    if JOINT:
        softmax_losses(w, label, importance)
    else:
        margin_losses(w, label, importance, shape)


@inline
def gather_kept_slopes(w, noise):
    """Put the slopes of the lanes whose gradients are kept after scales in the order of these gradients.

    Values in the unit of their coordinate are far from the range of the type, so that sums of their products with
    slopes within GRADIENT_LIMIT do not overflow; other slopes are left out, and their rows count as clipped.
    """
    row = w.row
    for m in range(CERTIFIED_LANES):
        k = certified_lane(m)
        slope = row[ROW_SLOPE + k]
        inside = abs(slope) <= GRADIENT_LIMIT
        row[ROW_CLIPPED + k] = row[ROW_CLIPPED + k] if inside else REAL_ONE
        row[ROW_KEPT + 1 + m] = slope if inside else REAL_ZERO
        row[ROW_KEPT_NOISE + 1 + m] = -noise if slope != 0 else REAL_ZERO  # a sum that does not change is not rounded


@inline
def damp_slopes(w):
    """Divide the slopes of filters by 1 + hS."""
    for k in range(row_lanes(w.parameters)):
        damping = REAL_ONE + w.row[ROW_CURVATURE + k] * w.row[ROW_VARIANCE + k]
        w.row[ROW_DAMPED + k] = w.row[ROW_SLOPE + k] / damping
