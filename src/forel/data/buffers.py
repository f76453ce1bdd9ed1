"""Memory that is used again: a fresh page costs more to get than to fill."""

import math
import weakref
from collections import defaultdict, deque
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Buffers"]

SMALL = 1 << 16  # bytes that the allocator has at hand
LARGE = 1 << 24  # more than blocks need: one long line's memory should not stay to the end of the file
STEP = 1 << 18  # sizes are multiples of this, so that those that are nearly equal can take each other's place


class Buffers:
    """Arrays whose memory is taken again when nothing that was made of them is left, on whatever thread that was.

    >>> buffers = Buffers()
    >>> first = buffers.empty(100_000, np.float32)
    >>> part, place = first[10:20], first.ctypes.data
    >>> del first
    >>> buffers.empty(100_000, np.int32).ctypes.data == place  # the part is left
    False
    >>> del part
    >>> buffers.empty(100_000, np.int32).ctypes.data == place
    True
    """

    def __init__(self) -> None:
        self._free: defaultdict[int, deque[NDArray[np.uint8]]] = defaultdict(deque)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array with anything in it."""
        kind, count = np.dtype(dtype), math.prod(shape) if isinstance(shape, tuple) else shape
        if not SMALL <= count * kind.itemsize <= LARGE:
            return np.empty(shape, kind)
        size = -(-count * kind.itemsize // STEP) * STEP
        free = self._free[size]
        try:
            block = free.pop()
        except IndexError:
            block = np.empty(size, np.uint8)
        # Through a memoryview, so that parts refer to the array, which then goes last, and not to the block.
        array = np.frombuffer(block.data, kind, count)
        weakref.finalize(array, free.append, block).atexit = False
        return array.reshape(shape)
