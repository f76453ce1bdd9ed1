"""What kernels of one lane and of many lanes share: parameters of a lane, the bias, prefetching."""

import numpy as np

from forel.learner.kernels.reference import (
    AHEAD,
    LANES,
    LINE,
    ONE,
    SEPARATE_SCALES,
    STRADDLES,
    WIDTH,
    ZERO,
    Lane,
    inline,
    prefetch,
)


@inline
def lane(parameters, k):
    """Return the parameters of lane k."""
    return Lane(
        parameters[k],
        parameters[LANES + k],
        parameters[2 * LANES + k],
        parameters[3 * LANES + k],
        parameters[4 * LANES + k],
    )


@inline
def penalised_lane(p, penalised):
    """Return the parameters of a lane with penalties times ``penalised``: 0 for the bias, 1 for features."""
    return Lane(p.inverse_alpha, p.beta, penalised * p.l1, penalised * p.l2, p.radius)


@inline
def bias_coordinate(state):
    """Return the last coordinate, which is the bias."""
    return np.uint64(state.shape[0]) // WIDTH - ONE


@inline
def prefetch_distance(indices, hi):
    """Return how many non-zeros ahead of a row's coordinates records are prefetched; 0 near the end of the block."""
    return AHEAD if hi + AHEAD + np.uint64(8) <= np.uint64(indices.shape[0]) else ZERO


@inline
def prefetch_record(w, indices, j):
    """Prefetch the record of the j-th non-zero."""
    q = np.uint64(indices[j])
    for offset in range(ZERO, WIDTH, LINE):
        prefetch(w.state, q * WIDTH + offset)
    if STRADDLES:
        prefetch(w.state, q * WIDTH + WIDTH - ONE)
    if SEPARATE_SCALES:
        prefetch(w.scales, q)
