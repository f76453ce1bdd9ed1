"""Arrays aligned to cache lines, and memory that is committed before it is used."""

import mmap
from contextlib import suppress
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["aligned_zeros", "commit_ahead"]

LINE = 64  # bytes of a cache line
PAGE = 1 << 12  # bytes of the smallest pages
PIECE = 1 << 24  # bytes committed at a time
WIDE = 1 << 10  # bytes of records that are in small pages
LARGE = 1 << 32  # bytes of arrays that are in small pages


class _Commitment(NamedTuple):
    """Zeros whose memory a thread commits."""

    zeros: NDArray[Any]
    thread: Thread
    stop: Event


_ahead: dict[tuple[int, np.dtype[Any]], _Commitment] = {}


def aligned_zeros(count: int, dtype: np.dtype[Any], record: int = 1) -> NDArray[Any]:
    """Return zeros aligned to a cache line, in memory that the system commits only where it is written.

    Memory is committed by huge pages of some megabytes where the system has them, of which a few thousand random
    records touch all. Records of ``record`` numbers that take a good part of a small page are in small pages instead,
    and so are large arrays, of which a few thousand records would commit the memory of a whole machine.

    >>> aligned_zeros(3, np.dtype("float32")).ctypes.data % 64
    0
    """
    ahead = _ahead.pop((count, dtype), None)
    if ahead is not None:
        ahead.stop.set()
        ahead.thread.join()  # which writes zeros
        return ahead.zeros
    size = count * dtype.itemsize
    if size > PIECE:
        _release()  # memory for a state of another size
    wide = record * dtype.itemsize >= WIDE and size > PIECE
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


def commit_ahead(count: int, dtype: np.dtype[Any]) -> None:
    """Allocate the zeros that the next :func:`aligned_zeros` of this size returns, and commit them on another thread.

    A system commits a page when it is first written, which for the state of a large model takes as long as hundreds of
    thousands of rows where memory is slow. What is not committed when the zeros are used is committed as it is written.

    >>> commit_ahead(100_000, np.dtype("float32"))
    >>> aligned_zeros(100_000, np.dtype("float32")).any()
    np.False_
    """
    zeros, stop = aligned_zeros(count, dtype), Event()
    thread = Thread(target=_commit, args=(zeros, stop), name="forel-memory", daemon=True)
    _ahead[count, dtype] = _Commitment(zeros, thread, stop)
    thread.start()


def _commit(zeros: NDArray[Any], stop: Event) -> None:
    """Write to every page, until it is stopped; numpy releases the interpreter lock while it writes a piece.

    Page faults do not wait for other threads that allocate memory, as calls of ``madvise`` would.
    """
    step, size = PAGE // zeros.itemsize, PIECE // zeros.itemsize
    for start in range(0, zeros.size, size):
        if stop.is_set():
            return
        zeros[start : start + size : step] = 0


def _release() -> None:
    """Release memory that is committed for arrays that were not allocated."""
    while _ahead:
        _ahead.popitem()[1].stop.set()
