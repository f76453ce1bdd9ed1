"""The coordinates of a row in many lanes: one coordinate after the other, with its lanes as a vector.

Scratch has the weight X and ROOT = √n for each coordinate of the row and each lane, and for implicit updates the
strength AFTER a step. Lanes from FIRST_FILTER on are Gaussian filters, which have the variance in place of √n. Where
both kinds of lanes are used, both updates are computed for all lanes and one is selected, so that the loop vectorizes.
"""

import numpy as np

from forel.learner.kernels.coordinates import (
    bias_coordinate,
    certified_lane,
    lane,
    penalized_lane,
    prefetch_distance,
    prefetch_record,
)
from forel.learner.kernels.filters import filter_step, precision, shrink
from forel.learner.kernels.padded_lanes import (
    filter_lane,
    lane_count,
    load_parts,
    part_of,
    set_part,
    store_parts,
)
from forel.learner.kernels.rates import root, strength
from forel.learner.kernels.reference import (
    CERTIFIED,
    CERTIFIED_LANES,
    DECAYS,
    DRIFTS,
    FILTERS,
    GRADIENT_LIMIT,
    IMPLICIT,
    KEEPS_GRADIENTS,
    KEEPS_GRADIENTS_BY_SCALES,
    KEEPS_POINTS,
    KEEPS_ROUND,
    LANES,
    ONE,
    PADDED,
    PARTS,
    PRIMAL,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    REPLAYS,
    ROW_BOUND_TERMS,
    ROW_CLIPPED,
    ROW_CURVATURE,
    ROW_DAMPED,
    ROW_KEPT,
    ROW_KEPT_NOISE,
    ROW_NEXT_STRENGTH,
    ROW_SLOPE,
    ROW_STEP,
    ROW_STRENGTH,
    ROW_VARIANCE,
    SCALE_FREE,
    SCALE_WIDTH,
    STOPS_AT_OTHER_UNITS,
    SUM_CLOCK,
    UNITS,
    WIDTH,
    add_gradients,
    inline,
    inline_ir,
)
from forel.learner.kernels.row_slopes import damp_slopes, gather_kept_slopes
from forel.learner.kernels.skipped_rounds import decayed, drifted, replayed
from forel.learner.kernels.stochastic_rounding import add
from forel.learner.kernels.units import clip_to_range, in_units, needs_other_unit, unit
from forel.learner.kernels.updates import step, weight

SCRATCH_STRIDE = np.uint64((3 if IMPLICIT else 2) * PADDED)
X, ROOT, AFTER = np.uint64(0), np.uint64(PADDED), np.uint64(2 * PADDED)
GRADIENTS = np.uint64(2 * LANES if KEEPS_GRADIENTS else 0)  # offset of g_{1:t} in a record


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
    """Return the scale after the value v, in its unit, that unit and its inverse, and the factor from the old unit."""
    s = max(before, abs(v))
    if UNITS:
        u, inverse = unit(s)
        # New records are 0 in any unit.
        return s * inverse, u, inverse, min(unit(before)[0] * inverse, REAL_ONE)
    return s, REAL_ONE, REAL_ONE, REAL_ONE


@inline
def coordinate(w, indices, values, lo, hi, i, k):
    """Return value, penalized flag, scale and n of the i-th coordinate in lane k, in its unit, the unit and 1/unit."""
    inside = i < hi - lo
    q = np.uint64(indices[lo + i]) if inside else bias_coordinate(w.state)
    v, penalized = (values[lo + i], REAL_ONE) if inside else (REAL_ONE, REAL_ZERO)
    s, u, inverse, n = REAL_ZERO, REAL_ONE, REAL_ONE, w.state[q * WIDTH + np.uint64(LANES + k)]
    if SCALE_FREE:
        s, u, inverse, change = scale_and_units(w.scales[q * SCALE_WIDTH], v)
        v, n = v * inverse, n * change * change
    return v, penalized, s, n, u, inverse


