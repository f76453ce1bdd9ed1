"""The coordinates of a row in one lane: gathered into scratch, updated as vectors, and scattered.

Scratch has blocks of 64 coordinates, the bias last. A block has a row of 64 numbers for each kind: the parts of
records, the weight X, ROOT = √n, the strength AFTER a step, the VALUE, and the SCALE.
Loops take eight coordinates at a time; places after the last coordinate are empty. Because all rows are in one array,
at constant distances, the compiler knows that they do not overlap.
"""

import numpy as np

from forel.learner.kernels.coordinates import (
    bias_coordinate,
    lane,
    penalised_lane,
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
    REPLAYS,
    ROW_CLIPPED,
    ROW_MARGIN,
    ROW_NEXT,
    ROW_NOW,
    ROW_SLOPE,
    ROW_SPENT,
    ROW_STEP,
    SCALE_FREE,
    SCALE_IN_RECORD,
    SEPARATE_SCALES,
    STOPS_BEYOND,
    SUM_CLOCK,
    UNIT,
    UNITS,
    WIDTH,
    ZERO,
    gather_records,
    inline,
    load_values,
    reassociated,
    scatter_records,
)
from forel.learner.kernels.skipped_rounds import decayed, drifted, replayed
from forel.learner.kernels.stochastic_rounding import add
from forel.learner.kernels.units import beyond, clip_to_range, in_units, unit
from forel.learner.kernels.updates import step, weight

BLOCK, EIGHT, STRIDE = np.uint64(64), np.uint64(8), 64
Z, N, G, POINTS, X, ROOT, AFTER, VALUE, SCALES, SPARE, SIZE = [np.uint64(STRIDE * kind) for kind in range(11)]
SCALE = POINTS if SCALE_IN_RECORD else SCALES
GRADIENTS = G if KEEPS_GRADIENTS else Z  # where g_{1:t} is


