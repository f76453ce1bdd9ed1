"""The weights of some of many lanes, without computing those of the others."""

import numpy as np

from forel.learner.kernels.coordinates import lane
from forel.learner.kernels.loops import allocate_work, begin_row, release_work
from forel.learner.kernels.many_lanes import lane_weight, scale_and_units
from forel.learner.kernels.reference import (
    DRIFTS,
    FIRST_FILTER,
    KEEPS_ROUND,
    LANES,
    ONE,
    REAL,
    REAL_ONE,
    REAL_ZERO,
    ROW_STRENGTH,
    SCALE_FREE,
    SCALE_WIDTH,
    SUM_CLOCK,
    UNITS,
    WIDTH,
    ZERO,
    allocate,
    entry,
    inline_ir,
    prefetch,
    release,
)
from forel.learner.kernels.units import clip_to_range, in_units
from forel.learner.kernels.updates import penalty_total

AHEAD = np.uint64(4)  # distance of the record that is prefetched
BLOCK = np.uint64(64)  # coordinates of one lane that are computed as vectors
SCALE, UNIT, INVERSE, PER_COORDINATE = np.uint64(0), BLOCK, BLOCK * 2, BLOCK * 3


@inline_ir
def gather_block(w, coordinates, start, size, chosen, block):
    """Copy scales and units of a block of coordinates to ``block``, then z and n of each chosen lane."""
    last = np.uint64(coordinates.shape[0]) - ONE
    for c in range(size):
        q, ahead = np.uint64(coordinates[start + c]), np.uint64(coordinates[min(start + c + AHEAD, last)]) * WIDTH
        if SCALE_FREE:
            s, u, inverse, _ = scale_and_units(w.scales[q * SCALE_WIDTH], REAL_ZERO)
            block[SCALE + c], block[UNIT + c], block[INVERSE + c] = s, u, inverse
        for part in range(2):
            at, next_at = q * WIDTH + np.uint64(part * LANES), ahead + np.uint64(part * LANES)
            for m in range(np.uint64(chosen.shape[0])):
                prefetch(w.state, next_at + np.uint64(chosen[m]))  # and do not vectorize the loop, with slow gathers
                block[PER_COORDINATE + (m + m + np.uint64(part)) * BLOCK + c] = w.state[at + np.uint64(chosen[m])]


@entry
def chosen_weights(
    coordinates, chosen, width, state, scales, last_round, drift_marks, t, key, parameters, totals, table
):  # fmt: skip
    """Write the weights of features in the lanes ``chosen`` to a table with ``width`` numbers for each feature.

    Return the number of features.
    """
    w = allocate_work(state, scales, last_round, drift_marks, totals, parameters, 1)
    begin_row(w, t)
    count, penalty = np.uint64(coordinates.shape[0]), REAL(penalty_total(t))
    s, u, inverse = REAL_ONE, REAL_ONE, REAL_ONE
    block = allocate(parameters, PER_COORDINATE + np.uint64(2 * chosen.shape[0]) * BLOCK)
    weights = allocate(parameters, BLOCK)
    for start in range(ZERO, count, BLOCK):
        size = min(BLOCK, count - start)
        gather_block(w, coordinates, start, size, chosen, block)
        for m in range(np.uint64(chosen.shape[0])):
            k, place = np.uint64(chosen[m]), PER_COORDINATE + (m + m) * BLOCK
            own, current_strength, is_filter = lane(w.parameters, k), w.row[ROW_STRENGTH + k], k >= FIRST_FILTER
            for c in range(size):
                since, clock = t, 0.0
                if SCALE_FREE:
                    s, u, inverse = block[SCALE + c], block[UNIT + c], block[INVERSE + c]
                if KEEPS_ROUND:
                    since = last_round[np.uint64(coordinates[start + c])]
                if DRIFTS:
                    mark = drift_marks[np.uint64(coordinates[start + c]) * np.uint64(LANES) + k]
                    clock = totals[SUM_CLOCK + k] - mark
                p = in_units(own, u, inverse)
                x, _, _ = lane_weight(
                    block[place + c], block[place + BLOCK + c], p, t, since, clock, is_filter, s, s, u, REAL_ONE,
                    current_strength, penalty, REAL_ONE,
                )  # fmt: skip
                if UNITS:
                    x = clip_to_range(x * inverse)
                weights[c] = x
            for c in range(size):
                table[np.uint64(coordinates[start + c]) * np.uint64(width) + m] = weights[c]
    release(block)
    release(weights)
    release_work(w)
    return coordinates.shape[0]