@inline
def weight_at(w, q, i, k):
    """Return the weight of coordinate q, the i-th of the row, in lane k."""
    x = w.scratch[scratch_offset(i, k) + X]
    if UNITS:
        x = clip_to_range(x * unit(w.scales[q * SCALE_WIDTH])[1])
    return x


@inline_ir
def lane_weight(z, n, p, t, since, clock, is_filter, s, old_scale, u, change, current_strength, penalty, penalized):
    """Return the weight of a coordinate in one lane, √n or the variance of a filter, and the latter, in its unit.

    Rounds from ``since`` on were skipped; in them, the clock of penalties advanced by ``clock``, the scale being old.
    """
    mean = z
    if UNITS:
        n *= change * change
        mean = clip_to_range(mean * u)
        if PRIMAL:
            z = mean
        else:
            z *= change
    root_n = root(n)
    if REPLAYS:
        z = REAL(replayed(z, since, t, p))
    x = weight(z, strength(root_n, s, current_strength, p), penalty, p)
    if DECAYS:
        x = REAL(decayed(x, strength(root_n, old_scale, current_strength, p), REAL(t - since), p))
    variance = root_n
    if FILTERS > 0:
        inverse_variance = precision(n, s, p)
        filtered, variance = shrink(mean, inverse_variance, penalized * p.beta), REAL_ONE / inverse_variance
        x, root_n = (filtered, variance) if is_filter else (x, root_n)
    if DRIFTS:
        x = REAL(drifted(x, clock, p))
    return x, root_n, variance


@inline_ir
def read_coordinate(w, t, q, i, s, u, inverse, change, v, penalty, penalized):
    """Compute the weights of coordinate q, the i-th of the row, and add weights times value to the margins."""
    at, place, old_scale, since, clock = q * WIDTH, i * SCRATCH_STRIDE, s, t, 0.0
    if DECAYS and SCALE_FREE:
        old_scale = w.scales[q * SCALE_WIDTH] * inverse
    if KEEPS_ROUND:
        since = w.last_round[q]
    load_parts(w, at, 2)
    for k in range(lane_count(w.parameters)):
        p = in_units(penalized_lane(lane(w.parameters, k), penalized), u, inverse)
        z, n, current_strength = part_of(w, at, 0, k), part_of(w, at, 1, k), w.row[ROW_STRENGTH + k]
        if DRIFTS:
            clock = w.totals[SUM_CLOCK + k] - w.drift_marks[q * np.uint64(LANES) + np.uint64(k)]
        x, root_n, variance = lane_weight(
            z, n, p, t, since, clock, filter_lane(w.row, k), s, old_scale, u, change, current_strength, penalty,
            penalized,
        )  # fmt: skip
        if FILTERS > 0:
            w.row[ROW_VARIANCE + k] += variance * v * v
        w.scratch[place + X + np.uint64(k)] = x
        w.scratch[place + ROOT + np.uint64(k)] = root_n
        w.row[k] += x * v


@inline_ir
def gather_row(w, t, indices, values, lo, hi, bias, penalty):
    """Compute the weights of a row's coordinates and its margins; return whether all units are 1.

    Kernels that support all units return True.

    ``bias`` is 1 if the row has the constant feature, else 0; ``penalty`` is α_{1:t−1}.
    """
    bias_index, ahead, fits = bias_coordinate(w.state), prefetch_distance(indices, hi), True
    for j in range(lo, hi + bias):
        q, v, penalized = bias_index, REAL_ONE, REAL_ZERO
        if j < hi:
            prefetch_record(w, indices, j + ahead)
            q, v, penalized = np.uint64(indices[j]), values[j], REAL_ONE
        s, u, inverse, change = REAL_ONE, REAL_ONE, REAL_ONE, REAL_ONE
        if SCALE_FREE:
            before = w.scales[q * SCALE_WIDTH]
            if STOPS_AT_OTHER_UNITS:
                fits &= not needs_other_unit(before, v)
            s, u, inverse, change = scale_and_units(before, v)
            v *= inverse
        read_coordinate(w, t, q, j - lo, s, u, inverse, change, v, penalty, penalized)
    return fits


