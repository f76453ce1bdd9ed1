"""Reuse of array memory: a page fault costs more than filling the page."""

import math
import weakref
from collections import defaultdict, deque
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Buffers"]

SMALL = 1 << 16  # bytes below which the allocator reuses memory itself
LARGE = 1 << 24  # bytes above which memory is not kept: blocks need less, except for very long lines
STEP = 1 << 18  # granularity of sizes, so that arrays of similar size share buffers


class Buffers:
    """A pool of arrays, whose memory is reused after the last reference to an array and its views is gone.

    >>> buffers = Buffers()
    >>> first = buffers.empty(100_000, np.float32)
    >>> part, place = first[10:20], first.ctypes.data
    >>> del first
    >>> buffers.empty(100_000, np.int32).ctypes.data == place  # a view is left
    False
    >>> del part
    >>> buffers.empty(100_000, np.int32).ctypes.data == place
    True
    """

    def __init__(self) -> None:
        self._free: defaultdict[int, deque[NDArray[np.uint8]]] = defaultdict(deque)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an uninitialized array."""
        kind, count = np.dtype(dtype), math.prod(shape) if isinstance(shape, tuple) else shape
        if not SMALL <= count * kind.itemsize <= LARGE:
            return np.empty(shape, kind)
        size = -(-count * kind.itemsize // STEP) * STEP
        free = self._free[size]
        try:
            block = free.pop()
        except IndexError:
            block = np.empty(size, np.uint8)
        # Through a memoryview, so that views refer to the array, which is then finalized last, and not to the block.
        array = np.frombuffer(block.data, kind, count)
        weakref.finalize(array, free.append, block).atexit = False
        return array.reshape(shape)
