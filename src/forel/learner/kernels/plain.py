"""The slow twins of what only compiled code can have, under the same names."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.kernels.recipe import room

__all__ = [
    "carray",
    "exempt",
    "fetch",
    "fetch_rest",
    "give",
    "give_rest",
    "inverse",
    "owned",
    "pointer",
    "prefetch",
    "release",
    "spread",
    "spread_rest",
    "unit",
]

SIDE = 8
Numbers = NDArray[Any]


def pointer(address: int) -> int:
    """Return an address as it is."""
    return address


def carray(address: int, shape: tuple[int, ...], dtype: Any) -> Numbers:
    """Return the array at an address, which whoever passes it keeps alive.

    >>> numbers = np.arange(3.0)
    >>> carray(numbers.ctypes.data, (2,), np.float64)
    array([0., 1.])
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype).reshape(shape)


def owned(like: Numbers, count: int) -> Numbers:
    """Return zeros of the type of an array."""
    return np.zeros(int(count), like.dtype)


def release(array: Numbers) -> None:
    """Do nothing: memory is given back when nobody has it."""


def prefetch(array: Numbers, place: int) -> None:
    """Do nothing: a hint changes no result."""


def unit(s: Any) -> Any:
    """Return the power of two at or below s, such that both it and 1/u are normal numbers; 1 for s = 0."""
    kind = np.finfo(s.dtype)
    exponent = int(np.frexp(s)[1]) - 1 if s > 0 else 0
    return s.dtype.type(2.0 ** min(max(exponent, kind.minexp), kind.maxexp - 2))


def inverse(u: Any) -> Any:
    """Return 1/u."""
    return 1 / u


def fetch(desk: Numbers, c: int, apart: int, zn: Numbers, parts: int, indices: Numbers, j: int) -> None:
    """Put eight records on the desk, one after the other."""
    for i in range(SIDE):
        for part in range(parts):
            desk[int(c) + i + part * apart] = zn[int(indices[int(j) + i]) * room(parts) + part]


def fetch_rest(
    desk: Numbers, c: int, apart: int, zn: Numbers, parts: int, indices: Numbers, j: int, count: int, bias: int
) -> None:
    """Put fewer than eight records on the desk, one after the other, and the bias's."""
    for i in range(int(count) + 1):
        q = int(indices[int(j) + i] if i < count else bias)
        for part in range(parts):
            desk[int(c) + i + part * apart] = zn[q * room(parts) + part]
    desk[int(c) + int(count) + 1 : int(c) + SIDE] = 0


def spread(desk: Numbers, c: int, values: Numbers, j: int) -> None:
    """Put eight values on the desk."""
    desk[int(c) : int(c) + SIDE] = values[int(j) : int(j) + SIDE]


def spread_rest(desk: Numbers, c: int, values: Numbers, j: int, count: int, unit: float) -> None:
    """Put fewer than eight values on the desk, one after the other, the unit, and zeros."""
    for i in range(SIDE):
        desk[int(c) + i] = values[int(j) + i] if i < count else unit if i == count else 0


def exempt(desk: Numbers, c: int, count: int, unit: float) -> None:
    """Put eight ones on the desk, less a unit at the place after so many."""
    desk[int(c) : int(c) + SIDE] = 1
    desk[int(c) + int(count)] -= unit


def give(desk: Numbers, c: int, apart: int, zn: Numbers, parts: int, indices: Numbers, j: int) -> None:
    """Put eight records of the desk back, one after the other."""
    for i in range(SIDE):
        _put(desk, int(c) + i, apart, zn, parts, int(indices[int(j) + i]))


def give_rest(
    desk: Numbers,
    c: int,
    apart: int,
    zn: Numbers,
    parts: int,
    indices: Numbers,
    j: int,
    count: int,
    bias: int,
    extra: int,
    spare: int,
) -> None:
    """Put fewer than eight records of the desk back, one after the other, and the bias's if one is extra."""
    for i in range(int(count) + int(extra)):
        _put(desk, int(c) + i, apart, zn, parts, int(indices[int(j) + i] if i < count else bias))


def _put(desk: Numbers, c: int, apart: int, zn: Numbers, parts: int, q: int) -> None:
    for part in range(parts):
        zn[q * room(parts) + part] = desk[c + part * apart]
