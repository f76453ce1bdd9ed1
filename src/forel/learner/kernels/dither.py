r"""Rounding that does not stagnate: a little noise, so that small steps count on average.

A float32 sum of 10⁷ stops growing by steps of 0.4. Before a + b is rounded, b gets a random part of the distance from a
to its neighbours, uniform and zero in the mean, so that the sum is right in expectation however small b is. The noise
comes from a key and the number of the round: the same rows give the same bits, in whatever pieces they come. A stream
that knows the key can choose rows that are always rounded to the same side.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from forel.learner.kernels.inline import fast

__all__ = ["add", "binade", "noise"]

FACTOR, ADDEND = np.uint64(6364136223846793005), np.uint64(1442695040888963407)  # Knuth's MMIX generator
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
HIGH, HALFWAY, MIDDLE, LOW = np.uint64(40), np.uint64(32), np.uint64(16), np.uint64(0xFFFFFF)
STEP, HALF = np.float32(2.0**-47), np.float32(2.0**-24 - 2.0**-48)


@intrinsic
def binade(typing_context: Any, x: Any) -> Any:
    """Return the power of two at or below |x|, by its exponent bits; 0 for 0."""
    if not isinstance(x, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width, mask = (32, 0x7F800000) if signature.args[0] == types.float32 else (64, 0x7FF0000000000000)
        bits = builder.bitcast(arguments[0], ir.IntType(width))
        return builder.bitcast(builder.and_(bits, ir.IntType(width)(mask)), arguments[0].type)

    return x(x), codegen


@fast
def add(a, b, r):
    """Return a + b, with r units in the last place of a added before it is rounded."""
    return a + (b + binade(a) * r)  # type: ignore[call-arg]


@fast
def noise(t, key):
    """Return two random numbers for round t, each less than half the distance of a number in [1, 2) to the next."""
    state = (np.uint64(t) * GOLDEN + np.uint64(key) + ADDEND) * FACTOR + ADDEND
    state = (state ^ (state >> HALFWAY)) * FACTOR
    return unit(state >> HIGH), unit((state >> MIDDLE) & LOW)


@fast
def unit(bits):
    """Return 24 bits as a number within ±2⁻²⁴."""
    return np.float32(np.int64(bits)) * STEP - HALF
