"""The coordinates of a row in one lane: gathered into scratch, updated as vectors, and scattered.

Scratch has blocks of 64 coordinates, the bias last. A block has one row of 64 numbers for each of these: the parts of
records, the weight X, ROOT = √n, the term of a BOUND, the VALUE, and the SCALE. Loops process eight coordinates
at a time; positions after the last coordinate are padding. All rows are in one array at constant distances, so that
the compiler can prove that they do not overlap.
"""

import numpy as np

from forel.learner.kernels.coordinates import (
    bias_coordinate,
    clip_to_range,
    in_units,
    lane,
    penalized_lane,
    prefetch_distance,
    prefetch_record,
    unit,
)
from forel.learner.kernels.reference import (
    CERTIFIED,
    DECAYS,
    GRADIENT_LIMIT,
    KEEPS_GRADIENTS,
    KEEPS_POINTS,
    ONE,
    PARTS,
    PRIMAL,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    ROW_BOUND_TERMS,
    ROW_CLIPPED,
    ROW_MARGIN,
    ROW_SLOPE,
    SCALE_FREE,
    SCALE_IN_RECORD,
    SEPARATE_SCALES,
    ZERO,
    gather_records,
    inline,
    load_values,
    reassociated,
    scatter_records,
)
from forel.learner.kernels.stochastic_rounding import add
from forel.learner.kernels.updates import decayed, step, strength, weight

BLOCK, EIGHT, STRIDE = np.uint64(64), np.uint64(8), 64
Z, N, G, POINTS, X, ROOT, BOUND, VALUE, SCALES, UNUSED, BLOCK_SIZE = [np.uint64(STRIDE * kind) for kind in range(11)]
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
def weight_at(w, q, i, k):
    """Return the weight of coordinate q, the i-th of the row."""
    x = w.scratch[scratch_offset(i, k) + X]
    if SCALE_FREE:
        x = clip_to_range(x * unit(w.scratch[scratch_offset(i, k) + SCALE])[1])
    return x


@inline
def catch_up(w, t, q, c, penalized):
    """Apply the penalties of rounds without coordinate q to its weight."""
    scratch, s = w.scratch, REAL_ZERO
    z, p = scratch[c + Z], penalized_lane(lane(w.parameters, 0), penalized)
    if SCALE_FREE:
        u, inverse = unit(scratch[c + SCALE])
        s, p, z = scratch[c + SCALE] * inverse, in_units(p, u, inverse), clip_to_range(z * u)
    z = REAL(decayed(z, strength(np.sqrt(scratch[c + N]), s, p), REAL(t - w.last_round[q]), p))
    if SCALE_FREE:
        z = clip_to_range(z * inverse)
    scratch[c + Z] = z


@inline
def scatter_separate(w, t, q, c):
    """Store the numbers of coordinate q that are in separate arrays: the round of this update, the scale."""
    if DECAYS:
        w.last_round[q] = t + 1
    if SEPARATE_SCALES:
        w.scales[q] = w.scratch[c + SCALE]


@inline
def round_up_to_eight(count):
    """Return ``count`` rounded up to a multiple of eight."""
    return (count + EIGHT - ONE) // EIGHT * EIGHT


@inline
def compute_weights(scratch, base, count, features, lane, penalty):
    """Compute the weights of coordinates of a block."""
    for i in range(count):
        c = base + i
        s, p = REAL(0), penalized_lane(lane, REAL_ONE if i < features else REAL_ZERO)
        if SCALE_FREE:
            before = scratch[c + SCALE]
            s = scratch[c + SCALE] = max(before, abs(scratch[c + VALUE]))
            # Records change to the unit of a scale that this value increased. New records are 0 in any unit.
            u, inverse = unit(s)
            change = unit(before)[0] * inverse
            s, p = s * inverse, in_units(p, u, inverse)
            scratch[c + VALUE] *= inverse
            scratch[c + N] *= change * change
            if not PRIMAL:
                scratch[c + Z] *= change
            if KEEPS_GRADIENTS:
                scratch[c + G] *= change
            if KEEPS_POINTS:
                scratch[c + POINTS] *= change
        root_n = np.sqrt(scratch[c + N])
        x = weight(scratch[c + Z], strength(root_n, s, p), penalty, p)
        if SCALE_FREE and PRIMAL:
            x = clip_to_range(x * u)
        scratch[c + X], scratch[c + ROOT] = x, root_n


