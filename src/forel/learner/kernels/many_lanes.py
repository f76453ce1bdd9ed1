"""The coordinates of a row in many lanes: one coordinate after the other, with its lanes as a vector.

Scratch has the weight X and ROOT = √n for each coordinate of the row and each lane. Lanes from FIRST_FILTER on are
Gaussian filters, which have the variance in place of √n. Where both kinds of lanes are used, both updates are computed
for all lanes and one is selected, so that the loop vectorizes.

The compiler processes lanes that do not fill a vector of eight one by one. Where LANES is not a multiple of eight, the
parts of a record are copied to the row, padded to PADDED numbers each, and loops over lanes use the copies.
"""

import numpy as np

from forel.learner.kernels.coordinates import (
    bias_coordinate,
    certified_lane,
    clip_to_range,
    in_units,
    is_ordinary,
    lane,
    penalized_lane,
    prefetch_distance,
    prefetch_record,
    row_lanes,
    unit,
)
from forel.learner.kernels.reference import (
    CERTIFIED,
    CERTIFIED_LANES,
    DECAYS,
    FILTERS,
    FIRST_FILTER,
    GRADIENT_LIMIT,
    KEEPS_GRADIENTS,
    KEEPS_GRADIENTS_BY_SCALES,
    KEEPS_POINTS,
    LANES,
    LARGEST_UNIT,
    MAX,
    ONE,
    PADDED,
    PARTS,
    PRIMAL,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    ROW_BOUND_TERMS,
    ROW_CLIPPED,
    ROW_CURVATURE,
    ROW_DAMPED,
    ROW_FILTERS,
    ROW_KEPT,
    ROW_KEPT_NOISE,
    ROW_RECORD,
    ROW_SLOPE,
    ROW_VARIANCE,
    SCALE_FREE,
    SCALE_WIDTH,
    UNROLLED,
    WIDTH,
    add_gradients,
    inline,
    inline_ir,
    inverse_power,
    load_lanes,
    store_lanes,
)
from forel.learner.kernels.row_losses import damp_slopes, gather_kept_slopes
from forel.learner.kernels.stochastic_rounding import add
from forel.learner.kernels.updates import argmin, decayed, filter_step, precision, shrink, step, strength

SCRATCH_STRIDE = np.uint64(2 * PADDED)
X, ROOT = np.uint64(0), np.uint64(PADDED)
GRADIENTS = np.uint64(2 * LANES if KEEPS_GRADIENTS else 0)  # offset of g_{1:t} in a record
PADS = PADDED > LANES


@inline_ir
def lane_count(parameters):
    """Return PADDED; as a variable where loops must not be unrolled before they are vectorized."""
    if UNROLLED:
        return PADDED
    return row_lanes(parameters)


@inline_ir
def filter_lane(row, k):
    """Return whether lane k is a filter; loops of variable length that compare k itself would not vectorize."""
    if UNROLLED or FILTERS == 0:
        return k >= FIRST_FILTER
    return row[ROW_FILTERS + k] > 0


@inline
def load_parts(w, at, parts):
    """Copy the first ``parts`` parts of the record at ``at`` to the row, if lanes are padded."""
    if PADS:
        for part in range(parts):
            load_lanes(w.state, at + np.uint64(part * LANES), w.row, np.uint64(ROW_RECORD + part * PADDED), LANES)


@inline
def store_parts(w, at, parts):
    """Copy the first ``parts`` parts of a record back from the row, if lanes are padded."""
    if PADS:
        for part in range(parts):
            store_lanes(w.row, np.uint64(ROW_RECORD + part * PADDED), w.state, at + np.uint64(part * LANES), LANES)


@inline_ir
def part_of(w, at, part, k):
    """Return a part of the record at ``at`` in lane k."""
    if PADS:
        return w.row[ROW_RECORD + part * PADDED + k]
    return w.state[at + np.uint64(part * LANES + k)]


@inline_ir
def set_part(w, at, part, k, number):
    """Set a part of the record at ``at`` in lane k."""
    if PADS:
        w.row[ROW_RECORD + part * PADDED + k] = number
    else:
        w.state[at + np.uint64(part * LANES + k)] = number


@inline
def scratch_size(longest):
    """Return the size of scratch for rows of up to ``longest`` coordinates, the bias included."""
    return (np.uint64(longest) + ONE) * SCRATCH_STRIDE


@inline
def scratch_offset(i, k):
    """Return the offset of the i-th coordinate of the row and lane k in scratch."""
    return i * SCRATCH_STRIDE + np.uint64(k)


@inline
def scale_and_units(before, v):
    """Return the scale after the value v, in its unit, that unit and its inverse, and the factor to the old unit."""
    s = max(before, abs(v))
    if is_ordinary(s) and (before == 0 or is_ordinary(before)):  # a well-predicted branch
        return s, REAL_ONE, REAL_ONE, REAL_ONE
    u, inverse = unit(s)
    # New records are 0 in any unit; times an infinite factor they would not be.
    return s * inverse, u, inverse, min(u * unit(before)[1], MAX)


