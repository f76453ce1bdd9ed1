"""Arrays aligned to cache lines."""

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["aligned_zeros"]

LINE = 64  # bytes of a cache line
SMALL = 1 << 24  # bytes of arrays that are in pages of any size
WIDE = 1 << 10  # bytes of records that are in small pages
LARGE = 1 << 32  # bytes of arrays that are in small pages


def aligned_zeros(count: int, dtype: np.dtype[Any], record: int = 1) -> NDArray[Any]:
    """Return zeros aligned to a cache line, in memory that the system commits only where it is written.

    Memory is committed by huge pages of some megabytes where the system has them, of which a few thousand random
    records touch all. Records of ``record`` numbers that take a good part of a small page are in small pages instead,
    and so are large arrays, of which a few thousand records would commit the memory of a whole machine.

    >>> aligned_zeros(3, np.dtype("float32")).ctypes.data % 64
    0
    """
    size = count * dtype.itemsize
    wide = record * dtype.itemsize >= WIDE and size > SMALL
    if (wide or size > LARGE) and hasattr(mmap, "MADV_NOHUGEPAGE"):
        return _small_pages(count, dtype)
    padding = LINE // dtype.itemsize
    raw = np.zeros(count + padding, dtype)
    start = (-raw.ctypes.data % LINE) // dtype.itemsize
    return raw[start : start + count]


def _small_pages(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros in small pages, which begin with a page."""
    try:
        memory = mmap.mmap(-1, count * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from None
    with suppress(OSError):  # of systems without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype)
