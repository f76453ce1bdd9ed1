"""The cache of compiled code: files that are written atomically, and read only if no other user could write them.

Code in them is executed, so a folder of another user, or one that others can write to, is not used: then every process
compiles on its own and prints a notice once. Each begins with its signature, an HMAC of key and content with a secret
of the folder: damaged and renamed files, and those of other folders, are ignored. Files are removed 90 days after
their last use, and beyond 1 GiB the least recently used.
"""

import hashlib
import hmac
import os
import pathlib
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import platformdirs

try:
    import fcntl
except ImportError:  # Windows: every process compiles
    fcntl = None  # type: ignore[assignment]

__all__ = ["NOT_CACHED", "SIZE", "announce", "compile_lock", "evict", "folder", "path_of", "read", "write"]

NOT_CACHED = "compiled code is not cached, and every process compiles again"
SIZE = 32  # bytes of the secret, and of a signature
READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
DAY = 86400.0
AGE = 90 * DAY  # since the last use
LIMIT = 1 << 30  # bytes
TEMPORARY = ".tmp"
ABANDONED = 3600.0  # seconds after which a temporary file is assumed to belong to a process that ended
PATIENCE, PAUSE = 60.0, 0.05  # seconds: the total time that a process waits for others, and between attempts

printed_notices: set[str] = set()
waited = 0.0


def folder() -> pathlib.Path | None:
    """Return the folder of compiled code, created if necessary, or None if there is none that can be trusted.

    It is ``code`` below $FOREL_CACHE or, without that, below the user's cache folder.
    """
    chosen, root = os.environ.get("FOREL_CACHE"), pathlib.Path("~")
    with suppress(RuntimeError):  # no home folder
        given = pathlib.Path(chosen or platformdirs.user_cache_dir("forel", appauthor=False))
        root = given.expanduser().absolute() if chosen else given
    # Without a home folder "~" stays as it is, and would be a folder below the data.
    reason = _unusable(root) or _unusable(root / "code") if root.is_absolute() else "no home folder"
    if reason is None:
        return root / "code"
    announce(
        f"{NOT_CACHED}: got {reason}, expected a folder that you own and only you can write to; set FOREL_CACHE to one"
    )
    return None


def _unusable(path: pathlib.Path) -> str | None:
    """Create a folder if it is missing, and return why it cannot be used, or None if it can."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        return f"{path} ({error.strerror})"
    if stat.S_ISLNK(status.st_mode):
        return f"{path}, a symbolic link"
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return f"{path}, a folder of user {status.st_uid}"
    return f"{path}, a folder that others can write to" if _others_can_write(status) else None


def _others_can_write(status: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def announce(notice: str) -> None:
    """Print a notice to standard error, once per process, unless $FOREL_QUIET is set."""
    if notice not in printed_notices and not os.environ.get("FOREL_QUIET"):
        with suppress(OSError, ValueError):  # standard error may be closed
            print(f"forel: {notice}", file=sys.stderr, flush=True)
    printed_notices.add(notice)


def path_of(name: str, key: str) -> pathlib.Path | None:
    """Return the path of code with a name and key, or None if there is no cache folder."""
    parent = folder()
    return None if parent is None else parent / f"{name}-{key[:20]}.bin"


def read(path: pathlib.Path | None, key: str) -> bytes | None:
    """Return the content written for a key, or None if there is no file that can be trusted."""
    data = None if path is None else _trusted(path)
    if path is None or data is None or not hmac.compare_digest(_signature(path, key, data[SIZE:]), data[:SIZE]):
        return None
    with suppress(OSError):  # eviction uses the modification time as the day of the last use
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)
    return data[SIZE:]


def write(path: pathlib.Path | None, key: str, content: bytes) -> None:
    """Write a signed file; print a notice if that fails."""
    if path is None:
        return
    try:
        _replace(path, _signature(path, key, content) + content)
        evict(path.parent)
    except OSError as error:
        announce(
            f"{NOT_CACHED}: {path.parent} cannot be written to ({error.strerror});"
            " set FOREL_CACHE to another folder that you own"
        )


def _replace(path: pathlib.Path, content: bytes) -> None:
    """Write a file atomically, which only this user can read or write."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with os.fdopen(os.open(temporary, CREATE, 0o600), "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _signature(path: pathlib.Path, key: str, content: bytes) -> bytes:
    """Return an HMAC with the folder's secret. Of two processes that make one, the first compiles again."""
    place = path.with_name("secret")
    secret = _trusted(place)
    if secret is None or len(secret) != SIZE:
        secret = secrets.token_bytes(SIZE)
        _replace(place, secret)
    return hmac.digest(secret, key.encode() + b"\n" + content, hashlib.sha256)


def _trusted(path: pathlib.Path) -> bytes | None:
    """Return the bytes of a file that this user owns and no other can write, or None."""
    try:
        with os.fdopen(os.open(path, READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            if (hasattr(os, "geteuid") and status.st_uid != os.geteuid()) or _others_can_write(status):
                announce(f"{path} is ignored and its code compiled again: another user owns it or can write to it")
                return None
            return file.read()
    except OSError:
        return None


def evict(folder: pathlib.Path, age: float = AGE, limit: int = LIMIT) -> None:
    """Remove files unused for ``age`` seconds, then the least recently used ones until ``limit`` bytes are left.

    Other processes may evict at the same time, and may have removed files open, which POSIX systems allow.
    """
    now, total, found = time.time(), 0, []
    for path in folder.iterdir():
        with suppress(OSError):
            if path.suffix in (TEMPORARY, ".bin"):
                found.append((now - path.stat().st_mtime, path.stat().st_size, path))
    for idle, size, path in sorted(found):
        temporary = path.suffix == TEMPORARY
        total += 0 if temporary else size
        if idle > (ABANDONED if temporary else age) or (total > limit and not temporary):
            path.unlink(missing_ok=True)


@contextmanager
def compile_lock(folder: pathlib.Path | None, key: str) -> Iterator[None]:
    """Hold the lock of a key, under which one process compiles while others wait, at most ``PATIENCE`` seconds in all.

    Each key is a byte of one file. The system releases a lock when its process ends.
    """
    descriptor = None
    with suppress(OSError):  # also of file systems without locks
        if folder is not None and fcntl is not None:
            descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            _wait(descriptor, int(key[:15], 16))
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)  # releases the lock


def _wait(descriptor: int, offset: int) -> None:
    global waited
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            return
        except (BlockingIOError, PermissionError):
            if waited >= PATIENCE:
                return
            time.sleep(PAUSE)
            waited += PAUSE
