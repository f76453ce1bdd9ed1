"""The coordinates of a row in one lane: gathered into scratch, updated as vectors, and scattered.

Scratch has blocks of 64 coordinates, the bias last. A block has one row of 64 numbers for each of these: the parts of
records, the weight X, ROOT = √n, the strength AFTER a step, the VALUE, and the SCALE. Loops process eight coordinates
at a time; positions after the last coordinate are padding. All rows are in one array at constant distances, so that
the compiler can prove that they do not overlap.
"""

import numpy as np

from forel.learner.kernels.coordinates import (
    bias_coordinate,
    lane,
    penalized_lane,
    prefetch_distance,
    prefetch_record,
)
from forel.learner.kernels.rates import root, strength
from forel.learner.kernels.reference import (
    CATCHES_UP,
    CERTIFIED,
    DECAYS,
    DRIFTS,
    GRADIENT_LIMIT,
    KEEPS_GRADIENTS,
    KEEPS_POINTS,
    KEEPS_ROUND,
    ONE,
    PARTS,
    PRIMAL,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    REPLAYS,
    ROW_BOUND_TERMS,
    ROW_CLIPPED,
    ROW_MARGIN,
    ROW_NEXT_STRENGTH,
    ROW_SLOPE,
    ROW_STEP,
    ROW_STRENGTH,
    SCALE_FREE,
    SCALE_IN_RECORD,
    SEPARATE_SCALES,
    STOPS_AT_OTHER_UNITS,
    SUM_CLOCK,
    UNITS,
    ZERO,
    gather_records,
    inline,
    load_values,
    reassociated,
    scatter_records,
)
from forel.learner.kernels.skipped_rounds import decayed, drifted, replayed
from forel.learner.kernels.stochastic_rounding import add
from forel.learner.kernels.units import clip_to_range, in_units, needs_other_unit, unit
from forel.learner.kernels.updates import step, weight

BLOCK, EIGHT, STRIDE = np.uint64(64), np.uint64(8), 64
Z, N, G, POINTS, X, ROOT, AFTER, VALUE, SCALES, UNUSED, BLOCK_SIZE = [np.uint64(STRIDE * kind) for kind in range(11)]
SCALE = POINTS if SCALE_IN_RECORD else SCALES
GRADIENTS = G if KEEPS_GRADIENTS else Z  # row of g_{1:t}