@inline
def clip_values(scratch, base, count):
    """Clip the values of coordinates of a block to their scales."""
    for i in range(count):
        c = base + i
        scratch[c + VALUE] = min(max(scratch[c + VALUE], -scratch[c + SCALE]), scratch[c + SCALE])


@reassociated
def block_margin(scratch, base, count):
    """Return the sum of weights times values of coordinates of a block; its terms may be added in any order."""
    margin = REAL(0)
    for i in range(count):
        margin += scratch[base + i + X] * scratch[base + i + VALUE]
    return margin


@inline
def gather_row(w, t, indices, values, lo, hi, bias, penalty, held):
    """Gather a row's coordinates, compute their weights and the margin.

    ``bias`` is 1 if the row has the constant feature, else 0; ``penalty`` is α_{1:t−1}. Values of a row that is
    ``held`` out are clipped to the scales of their coordinates, beyond which weights are not known.
    """
    scratch, p = w.scratch, lane(w.parameters, 0)
    count, bias_index = hi - lo + bias, bias_coordinate(w.state)
    bias_value, ahead = REAL(bias), prefetch_distance(indices, hi)
    remainder = (hi - lo) % EIGHT
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
        if DECAYS:
            for i in range(block_count):
                q, penalized = (np.uint64(indices[lo + b + i]), REAL_ONE) if i < features else (bias_index, REAL_ZERO)
                catch_up(w, t, q, base + i, penalized)
        if SCALE_FREE and held:
            clip_values(scratch, base, round_up_to_eight(block_count))
        compute_weights(scratch, base, round_up_to_eight(block_count), features, p, penalty)
        w.row[ROW_MARGIN] += block_margin(scratch, base, round_up_to_eight(block_count))


@inline
def step_block(w, base, count, features, penalty, noise_z, noise_n):
    """Take the steps of coordinates of a block, along the slopes of the row times their values.

    Coordinates after the first ``features``, which are the bias and padding, are not penalized.
    """
    scratch, slope, p_lane = w.scratch, w.row[ROW_SLOPE], lane(w.parameters, 0)
    for i in range(count):
        c = base + i
        v, s = scratch[c + VALUE], REAL(0)
        p = penalized_lane(p_lane, REAL_ONE if i < features else REAL_ZERO)
        if SCALE_FREE:
            s = scratch[c + SCALE]
            u, inverse = unit(s)
            s, p = s * inverse, in_units(p, u, inverse)
        z, n, x, root_n = scratch[c + Z], scratch[c + N], scratch[c + X], scratch[c + ROOT]
        z, n, h, used_z, used_n, gain, bound_term = step(z, n, x, root_n, slope * v, s, penalty, p, noise_z, noise_n)
        if SCALE_FREE and PRIMAL:
            z = clip_to_range(z * inverse)
        scratch[c + Z], scratch[c + N] = z, n
        if KEEPS_GRADIENTS:
            scratch[c + G] = add(scratch[c + G], h, -used_z)
        if KEEPS_POINTS:
            scratch[c + POINTS] = add(scratch[c + POINTS], gain * x, -used_n)
            scratch[c + BOUND] = bound_term


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
        total += scratch[base + i + BOUND]
    return total


@inline
def add_gradient_square(w, q, i, times):
    """Add ``times`` G² of coordinate q, the i-th of the row, and for scale-free rates ``times`` (G/s)², s its scale."""
    c = scratch_offset(i, 0)
    g = np.float64(w.scratch[c + GRADIENTS])
    if SCALE_FREE:
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
        if DECAYS or SEPARATE_SCALES:
            for i in range(block_count):
                scatter_separate(w, t, np.uint64(indices[lo + b + i]) if i < features else bias_index, base + i)
