r"""The area under the ROC curve from a histogram of scores, and its sampling error.

The area is a mean over pairs of a positive and a negative row, $\hat A = \frac{1}{nm}\sum_{ij} \psi_{ij}$, with ψ = 1
if the positive one has the larger score, and ½ in a tie. With the mean $V_i$ of a positive row over all negative ones,
and $W_j$ of a negative row over all positive ones, DeLong's estimate of the variance for independent rows is
$S_V^2/n + S_W^2/m$, where $S^2$ are the sample variances of V and W.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["auc_standard_error", "format_auc", "roc_auc"]

Floats = NDArray[np.float64]


def roc_auc(negative: Floats, positive: Floats) -> tuple[float | None, float | None]:
    """Return the area under the ROC curve of a histogram by increasing score, and its largest possible error.

    >>> roc_auc(np.array([2.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0]))
    (0.916..., 0.083...)
    """
    pairs = float(negative.sum()) * float(positive.sum())
    if pairs <= 0:
        return None, None
    below = np.cumsum(negative) - negative
    # Not the @ operator, for which BLAS starts threads on arrays of this length.
    tied = 0.5 * float(np.sum(positive * negative)) / pairs
    return float(np.sum(positive * below)) / pairs + tied, tied


def format_auc(auc: float, error: float) -> str:
    """Return the area with as many digits, up to four, as its largest possible error leaves right to two units.

    >>> format_auc(0.71234, 0.00001), format_auc(0.71234, 0.004)
    ('0.7123', '0.71')
    """
    digits = 4
    while digits > 1 and error > 1.5 * 10.0**-digits:
        digits -= 1
    return f"{auc:.{digits}f}"


def auc_standard_error(negative: Floats, positive: Floats) -> float | None:
    """Return DeLong's standard error of the area for rows that each count once.

    None with fewer than two rows of a class, and where the estimate is 0: if the classes do not overlap in a sample, it
    says nothing about others.

    >>> round(auc_standard_error(np.array([2.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])), 3)
    0.118
    """
    positives, negatives = float(positive.sum()), float(negative.sum())
    if min(positives, negatives) < 2:
        return None
    ranks_of_positive = (np.cumsum(negative) - negative / 2) / negatives
    ranks_of_negative = (positives - np.cumsum(positive) + positive / 2) / positives
    variance = 0.0
    for counts, ranks, number in ((positive, ranks_of_positive, positives), (negative, ranks_of_negative, negatives)):
        mean = float(np.sum(counts * ranks)) / number
        variance += float(np.sum(counts * (ranks - mean) ** 2)) / (number - 1) / number
    return math.sqrt(variance) or None
