"""Range check of arrays before a kernel uses them."""

import numpy as np

from forel.jit.compiling import cached_njit

__all__ = ["within"]

compiled = cached_njit(__file__)


@compiled
def within(numbers, low, high):
    """Return whether all numbers are in [low, high]; False if any is NaN."""
    inside = True
    for k in range(np.uint64(numbers.size)):
        inside &= (low <= numbers[k]) & (numbers[k] <= high)
    return inside
