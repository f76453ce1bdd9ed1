"""Hashing of names: a word of eight bytes at a time is multiplied and folded; then the finalizer of MurmurHash3.

With K odd, every step h ← fold((h ⊕ word)·K), fold(h) = h ⊕ (h ≫ 32), is invertible, so that names of
equal length up to eight bytes never collide in 64 bits. The length is mixed in at the end, because the last word is
padded with zeros. The hash of a namespace is the initial state of the hashes of its features.
"""

import numpy as np

from forel.data.compiled.cache import fast, inlined, inner
from forel.data.compiled.layout import COLLIDED, COLUMNS, FINGERPRINT, UPPER, USED
from forel.data.compiled.words import EIGHT, THREE, WORD, address, byte, load

__all__ = [
    "LETTERS", "START", "absorb", "claim_row", "claim_slots", "fill_codes", "finish", "hash_name", "hash_padded",
    "hash_spans", "mix", "only",
]  # fmt: skip

START, FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
FIRST, SECOND, SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
ONE, FOLD, TILE = np.uint64(1), np.uint64(32), np.uint64(64)


@inner
def absorb(state, word):
    """Return the state after one more word."""
    state = (state ^ word) * FACTOR
    return state ^ (state >> FOLD)


@inner
def only(word, n):
    """Return the first n bytes of a word, n < 8, and zeros."""
    return word & ((ONE << (n << THREE)) - ONE)


@inner
def mix(state):
    """Return a word all of whose bits depend on all bits of the state."""
    state = (state ^ (state >> SHIFT)) * FIRST
    state = (state ^ (state >> SHIFT)) * SECOND
    return state ^ (state >> SHIFT)


@inner
def finish(state, length):
    """Return the hash of a name from its length and the state after its last word."""
    return mix(state ^ length)


def plain_of(function):
    """Return the Python function that numba compiled, or would compile."""
    return getattr(function, "py_func", function)


# The hashes of all names of one byte, which most namespaces have.
LETTERS = plain_of(mix)(plain_of(absorb)(START, np.arange(256, dtype=np.uint64)) ^ ONE)


@inlined
def hash_name(at, length, state):
    """Return the hash of ``length`` bytes from an address on, at least one, which a readable word must follow."""
    rest = length
    while rest > EIGHT:
        state = absorb(state, load(at))
        at += EIGHT
        rest -= EIGHT
    beyond = WORD - (rest << THREE)  # bits of the word after the name
    return finish(absorb(state, load(at) << beyond >> beyond), length)


@inner
def hash_padded(at, end, state):
    """Return the hash of the bytes between two addresses, which a readable word must follow."""
    length = end - at
    while at + EIGHT <= end:
        state = absorb(state, load(at))
        at += EIGHT
    if at < end:
        state = absorb(state, only(load(at), end - at))
    return finish(state, length)


@inner
def hash_piece(at, end, limit, start):
    """Return the hash of the bytes between two addresses, reading none at or after ``limit``."""
    length, state = end - at, start
    while at + EIGHT <= end:
        state = absorb(state, load(at))
        at += EIGHT
    if at < end:
        if at + EIGHT <= limit:
            word = only(load(at), end - at)
        else:
            word = np.uint64(0)
            while at < end:
                end -= ONE
                word = word << EIGHT | np.uint64(byte(end))
        state = absorb(state, word)
    return finish(state, length)


@fast
def hash_spans(text, starts, stops, states, out):
    """Write the hashes of spans of bytes, each with its initial state; the text needs no padding."""
    base = address(text)
    limit = base + np.uint64(text.size)
    for k in range(np.uint64(out.size)):
        out[k] = hash_piece(base + np.uint64(starts[k]), base + np.uint64(stops[k]), limit, states[k])


@fast
def fill_codes(codes, word_slots, places, start, slots, there):
    """Fill columns of cells from dictionary codes, from row ``start`` on; negative slots are absent."""
    rows, first = np.uint64(slots.shape[0]), np.uint64(start)
    for tile in range(np.uint64(0), rows, TILE):
        # A few rows of all columns at a time stay in a cache, where whole columns would not.
        stop = min(tile + TILE, rows)
        for k in range(np.uint64(places.size)):
            column = np.uint64(places[k])
            for r in range(tile, stop):
                slot = word_slots[np.uint64(codes[k, first + r])]
                slots[r, column] = slot
                there[r, column] = slot >= 0


@inner
def claim_row(fingerprints, records, names, candidates):
    """Keep the candidates of a row, after the first ``names`` records, whose slots are unused; return the end.

    Different names of a slot are distinguished by 30 bits of their hashes. One loop handles a whole row, so that its
    cache misses overlap.
    """
    end = np.uint64(names)
    for k in range(np.uint64(names), np.uint64(names + candidates)):
        slot = np.uint64(records[k, 0])
        new = np.uint32(np.uint64(records[k, 1]) >> UPPER) & FINGERPRINT | USED
        old = fingerprints[slot]
        if old == 0:
            fingerprints[slot] = new
            for column in range(COLUMNS):
                records[end, column] = records[k, column]
            end += np.uint64(1)
        elif (old ^ new) & FINGERPRINT != 0:
            fingerprints[slot] = old | COLLIDED
    return np.int64(end)


@fast
def claim_slots(fingerprints, records, names, candidates):
    """Call :func:`claim_row` from Python."""
    return claim_row(fingerprints, records, names, candidates)
