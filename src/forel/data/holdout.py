"""Held-out rows: predicted, and never learned from, in any pass and any order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Holdout"]


class Holdout(NamedTuple):
    """The rule for held-out rows: every n-th row of the source (``every``), or all rows after the first n (``after``).

    >>> numbers = np.array([3, 1, 2, 4])  # in any order
    >>> Holdout(every=3).mask(numbers), Holdout(after=3).mask(numbers), Holdout().mask(numbers)
    (array([False, False,  True, False]), array([ True, False, False,  True]), None)
    """

    every: int = 0
    after: int | None = None

    def mask(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return the mask of held-out rows by their numbers in the source, from 0; None if nothing is held out."""
        if self.after is not None:
            return numbers >= self.after
        return (numbers + 1) % self.every == 0 if self.every else None
