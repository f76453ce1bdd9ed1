"""Decorators that compile scanners with the code cache, and intrinsics with their plain equivalents."""

import pathlib

from numba import extending

from forel.data.compiled import plain
from forel.jit import disabled
from forel.jit.compiling import cached_njit, inner_njit

__all__ = ["fast", "inlined", "inner", "intrinsic"]

# The sources of all scanners: the code of one depends on those that it calls.
fast = cached_njit(pathlib.Path(__file__).parent)
inner, inlined = inner_njit(), inner_njit(forceinline=True)  # only scanners call these


def intrinsic(define):
    """Return an LLVM intrinsic, or its plain equivalent if compilation is disabled."""
    return getattr(plain, define.__name__) if disabled() else extending.intrinsic(define)
