"""A lock under which one process compiles a function while others wait, with a time limit."""

import os
import pathlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

try:
    import fcntl as locks
except ImportError:  # Windows: every process compiles
    locks = None  # type: ignore[assignment]

__all__ = ["LIMIT", "compile_lock"]

LIMIT, PAUSE = 60.0, 0.05  # seconds: the total time a process waits, and the time between attempts
waited = 0.0


@contextmanager
def compile_lock(folder: pathlib.Path | None, key: str) -> Iterator[None]:
    """Hold the lock of a key during the block, or proceed without it after ``LIMIT`` seconds of waiting.

    Each key is a byte of one file. The system releases a lock when its process ends.
    """
    if folder is None or locks is None:
        yield
        return
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        _wait(locks, descriptor, int(key[:15], 16))
        yield
    finally:
        os.close(descriptor)  # releases the lock


def _wait(locks: Any, descriptor: int, offset: int) -> None:
    global waited
    with suppress(OSError):  # file systems without locks
        while True:
            try:
                locks.lockf(descriptor, locks.LOCK_EX | locks.LOCK_NB, 1, offset)
                return
            except (BlockingIOError, PermissionError):
                if waited >= LIMIT:
                    return
                time.sleep(PAUSE)
                waited += PAUSE