@inline
def weight_at(w, q, i, k):
    """Return the weight of coordinate q, the i-th of the row, in lane k."""
    x = w.scratch[scratch_offset(i, k) + X]
    if SCALE_FREE:
        x = clip_to_range(x * unit(w.scales[q * SCALE_WIDTH])[1])
    return x


@inline_ir
def in_new_unit(z, n, is_filter, growth):
    """Return z and n, or the mean and the information of a filter, after the unit grew by a factor."""
    if SCALE_FREE and not PRIMAL:
        shrinkage = inverse_power(min(growth, LARGEST_UNIT))
        n *= shrinkage * shrinkage
        if FILTERS > 0:
            return clip_to_range(z * (growth if is_filter else shrinkage)), n
        return z * shrinkage, n
    if SCALE_FREE:
        shrinkage = inverse_power(min(growth, LARGEST_UNIT))
        return z, n * shrinkage * shrinkage
    return z, n


@inline_ir
def lane_weight(z, n, p, skipped, is_filter, s, old_scale, u, inverse, growth, penalty, penalized):
    """Return the weight of a coordinate in one lane, √n or the variance of a filter, and the latter, in its unit.

    Penalties of ``skipped`` rounds are applied, in which the scale was the old one.
    """
    z, n = in_new_unit(z, n, is_filter, growth)
    root_n = np.sqrt(n)
    if PRIMAL:
        p = in_units(penalized_lane(p, penalized), u, inverse)
        x = clip_to_range(z * u) if SCALE_FREE else z
        if DECAYS:
            x = REAL(decayed(x, strength(root_n, old_scale, p), skipped, p))
        return x, root_n, root_n
    # Penalties that overflow give a weight of 0, as they should.
    first, radius = penalty * penalized, p.radius
    second = first
    if SCALE_FREE:
        first, second = min(first * inverse, MAX), min(first * inverse * inverse, MAX)
        radius = min(radius, MAX * min(inverse, REAL_ONE)) * u
    x, variance = argmin(z, strength(root_n, s, p), p.l1 * first, p.l2 * second, radius), root_n
    if FILTERS > 0:
        inverse_variance = precision(n, s, p)
        filtered, variance = shrink(z, inverse_variance, penalized * p.beta), REAL_ONE / inverse_variance
        x, root_n = (filtered, variance) if is_filter else (x, root_n)
    return x, root_n, variance


@inline_ir
def read_coordinate(w, t, q, i, s, u, inverse, growth, v, penalty, penalized):
    """Compute the weights of coordinate q, the i-th of the row, and add weights times value to the margins."""
    at, place, old_scale, skipped = q * WIDTH, i * SCRATCH_STRIDE, s, REAL_ZERO
    if DECAYS:
        skipped = REAL(t - w.last_round[q])
        if SCALE_FREE:
            old_scale = w.scales[q * SCALE_WIDTH] * inverse
    load_parts(w, at, 2)
    for k in range(lane_count(w.parameters)):
        z, n, p = part_of(w, at, 0, k), part_of(w, at, 1, k), lane(w.parameters, k)
        x, root_n, variance = lane_weight(
            z, n, p, skipped, filter_lane(w.row, k), s, old_scale, u, inverse, growth, penalty, penalized
        )
        if FILTERS > 0:
            w.row[ROW_VARIANCE + k] += variance * v * v
        w.scratch[place + X + np.uint64(k)] = x
        w.scratch[place + ROOT + np.uint64(k)] = root_n
        w.row[k] += x * v


@inline_ir
def gather_row(w, t, indices, values, lo, hi, bias, penalty, held):
    """Compute the weights of a row's coordinates and its margins.

    ``bias`` is 1 if the row has the constant feature, else 0; ``penalty`` is α_{1:t−1}. Values of a row that is
    ``held`` out are clipped to the scales of their coordinates, beyond which weights are not known.
    """
    bias_index, ahead = bias_coordinate(w.state), prefetch_distance(indices, hi)
    for j in range(lo, hi + bias):
        q, v, penalized = bias_index, REAL_ONE, REAL_ZERO
        if j < hi:
            prefetch_record(w, indices, j + ahead)
            q, v, penalized = np.uint64(indices[j]), values[j], REAL_ONE
        s, u, inverse, growth = REAL_ONE, REAL_ONE, REAL_ONE, REAL_ONE
        if SCALE_FREE:
            before = w.scales[q * SCALE_WIDTH]
            if held:
                v = min(max(v, -before), before)
            s, u, inverse, growth = scale_and_units(before, v)
            v *= inverse
        read_coordinate(w, t, q, j - lo, s, u, inverse, growth, v, penalty, penalized)


