"""How scanners are compiled, and where what was compiled is kept for the next process."""

import hashlib
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import config

from forel.native import home

__all__ = ["fast", "folder"]

CONFIG: Any = config
SOURCES = pathlib.Path(__file__).parent


def folder(sources: pathlib.Path = SOURCES) -> pathlib.Path:
    """Return where to keep compiled code: below $FOREL_CACHE or the user's cache folder, by a hash of all sources.

    numba itself looks only at the file a function is in, not at those it calls, so that a new version of these would go
    unnoticed.
    """
    text = b"".join(path.read_bytes() for path in sorted(sources.glob("*.py")))
    key = hashlib.sha256(text + f"{numba.__version__} {sys.version}".encode()).hexdigest()[:20]
    return home() / "formats" / key


FOLDER = folder()


def fast(function: Callable[..., Any]) -> Any:
    """Compile a function, to run without the interpreter's lock, and cache it where it can be."""
    before = CONFIG.CACHE_DIR
    CONFIG.CACHE_DIR = str(FOLDER)
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder that can be written to
        return numba.njit(nogil=True, error_model="numpy")(function)
    finally:
        CONFIG.CACHE_DIR = before
