r"""Gaussian filters with all covariances of a fixed number of features, whose scale is 1.

The updates are those of :mod:`forel.learner.kernels.full_filter`, in less time. The mean learns from every row. The
covariance matrix C learns from a row x with probability $p = \min(1, h\,x \cdot Cx/\tau)$, with its information
divided by p: rows that say little new are most rows, and cost nothing. Eight rows at a time are subtracted from the
matrix; until then they are kept as vectors v, and v vᵀ is subtracted from products with a row. The matrix stays
symmetric bit by bit.
"""

import numpy as np

from forel.jit import njit

__all__ = ["learn", "predict"]

compiled, inner = njit(), njit(inner=True)

FARTHEST, FARTHEST_LOGISTIC = 1e100, 30.0  # margin
LEAST_CURVATURE = 1e-6
ROWS, WORK, PENDING, CHANCE = 0, 1, 2, 3  # places of counts


@inner
def known_features(indices, values, lo, hi, width, where, numbers):
    """Write the features of a row that the filter has, and their values; return their number."""
    count = 0
    for j in range(lo, hi):
        if indices[j] < width:
            where[count], numbers[count] = indices[j], values[j]
            count += 1
    return count


@inner
def along(vector, where, numbers, count):
    """Return the product of a vector and a row."""
    total = 0.0
    for j in range(count):
        total += vector[where[j]] * numbers[j]
    return total


@inner
def margin(mean, where, numbers, count, logistic):
    """Return the margin of a row."""
    limit = FARTHEST_LOGISTIC if logistic else FARTHEST
    return min(max(along(mean, where, numbers, count), -limit), limit)


@inner
def multiply(covariance, where, numbers, count, column):
    """Write the product of the covariance matrix and a row; columns are read four at a time."""
    column[:] = 0
    whole = count - count % 4
    for j in range(0, whole, 4):
        a, b, c, d = covariance[where[j]], covariance[where[j + 1]], covariance[where[j + 2]], covariance[where[j + 3]]
        p, q, r, s = numbers[j], numbers[j + 1], numbers[j + 2], numbers[j + 3]
        for i in range(column.size):
            column[i] += a[i] * p + b[i] * q + c[i] * r + d[i] * s
    for j in range(whole, count):
        a, p = covariance[where[j]], numbers[j]
        for i in range(column.size):
            column[i] += a[i] * p


@inner
def subtract(covariance, vectors):
    """Subtract the outer products of all pending vectors from the covariance matrix."""
    a, b, c, d = vectors[0], vectors[1], vectors[2], vectors[3]
    e, f, g, h = vectors[4], vectors[5], vectors[6], vectors[7]
    for i in range(covariance.shape[0]):
        row = covariance[i]
        p, q, r, s, t, u, v, w = a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]
        for j in range(covariance.shape[0]):
            row[j] -= p * a[j] + q * b[j] + r * c[j] + s * d[j] + t * e[j] + u * f[j] + v * g[j] + w * h[j]


@compiled
def learn(indptr, indices, values, labels, importance, logistic, limits, counts, mean, covariance, vectors, out):
    """Predict each row in turn, then learn from it while arithmetic is left.

    Parameters
    ----------
    labels, importance : of rows; those of negative importance are only predicted
    logistic : whether the loss is log-loss, and not half the squared error
    limits : multiplications at the start, more for each row, and the threshold τ
    counts : rows, multiplications so far, pending vectors, and the sum of probabilities since the last of them
    mean, covariance : of the weights
    vectors : pending vectors
    out : margins
    """
    most, width = vectors.shape
    where, numbers = np.empty(width, np.int64), np.empty(width, values.dtype)
    for r in range(labels.shape[0]):
        count = known_features(indices, values, indptr[r], indptr[r + 1], width, where, numbers)
        m, weight = margin(mean, where, numbers, count, logistic), importance[r]
        out[r] = m
        if weight < 0:
            continue
        counts[ROWS] += 1
        if counts[WORK] > limits[0] + limits[1] * counts[ROWS]:
            continue
        pending = np.int64(counts[PENDING])
        counts[WORK] += width * (count + pending)
        column = vectors[pending]
        multiply(covariance, where, numbers, count, column)
        for k in range(pending):
            other = vectors[k]
            part = column.dtype.type(along(other, where, numbers, count))
            for i in range(width):
                column[i] -= part * other[i]
        spread = max(along(column, where, numbers, count), 0.0)
        slope, curvature = weight * (m - labels[r]), weight
        if logistic:
            p = 1.0 / (1.0 + np.exp(-m))
            slope, curvature = weight * (p - labels[r]), weight * max(p * (1.0 - p), LEAST_CURVATURE)
        step = slope / (1.0 + curvature * spread)
        for i in range(width):
            mean[i] -= step * column[i]
        chance = min(curvature * spread / limits[2], 1.0)
        counts[CHANCE] += chance
        if counts[CHANCE] < 1:
            continue
        counts[CHANCE] -= 1
        curvature /= chance
        factor = column.dtype.type(np.sqrt(curvature / (1.0 + curvature * spread)))
        for i in range(width):
            column[i] *= factor
        counts[PENDING] += 1
        if counts[PENDING] == most:
            counts[PENDING] = 0
            counts[WORK] += width * width
            subtract(covariance, vectors)


@compiled
def predict(indptr, indices, values, logistic, mean, out):
    """Write the margin of every row."""
    where, numbers = np.empty(mean.size, np.int64), np.empty(mean.size, values.dtype)
    for r in range(indptr.shape[0] - 1):
        count = known_features(indices, values, indptr[r], indptr[r + 1], mean.size, where, numbers)
        out[r] = margin(mean, where, numbers, count, logistic)
