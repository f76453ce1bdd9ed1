r"""Gaussian filters with all covariances of a fixed number of features, whose scale is 1.

The updates are those of :mod:`forel.learner.kernels.full_filter`. Eight rows at a time are subtracted from the
covariance matrix; until then they are kept as vectors v, and v vᵀ is subtracted from products with a row: the matrix is
read and written once for eight rows, which takes a fifth of the time. It stays symmetric bit by bit.
"""

import numpy as np

from forel.jit.compiling import cached_njit, inner_njit

__all__ = ["learn", "predict"]

compiled = cached_njit(__file__)
inner = inner_njit()

FARTHEST, FARTHEST_LOGISTIC = 1e100, 30.0  # margin
LEAST_CURVATURE = 1e-6


@inner
def margin(mean, indices, values, lo, hi, width, logistic):
    """Return the margin of a row."""
    total = 0.0
    for j in range(lo, hi):
        if indices[j] < width:
            total += mean[indices[j]] * values[j]
    limit = FARTHEST_LOGISTIC if logistic else FARTHEST
    return min(max(total, -limit), limit)


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
def learn(indptr, indices, values, labels, importance, logistic, allowance, counts, means, covariances, vectors, out):
    """Predict each row in turn, then learn from it while arithmetic is left.

    Parameters
    ----------
    labels, importance : of rows; those of negative importance are only predicted
    logistic : whether the loss is log-loss, and not half the squared error
    allowance : multiplications at the start, and more for each row
    counts : rows, multiplications so far, and pending rows
    means, covariances : of the weights of every filter
    vectors : pending rows of every filter
    out : margins, a column for each filter
    """
    filters, most, width = vectors.shape
    for r in range(labels.shape[0]):
        lo, hi = indptr[r], indptr[r + 1]
        for f in range(filters):
            out[r, f] = margin(means[f], indices, values, lo, hi, width, logistic)
        if importance[r] < 0:
            continue
        counts[0] += 1
        if counts[1] > allowance[0] + allowance[1] * counts[0]:
            continue
        counts[1] += filters * width * (hi - lo + width / most)
        pending = np.int64(counts[2])
        for f in range(filters):
            column = vectors[f, pending]
            column[:] = 0
            for j in range(lo, hi):
                if indices[j] < width:
                    row, v = covariances[f, indices[j]], np.float64(values[j])
                    for a in range(width):
                        column[a] += row[a] * v
            for k in range(pending):
                other, along = vectors[f, k], 0.0
                for j in range(lo, hi):
                    if indices[j] < width:
                        along += other[indices[j]] * values[j]
                for a in range(width):
                    column[a] -= along * other[a]
            spread = margin(column, indices, values, lo, hi, width, False)
            m, weight = out[r, f], importance[r]
            slope, curvature = weight * (m - labels[r]), weight
            if logistic:
                p = 1.0 / (1.0 + np.exp(-m))
                slope, curvature = weight * (p - labels[r]), weight * max(p * (1.0 - p), LEAST_CURVATURE)
            damping = 1.0 + curvature * max(spread, 0.0)
            along, factor = slope / damping, np.sqrt(curvature / damping)
            for a in range(width):
                means[f, a] -= along * column[a]
                column[a] *= factor
        counts[2] += 1
        if counts[2] == most:
            counts[2] = 0
            for f in range(filters):
                subtract(covariances[f], vectors[f])


@compiled
def predict(indptr, indices, values, logistic, means, out):
    """Write the margins of every row and filter."""
    filters, width = means.shape
    for r in range(indptr.shape[0] - 1):
        for f in range(filters):
            out[r, f] = margin(means[f], indices, values, indptr[r], indptr[r + 1], width, logistic)
