"""Domains of labels: intervals, finite sets of numbers, classes."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.validation import floats, refuse, whole

__all__ = ["Choice", "Classes", "Interval", "Labels", "uses_signs"]

Array = NDArray[np.float64]


class Labels(Protocol):
    """A domain of labels."""

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or raise a ``ValueError`` that names the first label outside."""
        ...


@dataclass(frozen=True)
class Interval:
    """The finite numbers in [low, high]; either end may be infinite.

    >>> Interval(0, 1).check("label", [0.5, 2])
    Traceback (most recent call last):
    ValueError: label: got 2.0 at index 1, expected a finite number of at least 0 and at most 1

    Survey: section 1
    """

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise refuse("low", self.low, f"a number of at most high = {self.high}")

    @property
    def expected(self) -> str:
        """The domain in an error message.

        >>> Interval(0).expected
        'a number of at least 0'
        """
        ends = ((self.low, f"at least {self.low}"), (self.high, f"at most {self.high}"))
        limits = " and ".join(limit for end, limit in ends if math.isfinite(end))
        return f"a number of {limits}" if limits else "a number"

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or raise a ``ValueError`` for the first label outside."""
        expected = self.expected.replace("a number", "a finite number", 1)
        array = floats(name, y, expected)
        return _inside(name, array, (self.low <= array) & (array <= self.high), expected)


@dataclass(frozen=True)
class Choice:
    """A finite set of numbers.

    >>> Choice((-1, 1)).check("label", 0)
    Traceback (most recent call last):
    ValueError: label: got 0.0, expected -1 or 1

    Survey: section 1
    """

    values: tuple[float, ...]

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or raise a ``ValueError`` for the first label outside."""
        expected = " or ".join(f"{value:g}" for value in self.values)
        array = floats(name, y, expected)
        return _inside(name, array, np.isin(array, self.values), expected)


@dataclass(frozen=True)
class Classes:
    """The integers 0, 1, …, count − 1.

    Parameters
    ----------
    count : the number of classes; None if it is not known, for all integers from 0 on

    >>> Classes(3).check("label", [0, 2])
    array([0., 2.])

    Survey: section 1
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            object.__setattr__(self, "count", whole("count", self.count, low=2))

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or raise a ``ValueError`` for the first label outside."""
        end = math.inf if self.count is None else self.count
        expected = (
            "a whole number of at least 0" if self.count is None else f"a whole number from 0 to {self.count - 1}"
        )
        array = floats(name, y, expected)
        return _inside(name, array, (array >= 0) & (array < end) & (array == np.floor(array)), expected)


def uses_signs(labels: Labels) -> bool:
    """Return whether two classes are coded −1 and 1 in a domain, rather than 0 and 1.

    >>> uses_signs(Choice((-1, 1))), uses_signs(Interval(0, 1))
    (True, False)
    """
    return isinstance(labels, Choice) and sorted(labels.values) == [-1, 1]


def _inside(name: str, array: Array, good: NDArray[np.bool_], expected: str) -> Array:
    good = good & np.isfinite(array)
    if good.all():
        return array
    where = tuple(int(i) for i in np.argwhere(~good)[0])
    index = where[0] if len(where) == 1 else where
    raise ValueError(f"{name}: got {array[where]}{f' at index {index}' if where else ''}, expected {expected}")
