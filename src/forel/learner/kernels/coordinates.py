"""Functions shared by kernels of one lane and of many lanes: parameters of a lane, units, the bias, prefetching.

Units of the records of scale-free rates are those of :mod:`forel.learner.layout`. Squares, strengths and variances stay
in the range of the type for features of any size. Multiplying by a power of two is exact, so that results have the same
bits as without units.
"""

import numpy as np

from forel.learner.kernels.reference import (
    CERTIFIED_LANES,
    FIRST_LARGE,
    FIRST_ORDINARY,
    GRADIENT_LANES,
    KEEPS_GRADIENTS_BY_SCALES,
    LANES,
    LARGEST_UNIT,
    LINE_SIZE,
    MAX,
    ONE,
    PADDED,
    PARAMETERS,
    PREFETCH_DISTANCE,
    REAL_ONE,
    RECORDS_STRADDLE_LINES,
    SCALE_FREE,
    SCALE_WIDTH,
    SEPARATE_SCALES,
    WIDTH,
    ZERO,
    Lane,
    binade,
    inline,
    inverse_power,
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


@inline
def unit(s):
    """Return the unit of a scale and its inverse."""
    u = min(max(binade(s), inverse_power(LARGEST_UNIT)), LARGEST_UNIT)
    u = REAL_ONE if is_ordinary(s) else u
    return u, inverse_power(u)


@inline
def is_ordinary(s):
    """Return whether the unit of a scale is 1."""
    return (s >= FIRST_ORDINARY) & (s < FIRST_LARGE)


@inline
def clip_to_range(x):
    """Clip a number that may have overflowed to the range of its type."""
    return min(max(x, -MAX), MAX)


@inline
def in_units(p, u, inverse):
    """Return the parameters of a lane in the unit of a coordinate; finite, so that none of them times 0 is NaN."""
    if SCALE_FREE:
        radius = min(p.radius, MAX * min(inverse, REAL_ONE)) * u
        return Lane(p.inverse_alpha, p.beta, min(p.l1 * inverse, MAX), min(p.l2 * inverse * inverse, MAX), radius)
    return p
