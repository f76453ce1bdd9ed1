"""Held-out rows of a stream: predicted in order, and never learned from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Holdout"]


class Holdout(NamedTuple):
    """The rule for held-out rows: every n-th row (``every``), or all rows after the first n (``after``).

    >>> Holdout(every=3).rows(1, 4), Holdout(after=3).rows(1, 4), Holdout().rows(1, 4)
    (array([False,  True, False, False]), array([False, False,  True,  True]), None)
    """

    every: int = 0
    after: int | None = None

    def rows(self, before: int, count: int) -> NDArray[np.bool_] | None:
        """Return the mask of held-out rows after ``before`` rows were read; None if nothing is held out."""
        return self.mask(np.arange(before, before + count))

    def mask(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return the mask of held-out rows by their numbers, from 0; None if nothing is held out."""
        if self.after is not None:
            return numbers >= self.after
        return (numbers + 1) % self.every == 0 if self.every else None
