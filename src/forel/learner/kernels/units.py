"""Units of the records of scale-free rates, as :mod:`forel.learner.units` defines them.

Squares, strengths and variances stay in the range of the type for features of any size. Multiplying by a power of two
is exact, so that results have the same bits as without units.
"""

from forel.learner.kernels.reference import (
    FIRST_LARGE,
    FIRST_ORDINARY,
    LARGEST_UNIT,
    MAX,
    REAL_ONE,
    SCALE_FREE,
    Lane,
    binade,
    inline,
    inverse_power,
)


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
