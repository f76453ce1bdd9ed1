"""The row cache: parsed blocks in a temporary file, which later passes read instead of parsing text again.

The file has no name, so that it is gone with its process. It is read rather than memory-mapped, so that a failing disk
is an error and not a crash.
"""

import errno
import os
import pickle
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import finalize

from forel.data.block import Block, Position, Task, completed_task
from forel.data.problems import Problems

__all__ = ["CacheWriteError", "RowCache"]


class CacheWriteError(OSError):
    """A cache could not be written: the errno, and a message."""


class RowCache:
    """Blocks in a temporary file: one thread writes them, and then any thread reads them on demand.

    The file is closed with the last reference to the cache, or when writing fails, which frees the disk space at once.
    ``kinds``, ``problems`` and ``classes`` are what reading has found: kinds of columns, malformed rows, and the names
    of classes, if labels are these.

    >>> import numpy as np
    >>> cache = RowCache()
    >>> _ = cache.add(Block(np.array([0, 1]), np.int32([4]), np.float32([1]), np.float32([1])))
    >>> cache.block(0).indices
    array([4], dtype=int32)
    """

    def __init__(self) -> None:
        self.kinds: Mapping[str, str] = {}
        self.problems, self.classes = Problems("skip"), tuple[str, ...]()
        self._blocks: list[tuple[int, int, Any]] = []  # start, size, and the position in the source
        self._size = 0
        self._close: Callable[[], object] = lambda: None
        with self._write_errors(), tempfile.TemporaryFile(prefix="forel-", dir=temporary_folder()) as file:
            self._handle = os.dup(file.fileno())
            self._close = finalize(self, os.close, self._handle)

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, block: Block) -> "RowCache":
        """Write a block."""
        plain = replace(block, label_words=None, tags=None, slices=None, entry_names=None, numbers=None, held_out=None)
        start, rest = self._size, memoryview(pickle.dumps(plain, protocol=5))
        with self._write_errors():
            while len(rest):  # the system may write fewer bytes at a time
                taken = os.write(self._handle, rest)
                self._size, rest = self._size + taken, rest[taken:]
        self._blocks.append((start, self._size - start, block.after))
        return self

    def finish(self, problems: Problems, kinds: Mapping[str, str], classes: Sequence[str]) -> None:
        """Keep what reading has found."""
        self.problems.absorb(problems)
        self.kinds, self.classes = dict(kinds), tuple(classes)

    def find(self, position: Position) -> int:
        """Return the number of the first block after a position in the source."""
        return bisect_right(self._blocks, position, key=lambda known: known[2])

    def tasks(self, first: int = 0) -> Iterator[Task]:
        """Yield a task for each block from ``first`` on."""
        for number in range(first, len(self)):
            yield partial(self._task, number)
        yield completed_task(None, deepcopy(self.problems))

    def _task(self, number: int) -> tuple[Block, Problems]:
        return self.block(number), Problems("skip")

    def block(self, number: int) -> Block:
        """Return a block by its number."""
        start, size, _ = self._blocks[number]
        memory = bytearray(size)
        rest = memoryview(memory)
        while len(rest):
            got = os.preadv(self._handle, [rest], start)
            if got == 0:
                raise OSError(errno.EIO, "cache: could not be read again")
            start, rest = start + got, rest[got:]
        block: Block = pickle.loads(memory)  # the file has no name, so that nobody else can write it
        return replace(block, label_words=self.classes or None)

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
