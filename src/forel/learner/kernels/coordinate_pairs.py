"""Two coordinates at a time: four settings, or four filters, of both are a vector of eight numbers.

Settings and filters have different updates of four lanes each, which would use half of a vector for one coordinate.
A vector has four numbers of the first coordinate of a pair before four of the second. A coordinate without a partner is
its own partner: both halves are equal, and only the first is added to margins.
"""

import numpy as np

from forel.learner.kernels.coordinates import bias_coordinate, prefetch_distance, prefetch_record, row_lanes
from forel.learner.kernels.filters import filter_step, precision, shrink
from forel.learner.kernels.rates import root, strength
from forel.learner.kernels.reference import (
    KEEPS_GRADIENTS_BY_SCALES,
    LANES,
    MAX,
    ONE,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    ROW_CURVATURE,
    ROW_DAMPED,
    ROW_KEPT,
    ROW_KEPT_NOISE,
    ROW_MARGIN,
    ROW_PAIRS,
    ROW_SLOPE,
    ROW_VARIANCE,
    SCALE_WIDTH,
    THRESHOLDS,
    WIDTH,
    ZERO,
    Lane,
    add_gradients,
    add_product,
    exchange_halves,
    inline,
    inline_ir,
)
from forel.learner.kernels.units import first_scale
from forel.learner.kernels.updates import argmin, step

HALF, TWO, N_OFFSET = LANES // 2, np.uint64(2), np.uint64(LANES)
# A pair in scratch: weights of settings and of filters, √n of settings, variances of filters.
STRIDE, X, FILTERED, ROOT, VARIANCE = (np.uint64(LANES * j) for j in (4, 0, 1, 2, 3))
# In the row: records of a pair, variances times values, and of each coordinate weights in order of lanes and the
# variances, twice; then what all pairs of a row have in common: penalties of settings, and for settings and for filters
# slopes and parameters.
Z, MEAN, N, INFORMATION, WEIGHTED, FIRST_X, SECOND_X, FIRST_V, SECOND_V = (ROW_PAIRS + LANES * j for j in range(9))
L1, L2, SLOPES, DAMPED, CURVATURES, PARAMETERS = (ROW_PAIRS + LANES * j for j in (9, 10, 11, 13, 15, 17))


