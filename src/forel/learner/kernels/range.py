"""A look at many numbers at once, before a kernel is given them."""

import numpy as np

from forel.jit.compiling import cached_njit

__all__ = ["within"]

compiled = cached_njit(__file__)


@compiled
def within(numbers, low, high):
    """Tell whether all numbers are at least ``low`` and at most ``high``; NaN is not."""
    good = True
    for k in range(np.uint64(numbers.size)):
        good &= (low <= numbers[k]) & (numbers[k] <= high)
    return good
