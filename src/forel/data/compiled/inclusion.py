"""Which features of rows are used: those seen often enough."""

import numpy as np

from forel.data.compiled.cache import fast

__all__ = ["include"]


@fast
def include(indptr, indices, values, counted, limit, table, offsets, kept, kept_values):
    """Write the entries of included slots, with the offsets of rows, and return their number.

    A slot is included once its number in ``table`` is ``limit``. Each row that counts adds 1 to it.

    Parameters
    ----------
    indptr, indices, values : the rows
    counted : whether each row counts
    limit, table : as above
    offsets, kept, kept_values : receive the rows
    """
    end = 0
    for r in range(counted.size):
        for j in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            slot = indices[j]
            number = table[slot]
            if number < limit and counted[r]:
                number += np.uint8(1)
                table[slot] = number
            if number >= limit:
                kept[end], kept_values[end] = slot, values[j]
                end += 1
        offsets[r + 1] = end
    return end
