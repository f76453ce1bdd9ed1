"""Sums of losses at any moment, in total and since the last time."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["RunningTotals", "Totals"]

Floats = NDArray[np.float64]


class Totals(NamedTuple):
    """Rows, the sum of their importances, and the sum of their losses.

    >>> Totals.of([3, 3.0, 1.5]).mean
    0.5
    """

    rows: int
    weight: float
    loss: float

    @classmethod
    def of(cls, sums: Sequence[float] | Floats) -> "Totals":
        """Return the totals of sums, of which these are the first."""
        return cls(int(sums[0]), float(sums[1]), float(sums[2]))

    @property
    def mean(self) -> float:
        """The mean loss; NaN without rows."""
        return self.loss / self.weight if self.weight else math.nan


class RunningTotals:
    """The first sums of metrics, without a report, which takes milliseconds.

    Parameters
    ----------
    sums : rows, importance, loss, and others; an array that its owner changes in place

    >>> sums = np.array([2.0, 2.0, 1.0])
    >>> running = RunningTotals(sums)
    >>> sums += 3, 3.0, 1.5
    >>> running.total.mean, running.recent().mean
    (0.5, 0.5)
    """

    def __init__(self, sums: Floats) -> None:
        self._sums, self._before = sums, sums.copy()

    @property
    def total(self) -> Totals:
        """The sums of all rows."""
        return Totals.of(self._sums)

    def recent(self) -> Totals:
        """Return the sums of the rows added since the previous call."""
        before, self._before = self._before, self._sums.copy()
        return Totals.of(self._sums - before)
