r"""Stochastic rounding: small steps are added in expectation, however large the sum.

A float32 sum of 10⁷ does not change by steps of 0.4. Before a + b is rounded, b gets a random part of the spacing of
numbers at a, uniform with mean zero, so that the sum is unbiased. The noise is a function of a key and the round: the
same rows give the same bits, in blocks of any size. An adversary who has the key can choose rows that are always
rounded in the same direction.
"""

import numpy as np

from forel.learner.kernels.reference import binade, inline_ir

FACTOR, ADDEND = np.uint64(6364136223846793005), np.uint64(1442695040888963407)  # Knuth's MMIX generator
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
SHIFT_40, SHIFT_32, SHIFT_16, LOW_24_BITS = np.uint64(40), np.uint64(32), np.uint64(16), np.uint64(0xFFFFFF)
SPACING, HALF_RANGE = np.float32(2.0**-47), np.float32(2.0**-24 - 2.0**-48)


@inline_ir
def add(a, b, noise):
    """Return a + b, with ``noise`` units in the last place of a added before it is rounded."""
    return a + (b + binade(a) * noise)


@inline_ir
def noise_of(t, key):
    """Return two random numbers for round t, each less than half the spacing of numbers in [1, 2)."""
    state = (np.uint64(t) * GOLDEN + np.uint64(key) + ADDEND) * FACTOR + ADDEND
    state = (state ^ (state >> SHIFT_32)) * FACTOR
    return uniform(state >> SHIFT_40), uniform((state >> SHIFT_16) & LOW_24_BITS)


@inline_ir
def uniform(bits):
    """Map 24 random bits to a number in (−2⁻²⁴, 2⁻²⁴)."""
    return np.float32(np.int64(bits)) * SPACING - HALF_RANGE
