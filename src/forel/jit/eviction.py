"""Limits of the code cache: 90 days since the last use of a file, and 1 GiB in total."""

import os
import pathlib
import time
from contextlib import suppress

__all__ = ["AGE", "LIMIT", "TEMPORARY", "evict"]

AGE = 90 * 86400.0  # seconds since the last use
LIMIT = 1 << 30  # bytes
TEMPORARY = ".tmp"
ABANDONED = 3600.0  # seconds after which a temporary file is assumed to belong to a process that ended


def evict(folder: pathlib.Path, age: float = AGE, limit: int = LIMIT) -> None:
    """Remove files unused for ``age`` seconds, then the least recently used ones until ``limit`` bytes are left.

    Other processes may evict at the same time, and may have removed files open, which POSIX systems allow.
    """
    now, remaining = time.time(), []
    for path in folder.glob("*"):
        with suppress(OSError):
            status = path.stat()
            idle = now - status.st_mtime
            if idle > (ABANDONED if path.suffix == TEMPORARY else age) and path.suffix in (TEMPORARY, ".bin"):
                os.unlink(path)
            elif path.suffix == ".bin":
                remaining.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in remaining)
    for _, size, path in sorted(remaining):
        if total <= limit:
            break
        with suppress(OSError):
            os.unlink(path)
        total -= size
