"""Files that are replaced atomically: written under a temporary name in the same folder, then renamed; and locks.

The system releases a lock when its process ends, however it ends, so no lock is ever stale.
"""

import errno
import os
import pathlib
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal

from forel.validation import refuse

fcntl: Any
try:
    import fcntl
except ImportError:  # without file locks, nothing is locked
    fcntl = None

__all__ = [
    "Path", "atomic_writer", "check_outputs", "exclusive_lock", "remove_leftovers", "temporary_path", "try_lock",
]  # fmt: skip

Path = str | os.PathLike[str]
REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space, or write elsewhere"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder that you may write to"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "create the folder first"),
}


def check_outputs(
    outputs: Mapping[str, Path | None], streams: Iterable[str] = (), sources: Iterable[Path] = ()
) -> None:
    """Raise for paths that cannot be written, before any work is done.

    Parameters
    ----------
    outputs : paths by the names of their options; None for options without a value
    streams : names of the options whose paths may also be pipes or devices
    sources : input files, which must not be overwritten

    >>> check_outputs({"--model": "/no/such/folder/m.forel"})
    Traceback (most recent call last):
    ValueError: --model: got '/no/such/folder/m.forel', expected a file in an existing folder; create the folder first
    """
    taken = {_identity(path): "another file than the input" for path in sources}
    for name, path in outputs.items():
        if path is None:
            continue
        target = pathlib.Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            if name in streams and not target.is_dir():
                continue
            raise refuse(name, os.fspath(path), "the name of a file, not of a folder or device")
        if not target.parent.is_dir():
            raise refuse(name, os.fspath(path), "a file in an existing folder; create the folder first")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise refuse(name, os.fspath(path), "a file in a folder that you may write to")
        identity = _identity(target)
        if identity in taken:
            raise refuse(name, os.fspath(path), taken[identity])
        taken[identity] = f"another file than {name}"


def _identity(path: Path) -> object:
    """Return what is equal for all names of a file, hard links included."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


@contextmanager
def atomic_writer(path: Path, mode: Literal["t", "b"] = "t") -> Iterator[Callable[[Any], object]]:
    """Yield a function that writes text or bytes to a temporary file, which replaces ``path`` at the end of the block.

    If the block raises, the old file stays unchanged. Pipes and devices are written to directly. A failed write raises
    an ``OSError`` that names the path.

    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "p.txt"
    >>> with atomic_writer(path) as write:
    ...     _ = write("0.5")
    ...     path.exists()
    False
    >>> path.read_text()
    '0.5'
    """
    target = pathlib.Path(os.path.realpath(path))
    regular = target.is_file() or not target.exists()
    name = temporary_path(target) if regular else str(target)
    if regular:
        remove_leftovers(target)
    with _write_errors(path):
        file = open(name, ("x" if regular else "w") + mode, encoding="utf-8" if mode == "t" else None)  # noqa: SIM115
    try_lock(file.fileno())

    def write(data: Any) -> None:
        with _write_errors(path):
            file.write(data)

    try:
        yield write
        with _write_errors(path):
            file.flush()
            if regular:
                os.chmod(name, (target if target.exists() else pathlib.Path(name)).stat().st_mode & 0o777)
                os.fsync(file.fileno())
            file.close()
            if regular:
                os.replace(name, target)
                _sync(target.parent)
    finally:
        with suppress(OSError):
            file.close()  # flushing its buffer may fail as well
        if regular:
            with suppress(OSError):
                os.unlink(name)


def temporary_path(path: Path) -> str:
    """Return a new name in the folder of a file, which :func:`remove_leftovers` recognizes."""
    target = pathlib.Path(path)
    return str(target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.forel"))


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of killed processes that wrote to ``path``; files that are in use stay."""
    target = pathlib.Path(os.path.realpath(path))
    for leftover in target.parent.glob(f"{_prefix(target)}*.forel"):
        with suppress(OSError), _locked(leftover) as acquired:
            if acquired:
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)


def _prefix(target: pathlib.Path) -> str:
    return f".{zlib.crc32(os.fsencode(target.name)):08x}-"


@contextmanager
def _locked(path: pathlib.Path) -> Iterator[bool]:
    """Lock a file or folder during the block; yield False if another process holds the lock."""
    handle = os.open(path, os.O_RDONLY)
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)


def _sync(folder: pathlib.Path) -> None:
    """Flush a folder to the disk, where the system can: its files are complete either way."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Raise an ``OSError`` that names the path and a remedy in place of others, but of closed pipes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        number = error.errno
        reason = str(error) if number is None else os.strerror(number)
        what = f"{path}: could not be written ({reason}); an existing file is unchanged"
        remedy = REMEDIES.get(number or 0, "try again, or elsewhere")
        raise OSError(number, f"{what}; {remedy}") from error


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
