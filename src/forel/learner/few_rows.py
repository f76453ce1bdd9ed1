r"""Full-covariance filters by numpy, for few rows: rows of many features drop the filters before compiling pays off.

The state and the bits are those of :mod:`forel.learner.kernels.full_filter`. It is compiled without fast-math flags, so
that no compiler fuses or reorders its operations, and its exponential is that of the C library, as Python's is.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.kernels.full_filter_limits import (
    BIAS,
    FARTHEST,
    FARTHEST_LOGISTIC,
    LARGEST,
    LEAST_CURVATURE,
    SMALLEST,
)
from forel.learner.rows import Rows

__all__ = ["FEW", "learn", "rows_before_drop"]

Array = NDArray[np.float64]
FEW = 64  # rows, for which numpy takes about as long as reading machine code from the cache


def rows_before_drop(rows: Rows, importance: Array, slots: NDArray[np.int64], most: int) -> int | None:
    """Return the number of rows before the first with too many features; None if that is none of the first ``FEW``.

    Parameters
    ----------
    importance : of rows; the features of those with a negative one do not count
    slots : features that have occurred, the constant among them
    most : the largest number of features

    >>> rows = Rows(np.array([0, 2, 3]), np.int32([7, 8, 9]), np.ones(3))
    >>> [rows_before_drop(rows, np.ones(2), np.array([-1]), most) for most in (1, 3, 4)]
    [0, 1, None]
    """
    bounds = rows.indptr[: FEW + 1].tolist()
    if slots.size + bounds[-1] - bounds[0] <= most:
        return None
    seen, indices = set(slots.tolist()), rows.indices[: bounds[-1]].tolist()
    for r, (low, high) in enumerate(pairwise(bounds)):
        if importance[r] >= 0:
            new = [slot for slot in indices[low:high] if slot not in seen]
            if len(seen) + len(new) > most:
                return r
            seen.update(new)
    return None


def learn(
    rows: Rows,
    number: int,
    constant: float,
    labels: Array,
    importance: Array,
    logistic: bool,
    parameters: Array,
    arrays: tuple[NDArray[Any], ...],
    out: Array,
) -> None:
    """Predict each of the first ``number`` rows in turn, then learn from it; all of them have a place for each feature.

    Other parameters are those of the kernel's ``learn``.
    """
    sizes, slots, places, scales, means, covariances = arrays
    n = int(sizes[0])
    known = dict(zip(slots[:n].tolist(), places[:n].tolist(), strict=True))
    limit = FARTHEST_LOGISTIC if logistic else FARTHEST
    for r in range(number):
        at = slice(rows.indptr[r], rows.indptr[r + 1])
        row = dict(zip(rows.indices[at].tolist(), map(_bounded, rows.values[at].tolist()), strict=True))
        used = [(BIAS, constant)] + [(known[slot], value) for slot, value in row.items() if slot in known]
        out[r] = [_margin(mean, scales, used, limit) for mean in means]
        if importance[r] < 0:
            continue
        for slot in row:
            known.setdefault(slot, len(known))
        used = [(BIAS, constant)] + [(known[slot], value) for slot, value in row.items()]
        n = len(known)
        states = list(zip(parameters.tolist(), means[:, :n], covariances[:, :n, :n], strict=True))
        for i, value in used:
            size, scale = abs(value), float(scales[i])
            if size > scale:
                for (variance, _), mean, covariance in states:
                    if scale == 0:
                        covariance[i, i] = variance / (size * size)
                    else:
                        _grow(mean, covariance, i, (size * size - scale * scale) / variance)
                scales[i] = size
        y, weight, squares = float(labels[r]), float(importance[r]), scales[:n] * scales[:n]
        for (variance, memory), mean, covariance in states:
            prior = np.divide(variance, squares, out=np.zeros(n), where=squares > 0)
            m = _margin(mean, scales, used, limit)
            slope, curvature = weight * (m - y), weight
            if logistic:
                p = 1.0 / (1.0 + math.exp(-m))
                slope, curvature = weight * (p - y), weight * max(p * (1.0 - p), LEAST_CURVATURE)
            _step(mean, covariance, used, slope, curvature, memory, prior)
    sizes[0] = n
    slots[:n], places[:n] = zip(*sorted(known.items()), strict=True)


def _bounded(value: float) -> float:
    """Return a value whose square and its inverse are finite; 0 stays 0."""
    return math.copysign(min(max(abs(value), SMALLEST), LARGEST), value) if value else 0.0


def _margin(mean: Array, scales: Array, used: list[tuple[int, float]], limit: float) -> float:
    """Return the margin of a row with values clipped to their scales, summed in order."""
    total = 0.0
    for i, value in used:
        scale = float(scales[i])
        total += float(mean[i]) * min(max(value, -scale), scale)
    return min(max(total, -limit), limit)


def _grow(mean: Array, covariance: Array, i: int, delta: float) -> None:
    """Add precision to the prior of weight i, centered at 0."""
    m, column = float(mean[i]), covariance[i].copy()
    gain, kept = delta / (1.0 + delta * float(column[i])), 1.0 / (1.0 + delta * float(column[i]))
    mean -= gain * (column * m)
    covariance -= gain * np.outer(column, column)
    mean[i] = kept * m
    covariance[i] = covariance[:, i] = kept * column


def _step(
    mean: Array,
    covariance: Array,
    used: list[tuple[int, float]],
    slope: float,
    curvature: float,
    memory: float,
    prior: Array,
) -> None:
    """Learn a row of given slope and curvature, and move the covariances toward the prior by what is forgotten."""
    column, spread = np.zeros(mean.size), 0.0
    for i, value in used:
        column += covariance[i] * value
    for i, value in used:
        spread += float(column[i]) * value
    damping = 1.0 + curvature * max(spread, 0.0)
    mean -= slope / damping * column
    covariance[:] = memory * (covariance - curvature / damping * np.outer(column, column))
    covariance[np.diag_indices(mean.size)] += (1.0 - memory) * prior
