"""The intrinsics in plain Python: the reference of their tests and the fallback of compiled kernels.

Uncompiled, a Python integer is a much faster index than a number of numpy: offsets are converted once a call. Compiled,
``int(np.int64(at))`` is an int64, to which signed loop variables are added.
"""

import ctypes
import math
from typing import Any

import numpy as np

__all__ = [
    "add_gradients",
    "allocate",
    "binade",
    "carray",
    "gather_records",
    "inverse_power",
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


def inverse_power(x):
    """Return 1/x for a power of two whose inverse is a normal number."""
    return (x - x + 1) / x


def add_gradients(scales, at, scale, change, row, slopes, noise, v):
    """Set ``scales[at]`` to a scale, multiply the three numbers after it by ``change``, and add gradients to them.

    Gradients are v times the numbers of ``row`` from ``slopes`` on; each sum is rounded with the noise from ``noise``
    on, in units in the last place.
    """
    first, slope, unit_noise = int(np.int64(at)), int(np.int64(slopes)), int(np.int64(noise))
    for j in range(1, 4):
        before, g = scales[first + j] * change, row[slope + j] * v
        unit = before * 0 + (math.ldexp(1.0, math.frexp(abs(before))[1] - 1) if before != 0 else 0.0)
        scales[first + j] = before + (g + unit * row[unit_noise + j])
    scales[first] = scale


def load_lanes(source, at, target, place, count):
    """Copy ``count`` numbers from ``source[at:]`` to ``target[place:]``, with zeros up to a multiple of eight.

    >>> out = np.ones(10)
    >>> load_lanes(np.arange(5.0), 2, out, 1, 3)
    >>> out
    array([1., 2., 3., 4., 0., 0., 0., 0., 0., 1.])
    """
    first, to = int(np.int64(at)), int(np.int64(place))
    for k in range(count):
        target[to + k] = source[first + k]
    for k in range(count, -(-count // 8) * 8):
        target[to + k] = 0


def store_lanes(source, at, target, place, count):
    """Copy ``count`` numbers from ``source[at:]``, which has a multiple of eight, to ``target[place:]``."""
    first, to = int(np.int64(at)), int(np.int64(place))
    for k in range(count):
        target[to + k] = source[first + k]


def gather_records(scratch, at, stride, state, parts, indices, j, count, bias):
    """Gather ``count`` records into scratch, one row of length ``stride`` per part, then the record of the bias.

    Positions after the bias get z = 0; their other parts are unspecified.
    """
    width = 4 if parts == 3 else parts
    first, begin, features, last = int(np.int64(at)), int(np.int64(j)), int(np.int64(count)), int(np.int64(bias))
    for i in range(min(features + 1, 8)):
        q = int(np.int64(indices[begin + i])) if i < features else last
        for part in range(parts):
            scratch[first + i + part * stride] = state[q * width + part]
    for i in range(features + 1, 8):
        scratch[first + i] = 0


def scatter_records(scratch, at, stride, state, parts, indices, j, count, bias, extra, unused):
    """Scatter ``count`` records from scratch to the state, and the record of the bias if ``extra`` is 1."""
    width = 4 if parts == 3 else parts
    first, begin, features, last = int(np.int64(at)), int(np.int64(j)), int(np.int64(count)), int(np.int64(bias))
    for i in range(features + int(np.int64(extra))):
        q = int(np.int64(indices[begin + i])) if i < features else last
        for part in range(parts):
            state[q * width + part] = scratch[first + i + part * stride]


def load_values(scratch, at, values, j, count, bias_value):
    """Copy ``count`` values to scratch, then ``bias_value``, then zeros, eight in all."""
    first, begin, features = int(np.int64(at)), int(np.int64(j)), int(np.int64(count))
    for i in range(8):
        if i < features:
            scratch[first + i] = values[begin + i]
        else:
            scratch[first + i] = bias_value if i == features else bias_value - bias_value