@inline_ir
def step_lanes(w, t, q, i, s, u, inverse, change, v, penalized, penalty, noise_z, noise_n):
    """Take the step of coordinate q, the i-th of the row, in every lane, along the slopes of the row times v."""
    at, place, row = q * WIDTH, i * SCRATCH_STRIDE, w.row
    load_parts(w, at, PARTS)
    for k in range(lane_count(w.parameters)):
        p = in_units(penalized_lane(lane(w.parameters, k), penalized), u, inverse)
        step_slope, slope = row[ROW_STEP + k], row[ROW_SLOPE + k]
        current_strength, next_strength = row[ROW_STRENGTH + k], row[ROW_NEXT_STRENGTH + k]
        x, root_n = w.scratch[place + X + np.uint64(k)], w.scratch[place + ROOT + np.uint64(k)]
        z, n = part_of(w, at, 0, k), part_of(w, at, 1, k)
        if UNITS:
            z, n = z * change, n * change * change
        if REPLAYS:
            z = REAL(replayed(z, w.last_round[q], t, p))
        mean, information = z, n
        if FILTERS > 0:
            mean = part_of(w, at, 0, k)
            if UNITS:
                mean = clip_to_range(mean * u)
            mean, information = filter_step(
                mean, n, v, root_n, row[ROW_VARIANCE + k], row[ROW_DAMPED + k], row[ROW_CURVATURE + k],
                lane(w.parameters, k).l2, noise_z, noise_n,
            )  # fmt: skip
            if UNITS:
                mean = clip_to_range(mean * inverse)
        z, n, h, used_z, used_n, gain, bound_term = step(
            z, n, x, root_n, step_slope * v, slope * v, s, current_strength, next_strength, penalty, p, noise_z, noise_n
        )
        if UNITS and PRIMAL:
            z = clip_to_range(z * inverse)
        if FILTERS > 0:
            z, n = (mean, information) if filter_lane(row, k) else (z, n)
        set_part(w, at, 0, k, z)
        set_part(w, at, 1, k, n)
        if KEEPS_GRADIENTS:
            g = part_of(w, at, 2, k)
            if UNITS:
                g *= change
            set_part(w, at, 2, k, add(g, h, -used_z))
        if KEEPS_POINTS:
            points = part_of(w, at, 3, k)
            if UNITS:
                points *= change
            set_part(w, at, 3, k, add(points, gain * x, -used_n))
            row[ROW_BOUND_TERMS + k] += bound_term
        if DRIFTS:
            w.drift_marks[q * np.uint64(LANES) + np.uint64(k)] = w.totals[SUM_CLOCK + k]
    store_parts(w, at, PARTS)
    if KEEPS_ROUND:
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
        s, u, inverse, change = REAL_ONE, REAL_ONE, REAL_ONE, REAL_ONE
        if SCALE_FREE:
            before = w.scales[q * SCALE_WIDTH]
            s, u, inverse, change = scale_and_units(before, v)
            scale = max(before, abs(v))
            v *= inverse
            if KEEPS_GRADIENTS_BY_SCALES:
                at = q * SCALE_WIDTH
                add_gradients(w.scales, at, scale, change, w.row, ROW_KEPT, ROW_KEPT_NOISE, v)
            else:
                w.scales[q] = scale
        largest = max(largest, abs(v))
        step_lanes(w, t, q, j - lo, s, u, inverse, change, v, penalized, penalty, noise_z, noise_n)
    return largest


@inline
def add_gradient_square(w, q, i, times):
    """Add ``times`` G² of coordinate q in every lane, and for scale-free rates ``times`` (G/s)², s being its scale."""
    at, u, ratio = q * WIDTH + GRADIENTS, 1.0, 1.0
    if UNITS:
        u = np.float64(unit(w.scales[q * SCALE_WIDTH])[0])
    if SCALE_FREE:
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
