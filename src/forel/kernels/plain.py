"""The slow twins of what only compiled code can have, under the same names."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fetch", "give", "owned", "prefetch", "release", "spread"]

SIDE = 8
Numbers = NDArray[Any]


def owned(like: Numbers, count: int) -> Numbers:
    """Return zeros of the type of an array."""
    return np.zeros(int(count), like.dtype)


def release(array: Numbers) -> None:
    """Do nothing: memory is given back when nobody has it."""


def prefetch(array: Numbers, place: int) -> None:
    """Do nothing: a hint changes no result."""


def fetch(
    desk: Numbers, c: int, apart: int, zn: Numbers, parts: int, indices: Numbers, j: int, count: int, bias: int
) -> None:
    """Put eight records on the desk, one after the other."""
    for i in range(SIDE):
        q = int(indices[int(j) + i] if i < count else bias)
        for part in range(parts):
            desk[int(c) + i + part * apart] = zn[q * parts + part]
        if i > count:
            desk[int(c) + i] = 0


def spread(desk: Numbers, c: int, values: Numbers, j: int, count: int, unit: float) -> None:
    """Put eight values on the desk, one after the other."""
    for i in range(SIDE):
        desk[int(c) + i] = values[int(j) + i] if i < count else unit if i == count else 0


def give(desk: Numbers, c: int, apart: int, zn: Numbers, parts: int, indices: Numbers, j: int) -> None:
    """Put eight records of the desk back, one after the other."""
    for i in range(SIDE):
        for part in range(parts):
            zn[int(indices[int(j) + i]) * parts + part] = desk[int(c) + i + part * apart]
