"""Namespaces of one letter with one plain name each, ``|a name |b name``: what most lines of click logs are made of.

Where the next name begins is not waited for: bars and blanks of 64 bytes are found at once, and if blanks are just
where bars want them, every name lies between two bars.
"""

import numpy as np

from forel.data.compiled.cache import fast
from forel.data.compiled.hashing import LETTERS, absorb, finish
from forel.data.compiled.words import EIGHT, at_most, byte, equal, load, lowest

__all__ = ["framed"]

ZERO, ONE, TWO, THREE, FOUR, WORD = (np.uint64(k) for k in (0, 1, 2, 3, 4, 64))
BAR, SPACE, COLON = (np.uint8(ord(c)) for c in "| :")


@fast
def framed(i, mask, indices, values, entry):
    """Read as many such namespaces as there are from the bar at address i on, each with a bar after it.

    Return the address of the bar after the last, and the end of the entries. What is of another form is left to others.
    """
    one = np.float32(1)
    while True:
        bars, spaces = equal(i, BAR), equal(i, SPACE)
        # A space before each bar, another after its letter, and no other blank or colon.
        wrong = spaces ^ (bars >> ONE | bars << TWO) | spaces ^ (at_most(i, SPACE) | equal(i, COLON))
        bars &= wrong ^ (wrong - ONE)  # up to the first that is wrong
        bars &= bars - ONE  # without the one at i
        here = i
        while bars != ZERO:
            there = i + lowest(bars)
            bars &= bars - ONE
            n, at, state = there - here - FOUR, here + THREE, LETTERS[byte(here + ONE)]
            if n - ONE > WORD:
                return here, entry  # no name
            length = n
            while n > EIGHT:
                state = absorb(state, load(at))
                at += EIGHT
                n -= EIGHT
            beyond = WORD - (n << THREE)  # bits of the word that are no longer the name's
            state = absorb(state, load(at) << beyond >> beyond)
            indices[entry] = np.int32(finish(state, length) & mask)
            values[entry] = one
            entry += ONE
            here = there
        if here == i:
            return here, entry
        i = here
