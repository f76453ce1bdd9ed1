"""Rows: values of equal slots are summed, so that each slot has one entry; and the ranges of columns in entries."""

import numpy as np

from forel.data.compiled.cache import fast, inner

__all__ = [
    "STAMPS", "add_ranges", "count_outside", "distinct", "merge_row", "merge_rows", "pack_rows",
]  # fmt: skip

STAMPS, FEW = 8192, 64  # elements of the stamp table, which fits in L1, and entries that rarely collide in it


@inner
def distinct(indices, start, stop, stamps, row):
    """Return True if the slots of a row certainly differ, by a hash table of row numbers with ``STAMPS`` elements.

    Row numbers repeat after 65,536 rows, so a false positive is possible; it only costs the full check.
    """
    if stop - start > FEW:
        return False
    stamp, collision = np.uint16(row + 1), False
    for j in range(np.uint64(start), np.uint64(stop)):
        place = np.uint64(indices[j]) & np.uint64(STAMPS - 1)
        collision |= stamps[place] == stamp
        stamps[place] = stamp
    return not collision


@inner
def merge_row(indices, values, start, stop, to, table):
    """Move entries start to stop down to ``to`` and sum equal ones; return their end, the table, and whether finite.

    The table holds positions of entries. Those below ``to`` are from earlier rows and count as empty, so that the table
    is never cleared.
    """
    # Large enough that collisions, which are mispredicted branches, are rare; small enough for L1.
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
        position = table[place]
        while position >= to and indices[np.uint64(position)] != q:
            place = (place + np.uint64(1)) & last
            position = table[place]
        if position < to:
            table[place] = end
            if np.uint64(end) != j:
                indices[np.uint64(end)] = q
                values[np.uint64(end)] = v
            end += 1
        else:
            values[np.uint64(position)] += v
            finite = finite and np.isfinite(values[np.uint64(position)])
    return end, table, finite


@fast
def merge_rows(indptr, indices, values):
    """Merge all rows in place; return the first row with an infinite sum, or −1."""
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
    """Write the present cells of good rows as sparse rows with merged slots; return as :func:`merge_rows`."""
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


FACTOR = np.uint64(0x9E3779B97F4A7C15)
NONE = np.uint64(1 << 63)


@inner
def find(slots, columns, shift, slot):
    """Return the column of a slot, ``NONE`` if the table does not have it.

    The table has 2**(64 − shift) entries, at least one of them empty; empty entries are −1.
    """
    place = (np.uint64(slot) * FACTOR) >> shift
    found = slots[place]
    while found != slot and found >= 0:
        place = (place + np.uint64(1)) & np.uint64(slots.size - 1)
        found = slots[place]
    return np.uint64(columns[place]) if found == slot else NONE


@fast
def add_ranges(indices, values, slots, columns, shift, low, high, counts, magnitudes):
    """Extend the range of each column in the table to the values of its entries, count these, and sum their sizes."""
    for j in range(np.uint64(indices.size)):
        column = find(slots, columns, shift, indices[j])
        if column != NONE:
            counts[column] += 1
            value = values[j]
            magnitudes[column] += np.float64(abs(value))
            if value < low[column]:
                low[column] = value
            if value > high[column]:
                high[column] = value


@fast
def count_outside(indices, values, slots, columns, shift, low, high, counts, first):
    """Count the entries outside the ranges of their columns; ``first``, initially −1, receives the first of each."""
    for j in range(np.uint64(indices.size)):
        column = find(slots, columns, shift, indices[j])
        if column != NONE and not low[column] <= values[j] <= high[column]:
            counts[column] += 1
            if first[column] < 0:
                first[column] = np.int64(j)
