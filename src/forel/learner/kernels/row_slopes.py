"""The slopes of a row in the form that the steps of many lanes need, once for all coordinates."""

from forel.learner.kernels.coordinates import certified_lane, row_lanes
from forel.learner.kernels.reference import (
    CERTIFIED_LANES,
    GRADIENT_LIMIT,
    REAL_ONE,
    REAL_ZERO,
    ROW_CLIPPED,
    ROW_CURVATURE,
    ROW_DAMPED,
    ROW_KEPT,
    ROW_KEPT_NOISE,
    ROW_SLOPE,
    ROW_VARIANCE,
    inline,
)


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
