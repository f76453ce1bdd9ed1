"""Namespaces with one name each, ``|user u17 |b name``: most lines of click logs have only these.

Bars and blanks of 64 bytes are located at once, so that the start of a name does not depend on the end of the previous
one. If every bar follows a space, and one more space is between two bars, that one separates a namespace from its name.
"""

import numpy as np

from forel.data.compiled.cache import inner
from forel.data.compiled.hashing import LETTERS, START, hash_name
from forel.data.compiled.words import at_most, byte, equal, lowest

__all__ = ["plain_namespaces"]

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
BAR, SPACE, COLON, END = (np.uint8(ord(c)) for c in "| :\n")


@inner
def plain_namespaces(i, mask, indices, values, entry):
    """Read all such namespaces from the bar at address i on, each followed by a bar or the end of the line.

    Return the address of the bar or line end after the last, and the end of the entries. Other forms are left to the
    caller.
    """
    one = np.float32(1)
    while True:
        bars, spaces, lines = equal(i, BAR), equal(i, SPACE), equal(i, END)
        before = bars >> ONE
        inner = spaces & ~before
        ends = before & spaces | lines
        # If spaces within and ends of namespaces alternate, the difference has all bits from each space to its end.
        names = ends - inner
        wrong = names ^ names << ONE ^ (inner | ends) | names & ends
        wrong |= inner & (bars << ONE | ends >> ONE)  # empty namespaces and names
        wrong |= before & ~spaces | (spaces | lines) ^ (at_most(i, SPACE) | equal(i, COLON))
        ends &= ~wrong & (wrong - ONE) & (lines ^ (lines - ONE))  # before the first mismatch, up to the end of the line
        here = i
        while ends != ZERO:
            middle, end = i + lowest(inner), i + lowest(ends)
            inner &= inner - ONE
            ends &= ends - ONE
            state = LETTERS[byte(here + ONE)]
            if middle != here + TWO:
                state = hash_name(here + ONE, middle - here - ONE, START)
            indices[entry] = hash_name(middle + ONE, end - middle - ONE, state) & mask
            values[entry] = one
            entry += ONE
            here = end + ONE
        if here == i:
            return i, entry
        if byte(here - ONE) == END:
            return here - ONE, entry
        i = here
