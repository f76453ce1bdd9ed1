"""A name's slot: a word of eight bytes at a time, multiplied and folded, then the finalizer of MurmurHash3.

With K odd, every step h ← fold((h ⊕ word)·K), fold(h) = h ⊕ (h ≫ 32), can be undone, so that names of one length
up to eight bytes never meet before the last bits are taken. The length joins at the end, because the last word is
filled up with zeros. A namespace's hash is where the hashes of its features start.
"""

import numpy as np

from forel.formats.compiled.cache import fast
from forel.formats.compiled.words import EIGHT, THREE, address, load

__all__ = ["START", "absorb", "finish", "hash_pieces", "mix", "only"]

START, FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
FIRST, SECOND, SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
ONE, FOLD = np.uint64(1), np.uint64(32)


@fast
def absorb(state, word):
    """Return the state after one word more."""
    state = (state ^ word) * FACTOR
    return state ^ (state >> FOLD)


@fast
def only(word, n):
    """Return the first n bytes of a word, n < 8, and zeros."""
    return word & ((ONE << (n << THREE)) - ONE)


@fast
def mix(state):
    """Return a word all of whose bits depend on all bits of the state."""
    state = (state ^ (state >> SHIFT)) * FIRST
    state = (state ^ (state >> SHIFT)) * SECOND
    return state ^ (state >> SHIFT)


@fast
def finish(state, length):
    """Return the hash of a name of so many bytes from the state after its last word."""
    return mix(state ^ length)


@fast
def hash_pieces(text, ends, start, out):
    """Write the hash of every piece of ``text``, each from the end of the one before, after the hash ``start[k]``."""
    base = address(text)
    for k in range(out.size):
        at, end = base + np.uint64(ends[k]), base + np.uint64(ends[k + 1])
        length, state = end - at, start[k]
        while at + EIGHT <= end:
            state = absorb(state, load(at))
            at += EIGHT
        if at < end:
            state = absorb(state, only(load(at), end - at))
        out[k] = finish(state, length)
