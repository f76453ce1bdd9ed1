"""Operations on 8 or 64 bytes at once: loads, and positions of bytes.

Scanners use addresses, because passing arrays between functions counts references, which takes longer than the
work. Words are little-endian on every machine. A comparison of all bytes at once may also mark bytes above the first
match, so only the first match is used.
"""

import sys
from functools import partial

import numpy as np
from llvmlite import ir
from numba import types

from forel.data.compiled.cache import inlined, inner, intrinsic

__all__ = [
    "EIGHT", "ONES", "TOPS", "address", "at_most", "byte", "digits", "equal", "every", "first", "load", "lowest",
    "name_end", "power_of_ten", "store", "value",
]  # fmt: skip

SWAPPED = sys.byteorder == "big"


def every(byte):
    """Return the word with ``byte`` in all eight positions."""
    return np.uint64(int.from_bytes(bytes([byte]) * 8, "little"))


ONES, TOPS, BLANK = every(1), every(128), every(33)
COLONS, BARS = every(ord(":")), every(ord("|"))
ZEROS, ABOVE_NINE = every(ord("0")), every(128 - 10)
EIGHT, THREE, WORD = np.uint64(8), np.uint64(3), np.uint64(64)
TENS = np.array([10**k for k in range(9)], np.uint64)
PAIRS, LOW, HIGH = np.uint64(0x000000FF000000FF), np.uint64(100 + (10**6 << 32)), np.uint64(1 + (10**4 << 32))
TEN, BYTE, TWO, HALF = np.uint64(10), np.uint64(8), np.uint64(16), np.uint64(32)


@intrinsic
def address(typing_context, array):
    """Return the address of an array's data; the caller keeps the array alive."""

    def codegen(context, builder, signature, arguments):
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(struct.data, ir.IntType(64))

    return types.uint64(array), codegen


@intrinsic
def byte(typing_context, place):
    """Return the byte at an address."""

    def codegen(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        return builder.load(pointer, typ=ir.IntType(8))

    return types.uint8(types.uint64), codegen


@intrinsic
def load(typing_context, place):
    """Return the eight bytes from an address on as one word."""

    def codegen(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        word = builder.load(pointer, align=1, typ=ir.IntType(64))
        return builder.bswap(word) if SWAPPED else word

    return types.uint64(types.uint64), codegen


@intrinsic
def store(typing_context, place, value):
    """Write a byte to an address."""

    def codegen(context, builder, signature, arguments):
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        builder.store(arguments[1], pointer)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint8), codegen


@intrinsic
def equal(typing_context, place, wanted):
    """Return the bit mask of the 64 bytes from an address on that equal ``wanted``; the first is the lowest bit."""
    return types.uint64(types.uint64, types.uint8), partial(_compare, "==")


@intrinsic
def at_most(typing_context, place, wanted):
    """Return the bit mask of the 64 bytes from an address on that are at most ``wanted``."""
    return types.uint64(types.uint64, types.uint8), partial(_compare, "<=")


def _compare(relation, context, builder, signature, arguments):
    vector, first = ir.VectorType(ir.IntType(8), 64), ir.IntType(32)(0)
    found = builder.load(builder.inttoptr(arguments[0], vector.as_pointer()), align=1, typ=vector)
    undefined = ir.Constant(vector, ir.Undefined)
    broadcast = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
    wanted = builder.shuffle_vector(builder.insert_element(undefined, arguments[1], first), undefined, broadcast)
    marks = builder.bitcast(builder.icmp_unsigned(relation, found, wanted), ir.IntType(64))
    return builder.bitreverse(marks) if SWAPPED else marks


@intrinsic
def lowest(typing_context, marks):
    """Return the number of bits below the lowest that is set; 64 without one."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), codegen


@intrinsic
def first(typing_context, marks):
    """Return the number of bytes below the lowest mark; 8 without one."""

    def codegen(context, builder, signature, arguments):
        zeros = builder.cttz(arguments[0], ir.IntType(1)(0))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.uint64(types.uint64), codegen


@inner
def name_end(word):
    """Return the number of bytes before the first blank, colon or bar."""
    colon, bar = word ^ COLONS, word ^ BARS
    return first((((word - BLANK) & ~word) | ((colon - ONES) & ~colon) | ((bar - ONES) & ~bar)) & TOPS)


@inlined
def digits(word):
    """Return the number of leading digits of a word."""
    found = word ^ ZEROS
    return first(((found + ABOVE_NINE) | found) & TOPS)


@inlined
def value(word, n):
    """Return the value of the first n digits of a word, 1 ≤ n ≤ 8."""
    # Digits are shifted to the upper end, below them zeros; then pairs, fours and all eight are combined.
    found = (word ^ ZEROS) << (WORD - (n << THREE))
    pairs = found * TEN + (found >> BYTE)
    return ((pairs & PAIRS) * LOW + ((pairs >> TWO) & PAIRS) * HIGH) >> HALF


@inner
def power_of_ten(n):
    """Return 10ⁿ for n up to 8."""
    return TENS[n]
