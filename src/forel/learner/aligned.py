"""Arrays aligned to cache lines."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["aligned_zeros"]

LINE = 64  # bytes of a cache line


def aligned_zeros(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros aligned to a cache line, in memory that the system commits only where it is written.

    >>> aligned_zeros(3, np.dtype("float32")).ctypes.data % 64
    0
    """
    padding = LINE // dtype.itemsize
    raw = np.zeros(count + padding, dtype)
    start = (-raw.ctypes.data % LINE) // dtype.itemsize
    return raw[start : start + count]
