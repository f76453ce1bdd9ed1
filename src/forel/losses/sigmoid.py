"""The logistic function without scipy, whose import takes longer than many commands."""

import math
from typing import Any

import numpy as np

__all__ = ["sigmoid", "sigmoid_of_float"]


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
