"""Margin losses for two classes."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import cvxpy
from forel.losses.labels import Choice, Interval
from forel.losses.links import Probability, Sign
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
    share,
    xlogx,
)
from forel.losses.sigmoid import sigmoid

__all__ = ["Hinge", "Logistic", "SquaredHinge"]


@dataclass(frozen=True)
class Logistic(MarginLoss):
    r"""The negative log-likelihood of a probability $p = 1/(1 + e^{-m})$, $\log(1 + e^m) - ym$.

    Labels are 0 and 1, or numbers between: the fraction of ones among several examples.

    >>> Logistic()([0.0, -40.0], [1, 0])
    array([6.93147181e-01, 4.24835426e-18])
    >>> float(Logistic().link(0.0)), Logistic().constants().lipschitz
    (0.5, 1.0)

    Survey: section 1
    """

    name: ClassVar[str] = "logistic"
    labels: ClassVar[Interval] = Interval(0, 1)
    title: ClassVar[str] = "log-loss"
    link: ClassVar[Probability] = Probability()
    mixing: ClassVar[Mixing] = Mixing.BAYES
    dual_shape: ClassVar[DualShape] = DualShape.ENTROPY

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return y max(−m, 0) + (1 − y) max(m, 0) + log(1 + e⁻|ᵐ|), which avoids cancellation."""
        m, y = np.asarray(margin, dtype=np.float64), np.asarray(y, dtype=np.float64)
        return np.asarray(y * np.maximum(-m, 0.0) + (1 - y) * np.maximum(m, 0.0) + np.log1p(np.exp(-np.abs(m))))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return p − y as (1 − y)p − y(1 − p), exact to rounding for labels 0 and 1."""
        m, y = np.asarray(margin, dtype=np.float64), np.asarray(y, dtype=np.float64)
        return np.asarray((1 - y) * sigmoid(m) - y * sigmoid(-m))

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return p log p + (1 − p) log(1 − p) for p = s + y in [0, 1]."""
        inside, p = share(slope, y, 1.0)
        return conjugate_within(inside, xlogx(p) + xlogx(1 - p))

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants for labels 0 and 1, which are the worst case."""
        largest = reach("margin", margin)
        p = float(sigmoid(largest))
        return Constants(p, 0.25, p * float(sigmoid(-largest)), math.exp(-largest))

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return log(1 + eᵐ) − ym as a cvxpy expression."""
        cp = cvxpy()
        return cp.logistic(margin) - cp.multiply(y, margin)


@dataclass(frozen=True)
class Hinge(MarginLoss):
    r"""The loss of support vector machines, $\max(0, 1 - ym)$, for labels −1 and 1.

    >>> Hinge().slope([0.0, 1.0, 2.0], 1), Hinge().link([-0.5, 3.0])
    (array([-1.,  0.,  0.]), array([-1.,  1.]))

    Survey: sections 1 and 2.1
    """

    name: ClassVar[str] = "hinge"
    labels: ClassVar[Choice] = Choice((-1, 1))
    title: ClassVar[str] = "hinge loss"
    link: ClassVar[Sign] = Sign()
    dual_shape: ClassVar[DualShape] = DualShape.LINEAR

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return max(0, 1 − ym)."""
        return _shortfall(margin, y)

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return −y where ym < 1, and 0 elsewhere."""
        return np.where(_shortfall(margin, y) > 0, np.negative(y, dtype=np.float64), 0.0)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy for sy in [−1, 0]."""
        u = product(slope, y)
        return conjugate_within((u >= -1) & (u <= 0), u)

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants, the same for every range."""
        return Constants(lipschitz=1.0)

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return max(0, 1 − ym) as a cvxpy expression."""
        cp = cvxpy()
        return cp.pos(1 - cp.multiply(y, margin))


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    r"""Half the hinge loss squared, $\frac12 \max(0, 1 - ym)^2$, for labels −1 and 1.

    >>> SquaredHinge()([-1.0, 0.0, 2.0], 1)
    array([2. , 0.5, 0. ])

    Survey: sections 1 and 2.1
    """

    name: ClassVar[str] = "squared_hinge"
    labels: ClassVar[Choice] = Choice((-1, 1))
    title: ClassVar[str] = "squared hinge loss / 2"
    link: ClassVar[Sign] = Sign()
    dual_shape: ClassVar[DualShape] = DualShape.QUADRATIC

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return ½ max(0, 1 − ym)²."""
        return 0.5 * _shortfall(margin, y) ** 2

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return −y max(0, 1 − ym)."""
        # Subtracted from zero, so that a flat part has the slope 0.0 and not −0.0.
        return np.asarray(0.0 - np.asarray(y, dtype=np.float64) * _shortfall(margin, y))

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy + s²/2 for sy of at most 0."""
        u = product(slope, y)
        return conjugate_within(u <= 0, u + 0.5 * u**2)

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants; with a flat part the loss is not strongly convex, but still exp-concave."""
        largest = 1 + reach("margin", margin)
        return Constants(largest, 1.0, 1.0 if largest <= 2 else 0.0, inverse_square(largest))

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return ½ max(0, 1 − ym)² as a cvxpy expression."""
        cp = cvxpy()
        return 0.5 * cp.square(cp.pos(1 - cp.multiply(y, margin)))


def _shortfall(margin: ArrayLike, y: ArrayLike) -> Array:
    return np.asarray(np.maximum(0.0, 1 - product(y, margin)))
