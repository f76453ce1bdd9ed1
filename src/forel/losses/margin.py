"""What every margin loss offers: value, slope, link, label domain, and the constants that theorems ask for.

A margin loss ℓ(m, y) compares a margin m = a·x with a label y. Its methods work on whole arrays and trust their
labels; a label is checked once, where data enters, by ``loss.labels.check``.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.validation import floats, refuse, whole

__all__ = ["Array", "Choice", "Classes", "Constants", "Interval", "Labels", "MarginLoss"]

Array = NDArray[np.float64]


class Constants(NamedTuple):
    r"""What a theorem needs to know of a loss as a function of its margin, over a range of margins and labels.

    Parameters
    ----------
    lipschitz : $\sup |\ell'|$, infinite where there is none
    smoothness : $\sup \ell''$, infinite where the slope jumps
    strong_convexity : $\inf \ell''$, 0 where there is none
    exp_concavity : the largest α with $e^{-\alpha\ell}$ concave, $\inf \ell''/\ell'^2$; 0 where there is none

    >>> Constants(lipschitz=1.0)
    Constants(lipschitz=1.0, smoothness=inf, strong_convexity=0.0, exp_concavity=0.0)

    Survey: section 3.7
    """

    lipschitz: float
    smoothness: float = math.inf
    strong_convexity: float = 0.0
    exp_concavity: float = 0.0


class Labels(Protocol):
    """A domain of labels."""

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or raise a ``ValueError`` that names the first label outside."""
        ...


class MarginLoss(Protocol):
    """A loss ℓ(m, y), convex in the margin m; all methods broadcast over arrays."""

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return ℓ(m, y)."""
        ...

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the subgradient in m that is smallest in absolute value."""
        ...

    def link(self, margin: ArrayLike) -> Array:
        """Return the prediction a margin stands for."""
        ...

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants for |m| ≤ ``margin`` and those labels of the domain with |y| ≤ ``label``."""
        ...

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return ℓ(m, y) in cvxpy's words."""
        ...

    @property
    def labels(self) -> Labels:
        """The labels that make sense."""
        ...

    @property
    def smooth(self) -> bool:
        """Whether ℓ has a derivative at every margin."""
        ...

    @property
    def title(self) -> str:
        """The name of an average of ℓ in tables."""
        ...

    @property
    def least(self) -> float:
        """A lower bound on ℓ over all margins and labels, minus infinity where there is none."""
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

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or refuse the first label outside."""
        ends = ((self.low, f"at least {self.low}"), (self.high, f"at most {self.high}"))
        limits = " and ".join(words for end, words in ends if math.isfinite(end))
        expected = f"a finite number of {limits}" if limits else "a finite number"
        array = floats(name, y, expected)
        return _inside(name, array, (self.low <= array) & (array <= self.high), expected)


@dataclass(frozen=True)
class Choice:
    """A few numbers.

    >>> Choice((-1, 1)).check("label", 0)
    Traceback (most recent call last):
    ValueError: label: got 0.0, expected -1 or 1

    Survey: section 1
    """

    values: tuple[float, ...]

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or refuse the first label outside."""
        expected = " or ".join(f"{value:g}" for value in self.values)
        array = floats(name, y, expected)
        return _inside(name, array, np.isin(array, self.values), expected)


@dataclass(frozen=True)
class Classes:
    """The whole numbers 0, 1, …, count − 1.

    >>> Classes(3).check("label", [0, 2])
    array([0., 2.])

    Survey: section 1
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole("count", self.count, low=2))

    def check(self, name: str, y: ArrayLike) -> Array:
        """Return ``y`` as float64, or refuse the first label outside."""
        expected = f"a whole number from 0 to {self.count - 1}"
        array = floats(name, y, expected)
        return _inside(name, array, (array >= 0) & (array < self.count) & (array == np.floor(array)), expected)


def identity(margin: ArrayLike) -> Array:
    """Return the margin: the link of losses that predict it as it is."""
    return np.asarray(margin, dtype=np.float64)


def residual(margin: ArrayLike, y: ArrayLike) -> Array:
    """Return m − y in float64: short and unsigned integers would wrap around."""
    return np.asarray(np.subtract(margin, y, dtype=np.float64))


def reach(name: str, value: float) -> float:
    """Return ``value`` as the end of a range |·| ≤ value, which may be infinite."""
    if not value >= 0:
        raise refuse(name, value, "a number of at least 0, or infinity")
    return float(value)


def inverse_square(value: float) -> float:
    """Return 1/value², from 1/0 = ∞ to 1/∞ = 0."""
    square = value * value
    return 1 / square if square else math.inf


def _inside(name: str, array: Array, good: NDArray[np.bool_], expected: str) -> Array:
    good = good & np.isfinite(array)
    if good.all():
        return array
    where = tuple(int(i) for i in np.argwhere(~good)[0])
    index = where[0] if len(where) == 1 else where
    raise ValueError(f"{name}: got {array[where]}{f' at index {index}' if where else ''}, expected {expected}")
