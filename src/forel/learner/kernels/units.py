"""Units of the records of scale-free rates, as :mod:`forel.learner.units` defines them.

Kernels with UNITS learn from any row. Others keep all records in units of 1, without further arithmetic, and leave rows
with a coordinate that is ``beyond`` to them. Multiplying by a power of two is exact, so that both have the same bits.
"""

from forel.learner.kernels.reference import (
    INVERSE_POWERS,
    MAX,
    POWERS,
    STARTS,
    UNIT,
    UNITS,
    Lane,
    inline,
)


@inline
def unit(s):
    """Return the unit of a scale and its inverse."""
    u, inverse = (POWERS[3], INVERSE_POWERS[3]) if s >= STARTS[2] else (POWERS[2], INVERSE_POWERS[2])
    u, inverse = (POWERS[4], INVERSE_POWERS[4]) if s >= STARTS[3] else (u, inverse)
    u, inverse = (POWERS[5], INVERSE_POWERS[5]) if s >= STARTS[4] else (u, inverse)
    u, inverse = (POWERS[1], INVERSE_POWERS[1]) if s < STARTS[1] else (u, inverse)
    u, inverse = (POWERS[0], INVERSE_POWERS[0]) if s < STARTS[0] else (u, inverse)
    return (u, inverse) if s > 0 else (UNIT, UNIT)


@inline
def beyond(before, v):
    """Return whether the unit of a coordinate with the scale ``before`` is not 1, or would not be after the value v."""
    size = abs(v)
    first = before if before > 0 else size
    return (max(before, size) >= STARTS[2]) | ((first > 0) & (first < STARTS[1]))


@inline
def clip_to_range(x):
    """Return a number that may have overflowed, within the range of its type."""
    return min(max(x, -MAX), MAX)


@inline
def in_units(p, u, inverse):
    """Return the parameters of a lane in units of a coordinate, finite so that none of them times 0 is NaN."""
    if UNITS:
        radius = min(p.radius, MAX * min(inverse, UNIT)) * u
        return Lane(p.inverse_alpha, p.beta, min(p.l1 * inverse, MAX), min(p.l2 * inverse * inverse, MAX), radius)
    return p
