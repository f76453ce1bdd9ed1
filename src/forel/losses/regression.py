"""Margin losses for real labels that are functions of the residual m − y; the link is the identity."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from forel.cvx import cvxpy
from forel.losses.margin import (
    Array,
    Constants,
    DualShape,
    MarginLoss,
    Mixing,
    conjugate_within,
    inverse_square,
    product,
    reach,
    residual,
)
from forel.validation import non_negative, positive

__all__ = ["EpsilonInsensitive", "Huber", "Squared", "SquaredError"]


@dataclass(frozen=True)
class Squared(MarginLoss):
    r"""The squared loss, $\frac12 (m - y)^2$.

    >>> float(Squared()(3.0, 1.0)), float(Squared().slope(3.0, 1.0)), Squared().constants(margin=1, label=1)[3]
    (2.0, 2.0, 0.25)

    Survey: section 1
    """

    name: ClassVar[str] = "squared"
    title: ClassVar[str] = "mean squared error / 2"
    mixing: ClassVar[Mixing] = Mixing.EXP_CONCAVE
    dual_shape: ClassVar[DualShape] = DualShape.QUADRATIC

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return ½(m − y)²."""
        return 0.5 * residual(margin, y) ** 2

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return m − y."""
        return residual(margin, y)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy + s²/2."""
        s = np.asarray(slope, dtype=np.float64)
        return np.asarray(product(s, y) + 0.5 * s**2)

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants; the residual is at most the sum of both ranges."""
        largest = reach("margin", margin) + reach("label", label)
        return Constants(largest, 1.0, 1.0, inverse_square(largest))

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return ½(m − y)² as a cvxpy expression."""
        return 0.5 * cvxpy().square(margin - y)


@dataclass(frozen=True)
class SquaredError(MarginLoss):
    r"""The squared error, $(m - y)^2$, which is twice :class:`Squared`.

    Relative to it, penalties and the rate's $\beta$ have half the effect.

    >>> float(SquaredError()(3.0, 1.0)), float(SquaredError().slope(3.0, 1.0))
    (4.0, 4.0)

    Survey: section 1
    """

    name: ClassVar[str] = "squared_error"
    title: ClassVar[str] = "mean squared error"
    dual_shape: ClassVar[DualShape] = DualShape.QUADRATIC

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return (m − y)²."""
        return residual(margin, y) ** 2

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return 2(m − y)."""
        return 2 * residual(margin, y)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy + s²/4."""
        s = np.asarray(slope, dtype=np.float64)
        return np.asarray(product(s, y) + 0.25 * s**2)

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants; the residual is at most the sum of both ranges."""
        largest = reach("margin", margin) + reach("label", label)
        return Constants(2 * largest, 2.0, 2.0, inverse_square(largest) / 2)

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return (m − y)² as a cvxpy expression."""
        return cvxpy().square(margin - y)


@dataclass(frozen=True)
class EpsilonInsensitive(MarginLoss):
    r"""The absolute loss beyond a tolerance, $\max(0, |m - y| - \epsilon)$.

    Parameters
    ----------
    epsilon : the tolerance, at least 0

    >>> EpsilonInsensitive(0.5)([0.75, 1.5, 3.0], 1.0)
    array([0. , 0. , 1.5])

    Survey: section 1
    """

    epsilon: float = 0.1
    name: ClassVar[str] = "epsilon_insensitive"
    smooth: ClassVar[bool] = False
    title: ClassVar[str] = "ε-insensitive loss"
    dual_shape: ClassVar[DualShape] = DualShape.LINEAR

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return max(0, |m − y| − ε)."""
        return np.asarray(np.maximum(0.0, np.abs(residual(margin, y)) - self.epsilon))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the sign of m − y outside the tolerance and 0 inside."""
        d = residual(margin, y)
        return np.where(np.abs(d) > self.epsilon, np.sign(d), 0.0)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy + ε|s| for |s| ≤ 1."""
        s = np.asarray(slope, dtype=np.float64)
        return conjugate_within(np.abs(s) <= 1, product(s, y) + self.epsilon * np.abs(s))

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants, the same for every range."""
        return Constants(lipschitz=1.0)

    def parameter(self, dtype: DTypeLike) -> float:
        """Return the parameter of the kernel."""
        return self.epsilon

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return max(0, |m − y| − ε) as a cvxpy expression."""
        return cvxpy().pos(cvxpy().abs(margin - y) - self.epsilon)


@dataclass(frozen=True)
class Huber(MarginLoss):
    r"""The squared loss with linear tails: $\frac12 d^2$ if $d = |m - y| \le \delta$, else $\delta(d - \frac12\delta)$.

    Parameters
    ----------
    delta : where the tails begin, and their slope

    >>> Huber(1.0)([1.5, 4.0], 1.0)
    array([0.125, 2.5  ])

    Survey: section 1
    """

    delta: float = 1.0
    name: ClassVar[str] = "huber"
    title: ClassVar[str] = "Huber loss"
    dual_shape: ClassVar[DualShape] = DualShape.CONCAVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", positive("delta", self.delta))

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return both pieces at once: c(d − ½c) with c = min(d, δ)."""
        distance = np.abs(residual(margin, y))
        inner = np.minimum(distance, self.delta)
        return np.asarray(inner * (distance - 0.5 * inner))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return m − y clipped to [−δ, δ]."""
        return np.clip(residual(margin, y), -self.delta, self.delta)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy + s²/2 for |s| ≤ δ."""
        s = np.asarray(slope, dtype=np.float64)
        return conjugate_within(np.abs(s) <= self.delta, product(s, y) + 0.5 * s**2)

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants: those of the squared loss if the range does not reach the tails."""
        largest = reach("margin", margin) + reach("label", label)
        if largest > self.delta:
            return Constants(self.delta, 1.0)
        return Constants(largest, 1.0, 1.0, inverse_square(largest))

    def parameter(self, dtype: DTypeLike) -> float:
        """Return the parameter of the kernel."""
        return self.delta

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return the Huber loss as a cvxpy expression; cvxpy's Huber function is twice as large."""
        return 0.5 * cvxpy().huber(margin - y, self.delta)
