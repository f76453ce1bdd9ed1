"""The intrinsics in plain Python: the reference of their tests and the fallback of compiled kernels."""

import ctypes
import math
from typing import Any

import numpy as np

__all__ = [
    "add_gradients",
    "add_product",
    "allocate",
    "binade",
    "carray",
    "exchange_halves",
    "gather_records",
    "load_lanes",
    "load_values",
    "pointer",
    "prefetch",
    "release",
    "scatter_records",
    "store_lanes",
]


def compiled(name: str) -> Any:
    """Return the function of this name, compiled by numba."""
    from numba import njit

    return njit(error_model="numpy", nogil=True, inline="always")(globals()[name])


def pointer(address):
    """Return the address unchanged."""
    return address


def carray(address, shape, dtype):
    """Return the array at an address, which the caller keeps alive.

    >>> numbers = np.arange(3.0)
    >>> carray(numbers.ctypes.data, (2,), np.float64)
    array([0., 1.])
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype).reshape(shape)


def allocate(like, count):
    """Return zeros of the type of an array."""
    return np.zeros(int(count), like.dtype)


def release(array):
    """Do nothing: the memory is garbage-collected."""


def prefetch(array, place):
    """Do nothing: a hint changes no result."""


def binade(x):
    """Return the power of two at or below |x|; 0 for 0."""
    return x * 0 + (math.ldexp(1.0, math.frexp(abs(x))[1] - 1) if x != 0 else 0.0)


def add_gradients(scales, at, scale, change, row, slopes, noise, v):
    """Set ``scales[at]`` to a scale, multiply the three numbers after it by ``change``, and add gradients to them.

    Gradients are v times the numbers of ``row`` from ``slopes`` on; each sum is rounded with the noise from ``noise``
    on, in units in the last place.
    """
    for j in range(1, 4):
        before, g = scales[np.int64(at) + j] * change, row[np.int64(slopes) + j] * v
        unit = before * 0 + (math.ldexp(1.0, math.frexp(abs(before))[1] - 1) if before != 0 else 0.0)
        scales[np.int64(at) + j] = before + (g + unit * row[np.int64(noise) + j])
    scales[np.int64(at)] = scale


def add_product(array, at, source, factor, size):
    """Add ``factor`` times the vector at ``source`` to the vector at ``at``, both of length ``size``.

    >>> out = np.array([1.0, 1.0, 3.0, 4.0])
    >>> add_product(out, 0, 2, 10.0, 2)
    >>> out
    array([31., 41.,  3.,  4.])
    """
    for k in range(size):
        array[np.int64(at) + k] += array[np.int64(source) + k] * factor


def exchange_halves(source, first, second, target, third, fourth, size):
    """Write the first halves of two vectors to ``target[third:]``, the second halves to ``target[fourth:]``.

    The vectors are ``source[first : first + size]`` and ``source[second : second + size]``.

    >>> out = np.zeros(8)
    >>> exchange_halves(np.arange(10.0), 0, 6, out, 0, 4, 4)
    >>> out
    array([0., 1., 6., 7., 2., 3., 8., 9.])
    """
    half = size // 2
    for k in range(half):
        target[np.int64(third) + k] = source[np.int64(first) + k]
        target[np.int64(third) + half + k] = source[np.int64(second) + k]
        target[np.int64(fourth) + k] = source[np.int64(first) + half + k]
        target[np.int64(fourth) + half + k] = source[np.int64(second) + half + k]


def load_lanes(source, at, target, place, count):
    """Copy ``count`` numbers from ``source[at:]`` to ``target[place:]``, with zeros up to a multiple of eight.

    >>> out = np.ones(10)
    >>> load_lanes(np.arange(5.0), 2, out, 1, 3)
    >>> out
    array([1., 2., 3., 4., 0., 0., 0., 0., 0., 1.])
    """
    for k in range(-(-count // 8) * 8):
        target[np.int64(place) + k] = source[np.int64(at) + k] if k < count else 0


def store_lanes(source, at, target, place, count):
    """Copy ``count`` numbers from ``source[at:]``, which has a multiple of eight, to ``target[place:]``."""
    for k in range(count):
        target[np.int64(place) + k] = source[np.int64(at) + k]


def gather_records(scratch, at, stride, state, parts, indices, j, count, bias):
    """Gather ``count`` records into scratch, one row of length ``stride`` per part, then the record of the bias.

    Positions after the bias get z = 0; their other parts are unspecified.
    """
    width = 4 if parts == 3 else parts
    last = np.int64(count) + 1
    for i in range(last if last < 8 else 8):
        q = np.int64(indices[np.int64(j) + i]) if i < count else np.int64(bias)
        for part in range(parts):
            scratch[np.int64(at) + i + part * stride] = state[q * width + part]
    for i in range(np.int64(count) + 1, 8):
        scratch[np.int64(at) + i] = 0


def scatter_records(scratch, at, stride, state, parts, indices, j, count, bias, extra, unused):
    """Scatter ``count`` records from scratch to the state, and the record of the bias if ``extra`` is 1."""
    width = 4 if parts == 3 else parts
    for i in range(np.int64(count) + np.int64(extra)):
        q = np.int64(indices[np.int64(j) + i]) if i < count else np.int64(bias)
        for part in range(parts):
            state[q * width + part] = scratch[np.int64(at) + i + part * stride]


def load_values(scratch, at, values, j, count, bias_value):
    """Copy ``count`` values to scratch, then ``bias_value``, then zeros, eight in all."""
    for i in range(8):
        if i < count:
            scratch[np.int64(at) + i] = values[np.int64(j) + i]
        else:
            scratch[np.int64(at) + i] = bias_value if i == count else bias_value - bias_value
