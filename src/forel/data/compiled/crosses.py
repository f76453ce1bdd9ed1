"""Crosses: products of the features of a row, for all combinations."""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.hashing import START, absorb, finish
from forel.data.compiled.layout import COLLIDED, FINGERPRINT, UPPER, USED
from forel.data.compiled.merge import merge_row

__all__ = ["classify", "cross"]

ONE, TWO_WORDS, THREE_WORDS = np.uint64(1), np.uint64(16), np.uint64(24)


@fast
def classify(text, records, words, ends, whole, kinds):
    """Write the kind of the namespace of each record: the first whose word is its name, or a prefix of it."""
    for k in range(records.shape[0]):
        begin, size = records[k, 2], records[k, 3] - records[k, 2]
        if k > 0 and begin == records[k - 1, 2]:
            kinds[k] = kinds[k - 1]
            continue
        found = whole.size
        for c in range(whole.size):
            n = ends[c + 1] - ends[c]
            if size < n or (whole[c] and size != n):
                continue
            i = 0
            while i < n and text[begin + i] == words[ends[c] + i]:
                i += 1
            if i == n:
                found = c
                break
        kinds[k] = found


@fast
def cross(
    indptr,
    hashes,
    values,
    kinds,
    terms,
    number,
    bits,
    bad,
    longest,
    to,
    indices,
    products,
    infinite,
    fingerprints,
    fresh,
):
    """Write the entries of each row and their crosses, with equal slots summed; return the number of new slots.

    Rows that are ``bad`` become empty, and so do those with ``infinite`` values. ``fresh`` receives each new slot with
    the entries that are crossed, padded with −1.
    """
    mask = (ONE << np.uint64(bits)) - ONE
    recording = fingerprints.size > 0
    hashed, parts = np.empty(longest, np.uint64), np.empty((longest if recording else 0, 3), np.int64)
    order, starts = np.empty(longest, np.int64), np.empty(number + 2, np.int64)
    table = np.full(1024, -1, np.int32)
    end, new = np.int64(0), 0
    for r in range(indptr.size - 1):
        to[r + 1] = end
        if bad[r]:
            continue
        n = _sort(indptr[r], indptr[r + 1], kinds, number, order, starts)
        for j in range(n):
            k = indptr[r] + j
            hashed[j], products[end + j] = hashes[k], values[k]
            if recording:
                parts[j, 0], parts[j, 1], parts[j, 2] = k, -1, -1
        for t in range(terms.shape[0]):
            a, b, c = terms[t, 0], terms[t, 1], terms[t, 2]
            for x in range(starts[a], starts[a + 1]):
                for y in range(x if b == a else starts[b], starts[b + 1]):
                    i, j = _sorted_pair(hashes, order[x], order[y])
                    if c < 0:
                        hashed[n] = finish(absorb(absorb(START, hashes[i]), hashes[j]), TWO_WORDS)
                        products[end + n] = values[i] * values[j]
                        if recording:
                            parts[n, 0], parts[n, 1], parts[n, 2] = order[x], order[y], -1
                        n += 1
                        continue
                    for z in range(y if c == b else starts[c], starts[c + 1]):
                        f, g = _sorted_pair(hashes, j, order[z])
                        e, f = _sorted_pair(hashes, i, f)
                        state = absorb(absorb(absorb(START, hashes[e]), hashes[f]), hashes[g])
                        hashed[n] = finish(state, THREE_WORDS)
                        products[end + n] = values[e] * values[f] * values[g]
                        if recording:
                            parts[n, 0], parts[n, 1], parts[n, 2] = order[x], order[y], order[z]
                        n += 1
        good = True
        for j in range(n):
            indices[end + j] = hashed[j] & mask
            good = good and np.isfinite(products[end + j])
        last, table, finite = merge_row(indices, products, end, end + n, end, table)
        if not (good and finite):
            # Positions of this row in the table are not below ``to``, so they have to be cleared.
            table[:] = -1
            infinite[r] = True
            continue
        if recording:
            new = _claim_slots(fingerprints, hashed, parts, n, mask, fresh, new)
        end = last
        to[r + 1] = end
    return new


@inner
def _sort(first, last, kinds, number, order, starts):
    """Sort the entries of a row by kind, and write the start of each kind; return the number of entries."""
    starts[:] = 0
    for k in range(first, last):
        starts[kinds[k] + 1] += 1
    for c in range(number + 1):
        starts[c + 1] += starts[c]
    for k in range(first, last):
        order[starts[kinds[k]]] = k
        starts[kinds[k]] += 1
    for c in range(number + 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
    return last - first


@inner
def _sorted_pair(hashes, i, j):
    """Return two entries in order of their hashes."""
    return (j, i) if hashes[i] > hashes[j] else (i, j)


@inner
def _claim_slots(fingerprints, hashed, parts, n, mask, fresh, new):
    """Record the features of a row whose slots are unused, and mark slots with another name."""
    for k in range(n):
        slot = hashed[k] & mask
        code = np.uint32(hashed[k] >> UPPER) & FINGERPRINT | USED
        old = fingerprints[slot]
        if old == 0:
            fingerprints[slot] = code
            fresh[new, 0] = slot
            for s in range(3):
                fresh[new, s + 1] = parts[k, s]
            new += 1
        elif (old ^ code) & FINGERPRINT != 0:
            fingerprints[slot] = old | COLLIDED
    return new