@inline
def scratch_size(longest):
    """Return the size of scratch for rows of up to ``longest`` coordinates, the bias included."""
    return (np.uint64(longest) // BLOCK + ONE) * BLOCK_SIZE


@inline
def scratch_offset(i, k):
    """Return the offset of the i-th coordinate of the row in scratch."""
    return i // BLOCK * BLOCK_SIZE + i % BLOCK


@inline
def coordinate(w, indices, values, lo, hi, i, k):
    """Return value, penalized flag, scale and n of the i-th coordinate, in its unit, that unit and its inverse."""
    c, penalized = scratch_offset(i, k), REAL(1 if i < hi - lo else 0)
    s, u, inverse = REAL(0), REAL_ONE, REAL_ONE
    if SCALE_FREE:
        s = w.scratch[c + SCALE]
    if UNITS:
        u, inverse = unit(s)
        s *= inverse
    return w.scratch[c + VALUE], penalized, s, w.scratch[c + N], u, inverse


@inline
def weight_at(w, q, i, k):
    """Return the weight of coordinate q, the i-th of the row."""
    x = w.scratch[scratch_offset(i, k) + X]
    if UNITS:
        x = clip_to_range(x * unit(w.scratch[scratch_offset(i, k) + SCALE])[1])
    return x


@inline
def catch_up(w, t, q, c, penalized):
    """Apply the penalties of rounds without coordinate q."""
    scratch = w.scratch
    z, p = scratch[c + Z], penalized_lane(lane(w.parameters, 0), penalized)
    if DECAYS:
        s = z - z
        if SCALE_FREE:
            s = scratch[c + SCALE]
        if UNITS:
            u, inverse = unit(s)
            s, p, z = s * inverse, in_units(p, u, inverse), clip_to_range(z * u)
        current_strength = strength(root(scratch[c + N]), s, w.row[ROW_STRENGTH], p)
        z = REAL(decayed(z, current_strength, REAL(t - w.last_round[q]), p))
        if UNITS:
            z = clip_to_range(z * inverse)
    if DRIFTS:
        z = REAL(drifted(z, w.totals[SUM_CLOCK] - w.drift_marks[q], p))
    if REPLAYS:
        z = REAL(replayed(z, w.last_round[q], t, p))
    scratch[c + Z] = z


@inline
def scatter_separate(w, t, q, c):
    """Store the numbers of coordinate q that are in separate arrays: the round of this update, the scale."""
    if DRIFTS:
        w.drift_marks[q] = w.totals[SUM_CLOCK]
    if KEEPS_ROUND:
        w.last_round[q] = t + 1
    if SEPARATE_SCALES:
        w.scales[q] = w.scratch[c + SCALE]


@inline
def round_up_to_eight(count):
    """Return ``count`` rounded up to a multiple of eight."""
    return (count + EIGHT - ONE) // EIGHT * EIGHT


@inline
def compute_weights(scratch, base, count, features, lane, current_strength, penalty):
    """Compute the weights of coordinates of a block."""
    for i in range(count):
        c = base + i
        s, p = REAL(0), penalized_lane(lane, REAL_ONE if i < features else REAL_ZERO)
        if SCALE_FREE:
            before = scratch[c + SCALE]
            s = scratch[c + SCALE] = max(before, abs(scratch[c + VALUE]))
        if UNITS:
            # Records change to the unit of a scale that this value increased. New records are 0 in any unit.
            u, inverse = unit(s)
            change = min(unit(before)[0] * inverse, REAL_ONE)
            s, p = s * inverse, in_units(p, u, inverse)
            scratch[c + VALUE] *= inverse
            scratch[c + N] *= change * change
            if not PRIMAL:
                scratch[c + Z] *= change
            if KEEPS_GRADIENTS:
                scratch[c + G] *= change
            if KEEPS_POINTS:
                scratch[c + POINTS] *= change
        root_n = root(scratch[c + N])
        x = weight(scratch[c + Z], strength(root_n, s, current_strength, p), penalty, p)
        if UNITS and PRIMAL:
            x = clip_to_range(x * u)
        scratch[c + X], scratch[c + ROOT] = x, root_n


@reassociated
def block_margin(scratch, base, count):
    """Return the sum of weights times values of coordinates of a block; its terms may be added in any order."""
    margin = REAL(0)
    for i in range(count):
        margin += scratch[base + i + X] * scratch[base + i + VALUE]
    return margin


@reassociated
def units_are_1(scratch, base, count):
    """Return whether the units of coordinates of a block are 1, before and after their values."""
    others = REAL(0)
    for i in range(count):
        others += REAL_ONE if needs_other_unit(scratch[base + i + SCALE], scratch[base + i + VALUE]) else REAL_ZERO
    return others == 0


@inline
def gather_row(w, t, indices, values, lo, hi, bias, penalty):
    """Gather a row's coordinates, compute their weights and the margin; return whether all units are 1.

    Kernels that support all units return True.

    ``bias`` is 1 if the row has the constant feature, else 0; ``penalty`` is α_{1:t−1}.
    """
    scratch, p, current_strength = w.scratch, lane(w.parameters, 0), w.row[ROW_STRENGTH]
    count, bias_index = hi - lo + bias, bias_coordinate(w.state)
    bias_value, ahead = REAL(bias), prefetch_distance(indices, hi)
    remainder, fits = (hi - lo) % EIGHT, True
    for b in range(ZERO, count, BLOCK):
        base, block_count, features = b // BLOCK * BLOCK_SIZE, min(BLOCK, count - b), min(BLOCK, hi - lo - b)
        full = features // EIGHT * EIGHT
        for i in range(ZERO, full, EIGHT):
            for j in range(lo + b + i, lo + b + i + EIGHT):
                prefetch_record(w, indices, j + ahead)
            gather_records(scratch, base + i, STRIDE, w.state, PARTS, indices, lo + b + i, EIGHT, ZERO)
            if SEPARATE_SCALES:
                gather_records(scratch, base + i + SCALE, STRIDE, w.scales, 1, indices, lo + b + i, EIGHT, ZERO)
            load_values(scratch, base + i + VALUE, values, lo + b + i, EIGHT, bias_value)
        if full < block_count:
            j = lo + b + full
            if ahead > ZERO:
                for k in range(j, j + EIGHT):
                    prefetch_record(w, indices, k + ahead)
            gather_records(scratch, base + full, STRIDE, w.state, PARTS, indices, j, remainder, bias_index)
            if SEPARATE_SCALES:
                gather_records(scratch, base + full + SCALE, STRIDE, w.scales, 1, indices, j, remainder, bias_index)
            load_values(scratch, base + full + VALUE, values, j, remainder, bias_value)
        if CATCHES_UP:
            for i in range(block_count):
                q, penalized = (np.uint64(indices[lo + b + i]), REAL_ONE) if i < features else (bias_index, REAL_ZERO)
                catch_up(w, t, q, base + i, penalized)
        if STOPS_AT_OTHER_UNITS:
            fits &= units_are_1(scratch, base, round_up_to_eight(block_count))
        compute_weights(scratch, base, round_up_to_eight(block_count), features, p, current_strength, penalty)
        w.row[ROW_MARGIN] += block_margin(scratch, base, round_up_to_eight(block_count))
    return fits


@inline
def step_block(w, base, count, features, penalty, noise_z, noise_n):
    """Take the steps of coordinates of a block, along the slopes of the row times their values.

    Coordinates after the first ``features``, which are the bias and padding, are not penalized.
    """
    scratch, row, p_lane = w.scratch, w.row, lane(w.parameters, 0)
    step_slope, slope = row[ROW_STEP], row[ROW_SLOPE]
    current_strength, next_strength = row[ROW_STRENGTH], row[ROW_NEXT_STRENGTH]
    for i in range(count):
        c = base + i
        v, s = scratch[c + VALUE], REAL(0)
        p = penalized_lane(p_lane, REAL_ONE if i < features else REAL_ZERO)
        if SCALE_FREE:
            s = scratch[c + SCALE]
        if UNITS:
            u, inverse = unit(s)
            s, p = s * inverse, in_units(p, u, inverse)
        z, n, x, root_n = scratch[c + Z], scratch[c + N], scratch[c + X], scratch[c + ROOT]
        z, n, h, used_z, used_n, gain, bound_term = step(
            z, n, x, root_n, step_slope * v, slope * v, s, current_strength, next_strength, penalty, p, noise_z, noise_n
        )
        if UNITS and PRIMAL:
            z = clip_to_range(z * inverse)
        scratch[c + Z], scratch[c + N] = z, n
        if KEEPS_GRADIENTS:
            scratch[c + G] = add(scratch[c + G], h, -used_z)
        if KEEPS_POINTS:
            scratch[c + POINTS] = add(scratch[c + POINTS], gain * x, -used_n)
            scratch[c + AFTER] = bound_term


@reassociated
def count_clipped(scratch, base, count, slope):
    """Return the number of clipped gradients of coordinates of a block."""
    clipped = REAL(0)
    for i in range(count):
        clipped += REAL_ONE if abs(slope * scratch[base + i + VALUE]) > GRADIENT_LIMIT else REAL_ZERO
    return clipped


@reassociated
def sum_bound_terms(scratch, base, count):
    """Return the sum of h²/S + σx² over coordinates of a block."""
    total = REAL(0)
    for i in range(count):
        total += scratch[base + i + AFTER]
    return total


@inline
def add_gradient_square(w, q, i, times):
    """Add ``times`` G² of coordinate q, the i-th of the row, and for scale-free rates ``times`` (G/s)², s its scale."""
    c = scratch_offset(i, 0)
    g = np.float64(w.scratch[c + GRADIENTS])
    if UNITS:
        g *= np.float64(unit(w.scratch[c + SCALE])[0])
    w.sums[0] += times * g * g
    if SCALE_FREE:
        s = w.scratch[c + SCALE]
        g /= np.float64(s) if s > 0 else 1.0
        w.sums[2] += times * g * g


@inline
def step_row(w, t, indices, values, lo, hi, bias, penalty, noise_z, noise_n):
    """Take the steps of the row's coordinates and scatter them; ``penalty`` is α_t."""
    scratch, row = w.scratch, w.row
    count, bias_index = hi - lo + bias, bias_coordinate(w.state)
    remainder = (hi - lo) % EIGHT
    for b in range(ZERO, count, BLOCK):
        base, block_count, features = b // BLOCK * BLOCK_SIZE, min(BLOCK, count - b), min(BLOCK, hi - lo - b)
        step_block(w, base, round_up_to_eight(block_count), features, penalty, noise_z, noise_n)
        if KEEPS_POINTS:
            row[ROW_BOUND_TERMS] += sum_bound_terms(scratch, base, round_up_to_eight(block_count))
        if CERTIFIED:
            row[ROW_CLIPPED] += count_clipped(scratch, base, round_up_to_eight(block_count), row[ROW_SLOPE])
        full, unused = features // EIGHT * EIGHT, base + UNUSED
        for i in range(ZERO, full, EIGHT):
            scatter_records(
                scratch, base + i, STRIDE, w.state, PARTS, indices, lo + b + i, EIGHT, ZERO, ZERO, unused
            )  # fmt: skip
        if full < block_count:
            scatter_records(
                scratch, base + full, STRIDE, w.state, PARTS, indices, lo + b + full, remainder, bias_index, bias,
                unused,
            )  # fmt: skip
        if CATCHES_UP or SEPARATE_SCALES:
            for i in range(block_count):
                scatter_separate(w, t, np.uint64(indices[lo + b + i]) if i < features else bias_index, base + i)
