"""The row cache: parsed blocks in a temporary file, which later passes read instead of parsing text again.

The file has no name, so that it is gone with its process. It is read rather than memory-mapped, so that a failing disk
is an error and not a crash.
"""

import errno
import os
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np

from forel.data.block import Block, Position, Task, completed_task
from forel.data.problems import Problems

__all__ = ["CacheWriteError", "RowCache"]

# The arrays of a block, the widest first, so that views are aligned; those of lines and columns may be None.
ARRAYS = {
    "indptr": np.int64, "labels": np.float64, "lines": np.int64, "indices": np.int32, "values": np.float32,
    "importance": np.float32, "columns": np.int32,
}  # fmt: skip


class CacheWriteError(OSError):
    """A cache could not be written: the errno, and a message."""


class RowCache:
    """Blocks in a temporary file: one thread writes them, and then any thread reads them on demand.

    The file is closed with the last reference to the cache, or when writing fails, which frees the disk space at once.
    ``kinds``, ``problems`` and ``classes`` are what reading has found: kinds of columns, malformed rows, and the names
    of classes, if labels are these.

    >>> cache = RowCache()
    >>> _ = cache.add(Block(np.array([0, 1]), np.int32([4]), np.float32([1]), np.float32([1])))
    >>> cache.block(0).indices
    array([4], dtype=int32)
    """

    def __init__(self) -> None:
        self.kinds: Mapping[str, str] = {}
        self.problems, self.classes = Problems("skip"), tuple[str, ...]()
        self._blocks: list[tuple[int, dict[str, int], dict[str, Any]]] = []  # start, lengths of arrays, and the rest
        self._size = 0
        self._close: Callable[[], object] = lambda: None
        with self._write_errors(), tempfile.TemporaryFile(prefix="forel-", dir=temporary_folder()) as file:
            self._handle = os.dup(file.fileno())
            self._close = finalize(self, os.close, self._handle)

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, block: Block) -> "RowCache":
        """Write a block."""
        start, sizes = self._size, dict[str, int]()
        with self._write_errors():
            for name, kind in ARRAYS.items():
                if (array := getattr(block, name)) is not None:
                    self._write(np.ascontiguousarray(array, kind))
                    sizes[name] = array.size
        self._blocks.append((start, sizes, {name: getattr(block, name) for name in ("file", "line", "size", "after")}))
        return self

    def finish(self, problems: Problems, kinds: Mapping[str, str], classes: Sequence[str]) -> None:
        """Keep what reading has found."""
        self.problems.absorb(problems)
        self.kinds, self.classes = dict(kinds), tuple(classes)

    def find(self, position: Position) -> int:
        """Return the number of the first block after a position in the source."""
        return bisect_right(self._blocks, position, key=lambda known: known[2]["after"])

    def tasks(self, first: int = 0) -> Iterator[Task]:
        """Yield a task for each block from ``first`` on."""
        for number in range(first, len(self)):
            yield partial(self._task, number)
        yield completed_task(None, deepcopy(self.problems))

    def _task(self, number: int) -> tuple[Block, Problems]:
        return self.block(number), Problems("skip")

    def block(self, number: int) -> Block:
        """Return a block by its number."""
        start, sizes, others = self._blocks[number]
        ends = np.cumsum([count * np.dtype(ARRAYS[name]).itemsize for name, count in sizes.items()])
        parts = np.split(self._read(start, int(ends[-1])), ends[:-1])
        arrays: Any = {name: part.view(ARRAYS[name]) for name, part in zip(sizes, parts, strict=True)}
        return Block(**arrays, **others, label_words=self.classes or None)

    def _write(self, array: Any) -> None:
        """Write all bytes; the system may write fewer at a time."""
        rest = memoryview(array).cast("B")
        while len(rest):
            taken = os.write(self._handle, rest)
            self._size, rest = self._size + taken, rest[taken:]

    def _read(self, start: int, size: int) -> Any:
        memory: Any = np.empty(size, np.uint8)
        rest = memoryview(memory)
        while len(rest):
            got = os.preadv(self._handle, [rest], start)
            if got == 0:
                raise OSError(errno.EIO, "cache: could not be read again")
            start, rest = start + got, rest[got:]
        return memory

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._close()
            where = f"cache in {temporary_folder()} (set TMPDIR for another folder)"
            message = f"{where}: could not be written ({error.strerror or error})"
            raise CacheWriteError(error.errno, message) from error


def temporary_folder() -> str:
    """Return the folder of large temporary files: not /tmp, which is often in memory, unless TMPDIR is set."""
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK):
        return "/var/tmp"
    return tempfile.gettempdir()
