"""Batches of rows as one round: distinct columns, margins, and gradients by column; and rows divided by columns."""

import numpy as np

from forel.jit.compiling import cached_njit

__all__ = ["add_gradients", "add_margins", "distinct", "divide_rows", "largest"]

compiled = cached_njit(__file__)
FACTOR, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@compiled
def distinct(indices, table, columns, places):
    """Write distinct indices in the order of their first occurrence, and which each entry has; return their number.

    Parameters
    ----------
    indices : of the entries
    table : −1 everywhere, a power of two of at least twice as many places as there are entries
    columns, places : the results, as long as ``indices``
    """
    count, mask = 0, np.uint64(table.size - 1)
    for j in range(indices.size):
        at = (np.uint64(indices[j]) * FACTOR >> HALF) & mask
        while table[at] >= 0 and columns[table[at]] != indices[j]:
            at = (at + np.uint64(1)) & mask
        if table[at] < 0:
            table[at] = count
            columns[count] = indices[j]
            count += 1
        places[j] = table[at]
    return count


@compiled
def largest(values, places, out):
    """Write the largest |value| of every column."""
    for j in range(places.size):
        out[places[j]] = max(out[places[j]], abs(values[j]))


@compiled
def add_margins(indptr, values, places, weights, out):
    """Add the margins of every row and lane, given the weights of distinct columns."""
    first = indptr[0]
    for r in range(indptr.size - 1):
        for j in range(indptr[r] - first, indptr[r + 1] - first):
            for k in range(weights.shape[1]):
                out[r, k] += np.float64(weights[places[j], k]) * np.float64(values[j])


@compiled
def add_gradients(indptr, values, places, slopes, out):
    """Add the gradients of all rows by distinct column and lane, given the slopes of rows."""
    first = indptr[0]
    for r in range(indptr.size - 1):
        for j in range(indptr[r] - first, indptr[r + 1] - first):
            for k in range(slopes.shape[1]):
                out[places[j], k] += np.float64(slopes[r, k]) * np.float64(values[j])


@compiled
def divide_rows(indptr, indices, values, shards, ends, own_indices, own_values):
    """Divide the entries of rows by shards: index q belongs to shard q mod S, as q div S.

    Parameters
    ----------
    indptr, indices, values : the rows
    shards : their number S
    ends : by shard and row, offsets within each shard, which begin with 0; written
    own_indices, own_values : entries of the first shard, then of the second, and so on; written
    """
    rows, divisor = indptr.size - 1, np.uint64(shards)
    for r in range(rows):
        for s in range(shards):
            ends[s, r + 1] = ends[s, r]
        for j in range(indptr[r], indptr[r + 1]):
            ends[np.uint64(indices[j]) % divisor, r + 1] += 1
    start = np.zeros(shards, np.int64)
    for s in range(1, shards):
        start[s] = start[s - 1] + ends[s - 1, rows]
    for j in range(indptr[0], indptr[rows]):
        q = np.uint64(indices[j])
        owner = q % divisor
        own_indices[start[owner]] = q // divisor
        own_values[start[owner]] = values[j]
        start[owner] += 1
