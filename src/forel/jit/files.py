"""Files of compiled code: signed, written atomically, and read only if no other user could write them.

A file consists of a signature, which is an HMAC of key and content with a secret of the folder, and the content. Files
of other users, damaged files and renamed files are ignored. Files are removed 90 days after their last use, and the
least recently used ones beyond 1 GiB.
"""

import hashlib
import hmac
import os
import pathlib
import secrets
import stat
import time
from contextlib import suppress

from forel.jit.folder import NOT_CACHED, announce, folder, others_can_write

__all__ = ["AGE", "LIMIT", "SIZE", "TEMPORARY", "evict", "path_of", "read", "write"]

SIZE = 32  # bytes of the secret, and of a signature
READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
DAY = 86400.0
AGE = 90 * DAY  # since the last use
LIMIT = 1 << 30  # bytes
TEMPORARY = ".tmp"
ABANDONED = 3600.0  # seconds after which a temporary file is assumed to belong to a process that ended


def path_of(name: str, key: str) -> pathlib.Path | None:
    """Return the path of code with a name and key, or None if there is no cache folder."""
    parent = folder()
    return None if parent is None else parent / f"{name}-{key[:20]}.bin"


def read(path: pathlib.Path | None, key: str) -> bytes | None:
    """Return the content written for a key, or None if there is no file that can be trusted."""
    if path is None:
        return None
    signed, secret = _trusted(path), _trusted(path.with_name("secret"))
    if signed is None or secret is None or len(secret) != SIZE:
        return None
    content = signed[SIZE:]
    if not hmac.compare_digest(_signature(secret, key, content), signed[:SIZE]):
        return None
    with suppress(OSError):  # eviction uses the modification time as the day of the last use
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)
    return content


def write(path: pathlib.Path | None, key: str, content: bytes) -> None:
    """Write a signed file atomically; print a notice if that fails."""
    if path is None:
        return
    try:
        _replace(path, _signature(_secret(path.with_name("secret")), key, content) + content)
        evict(path.parent)
    except OSError as error:
        announce(
            f"{NOT_CACHED}: {path.parent} cannot be written to ({error.strerror});"
            " set FOREL_CACHE to another folder that you own"
        )


def _signature(secret: bytes, key: str, content: bytes) -> bytes:
    return hmac.digest(secret, key.encode() + b"\n" + content, hashlib.sha256)


def _trusted(path: pathlib.Path) -> bytes | None:
    """Return the bytes of a file that this user owns and no other can write, or None."""
    try:
        descriptor = os.open(path, READ)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        if (hasattr(os, "geteuid") and status.st_uid != os.geteuid()) or others_can_write(status):
            announce(f"{path} is ignored and its code compiled again: another user owns it or can write to it")
            return None
        try:
            return file.read()
        except OSError:
            return None


def _secret(path: pathlib.Path) -> bytes:
    """Return the secret of the folder, which the first process creates."""
    secret = _trusted(path)
    if secret is not None and len(secret) == SIZE:
        return secret
    new_secret = secrets.token_bytes(SIZE)
    temporary = _temporary(path, new_secret)
    try:
        os.link(temporary, path)  # unlike os.replace, it fails if another process was first
        temporary.unlink()
    except OSError:
        secret = _trusted(path)
        if secret is not None and len(secret) == SIZE:
            temporary.unlink(missing_ok=True)
            return secret
        os.replace(temporary, path)
    return new_secret


def _replace(path: pathlib.Path, content: bytes) -> None:
    os.replace(_temporary(path, content), path)


def _temporary(path: pathlib.Path, content: bytes) -> pathlib.Path:
    """Write a temporary file next to ``path``, readable by this user only, regardless of the umask."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
    descriptor = os.open(temporary, CREATE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    return temporary


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
