"""Support for NUMBA_DISABLE_JIT."""

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["disabled", "uncompiled"]


def disabled() -> bool:
    """Return whether NUMBA_DISABLE_JIT is set, without importing numba.

    >>> disabled()
    False
    """
    config = sys.modules.get("numba.core.config")
    if config is not None:
        return bool(config.DISABLE_JIT)
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0")))
    except ValueError:  # numba warns and compiles
        return False


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Python function in which integers wrap and division by zero is silent, as in compiled code.

    >>> uncompiled(lambda x: x * x)(np.uint64(1 << 33))
    np.uint64(0)
    """

    def wrapper(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return wrapper
