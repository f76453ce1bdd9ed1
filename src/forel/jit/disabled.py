"""Running uncompiled: what NUMBA_DISABLE_JIT asks for."""

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["disabled", "uncompiled"]


def disabled() -> bool:
    """Tell whether numba is told to compile nothing; it is not imported for that.

    >>> disabled()
    False
    """
    config = sys.modules.get("numba.core.config")
    if config is not None:
        return bool(config.DISABLE_JIT)
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0")))
    except ValueError:  # numba warns of it, and compiles
        return False


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Python function that wraps around and divides by zero as compiled code does, without warnings.

    >>> uncompiled(lambda x: x * x)(np.uint64(1 << 33))
    np.uint64(0)
    """

    def called(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return called