@inline
def scratch_size(longest):
    """Return how many numbers scratch has for rows of up to ``longest`` coordinates, the bias included."""
    return (np.uint64(longest) // BLOCK + ONE) * SIZE


@inline
def cell(i, k):
    """Return where the numbers of the i-th coordinate of the row begin in scratch."""
    return i // BLOCK * SIZE + i % BLOCK


@inline
def coordinate(w, indices, values, lo, hi, i, k):
    """Return value, penalised flag, scale and n of the i-th coordinate of the row, in its unit, and that unit."""
    c, penalised = cell(i, k), REAL(1 if i < hi - lo else 0)
    s, u, inverse = REAL(0), UNIT, UNIT
    if SCALE_FREE:
        s = w.scratch[c + SCALE]
    if UNITS:
        u, inverse = unit(s)
        s *= inverse
    return w.scratch[c + VALUE], penalised, s, w.scratch[c + N], u, inverse


@inline
def weight_at(w, q, i, k):
    """Return the weight of coordinate q, the i-th of the row."""
    x = w.scratch[cell(i, k) + X]
    if UNITS:
        x = clip_to_range(x * unit(w.scratch[cell(i, k) + SCALE])[1])
    return x


@inline
def catch_up(w, t, q, c, penalised):
    """Apply the penalties of rounds in which rows did not have coordinate q."""
    scratch = w.scratch
    z, p = scratch[c + Z], penalised_lane(lane(w.parameters, 0), penalised)
    if DECAYS:
        s = z - z
        if SCALE_FREE:
            s = scratch[c + SCALE]
        if UNITS:
            u, inverse = unit(s)
            s, p, z = s * inverse, in_units(p, u, inverse), clip_to_range(z * u)
        now = strength(root(scratch[c + N]), s, w.row[ROW_NOW], p)
        z = REAL(decayed(z, now, REAL(t - w.last_round[q]), p))
        if UNITS:
            z = clip_to_range(z * inverse)
    if DRIFTS:
        z = REAL(drifted(z, w.totals[SUM_CLOCK] - w.drift_marks[q], p))
    if REPLAYS:
        z = REAL(replayed(z, w.last_round[q], t, p))
    scratch[c + Z] = z


@inline
def scatter_record(w, q, c):
    """Scatter one record of scratch to coordinate q."""
    at = q * WIDTH
    w.state[at], w.state[at + ONE] = w.scratch[c + Z], w.scratch[c + N]
    if KEEPS_GRADIENTS:
        w.state[at + np.uint64(2)] = w.scratch[c + G]
    if KEEPS_POINTS:
        w.state[at + np.uint64(3)] = w.scratch[c + POINTS]


@inline
def scatter_beside(w, t, q, c):
    """Store what is kept for coordinate q beside its record: the round of this update, its scale."""
    if DRIFTS:
        w.drift_marks[q] = w.totals[SUM_CLOCK]
    if KEEPS_ROUND:
        w.last_round[q] = t + 1
    if SEPARATE_SCALES:
        w.scales[q] = w.scratch[c + SCALE]


@inline
def in_eights(count):
    """Return ``count`` rounded up to a multiple of eight."""
    return (count + EIGHT - ONE) // EIGHT * EIGHT


@reassociated
def weights_and_margin(scratch, base, count, features, lane, now, penalty):
    """Compute the weights of places of a block, and return the sum of weights times values."""
    margin = REAL(0)
    for i in range(count):
        c = base + i
        s, p = REAL(0), penalised_lane(lane, UNIT if i < features else UNIT - UNIT)
        if SCALE_FREE:
            before = scratch[c + SCALE]
            s = scratch[c + SCALE] = max(before, abs(scratch[c + VALUE]))
        if UNITS:
            # Records change to the unit of a scale that this value increased. New records are 0 in any unit.
            u, inverse = unit(s)
            change = min(unit(before)[0] * inverse, UNIT)
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
        x = weight(scratch[c + Z], strength(root_n, s, now, p), penalty, p)
        if UNITS and PRIMAL:
            x = clip_to_range(x * u)
        scratch[c + X], scratch[c + ROOT] = x, root_n
        margin += x * scratch[c + VALUE]
    return margin


@reassociated
def units_are_1(scratch, base, count):
    """Return whether the units of places of a block are 1, before and after their values."""
    others = REAL(0)
    for i in range(count):
        others += UNIT if beyond(scratch[base + i + SCALE], scratch[base + i + VALUE]) else UNIT - UNIT
    return others == 0


@inline
def gather_row(w, t, indices, values, lo, hi, bias, penalty):
    """Gather a row's coordinates, compute their weights, add the margin to the row, and return whether all units are 1.

    Kernels with all units return True.

    ``bias`` is 1 if the row has the constant feature, else 0; ``penalty`` is α_{1:t−1}.
    """
    scratch, p, now = w.scratch, lane(w.parameters, 0), w.row[ROW_NOW]
    count, constant = hi - lo + bias, bias_coordinate(w.state)
    bias_value, ahead = REAL(bias), prefetch_distance(indices, hi)
    rest, fits = (hi - lo) % EIGHT, True
    for b in range(ZERO, count, BLOCK):
        base, here, features = b // BLOCK * SIZE, min(BLOCK, count - b), min(BLOCK, hi - lo - b)
        whole = features // EIGHT * EIGHT
        for i in range(ZERO, whole, EIGHT):
            for j in range(lo + b + i, lo + b + i + EIGHT):
                prefetch_record(w, indices, j + ahead)
            gather_records(scratch, base + i, STRIDE, w.state, PARTS, indices, lo + b + i, EIGHT, ZERO)
            if SEPARATE_SCALES:
                gather_records(scratch, base + i + SCALE, STRIDE, w.scales, 1, indices, lo + b + i, EIGHT, ZERO)
            load_values(scratch, base + i + VALUE, values, lo + b + i, EIGHT, bias_value)
        if whole < here:
            j = lo + b + whole
            if ahead > ZERO:
                for k in range(j, j + EIGHT):
                    prefetch_record(w, indices, k + ahead)
            gather_records(scratch, base + whole, STRIDE, w.state, PARTS, indices, j, rest, constant)
            if SEPARATE_SCALES:
                gather_records(scratch, base + whole + SCALE, STRIDE, w.scales, 1, indices, j, rest, constant)
            load_values(scratch, base + whole + VALUE, values, j, rest, bias_value)
        if CATCHES_UP:
            for i in range(here):
                q, penalised = (np.uint64(indices[lo + b + i]), UNIT) if i < features else (constant, UNIT - UNIT)
                catch_up(w, t, q, base + i, penalised)
        if STOPS_BEYOND:
            fits &= units_are_1(scratch, base, in_eights(here))
        w.row[ROW_MARGIN] += weights_and_margin(scratch, base, in_eights(here), features, p, now, penalty)
    return fits


@inline
def step_block(w, base, count, features, penalty, noise_z, noise_n):
    """Take the steps of places of a block, along the slopes of the row times their values.

    Features come first, and what comes after them, the bias, is not penalised.
    """
    scratch, row, p_lane = w.scratch, w.row, lane(w.parameters, 0)
    along, slope, now, next_strength = row[ROW_STEP], row[ROW_SLOPE], row[ROW_NOW], row[ROW_NEXT]
    for i in range(count):
        c = base + i
        v, s = scratch[c + VALUE], REAL(0)
        p = penalised_lane(p_lane, UNIT if i < features else UNIT - UNIT)
        if SCALE_FREE:
            s = scratch[c + SCALE]
        if UNITS:
            u, inverse = unit(s)
            s, p = s * inverse, in_units(p, u, inverse)
        z, n, x, root_n = scratch[c + Z], scratch[c + N], scratch[c + X], scratch[c + ROOT]
        z, n, h, used_z, used_n, gain, spent = step(
            z, n, x, root_n, along * v, slope * v, s, now, next_strength, penalty, p, noise_z, noise_n
        )
        if UNITS and PRIMAL:
            z = clip_to_range(z * inverse)
        scratch[c + Z], scratch[c + N] = z, n
        if KEEPS_GRADIENTS:
            scratch[c + G] = add(scratch[c + G], h, -used_z)
        if KEEPS_POINTS:
            scratch[c + POINTS] = add(scratch[c + POINTS], gain * x, -used_n)
            scratch[c + AFTER] = spent


@reassociated
def clipped_in(scratch, base, count, slope):
    """Return how many gradients of places of a block are clipped."""
    clipped = REAL(0)
    for i in range(count):
        clipped += UNIT if abs(slope * scratch[base + i + VALUE]) > GRADIENT_LIMIT else UNIT - UNIT
    return clipped


@reassociated
def spent_in(scratch, base, count):
    """Return the sum of h²/S + σx² of places of a block."""
    total = REAL(0)
    for i in range(count):
        total += scratch[base + i + AFTER]
    return total


@inline
def add_gradient_square(w, q, i, times):
    """Add ``times`` G² of coordinate q, the i-th of the row, and for scale-free rates (G/s)², s being its scale."""
    c = cell(i, 0)
    g = np.float64(w.scratch[c + GRADIENTS])
    if UNITS:
        g *= np.float64(unit(w.scratch[c + SCALE])[0])
    w.sums[0] += times * g * g
    if SCALE_FREE:
        s = w.scratch[c + SCALE]
        g /= np.float64(s) if s > 0 else 1.0
        w.sums[2] += times * g * g


@inline
def step_coordinate(w, t, q, i, v, penalty, noise_z, noise_n):
    """Take the step of coordinate q, the i-th of the row, whose value is 1."""
    c = cell(i, 0)
    step_block(w, c, ONE, ONE, penalty, noise_z, noise_n)
    if KEEPS_POINTS:
        w.row[ROW_SPENT] += w.scratch[c + AFTER]
    scatter_record(w, q, c)
    scatter_beside(w, t, q, c)


@inline
def step_row(w, t, indices, values, lo, hi, bias, penalty, noise_z, noise_n):
    """Take the steps of the row's coordinates and scatter them; ``penalty`` is α_t."""
    scratch, row = w.scratch, w.row
    count, constant = hi - lo + bias, bias_coordinate(w.state)
    rest = (hi - lo) % EIGHT
    for b in range(ZERO, count, BLOCK):
        base, here, features = b // BLOCK * SIZE, min(BLOCK, count - b), min(BLOCK, hi - lo - b)
        step_block(w, base, in_eights(here), features, penalty, noise_z, noise_n)
        if KEEPS_POINTS:
            row[ROW_SPENT] += spent_in(scratch, base, in_eights(here))
        if CERTIFIED:
            row[ROW_CLIPPED] += clipped_in(scratch, base, in_eights(here), row[ROW_SLOPE])
        whole, spare = features // EIGHT * EIGHT, base + SPARE
        for i in range(ZERO, whole, EIGHT):
            scatter_records(
                scratch, base + i, STRIDE, w.state, PARTS, indices, lo + b + i, EIGHT, ZERO, ZERO, spare
            )  # fmt: skip
        if whole < here:
            scatter_records(
                scratch, base + whole, STRIDE, w.state, PARTS, indices, lo + b + whole, rest, constant, bias, spare
            )  # fmt: skip
        if CATCHES_UP or SEPARATE_SCALES:
            for i in range(here):
                scatter_beside(w, t, np.uint64(indices[lo + b + i]) if i < features else constant, base + i)
