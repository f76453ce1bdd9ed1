"""One entry for each feature of a row: what hashes to the same slot, or is there twice, is summed."""

import numpy as np

from forel.data.compiled.cache import fast

__all__ = ["STAMPS", "distinct", "merge_row", "merge_rows", "pack_rows"]

STAMPS, FEW = 8192, 64  # places for stamps, which the first cache has room for, and how many entries rarely meet there


@fast
def distinct(indices, start, stop, stamps, row):
    """Tell whether the slots of a row are known to differ, at a glance: no two have the same place among the stamps.

    There are ``STAMPS`` of them, in which each row leaves its number. One of 65,536 rows before looks like this row's,
    which costs a longer look and nothing else.
    """
    if stop - start > FEW:
        return False
    stamp, met = np.uint16(row + 1), False
    for j in range(np.uint64(start), np.uint64(stop)):
        place = np.uint64(indices[j]) & np.uint64(STAMPS - 1)
        met |= stamps[place] == stamp
        stamps[place] = stamp
    return not met


@fast
def merge_row(indices, values, start, stop, to, table):
    """Move entries start to stop down to ``to`` and sum equal ones; return their end, the table, and whether finite.

    The table holds positions of entries. One below ``to`` is from a row before, and as good as empty, so that the table
    is never cleared.
    """
    # Room enough that entries rarely meet, since each meeting is a branch guessed wrong; and still in the first cache.
    size = 1024
    while size < 4 * (stop - start):
        size *= 2
    if size > table.size:
        table = np.full(size, -1, np.int32)
    last = np.uint64(size - 1)
    end = to
    finite = True
    for j in range(np.uint64(start), np.uint64(stop)):
        q, v = indices[j], values[j]
        place = np.uint64(q) & last
        held = table[place]
        while held >= to and indices[np.uint64(held)] != q:
            place = (place + np.uint64(1)) & last
            held = table[place]
        if held < to:
            table[place] = end
            if np.uint64(end) != j:
                indices[np.uint64(end)] = q
                values[np.uint64(end)] = v
            end += 1
        else:
            values[np.uint64(held)] += v
            finite = finite and np.isfinite(values[np.uint64(held)])
    return end, table, finite


@fast
def merge_rows(indptr, indices, values):
    """Do so for all rows in place; return the first row whose sum is infinite, or −1."""
    table = np.full(1024, -1, np.int32)
    bad = np.int64(-1)
    to = np.int64(0)
    start = indptr[0]
    for r in range(indptr.size - 1):
        stop = indptr[r + 1]
        to, table, finite = merge_row(indices, values, start, stop, to, table)
        if not finite and bad < 0:
            bad = np.int64(r)
        start = stop
        indptr[r + 1] = to
    return bad


@fast
def pack_rows(slots, values, there, good, indptr, indices, packed):
    """Write the cells that are there, of rows that are good, as sparse rows without equal slots; return as above."""
    table, stamps = np.full(1024, -1, np.int32), np.zeros(STAMPS, np.uint16)
    bad = np.int64(-1)
    to, row = np.int64(0), np.int64(0)
    for r in range(np.uint64(slots.shape[0])):
        if not good[r]:
            continue
        end = np.uint64(to)
        for k in range(np.uint64(slots.shape[1])):
            if there[r, k]:
                indices[end] = slots[r, k]
                packed[end] = values[r, k]
                end += np.uint64(1)
        stop = np.int64(end)
        if not distinct(indices, to, stop, stamps, row):
            stop, table, finite = merge_row(indices, packed, to, stop, to, table)
            if not finite and bad < 0:
                bad = row
        to = stop
        row += 1
        indptr[row] = to
    return bad
