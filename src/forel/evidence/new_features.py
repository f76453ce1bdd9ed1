"""The share of the features of each row that no row before had."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["NewFeatures"]

MOST_SLOTS = 1 << 26  # for which a byte each is kept


class NewFeatures:
    """Which slots have occurred in rows.

    Parameters
    ----------
    slots : their number; of more than 2^26, nothing is known

    >>> new = NewFeatures(8)
    >>> new.add(np.array([0, 2, 4]), np.array([3, 5, 3, 6]))
    array([1. , 0.5])
    """

    def __init__(self, slots: int) -> None:
        self.seen = np.zeros(slots if slots <= MOST_SLOTS else 0, np.bool_)

    def add(self, indptr: NDArray[np.int64], indices: NDArray[np.integer]) -> NDArray[np.float64] | None:
        """Add rows, and return the share of each; None if nothing is known."""
        if not self.seen.size:
            return None
        new = ~self.seen[indices]
        places = np.flatnonzero(new)
        _, first = np.unique(indices[places], return_index=True)
        new[:] = False
        new[places[first]] = True
        self.seen[indices] = True
        counts = np.concatenate(([0], np.cumsum(new)))[indptr]
        return np.asarray((counts[1:] - counts[:-1]) / np.maximum(np.diff(indptr), 1))
