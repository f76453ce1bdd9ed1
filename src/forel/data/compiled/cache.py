"""How scanners are compiled, with the code cache, and what they are made of where nothing is compiled."""

import pathlib

from numba import extending

from forel.data.compiled import plain
from forel.jit import disabled
from forel.jit.compiling import cached_njit

__all__ = ["fast", "inlined", "intrinsic"]

# All of them: a scanner's code changes with the scanners that it calls.
fast = cached_njit(pathlib.Path(__file__).parent)
inlined = cached_njit(pathlib.Path(__file__).parent, forceinline=True)


def intrinsic(define):
    """Return a function in LLVM's instructions, or its plain twin where nothing is compiled."""
    return getattr(plain, define.__name__) if disabled() else extending.intrinsic(define)
