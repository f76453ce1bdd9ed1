"""The logistic function in numpy alone: importing scipy's takes longer than many a command."""

from typing import Any

import numpy as np

__all__ = ["sigmoid"]


def sigmoid(m: Any) -> Any:
    r"""Return $1/(1 + e^{-m})$ in the type of m, to the last digits at both ends.

    >>> sigmoid(np.array([-800.0, 0.0, 800.0])), float(sigmoid(-50.0))
    (array([0. , 0.5, 1. ]), 1.9287498479639178e-22)
    """
    e = np.exp(-np.abs(m))  # at most 1, so that nothing overflows and nothing cancels
    return np.where(np.asarray(m) < 0, e, 1) / (1 + e)
