"""Rows of slots as rows of curves and pairs: hat functions of columns of numbers, categories, and products of these."""

import numpy as np

from forel.data.compiled.cache import fast, inlined

__all__ = ["expand"]

FACTOR = np.uint64(0x9E3779B97F4A7C15)
REACH = 0.5  # ranges of a column beyond its knots, after which its line is constant: all features are in [-1, 1]


@inlined
def find(slots, slot):
    """Return the place of a slot in increasing slots; −1 for none."""
    low, high = 0, slots.size
    while low < high:
        middle = (low + high) // 2
        if slots[middle] < slot:
            low = middle + 1
        else:
            high = middle
    return low if low < slots.size and slots[low] == slot else -1


@inlined
def hat(knots, size, value):
    """Return the place of a value among knots: the knot to its left, plus how far it is to the next one, in [0, 1]."""
    if value <= knots[0]:
        return np.float64(0)
    if value >= knots[size - 1]:
        return np.float64(size - 1)
    low, high = 0, size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    return low + (value - knots[low]) / (knots[low + 1] - knots[low])


@inlined
def coarse_hats(place, size, functions, active, weights, c):
    """Write the two coarse hat functions around a place; the weight of the first of all is 0, as pairs leave it out."""
    place *= functions / (size - 1)
    left = min(np.int64(place), functions - 1)
    active[c, 0], active[c, 1] = max(left - 1, 0), left
    weights[c, 0] = 1.0 - (place - left) if left > 0 else 0.0
    weights[c, 1] = max(place - left, 0.0)


@inlined
def put(indices, values, count, index, value):
    """Add an entry to a row if it is not 0, and return the number of entries."""
    indices[count], values[count] = index, value
    return count + (np.float32(value) != 0)


@fast
def expand(
    indptr, indices, values, slots, elements, knots, sizes, codes, starts, pairs, grids, pair_starts, zeros, width,
    mask, out_indptr, out_indices, out_values,
):  # fmt: skip
    """Write the features of each row; arguments are those of :class:`forel.data.features.curves.Curves`.

    Parameters
    ----------
    slots, elements : slots of columns of numbers and of categories in order, and the number of each: columns first
    knots, sizes : of columns, a row each, and how many there are
    codes : whether the values of a column are categories, too
    starts : the first feature of each column and category
    pairs, grids, pair_starts : the two elements of each pair, the numbers of their coarse hat functions without the
        first, and the first feature of the pair
    zeros : whether a column without an entry is 0; missing otherwise
    width, mask : the number of features so far, after which others are hashed
    """
    columns, count = sizes.size, 0
    places = np.empty(columns)
    active, weights = np.zeros((starts.size, 2), np.int64), np.zeros((starts.size, 2))
    present, made = np.zeros(starts.size, np.int64), np.zeros(columns, np.int64)
    out_indptr[0] = 0
    for r in range(indptr.size - 1):
        present[:] = 0
        places[:] = -1.0
        made[:] = 0
        count = put(out_indices, out_values, count, 0, 1.0)
        first = -1
        for j in range(indptr[r], indptr[r + 1]):
            at, value = find(slots, np.int64(indices[j])), np.float64(values[j])
            element = elements[at] if at >= 0 else -1
            key = np.uint64(indices[j])
            if 0 <= element < columns:
                size, own = sizes[element], knots[element]
                reach = own[size - 1] - own[0]
                line = (value - own[0]) / reach if reach > 0 else 0.0
                places[element] = hat(own, size, value)
                line = min(max(line, -REACH), 1.0 + REACH) - 0.5
                count = put(out_indices, out_values, count, starts[element], line)
                if not codes[element]:
                    continue
                key, value = key ^ (np.uint64(np.int64(min(max(value, -1e15), 1e15))) * FACTOR), np.float64(1)
            elif element >= 0:
                value = np.float64(min(max(value, -1.0), 1.0))  # as that of all others, which no model has to clip
                count = put(out_indices, out_values, count, starts[element], value)
                present[element], active[element, 0], weights[element, 0] = 1, 0, value
                continue
            index = width + np.int64(((key * FACTOR) >> np.uint64(32)) & mask)
            same = -1
            if first < 0:
                first = count
            for k in range(first, count):
                if out_indices[k] == index:
                    same = k
            if same >= 0:
                out_values[same] += value
            else:
                count = put(out_indices, out_values, count, index, value)
        for c in range(columns):
            place, size, start = places[c], sizes[c], starts[c] + 1
            if place < 0 and zeros:
                place = hat(knots[c], size, np.float64(0.0))
                line = -knots[c, 0] / (knots[c, size - 1] - knots[c, 0]) if size > 1 else 0.0
                count = put(out_indices, out_values, count, starts[c], min(max(line, -REACH), 1.0 + REACH) - 0.5)
            if place < 0:
                count = put(out_indices, out_values, count, start + size, 1.0)
                continue
            left = np.int64(place)
            count = put(out_indices, out_values, count, start + left, 1.0 - (place - left))
            if place > left:
                count = put(out_indices, out_values, count, start + left + 1, place - left)
            places[c], present[c] = place, 1
        for p in range(pairs.shape[0]):
            for side in range(2):
                c, functions = pairs[p, side], grids[p, side]
                if c < columns and made[c] != functions and present[c]:  # the same as in the pair before, most often
                    made[c] = functions
                    coarse_hats(places[c], sizes[c], functions, active, weights, c)
            a, b = pairs[p, 0], pairs[p, 1]
            if present[a] and present[b]:
                for i in range(2):  # without branches, which are hard to predict here
                    for j in range(2):
                        index = pair_starts[p] + active[a, i] * grids[p, 1] + active[b, j]
                        count = put(out_indices, out_values, count, index, weights[a, i] * weights[b, j])
        out_indptr[r + 1] = count
    return count
