"""Locks between processes: one run at a time writes to a checkpoint, and drafts in use are told from abandoned ones.

The system gives a lock back when its process ends, however it ends, so that none is ever stale.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # where there are no such locks, none are held
    fcntl = None

__all__ = ["lock", "locked"]


def lock(handle: int) -> bool:
    """Lock an open file or folder, unless another process has; tell whether that worked.

    Where a file system knows no locks, it does.
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
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file that only one run may write to, or refuse; ``path`` with ``.lock`` is there meanwhile.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.checkpoint"
    >>> with locked(path), locked(path):
    ...     pass
    Traceback (most recent call last):
    ValueError: /...m.checkpoint: another run writes to it; wait for its end, or choose another name
    """
    name = f"{os.path.realpath(path)}.lock"
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        if not lock(handle):
            os.close(handle)
            raise ValueError(f"{os.fspath(path)}: another run writes to it; wait for its end, or choose another name")
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(name)):
                break
        os.close(handle)  # whoever held it has removed it meanwhile
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(name)
        os.close(handle)
