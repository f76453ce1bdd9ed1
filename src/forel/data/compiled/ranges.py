"""Ranges of numeric columns, whose entries are found by their slots in a small hash table."""

import numpy as np

from forel.data.compiled.cache import fast, inner

__all__ = ["add_ranges", "count_outside"]

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
