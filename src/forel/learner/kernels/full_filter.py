r"""Gaussian filters with all covariances of the weights, for few features.

For squared loss this is recursive least squares. With the covariance matrix C, $c = Cx$, and slope g and curvature h of
the loss at the margin $\mu \cdot x$, a row is

$$\mu \leftarrow \mu - \frac{g\,c}{1 + h\,x \cdot c}, \qquad C \leftarrow C - \frac{h\,c\,c^\top}{1 + h\,x \cdot c}.$$

The prior variance of a weight is $\alpha/s_i^2$ with the scale $s_i$, the largest |value| seen. Where a row has a value
v beyond it, the precision of the prior first grows by $\delta = (v^2 - s_i^2)/\alpha$, centered at 0: a round with the
loss $\frac{\delta}{2} w_i^2$. Rows are predicted with values clipped to the scales of earlier rows. After each row C
moves toward its prior by what the filter forgets.
"""

import numpy as np

from forel.jit import njit

__all__ = ["learn", "predict"]

compiled, inner, inlined = njit(), njit(inner=True), njit(inner=True, forceinline=True)

BIAS = 0  # the place of the constant feature
SMALLEST, LARGEST = 1e-38, 1e38  # of values, so that products of their squares are finite
FARTHEST, FARTHEST_LOGISTIC = 1e100, 30.0  # margin
LEAST_CURVATURE = 1e-6


