"""Plain Python versions of the intrinsics, under the same names, for uncompiled scanners."""

import ctypes

import numpy as np

__all__ = ["address", "at_most", "bits_of", "byte", "equal", "first", "load", "lowest", "store"]

WORD = 8


def address(array):
    """Return the address of an array's data; the caller keeps the array alive."""
    return np.uint64(array.ctypes.data)


def byte(place):
    """Return the byte at an address."""
    return np.uint8(ctypes.c_uint8.from_address(int(place)).value)


def load(place):
    """Return the eight bytes from an address on as one word, the first one lowest.

    >>> hex(load(address(np.arange(8, dtype=np.uint8))))
    '0x706050403020100'
    """
    return np.uint64(int.from_bytes(ctypes.string_at(int(place), WORD), "little"))


def store(place, value):
    """Write a byte to an address."""
    ctypes.c_uint8.from_address(int(place)).value = int(value)


def equal(place, wanted):
    """Return the bit mask of the 64 bytes from an address on that equal ``wanted``; the first is the lowest bit."""
    return _marks(np.frombuffer(ctypes.string_at(int(place), 64), np.uint8) == wanted)


def at_most(place, wanted):
    """Return the bit mask of the 64 bytes from an address on that are at most ``wanted``."""
    return _marks(np.frombuffer(ctypes.string_at(int(place), 64), np.uint8) <= wanted)


def _marks(found):
    return np.packbits(found, bitorder="little").view("<u8")[0]


def lowest(marks):
    """Return the number of bits below the lowest that is set; 64 without one.

    >>> int(lowest(np.uint64(8))), int(lowest(np.uint64(0)))
    (3, 64)
    """
    marks = int(marks)
    return np.uint64((marks & -marks).bit_length() - 1 if marks else 64)


def first(marks):
    """Return the number of bytes below the lowest mark; 8 without one."""
    return lowest(marks) >> np.uint64(3)


def bits_of(real):
    """Return the 64 bits of a double."""
    return np.float64(real).view(np.uint64)