@inline_ir
def step_lanes(w, t, q, i, s, u, inverse, growth, v, penalized, penalty, noise_z, noise_n):
    """Take the step of coordinate q, the i-th of the row, in every lane, along the slopes of the row times v."""
    at, place, row = q * WIDTH, i * SCRATCH_STRIDE, w.row
    load_parts(w, at, PARTS)
    for k in range(lane_count(w.parameters)):
        p = in_units(penalized_lane(lane(w.parameters, k), penalized), u, inverse)
        x, root_n = w.scratch[place + X + np.uint64(k)], w.scratch[place + ROOT + np.uint64(k)]
        is_filter = filter_lane(row, k)
        z, n = in_new_unit(part_of(w, at, 0, k), part_of(w, at, 1, k), is_filter, growth)
        mean, information = z, n
        if FILTERS > 0:
            mean, information = filter_step(
                mean, n, v, root_n, row[ROW_VARIANCE + k], row[ROW_DAMPED + k], row[ROW_CURVATURE + k],
                lane(w.parameters, k).l2, noise_z, noise_n,
            )  # fmt: skip
        z, n, h, used_z, used_n, gain, bound_term = step(
            z, n, x, root_n, row[ROW_SLOPE + k] * v, s, penalty, p, noise_z, noise_n
        )
        if SCALE_FREE and PRIMAL:
            z = clip_to_range(z * inverse)
        if FILTERS > 0:
            z, n = (mean, information) if is_filter else (z, n)
        set_part(w, at, 0, k, z)
        set_part(w, at, 1, k, n)
        if KEEPS_GRADIENTS:
            g = part_of(w, at, 2, k)
            if SCALE_FREE:
                g *= inverse_power(min(growth, LARGEST_UNIT))
            set_part(w, at, 2, k, add(g, h, -used_z))
        if KEEPS_POINTS:
            points = part_of(w, at, 3, k)
            if SCALE_FREE:
                points *= inverse_power(min(growth, LARGEST_UNIT))
            set_part(w, at, 3, k, add(points, gain * x, -used_n))
            row[ROW_BOUND_TERMS + k] += bound_term
    store_parts(w, at, PARTS)
    if DECAYS:
        w.last_round[q] = t + 1


@inline_ir
def step_row(w, t, indices, values, lo, hi, bias, penalty, noise_z, noise_n):
    """Take the steps of the row's coordinates; ``penalty`` is α_t."""
    if FILTERS > 0:
        damp_slopes(w)
    if KEEPS_GRADIENTS_BY_SCALES:
        gather_kept_slopes(w, noise_z)
    largest = step_coordinates(w, t, indices, values, lo, hi, bias, penalty, noise_z, noise_n)
    if CERTIFIED:
        for m in range(CERTIFIED_LANES):
            k = certified_lane(m)
            w.row[ROW_CLIPPED + k] += REAL_ONE if abs(w.row[ROW_SLOPE + k]) * largest > GRADIENT_LIMIT else REAL_ZERO


@inline_ir
def step_coordinates(w, t, indices, values, lo, hi, bias, penalty, noise_z, noise_n):
    """Take the steps of the row's coordinates one after the other; return the largest |value|."""
    bias_index, largest = bias_coordinate(w.state), REAL(bias)
    for j in range(lo, hi + bias):
        q, v, penalized = bias_index, REAL_ONE, REAL_ZERO
        if j < hi:
            q, v, penalized = np.uint64(indices[j]), values[j], REAL_ONE
        s, u, inverse, growth = REAL_ONE, REAL_ONE, REAL_ONE, REAL_ONE
        if SCALE_FREE:
            before = w.scales[q * SCALE_WIDTH]
            s, u, inverse, growth = scale_and_units(before, v)
            scale = max(before, abs(v))
            v *= inverse
            if KEEPS_GRADIENTS_BY_SCALES:
                at = q * SCALE_WIDTH
                add_gradients(
                    w.scales, at, scale, inverse_power(min(growth, LARGEST_UNIT)), w.row, ROW_KEPT, ROW_KEPT_NOISE, v
                )
            else:
                w.scales[q] = scale
        largest = max(largest, abs(v))
        step_lanes(w, t, q, j - lo, s, u, inverse, growth, v, penalized, penalty, noise_z, noise_n)
    return largest


@inline
def add_gradient_square(w, q, i, times):
    """Add ``times`` G² of coordinate q in every lane, and for scale-free rates ``times`` (G/s)², s being its scale."""
    at, u, ratio = q * WIDTH + GRADIENTS, 1.0, 1.0
    if SCALE_FREE:
        u = np.float64(unit(w.scales[q * SCALE_WIDTH])[0])
        scale = np.float64(w.scales[q * SCALE_WIDTH])
        ratio = u / scale if scale > 0 else 1.0  # one division for all lanes
    for m in range(CERTIFIED_LANES):
        k = certified_lane(m)
        stored = np.float64(w.state[at + np.uint64(m)])
        if KEEPS_GRADIENTS_BY_SCALES:
            stored = np.float64(w.scales[q * SCALE_WIDTH + np.uint64(1 + m)])
        g = u * stored
        w.sums[k] += times * g * g
        if SCALE_FREE:
            g = ratio * stored
            w.sums[2 * PADDED + k] += times * g * g
