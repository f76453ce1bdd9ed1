"""Names on the way: which are the first of their slot, and their bytes."""

import numpy as np

from forel.data.compiled.cache import fast
from forel.data.compiled.layout import COLUMNS, FINGERPRINT, MET, TOUCHED, UPPER

__all__ = ["gather", "settle"]


@fast
def settle(prints, records, names, candidates):
    """Keep those candidates of a row, after the first ``names`` records, whose slot is touched first; return the end.

    Names that meet in a slot are told apart by 30 bits of their hash. One loop for a whole row, because the slots are
    far apart in memory and are waited for together.
    """
    end = np.uint64(names)
    for k in range(np.uint64(names), np.uint64(names + candidates)):
        slot = np.uint64(records[k, 0])
        mine = np.uint32(np.uint64(records[k, 1]) >> UPPER) & FINGERPRINT | TOUCHED
        held = prints[slot]
        if held == 0:
            prints[slot] = mine
            for column in range(COLUMNS):
                records[end, column] = records[k, column]
            end += np.uint64(1)
        elif (held ^ mine) & FINGERPRINT != 0:
            prints[slot] = held | MET
    return np.int64(end)


@fast
def gather(text, records, ends, out):
    """Write the names of the records one after the other, and where each ends."""
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
