"""The folder of the code cache.

Code in it is executed, so a folder of another user, or one that others can write to, is not used: then every process
compiles on its own and prints a notice once.
"""

import os
import pathlib
import stat
import sys
from contextlib import suppress

import platformdirs

__all__ = ["NOT_CACHED", "announce", "folder", "others_can_write"]

NOT_CACHED = "compiled code is not cached, and every process compiles again"
printed_notices: set[str] = set()


def folder() -> pathlib.Path | None:
    """Return the folder of compiled code, created if necessary, or None if there is none that can be trusted.

    It is ``code`` below $FOREL_CACHE or, without that, below the user's cache folder.
    """
    root = _root()
    # Without a home folder "~" stays as it is, and would be a folder below the data.
    if not root.is_absolute():
        reason: str | None = "no home folder"
    else:
        reason = _unusable(root) or _unusable(root / "code")
    if reason is None:
        return root / "code"
    announce(
        f"{NOT_CACHED}: got {reason}, expected a folder that you own and only you can write to; set FOREL_CACHE to one"
    )
    return None


def _root() -> pathlib.Path:
    chosen = os.environ.get("FOREL_CACHE")
    if chosen:
        path = pathlib.Path(os.path.expanduser(chosen))
        return path if path.parts[:1] == ("~",) else path.absolute()
    try:
        return pathlib.Path(platformdirs.user_cache_dir("forel", appauthor=False))
    except RuntimeError:  # newer versions look for a home folder themselves
        return pathlib.Path("~")


def _unusable(path: pathlib.Path) -> str | None:
    """Create a folder if it is missing, and return why it cannot be used, or None if it can."""
    try:
        _make(path)
        status = path.lstat()
    except OSError as error:
        return f"{path} ({error.strerror})"
    if stat.S_ISLNK(status.st_mode):
        return f"{path}, a symbolic link"
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return f"{path}, a folder of user {status.st_uid}"
    return f"{path}, a folder that others can write to" if others_can_write(status) else None


def others_can_write(status: os.stat_result) -> bool:
    """Return whether the group or all users can write a file or folder."""
    return hasattr(os, "geteuid") and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def announce(notice: str) -> None:
    """Print a notice to standard error, once per process, unless $FOREL_QUIET is set."""
    if notice not in printed_notices and not os.environ.get("FOREL_QUIET"):
        with suppress(OSError, ValueError):  # standard error may be closed
            print(f"forel: {notice}", file=sys.stderr, flush=True)
    printed_notices.add(notice)


def _make(path: pathlib.Path) -> None:
    """Create a folder and its parents with access for this user only, regardless of the umask."""
    if not path.is_dir():
        _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
