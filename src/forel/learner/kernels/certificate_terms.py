"""The terms that a row adds to the sums of certificates."""

import numpy as np

from forel.learner.kernels.coordinates import bias_coordinate, certified_count, certified_lane
from forel.learner.kernels.many_lanes import add_gradient_square
from forel.learner.kernels.reference import (
    BINS,
    CERTIFIED_LANES,
    HISTOGRAM,
    JOINT,
    KEEPS_POINTS,
    LANES,
    ONE,
    PADDED,
    PER_CLASS,
    REAL,
    REAL_ONE,
    ROW_BOUND_TERMS,
    ROW_CLIPPED,
    ROW_SLOPE,
    SCALE_FREE,
    SETTINGS,
    SUM_BINS,
    SUM_BOUND_TERMS,
    SUM_CLIPPED,
    SUM_CONCAVITY,
    SUM_LIMIT,
    SUM_LINEARIZED,
    SUM_SCALED,
    SUM_SQUARES,
    ZERO,
    concavity,
    inline,
)
from forel.learner.kernels.row_losses import target


@inline
def add_to_certificate(w):
    """Add a row to the sums of certificates, or count it as clipped."""
    row, sums, totals = w.row, w.sums, w.totals
    for m in range(CERTIFIED_LANES):
        k = certified_lane(m)
        linearized, bound_term = sums[PADDED + k], 0.0
        if KEEPS_POINTS:
            bound_term = 0.5 * np.float64(row[ROW_BOUND_TERMS + k])
        fits = abs(linearized) <= SUM_LIMIT and bound_term <= SUM_LIMIT and sums[k] <= SUM_LIMIT
        if row[ROW_CLIPPED + k] == 0 and fits:
            totals[SUM_LINEARIZED + k] += linearized
            totals[SUM_BOUND_TERMS + k] += bound_term
            totals[SUM_SQUARES + k] += sums[k]
            if SCALE_FREE:
                totals[SUM_SCALED + k] += sums[2 * PADDED + k]
        else:
            totals[SUM_CLIPPED + k] += 1.0


@inline
def add_to_histogram(w, label, importance):
    """Add the slope of every lane to its histogram; for a joint loss that of the label's class, for each setting.

    Rows whose label is strictly between 0 and 1 are left out: ``add_concavity`` adds them.
    """
    row, totals = w.row, w.totals
    if importance > 0 and (PER_CLASS or JOINT or label * (REAL_ONE - label) == 0):
        inverse = REAL_ONE / importance
        # Reuses entries of the row that are no longer needed, and has no branches, so that it vectorizes. Two square
        # roots take less time than a logarithm and give narrow bins at small slopes.
        for m in range(certified_count(w.parameters)):
            k = certified_lane(m)
            size = abs(row[ROW_SLOPE + k]) * inverse
            size = size if size <= REAL_ONE else REAL_ONE
            row[ROW_BOUND_TERMS + k] = size
            row[ROW_CLIPPED + k] = min(REAL(BINS) * np.sqrt(np.sqrt(size)), REAL(BINS - 1))
        for m in range(SETTINGS if JOINT else CERTIFIED_LANES):
            k = certified_lane(m)
            label_lane = k
            if JOINT:
                label_lane = np.intp(label) * SETTINGS + k
            at = np.uint64(SUM_BINS + 2 * LANES * np.int64(row[ROW_CLIPPED + label_lane]) + k)
            totals[at] += np.float64(importance)
            totals[at + np.uint64(LANES)] += np.float64(importance) * np.float64(row[ROW_BOUND_TERMS + label_lane])


@inline
def add_concavity(w, label, importance):
    """Add the coefficients of the lower bound on a row's dual value, a function of θ, to the sums of every lane."""
    row, totals = w.row, w.totals
    if not HISTOGRAM or (not PER_CLASS and label * (REAL_ONE - label) != 0):
        weight = np.float64(importance)
        for m in range(CERTIFIED_LANES):
            k = certified_lane(m)
            slope = np.float64(row[ROW_SLOPE + k]) / weight if weight > 0 else 0.0
            least, curvature, entropy = concavity(slope, np.float64(target(label, k)))
            totals[SUM_CONCAVITY + k] += weight * least
            totals[SUM_CONCAVITY + LANES + k] += weight * curvature
            totals[SUM_CONCAVITY + 2 * LANES + k] += weight * entropy


@inline
def sample_gradient_squares(w, t, indices, lo, hi, bias, key):
    """Estimate Σ G² of the row from one of its coordinates, in turn, times their number, plus that of the bias."""
    # No branch for empty rows, whose factor is 0: a branch would cost a tenth of a row's time.
    count = hi - lo
    i = np.uint64(t + (key & 65535)) % max(count, ONE)
    q = np.uint64(indices[lo + i]) if count > ZERO else bias_coordinate(w.state)
    add_gradient_square(w, q, i, np.float64(count))
    if bias > ZERO:
        add_gradient_square(w, bias_coordinate(w.state), count, 1.0)
