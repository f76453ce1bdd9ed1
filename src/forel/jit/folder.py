"""The folder of the code cache.

Code in it is executed, so a folder of another user, or one that others can write to, is not used: then every process
compiles for itself and prints a notice once.
"""

import os
import pathlib
import stat
import sys
from contextlib import suppress

import platformdirs

__all__ = ["NOT_KEPT", "announce", "folder", "others_can_write"]

NOT_KEPT = "compiled code is not kept, and every process compiles anew"
said: set[str] = set()


def folder() -> pathlib.Path | None:
    """Return the folder of compiled code, created if necessary, or None if there is none to trust.

    It is ``code`` below $FOREL_CACHE or, without that, below the user's cache folder.
    """
    root = _root()
    # Without a home folder "~" stays as it is, and would be a folder below the data.
    if not root.is_absolute():
        reason: str | None = "no home folder"
    else:
        reason = _distrusted(root) or _distrusted(root / "code")
    if reason is None:
        return root / "code"
    announce(
        f"{NOT_KEPT}: got {reason}, expected a folder that you own and only you can write to; set FOREL_CACHE to one"
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


def _distrusted(path: pathlib.Path) -> str | None:
    """Create a folder, and return why it cannot be used, or None if it can."""
    try:
        _make(path)
        found = path.stat()
    except OSError as error:
        return f"{path} ({error.strerror})"
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return f"{path}, a folder of user {found.st_uid}"
    return f"{path}, a folder that others can write to" if others_can_write(found) else None


def others_can_write(found: os.stat_result) -> bool:
    """Return whether the group or all users can write a file or folder."""
    return hasattr(os, "geteuid") and bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def announce(sentence: str) -> None:
    """Print a notice to standard error, once a process, unless $FOREL_QUIET is set."""
    if sentence not in said and not os.environ.get("FOREL_QUIET"):
        with suppress(OSError, ValueError):  # a closed stream is no reason to fail
            print(f"forel: {sentence}", file=sys.stderr, flush=True)
    said.add(sentence)


def _make(path: pathlib.Path) -> None:
    """Create a folder and its parents with access for this user only, regardless of the umask."""
    if not path.is_dir():
        _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
