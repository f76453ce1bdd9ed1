"""Functions shared by kernels of one lane and of many lanes: parameters of a lane, the bias, prefetching."""

import numpy as np

from forel.learner.kernels.reference import (
    CERTIFIED_LANES,
    GRADIENT_LANES,
    KEEPS_GRADIENTS_BY_SCALES,
    LANES,
    LINE_SIZE,
    ONE,
    PADDED,
    PARAMETERS,
    PREFETCH_DISTANCE,
    RECORDS_STRADDLE_LINES,
    SCALE_WIDTH,
    SEPARATE_SCALES,
    WIDTH,
    ZERO,
    Lane,
    inline,
    prefetch,
)


@inline
def row_lanes(parameters):
    """Return PADDED, as a variable from 4 on: loops of known length are unrolled, and then not vectorized.

    Of a power of two the compiler knows that it is either 0 or PADDED, and adds no loops for remainders.
    """
    if PADDED >= 4:
        return parameters.shape[0] // PARAMETERS & PADDED
    return PADDED


@inline
def stored_lanes(parameters):
    """Return LANES, as a variable where it is equal to PADDED."""
    if PADDED > LANES:
        return LANES
    return row_lanes(parameters)


@inline
def lane(parameters, k):
    """Return the parameters of lane k."""
    return Lane(
        parameters[k],
        parameters[PADDED + k],
        parameters[2 * PADDED + k],
        parameters[3 * PADDED + k],
        parameters[4 * PADDED + k],
    )


@inline
def penalized_lane(p, penalized):
    """Return the parameters of a lane with penalties multiplied by ``penalized``: 0 for the bias, 1 for features."""
    return Lane(p.inverse_alpha, p.beta, penalized * p.l1, penalized * p.l2, p.radius)


@inline
def bias_coordinate(state):
    """Return the coordinate of the bias, which is the last one."""
    return np.uint64(state.shape[0]) // WIDTH - ONE


@inline
def certified_lane(m):
    """Return the m-th lane with sums of certificates."""
    if KEEPS_GRADIENTS_BY_SCALES:
        return GRADIENT_LANES[m]
    return m


@inline
def certified_count(parameters):
    """Return the number of lanes with sums of certificates, as a variable where all lanes have them."""
    if KEEPS_GRADIENTS_BY_SCALES:
        return CERTIFIED_LANES
    return row_lanes(parameters)


@inline
def prefetch_distance(indices, hi):
    """Return how many non-zeros ahead records are prefetched; 0 near the end of the block."""
    return PREFETCH_DISTANCE if hi + PREFETCH_DISTANCE + np.uint64(8) <= np.uint64(indices.shape[0]) else ZERO


@inline
def prefetch_record(w, indices, j):
    """Prefetch the record of the j-th non-zero."""
    q = np.uint64(indices[j])
    for offset in range(ZERO, WIDTH, LINE_SIZE):
        prefetch(w.state, q * WIDTH + offset)
    if RECORDS_STRADDLE_LINES:
        prefetch(w.state, q * WIDTH + WIDTH - ONE)
    if SEPARATE_SCALES:
        prefetch(w.scales, q * SCALE_WIDTH)
