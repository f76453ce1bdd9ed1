"""Units of the records of scale-free rates, as :mod:`forel.learner.units` defines them.

Kernels with UNITS learn from any row. The others keep all records in units of 1, without further arithmetic, and stop
at rows with a coordinate for which ``needs_other_unit`` is true; a kernel with UNITS continues there. Multiplying by a
power of two is exact, so that both give the same bits.
"""

from forel.learner.kernels.reference import (
    INVERSE_POWERS,
    MAX,
    POWERS,
    REAL_ONE,
    THRESHOLDS,
    UNITS,
    Lane,
    inline,
)


@inline
def unit(s):
    """Return the unit of a scale and its inverse."""
    u, inverse = (POWERS[3], INVERSE_POWERS[3]) if s >= THRESHOLDS[2] else (POWERS[2], INVERSE_POWERS[2])
    u, inverse = (POWERS[4], INVERSE_POWERS[4]) if s >= THRESHOLDS[3] else (u, inverse)
    u, inverse = (POWERS[5], INVERSE_POWERS[5]) if s >= THRESHOLDS[4] else (u, inverse)
    u, inverse = (POWERS[1], INVERSE_POWERS[1]) if s < THRESHOLDS[1] else (u, inverse)
    u, inverse = (POWERS[0], INVERSE_POWERS[0]) if s < THRESHOLDS[0] else (u, inverse)
    return (u, inverse) if s > 0 else (REAL_ONE, REAL_ONE)


@inline
def needs_other_unit(before, v):
    """Return whether the unit of a coordinate with scale ``before`` is not 1, or would not be after the value v."""
    size = abs(v)
    first = before if before > 0 else size
    return (max(before, size) >= THRESHOLDS[2]) | ((first > 0) & (first < THRESHOLDS[1]))


@inline
def first_scale(before, v):
    """Return the scale of a coordinate before the value v or, if that is 0, after it; 1 for 0."""
    first = before if before > 0 else abs(v)
    return first if first > 0 else REAL_ONE


@inline
def clip_to_range(x):
    """Clip a number that may have overflowed to the range of its type."""
    return min(max(x, -MAX), MAX)


@inline
def in_units(p, u, inverse):
    """Return the parameters of a lane in the unit of a coordinate; finite, so that none of them times 0 is NaN."""
    if UNITS:
        radius = min(p.radius, MAX * min(inverse, REAL_ONE)) * u
        return Lane(p.inverse_alpha, p.beta, min(p.l1 * inverse, MAX), min(p.l2 * inverse * inverse, MAX), radius)
    return p