@inline
def offset_in_pair(i, k):
    """Return the offset of the i-th coordinate of the row and lane k in scratch."""
    place = i // TWO * STRIDE + i % TWO * np.uint64(HALF)
    return place + np.uint64(k // HALF * LANES + k % HALF)


@inline
def pair_parameters(w):
    """Write the parameters of all settings, twice, and of all filters, twice, to the row."""
    for j in range(5):
        at = PARAMETERS + 2 * LANES * j
        exchange_halves(w.parameters, LANES * j, LANES * j, w.row, at, at + LANES, LANES)


@inline
def parameters_at(row, k):
    """Return the parameters of a setting, or from LANES on of a filter, at a position of a vector."""
    at = PARAMETERS + k
    return Lane(row[at], row[at + 2 * LANES], row[at + 4 * LANES], row[at + 6 * LANES], row[at + 8 * LANES])


@inline
def gather_pair(w, first, second):
    """Gather z and n of settings, and mean and information of filters, of two records."""
    exchange_halves(w.state, first, second, w.row, Z, MEAN, LANES)
    exchange_halves(w.state, first + N_OFFSET, second + N_OFFSET, w.row, N, INFORMATION, LANES)


@inline
def scatter_pair(w, first, second):
    """Write what ``gather_pair`` reads."""
    exchange_halves(w.row, Z, MEAN, w.state, first, second, LANES)
    exchange_halves(w.row, N, INFORMATION, w.state, first + N_OFFSET, second + N_OFFSET, LANES)


@inline_ir
def gather_pairs(w, indices, values, lo, hi, bias, penalty):
    """Compute the weights of a row's coordinates and its margins; return whether all units are 1."""
    bias_index, ahead, end = bias_coordinate(w.state), prefetch_distance(indices, hi), hi + bias
    row, scratch, smallest, largest = w.row, w.scratch, REAL_ONE, REAL_ONE
    for k in range(row_lanes(w.parameters)):
        p = parameters_at(row, k)
        row[L1 + k], row[L2 + k] = penalty * p.l1, penalty * p.l2
    for i in range(ZERO, (end - lo + ONE) // TWO):
        j, place = lo + TWO * i, i * STRIDE
        q, v, limit = bias_index, REAL_ONE, REAL_ZERO
        if j < hi:
            prefetch_record(w, indices, j + ahead)
            q, v, limit = np.uint64(indices[j]), values[j], MAX
        other, other_v, other_limit = q, v, limit
        if j + ONE < end:
            other, other_v, other_limit = bias_index, REAL_ONE, REAL_ZERO
            if j + ONE < hi:
                prefetch_record(w, indices, j + ONE + ahead)
                other, other_v, other_limit = np.uint64(indices[j + ONE]), values[j + ONE], MAX
        before, other_before = w.scales[q * SCALE_WIDTH], w.scales[other * SCALE_WIDTH]
        scale, other_scale = max(before, abs(v)), max(other_before, abs(other_v))
        smallest = min(smallest, min(first_scale(before, v), first_scale(other_before, other_v)))
        largest = max(largest, max(scale, other_scale))
        gather_pair(w, q * WIDTH, other * WIDTH)
        # One long loop: shorter ones are unrolled before they are vectorized. Penalties of the bias are 0 by a minimum
        # and not by a product: of a sum of two products the compiler fuses either.
        for k in range(LANES):
            value, s, largest_penalty = (v, scale, limit) if k < HALF else (other_v, other_scale, other_limit)
            p, at, root_n = parameters_at(row, k), place + np.uint64(k), root(row[N + k])
            l1, l2 = min(row[L1 + k], largest_penalty), min(row[L2 + k], largest_penalty)
            scratch[at + X] = argmin(row[Z + k], strength(root_n, s, REAL_ZERO, p), l1, l2, p.radius)
            scratch[at + ROOT] = root_n
            p = parameters_at(row, LANES + k)
            inverse_variance = precision(row[INFORMATION + k], s, p)
            variance, shrinkage = REAL_ONE / inverse_variance, min(p.beta, largest_penalty)
            scratch[at + FILTERED] = shrink(row[MEAN + k], inverse_variance, shrinkage)
            scratch[at + VARIANCE] = variance
            row[WEIGHTED + k] = variance * value
        # One coordinate after the other, in the order in which margins are summed.
        exchange_halves(scratch, place + X, place + FILTERED, row, FIRST_X, SECOND_X, LANES)
        exchange_halves(row, WEIGHTED, WEIGHTED, row, FIRST_V, SECOND_V, LANES)
        add_product(row, ROW_MARGIN, FIRST_X, v, LANES)
        add_product(row, ROW_VARIANCE, FIRST_V, v, LANES)
        if j + ONE < end:
            add_product(row, ROW_MARGIN, SECOND_X, other_v, LANES)
            add_product(row, ROW_VARIANCE, SECOND_V, other_v, LANES)
    return (largest < THRESHOLDS[2]) & (smallest >= THRESHOLDS[1])


@inline
def update_scale(w, q, v):
    """Write and return the scale of a coordinate after the value v, and with a certificate add its gradients."""
    scale = max(w.scales[q * SCALE_WIDTH], abs(v))
    if KEEPS_GRADIENTS_BY_SCALES:
        add_gradients(w.scales, q * SCALE_WIDTH, scale, REAL_ONE, w.row, ROW_KEPT, ROW_KEPT_NOISE, v)
    else:
        w.scales[q] = scale
    return scale


@inline_ir
def step_pairs(w, indices, values, lo, hi, bias, penalty, noise_z, noise_n):
    """Take the steps of the row's coordinates; return the largest |value|."""
    bias_index, largest, end, row, scratch = bias_coordinate(w.state), REAL(bias), hi + bias, w.row, w.scratch
    exchange_halves(row, ROW_SLOPE, ROW_SLOPE, row, SLOPES, SLOPES + LANES, LANES)
    exchange_halves(row, ROW_DAMPED, ROW_DAMPED, row, DAMPED, DAMPED + LANES, LANES)
    exchange_halves(row, ROW_CURVATURE, ROW_CURVATURE, row, CURVATURES, CURVATURES + LANES, LANES)
    for i in range(ZERO, (end - lo + ONE) // TWO):
        j, place = lo + TWO * i, i * STRIDE
        q, v = bias_index, REAL_ONE
        if j < hi:
            q, v = np.uint64(indices[j]), values[j]
        scale = update_scale(w, q, v)
        other, other_v, other_scale = q, v, scale
        if j + ONE < end:
            other, other_v = bias_index, REAL_ONE
            if j + ONE < hi:
                other, other_v = np.uint64(indices[j + ONE]), values[j + ONE]
            other_scale = update_scale(w, other, other_v)
        largest = max(largest, max(abs(v), abs(other_v)))
        gather_pair(w, q * WIDTH, other * WIDTH)
        for k in range(LANES):
            value, s = (v, scale) if k < HALF else (other_v, other_scale)
            at, f, g = place + np.uint64(k), LANES + k, row[SLOPES + k] * value
            row[Z + k], row[N + k], _, _, _, _, _ = step(
                row[Z + k], row[N + k], scratch[at + X], scratch[at + ROOT], g, g, s, REAL_ZERO, REAL_ZERO, penalty,
                parameters_at(row, k), noise_z, noise_n,
            )  # fmt: skip
            row[MEAN + k], row[INFORMATION + k] = filter_step(
                row[MEAN + k], row[INFORMATION + k], value, scratch[at + VARIANCE], row[ROW_VARIANCE + k],
                row[DAMPED + f], row[CURVATURES + f], parameters_at(row, f).l2, noise_z, noise_n,
            )  # fmt: skip
        scatter_pair(w, q * WIDTH, other * WIDTH)
    return largest
