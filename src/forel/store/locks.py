"""Locks between processes: one run at a time writes a checkpoint, and temporary files in use are not removed.

The system releases a lock when its process ends, however it ends, so no lock is ever stale.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # without file locks, nothing is locked
    fcntl = None

__all__ = ["exclusive_lock", "try_lock"]


def try_lock(handle: int) -> bool:
    """Lock an open file or folder; return False if another process holds the lock.

    Succeeds on file systems without locks.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def exclusive_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file that one run at a time may write: a file with the suffix ``.lock``.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.checkpoint"
    >>> with exclusive_lock(path), exclusive_lock(path):
    ...     pass
    Traceback (most recent call last):
    ValueError: /...m.checkpoint: another run is writing it; wait until it ends, or choose another name
    """
    name = f"{os.path.realpath(path)}.lock"
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        if not try_lock(handle):
            os.close(handle)
            raise ValueError(
                f"{os.fspath(path)}: another run is writing it; wait until it ends, or choose another name"
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(name)):
                break
        os.close(handle)  # the process that held the lock has removed the file meanwhile
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(name)
        os.close(handle)
