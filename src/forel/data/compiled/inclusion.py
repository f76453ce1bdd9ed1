"""Which features of rows are used: those seen often enough, or included at random."""

import numpy as np

from forel.data.compiled.cache import fast

__all__ = ["include"]

GOLDEN, ROW, FIRST, SECOND = (
    np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@fast
def include(indptr, indices, values, counted, before, limit, threshold, seed, table, offsets, kept, kept_values):
    """Write the entries of included slots, with the offsets of rows, and return their number.

    A slot is included once its number in ``table`` is ``limit``. Each row that counts adds 1 to it, or, if
    ``threshold`` is not 0, sets it to ``limit`` where a pseudo-random number of slot, row and seed is below that.

    Parameters
    ----------
    indptr, indices, values : the rows
    counted : whether each row counts
    before : number of rows before these
    limit, threshold, seed, table : as above
    offsets, kept, kept_values : receive the rows
    """
    end = 0
    for r in range(counted.size):
        for j in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            slot = indices[j]
            number = table[slot]
            if number < limit and counted[r]:
                if threshold == np.uint64(0):
                    number += np.uint8(1)
                else:
                    # The finalizer of SplitMix64.
                    x = (np.uint64(before + r) + np.uint64(1)) * GOLDEN + np.uint64(slot) * ROW + seed
                    x = (x ^ (x >> np.uint64(30))) * FIRST
                    x = (x ^ (x >> np.uint64(27))) * SECOND
                    if (x ^ (x >> np.uint64(31))) < threshold:
                        number = np.uint8(limit)
                table[slot] = number
            if number >= limit:
                kept[end], kept_values[end] = slot, values[j]
                end += 1
        offsets[r + 1] = end
    return end
