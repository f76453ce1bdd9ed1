"""Limits of the code cache: 90 days since the last use of a file, and 1 GiB in all."""

import os
import pathlib
import time
from contextlib import suppress

__all__ = ["AGE", "LIMIT", "TEMPORARY", "evict"]

AGE = 90 * 86400.0  # seconds since the last use
LIMIT = 1 << 30  # bytes
TEMPORARY = ".tmp"
ABANDONED = 3600.0  # seconds after which a file that is still being written belongs to a process that ended


def evict(folder: pathlib.Path, age: float = AGE, limit: int = LIMIT) -> None:
    """Remove files unused for ``age`` seconds, then the least recently used ones until ``limit`` bytes are left.

    Other processes may do the same, or read what is removed: on POSIX systems they keep what they have open.
    """
    now, kept = time.time(), []
    for path in folder.glob("*"):
        with suppress(OSError):
            found = path.stat()
            idle = now - found.st_mtime
            if idle > (ABANDONED if path.suffix == TEMPORARY else age) and path.suffix in (TEMPORARY, ".bin"):
                os.unlink(path)
            elif path.suffix == ".bin":
                kept.append((found.st_mtime, found.st_size, path))
    size = sum(each for _, each, _ in kept)
    for _, each, path in sorted(kept):
        if size <= limit:
            break
        with suppress(OSError):
            os.unlink(path)
        size -= each
