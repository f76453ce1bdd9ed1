r"""Subsampling of negatives: only a random sample is learned from, with importances that compensate for the rest.

A negative row is kept with probability r, and its importance is divided by r, so that sums over rows are the same in
expectation and probabilities stay calibrated (McMahan et al. 2013, "Ad click prediction", section 4.3).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.data.features.rows import drop_rows
from forel.training.run import Transform
from forel.validation import number

__all__ = ["Subsampling"]


@dataclass(frozen=True)
class Subsampling(Transform):
    """Keeps a random sample of the negative rows.

    Parameters
    ----------
    rate : probability to keep a negative row
    seed : seed of the choice, which depends only on it and on the number of the row in the source

    >>> labels, numbers = np.float32([0, 1, 0, 0]), np.arange(4)
    >>> block = Block(np.zeros(5, np.int64), np.int32([]), np.float32([]), labels, numbers=numbers)
    >>> kept = Subsampling(0.5, seed=1)(block)
    >>> kept.labels.tolist(), kept.importance.tolist()
    ([0.0, 1.0, 0.0], [2.0, 1.0, 2.0])
    """

    rate: float
    seed: int = 0

    def __post_init__(self) -> None:
        number("subsample", self.rate, "a number above 0 and at most 1", low=1e-9, high=1.0)

    def __call__(self, block: Block) -> Block:
        """Return a block with labels 0 and 1, or −1 and 1, and the numbers of rows, without some negative rows."""
        assert block.numbers is not None
        negative = block.labels <= 0
        kept = ~negative | (self._uniform(block.numbers) < self.rate)
        weight = np.where(negative, block.importance / np.float32(self.rate), block.importance)
        return drop_rows(replace(block, importance=weight.astype(np.float32)), np.flatnonzero(~kept))

    def _uniform(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a number in [0, 1) for each row, by the finalizer of SplitMix64."""
        state = (numbers + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        state = state + np.uint64(self.seed * 0xD1B54A32D192ED03 % (1 << 64))
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((state ^ (state >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
