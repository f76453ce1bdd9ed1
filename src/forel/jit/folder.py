"""The folder of the code cache: the user's own, or none at all.

Code in it is executed, so that a folder of somebody else, or one that others can write to, is not used: then every
process compiles for itself and says so once.
"""

import os
import pathlib
import stat
import sys

import platformdirs

__all__ = ["NOT_KEPT", "announce", "folder", "others_can_write"]

NOT_KEPT = "compiled code is not kept, and every process compiles anew"
said: set[str] = set()


def folder() -> pathlib.Path | None:
    """Return the folder of compiled code, made if need be, or None where there is none to trust.

    It is ``code`` below $FOREL_CACHE or, without that, below the user's cache folder.
    """
    chosen = os.environ.get("FOREL_CACHE")
    root = pathlib.Path(os.path.expanduser(chosen) if chosen else platformdirs.user_cache_dir("forel", appauthor=False))
    # Without a home folder "~" stays as it is, and would be a folder below the data.
    homeless = root.parts[:1] == ("~",) or not (chosen or root.is_absolute())
    code = root.absolute() / "code"
    reason = "no home folder" if homeless else _distrusted(code)
    if reason is None:
        return code
    announce(
        f"{NOT_KEPT}: got {reason}, expected a folder that you own and only you can write to; set FOREL_CACHE to one"
    )
    return None


def _distrusted(code: pathlib.Path) -> str | None:
    """Make a folder, and return why it cannot be used, or None if it can."""
    try:
        _make(code)
        for path in (code.parent, code):
            found = path.stat()
            if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
                return f"{path}, a folder of user {found.st_uid}"
        return f"{code}, a folder that others can write to" if others_can_write(found) else None
    except OSError as error:
        return f"{code} ({error.strerror})"


def others_can_write(found: os.stat_result) -> bool:
    """Tell whether a file or folder can be changed by the group or by everybody."""
    return hasattr(os, "geteuid") and bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def announce(sentence: str) -> None:
    """Print a sentence to standard error, once a process; $FOREL_QUIET keeps it silent."""
    if sentence not in said and not os.environ.get("FOREL_QUIET"):
        print(f"forel: {sentence}", file=sys.stderr, flush=True)
    said.add(sentence)


def _make(path: pathlib.Path) -> None:
    """Make a folder and what is missing above it for this user alone, whatever the umask."""
    if not path.is_dir():
        _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
