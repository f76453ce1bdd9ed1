"""Namespaces of one letter with one name each, ``|a name |b name``: most lines of click logs have only these.

Bars and blanks of 64 bytes are located at once, so that the start of a name does not depend on the end of the previous
one. If blanks are exactly where this form has them, every name lies between two bars.
"""

import numpy as np

from forel.data.compiled.cache import fast
from forel.data.compiled.hashing import LETTERS, absorb, finish
from forel.data.compiled.words import EIGHT, at_most, byte, equal, load, lowest

__all__ = ["plain_namespaces"]

ZERO, ONE, TWO, THREE, FOUR, WORD = (np.uint64(k) for k in (0, 1, 2, 3, 4, 64))
BAR, SPACE, COLON = (np.uint8(ord(c)) for c in "| :")


@fast
def plain_namespaces(i, mask, indices, values, entry):
    """Read all such namespaces from the bar at address i on, each followed by a bar.

    Return the address of the bar after the last, and the end of the entries. Other forms are left to the caller.
    """
    one = np.float32(1)
    while True:
        bars, spaces = equal(i, BAR), equal(i, SPACE)
        # A space before each bar, another after its letter, and no other blank or colon.
        wrong = spaces ^ (bars >> ONE | bars << TWO) | spaces ^ (at_most(i, SPACE) | equal(i, COLON))
        bars &= wrong ^ (wrong - ONE)  # up to the first mismatch
        bars &= bars - ONE  # without the bar at i
        here = i
        while bars != ZERO:
            there = i + lowest(bars)
            bars &= bars - ONE
            n, at, state = there - here - FOUR, here + THREE, LETTERS[byte(here + ONE)]
            if n - ONE > WORD:
                return here, entry  # empty name
            length = n
            while n > EIGHT:
                state = absorb(state, load(at))
                at += EIGHT
                n -= EIGHT
            beyond = WORD - (n << THREE)  # bits of the word after the name
            state = absorb(state, load(at) << beyond >> beyond)
            indices[entry] = np.int32(finish(state, length) & mask)
            values[entry] = one
            entry += ONE
            here = there
        if here == i:
            return here, entry
        i = here
