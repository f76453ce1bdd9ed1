"""The logistic function and its normalization, without scipy, whose import takes longer than many commands."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_blocks", "log_normalized", "log_normalized_sigmoid", "log_sigmoid", "sigmoid", "sigmoid_of_float"]

Array = NDArray[np.float64]
BLOCK = 1 << 13  # numbers
SMALLEST = 1e-290  # probability from which on logarithms are not needed to normalize


def sigmoid(m: Any) -> Any:
    r"""Return $1/(1 + e^{-m})$ in the type of m, accurate at both ends.

    >>> sigmoid(np.array([-800.0, 0.0, 800.0])), float(sigmoid(-50.0))
    (array([0. , 0.5, 1. ]), 1.9287498479639178e-22)
    """
    e = np.exp(-np.abs(m))  # at most 1, so that nothing overflows and nothing cancels
    return np.where(np.asarray(m) < 0, e, 1) / (1 + e)


def sigmoid_of_float(margin: float) -> float:
    """Return the logistic function of one number, without arrays.

    >>> sigmoid_of_float(0.0), sigmoid_of_float(-1000.0)
    (0.5, 0.0)
    """
    if margin >= 0:
        return 1.0 / (1.0 + math.exp(-margin))
    e = math.exp(margin)
    return e / (1.0 + e)


def log_sigmoid(m: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return $-\log(1 + e^{-m})$, accurate at both ends.

    >>> log_sigmoid(np.array([-800.0, 0.0, 50.0]))
    array([-8.00000000e+02, -6.93147181e-01, -1.92874985e-22])
    """
    e = np.exp(-np.abs(m))
    found: NDArray[np.float64] = np.minimum(m, 0.0) - np.log1p(e, out=e)
    return found


def in_blocks(function: Callable[[Array], Array], rows: NDArray[Any]) -> Array:
    """Apply a function that keeps the shape to blocks of rows that fit into the first-level cache.

    Between several passes over more numbers, each of them leaves the cache: that takes twice as long.

    >>> in_blocks(log_normalized, np.zeros((10_000, 2)))[-1]
    array([-0.69314718, -0.69314718])
    """
    out, step = np.empty(rows.shape), max(1, BLOCK * len(rows) // max(1, rows.size))
    for start in range(0, len(rows), step):
        out[start : start + step] = function(rows[start : start + step])
    return out


def log_normalized(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return $x_k - \log \sum_j e^{x_j}$ along the last axis: log-probabilities that sum to 1.

    The result is that of ``scipy.special.log_softmax``, several times as fast.

    >>> np.exp(log_normalized(np.array([[0.0, math.log(3.0)], [-1e4, -1e4]]))).round(6)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    found: NDArray[np.float64] = logs - logs.max(axis=-1, keepdims=True)
    found -= np.log(np.exp(found).sum(axis=-1, keepdims=True))
    return found


def log_normalized_sigmoid(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return $\log \sigma(m_k)/\sum_j \sigma(m_j)$ along the last axis: the classes of models against the rest.

    >>> np.exp(log_normalized_sigmoid(np.array([[0.0, -50.0, 0.0], [-800.0, -900.0, -800.0]]))).round(6)
    array([[0.5, 0. , 0.5],
           [0.5, 0. , 0.5]])
    """
    shares: NDArray[np.float64] = sigmoid(margins)
    if shares.min(initial=1.0) < SMALLEST:
        return log_normalized(log_sigmoid(margins))
    # Without logarithms of each sigmoid, which take most of the time.
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.log(shares, out=shares)
