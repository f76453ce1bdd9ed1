"""Decorators that compile scanners, and intrinsics with their plain equivalents."""

from numba import extending

from forel.data.compiled import plain
from forel.jit import disabled, njit

__all__ = ["fast", "inlined", "inner", "intrinsic"]

fast = njit()
inner, inlined = njit(inner=True), njit(inner=True, forceinline=True)  # only scanners call these


def intrinsic(define):
    """Return an LLVM intrinsic, or its plain equivalent if compilation is disabled."""
    return getattr(plain, define.__name__) if disabled() else extending.intrinsic(define)