@inlined
def position(slots, size, slot):
    """Return how many slots are below one, by binary search."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if slots[middle] < slot:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def place_of(slots, places, size, slot):
    """Return the place of a slot; −1 for a new one."""
    at = position(slots, size, slot)
    return places[at] if at < size and slots[at] == slot else -1


@inlined
def add_slot(slots, places, size, slot):
    """Give a slot the next place, and keep slots in order."""
    at = position(slots, size, slot)
    for j in range(size, at, -1):
        slots[j], places[j] = slots[j - 1], places[j - 1]
    slots[at], places[at] = slot, size


@inlined
def bounded(value):
    """Return a value whose square and its inverse are finite; 0 stays 0."""
    size = min(max(abs(value), SMALLEST), LARGEST)
    return 0.0 if value == 0 else size if value > 0 else -size


@inlined
def margin(mean, scales, where, values, count, logistic):
    """Return the margin of a row with values clipped to their scales."""
    total = 0.0
    for j in range(count):
        scale = scales[where[j]]
        total += mean[where[j]] * min(max(values[j], -scale), scale)
    limit = FARTHEST_LOGISTIC if logistic else FARTHEST
    return min(max(total, -limit), limit)


@inner
def known_features(indices, values, lo, hi, constant, slots, places, size, where, numbers):
    """Write places and values of the features of a row that have a place, the constant first; return their number."""
    where[0], numbers[0], count = BIAS, constant, 1
    for j in range(lo, hi):
        place = place_of(slots, places, size, np.int64(indices[j]))
        if place >= 0:
            where[count], numbers[count] = place, bounded(np.float64(values[j]))
            count += 1
    return count


@inner
def grow(mean, covariance, size, i, delta, column):
    """Add precision to the prior of weight i, centered at 0."""
    m = mean[i]
    for a in range(size):
        column[a] = covariance[i, a]
    gain = delta / (1.0 + delta * column[i])
    kept = 1.0 / (1.0 + delta * column[i])
    for a in range(size):
        mean[a] -= gain * (column[a] * m)
        for b in range(size):
            covariance[a, b] -= gain * (column[a] * column[b])
    # Differences cancel in this row and column, products do not.
    mean[i] = kept * m
    for a in range(size):
        covariance[a, i] = covariance[i, a] = kept * column[a]


@inner
def step(mean, covariance, m, size, where, values, count, y, weight, logistic, memory, prior, column):
    """Learn a row whose margin is m, and move the covariances toward the prior by what the filter forgets."""
    spread = 0.0
    for a in range(size):
        column[a] = 0.0
    for j in range(count):
        part, v = covariance[where[j]], values[j]
        for a in range(size):
            column[a] += part[a] * v
    for j in range(count):
        spread += column[where[j]] * values[j]
    slope, curvature = weight * (m - y), weight
    if logistic:
        p = 1.0 / (1.0 + np.exp(-m))
        slope, curvature = weight * (p - y), weight * max(p * (1.0 - p), LEAST_CURVATURE)
    damping = 1.0 + curvature * max(spread, 0.0)
    along, known = slope / damping, curvature / damping
    for a in range(size):
        mean[a] -= along * column[a]
        part, own = covariance[a], column[a]
        for b in range(size):
            part[b] = memory * (part[b] - known * (own * column[b]))
        part[a] += (1.0 - memory) * prior[a]


@compiled
def learn(
    indptr, indices, values, constant, labels, importance, logistic, parameters, sizes, slots, places, scales, means,
    covariances, out,
):  # fmt: skip
    """Predict each row in turn, then learn from it; return the number of rows before one with too many features.

    Parameters
    ----------
    constant : value of the constant feature, 0 for none
    labels, importance : of rows; those of negative importance are only predicted
    logistic : whether the loss is log-loss, and not half the squared error
    parameters : prior variance and memory of each filter
    sizes : the number of features that have a place, the constant among them
    slots, places : slots of features in order, and the place of each in the arrays below
    scales : largest |value| of each feature
    means, covariances : of the weights of every filter
    out : margins, a column for each filter
    """
    longest = 1
    for r in range(labels.shape[0]):
        longest = max(longest, indptr[r + 1] - indptr[r] + 1)
    where, numbers = np.empty(longest, np.int64), np.empty(longest)
    column, prior = np.empty(scales.size), np.empty(scales.size)
    for r in range(labels.shape[0]):
        lo, hi = indptr[r], indptr[r + 1]
        count = known_features(indices, values, lo, hi, constant, slots, places, sizes[0], where, numbers)
        for f in range(len(parameters)):
            out[r, f] = margin(means[f], scales, where, numbers, count, logistic)
        if importance[r] < 0:
            continue
        if count - 1 < hi - lo:
            if sizes[0] + (hi - lo) - (count - 1) > scales.size:
                return r
            for j in range(lo, hi):
                if place_of(slots, places, sizes[0], np.int64(indices[j])) < 0:
                    add_slot(slots, places, sizes[0], np.int64(indices[j]))
                    sizes[0] += 1
            count = known_features(indices, values, lo, hi, constant, slots, places, sizes[0], where, numbers)
        size, y, weight = sizes[0], np.float64(labels[r]), np.float64(importance[r])
        for j in range(count):
            i, v = where[j], abs(numbers[j])
            if v > scales[i]:
                for f in range(len(parameters)):
                    if scales[i] == 0:
                        covariances[f, i, i] = parameters[f, 0] / (v * v)
                    else:
                        grow(
                            means[f],
                            covariances[f],
                            size,
                            i,
                            (v * v - scales[i] * scales[i]) / parameters[f, 0],
                            column,
                        )
                scales[i] = v
        for f in range(len(parameters)):
            variance, memory = parameters[f, 0], parameters[f, 1]
            for a in range(size):
                prior[a] = variance / (scales[a] * scales[a]) if scales[a] > 0 else 0.0
            m = margin(means[f], scales, where, numbers, count, logistic)
            step(
                means[f], covariances[f], m, size, where, numbers, count, y, weight, logistic, memory, prior, column
            )  # fmt: skip
    return labels.shape[0]


@compiled
def predict(indptr, indices, values, constant, logistic, sizes, slots, places, scales, means, out):
    """Write the margins of every row and filter."""
    longest = 1
    for r in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[r + 1] - indptr[r] + 1)
    where, numbers = np.empty(longest, np.int64), np.empty(longest)
    for r in range(indptr.shape[0] - 1):
        lo, hi = indptr[r], indptr[r + 1]
        count = known_features(indices, values, lo, hi, constant, slots, places, sizes[0], where, numbers)
        for f in range(len(means)):
            out[r, f] = margin(means[f], scales, where, numbers, count, logistic)
