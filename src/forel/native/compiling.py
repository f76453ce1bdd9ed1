"""Compiling by numba, which keeps what it compiled for the next process."""

import hashlib
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import config

from forel.native.keeping import home

__all__ = ["kept"]

CONFIG: Any = config
HOW: Any = {"error_model": "numpy", "no_cfunc_wrapper": True}  # nobody calls them from C


def kept(kind: str, *sources: str, nogil: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Return what compiles functions made of these files, to run without the interpreter's lock unless they need it.

    numba itself looks only at the file a function is in, not at those it calls, so the folder's name has a hash of all.
    """
    text = b"".join(pathlib.Path(source).read_bytes() for source in sources)
    key = hashlib.sha256(text + f"{numba.__version__} {sys.version}".encode()).hexdigest()[:20]
    folder = home() / kind / key

    def compiled(function: Callable[..., Any]) -> Any:
        before = CONFIG.CACHE_DIR
        CONFIG.CACHE_DIR = str(folder)
        try:
            return numba.njit(cache=True, nogil=nogil, **HOW)(function)
        except RuntimeError:  # no folder that can be written to
            return numba.njit(nogil=nogil, **HOW)(function)
        finally:
            CONFIG.CACHE_DIR = before

    return compiled
