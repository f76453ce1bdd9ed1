"""Features of one namespace, each after one space: ``name`` or ``name:value``.

Blanks, colons and bars of 64 bytes are located at once, so that the start of a feature does not depend on the end of
the previous one.
"""

import numpy as np

from forel.data.compiled.cache import inner
from forel.data.compiled.hashing import hash_name
from forel.data.compiled.numbers import NUMBER, number, short_decimal, short_number
from forel.data.compiled.words import at_most, equal, lowest

__all__ = ["plain_features"]

ZERO, ONE, WORD = (np.uint64(k) for k in (0, 1, 64))
BAR, SPACE, COLON = (np.uint8(ord(c)) for c in "| :")


@inner
def plain_features(i, state, scale, mask, indices, values, entry):
    """Read features from the space at address i on; ``state`` is the hash of their namespace.

    Return the address of the blank after the last, and the end of the entries. Other forms are left to the caller.
    """
    scaled = scale != 1
    while True:
        stops, colons = at_most(i, SPACE), equal(i, COLON)
        wrong = stops ^ equal(i, SPACE) | equal(i, BAR)
        valid = wrong ^ (wrong - ONE)  # up to the first bar, line end or other blank, which may end a feature
        stops &= valid & (stops - ONE)  # without the space at i
        here, colon = ZERO, lowest(colons)
        while stops != ZERO:
            there = lowest(stops)
            stops &= stops - ONE
            start, end, value = i + here + ONE, min(colon, there), scale
            length = end - here - ONE
            if length - ONE > WORD:
                return i + here, entry  # empty name
            if colon < there:
                colons &= colons - ONE
                at, digits = i + colon + ONE, there - colon - ONE
                colon = lowest(colons)
                value, certain = short_decimal(at, digits)
                if not certain:
                    value, certain = short_number(at, digits)
                if not certain:
                    value, after, kind = number(at)
                    if kind != NUMBER or after != i + there or not np.isfinite(value):
                        return i + here, entry
                if scaled:
                    value *= scale
                    if not np.isfinite(value):
                        return i + here, entry
            indices[entry] = hash_name(start, length, state) & mask
            values[entry] = value
            entry += ONE
            here = there
        if here == ZERO:
            return i, entry
        i += here
