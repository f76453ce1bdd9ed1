"""Names of features while they are parsed: the first ones of their slots, and their bytes."""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.layout import COLLIDED, COLUMNS, FINGERPRINT, UPPER, USED

__all__ = ["claim_row", "claim_slots", "gather"]


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


@fast
def gather(text, records, ends, out):
    """Concatenate the names of the records, and write their ends."""
    at = 0
    for k in range(records.shape[0]):
        for i in range(records[k, 2], records[k, 3]):
            out[at] = text[i]
            at += 1
        if records[k, 3] > records[k, 2]:
            out[at] = 94  # a caret
            at += 1
        for i in range(records[k, 4], records[k, 5]):
            out[at] = text[i]
            at += 1
        ends[k + 1] = at
