"""Margin losses for numbers and counts."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from forel.cvx import cvxpy
from forel.losses.labels import Interval
from forel.losses.links import Exponential
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
    share,
    xlogx,
)
from forel.validation import non_negative, number, positive, refuse

__all__ = ["Absolute", "EpsilonInsensitive", "Huber", "Poisson", "Quantile", "Squared", "SquaredError"]


class _Quadratic(MarginLoss):
    """A multiple of the squared residual, c(m − y)²/2."""

    factor: ClassVar[float]
    dual_shape: ClassVar[DualShape] = DualShape.QUADRATIC

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return c(m − y)²/2."""
        return 0.5 * self.factor * residual(margin, y) ** 2

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return c(m − y)."""
        return self.factor * residual(margin, y)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy + s²/(2c)."""
        s = np.asarray(slope, dtype=np.float64)
        return np.asarray(product(s, y) + 0.5 / self.factor * s**2)

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants; the residual is at most the sum of both ranges."""
        c, largest = self.factor, reach("margin", margin) + reach("label", label)
        return Constants(c * largest, c, c, inverse_square(largest) / c)

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return c(m − y)²/2 as a cvxpy expression."""
        return 0.5 * self.factor * cvxpy().square(margin - y)


@dataclass(frozen=True)
class Squared(_Quadratic):
    r"""The squared loss, $\frac12 (m - y)^2$.

    >>> float(Squared()(3.0, 1.0)), float(Squared().slope(3.0, 1.0)), Squared().constants(margin=1, label=1)[3]
    (2.0, 2.0, 0.25)

    Survey: section 1
    """

    factor: ClassVar[float] = 1.0
    name: ClassVar[str] = "squared"
    title: ClassVar[str] = "mean squared error / 2"
    mixing: ClassVar[Mixing] = Mixing.EXP_CONCAVE


@dataclass(frozen=True)
class SquaredError(_Quadratic):
    r"""The squared error, $(m - y)^2$, which is twice :class:`Squared`.

    Relative to it, penalties and the rate's $\beta$ have half the effect.

    >>> float(SquaredError()(3.0, 1.0)), float(SquaredError().slope(3.0, 1.0))
    (4.0, 4.0)

    Survey: section 1
    """

    factor: ClassVar[float] = 2.0
    name: ClassVar[str] = "squared_error"
    title: ClassVar[str] = "mean squared error"


class _PiecewiseLinear(MarginLoss):
    """A loss of the residual d = m − y, with a slope on either side of a tolerance."""

    dual_shape: ClassVar[DualShape] = DualShape.LINEAR

    @property
    def slopes(self) -> tuple[float, float]:
        """The slopes below and above the tolerance."""
        return -1.0, 1.0

    @property
    def tolerance(self) -> float:
        """The distance from the label up to which the loss is 0."""
        return 0.0

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the loss of the side on which the margin is."""
        below, above = self.slopes
        d = residual(margin, y)
        return np.asarray(above * np.maximum(0.0, d - self.tolerance) + below * np.minimum(0.0, d + self.tolerance))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the slope of that side, and 0 within the tolerance."""
        below, above = self.slopes
        d = residual(margin, y)
        return np.where(d > self.tolerance, above, np.where(d < -self.tolerance, below, 0.0))

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy + ε|s| for slopes between both."""
        s, (below, above) = np.asarray(slope, dtype=np.float64), self.slopes
        return conjugate_within((s >= below) & (s <= above), product(s, y) + self.tolerance * np.abs(s))

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants, the same for every range."""
        return Constants(lipschitz=max(map(abs, self.slopes)))

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return the loss as a cvxpy expression."""
        (below, above), d = self.slopes, margin - y
        return cvxpy().maximum(0.0, above * (d - self.tolerance), below * (d + self.tolerance))


@dataclass(frozen=True)
class EpsilonInsensitive(_PiecewiseLinear):
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
    title: ClassVar[str] = "ε-insensitive loss"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))

    @property
    def tolerance(self) -> float:
        """Epsilon."""
        return self.epsilon


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

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return the Huber loss as a cvxpy expression; cvxpy's Huber function is twice as large."""
        return 0.5 * cvxpy().huber(margin - y, self.delta)


@dataclass(frozen=True)
class Absolute(_PiecewiseLinear):
    r"""The absolute loss, $|m - y|$; its minimizer is the median.

    >>> Absolute().slope([0.0, 1.0, 3.0], 1.0)
    array([-1.,  0.,  1.])

    Survey: section 1
    """

    name: ClassVar[str] = "absolute"
    title: ClassVar[str] = "mean absolute error"


@dataclass(frozen=True)
class Quantile(_PiecewiseLinear):
    r"""The pinball loss, $\max(q(y - m), (1 - q)(m - y))$; its minimizer is the q-quantile.

    Parameters
    ----------
    q : strictly between 0 and 1

    >>> Quantile(0.75)([0.0, 1.0, 2.0], 1.0)
    array([0.75, 0.  , 0.25])

    Survey: section 1
    """

    q: float = 0.5
    name: ClassVar[str] = "quantile"
    title: ClassVar[str] = "quantile loss"

    def __post_init__(self) -> None:
        low, high = math.ulp(0.0), math.nextafter(1.0, 0.0)
        object.__setattr__(self, "q", number("q", self.q, "a number strictly between 0 and 1", low, high))

    @property
    def slopes(self) -> tuple[float, float]:
        """−q below the label, 1 − q above it."""
        return -self.q, 1 - self.q


@dataclass(frozen=True)
class Poisson(MarginLoss):
    r"""The negative log-likelihood of a count of mean $e^m$, $e^m - ym$, without the terms that depend on y alone.

    Beyond the cap the exponential is replaced by its tangent, $e^c(1 + m - c)$: the loss stays convex and
    differentiable, and is finite for margins up to 1e80, so that a single outlier does not overflow.

    Parameters
    ----------
    cap : the margin c where the tangent begins, from 50 to 500, and at most 80 for models in float32

    >>> Poisson()([0.0, 1.0], 2), float(Poisson().slope(1e80, 2)) == math.exp(80.0)
    (array([1.        , 0.71828183]), True)

    Survey: section 1
    """

    cap: float = 80.0
    name: ClassVar[str] = "poisson"
    labels: ClassVar[Interval] = Interval(0)
    title: ClassVar[str] = "Poisson loss"
    least: ClassVar[float] = -math.inf
    dual_shape: ClassVar[DualShape] = DualShape.CONCAVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "cap", number("cap", self.cap, "a number from 50 to 500", 50.0, 500.0))

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return eᵐ − ym, with the tangent beyond the cap."""
        m = np.asarray(margin, dtype=np.float64)
        excess = np.maximum(0.0, m - self.cap)
        return np.asarray(self.link(m) * (1 + excess) - np.multiply(y, m, dtype=np.float64))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return eᵐ − y, with the tangent beyond the cap."""
        return np.asarray(np.subtract(self.link(margin), y, dtype=np.float64))

    def saturated(self, y: ArrayLike) -> Array:
        """Return the least loss of any margin for a label, y − y log y: the deviance is twice the loss above it.

        Labels above eᶜ have none, because the tangent never gets as steep.
        """
        counts = np.asarray(y, dtype=np.float64)
        return np.where(counts > math.exp(self.cap), -np.inf, counts - xlogx(counts))

    @property
    def link(self) -> Exponential:
        """The mean, eᵐ up to the cap."""
        return Exponential(self.cap)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return p log p − p for p = s + y from 0 to that of the cap."""
        inside, p = share(slope, y, math.exp(self.cap))
        return conjugate_within(inside, xlogx(p) - p)

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants; beyond the cap the loss is neither strongly convex nor exp-concave."""
        m, y = reach("margin", margin), reach("label", label)
        largest, smallest = math.exp(min(m, self.cap)), math.exp(-m)
        below = max(0.0, y - smallest)
        if m > self.cap:
            return Constants(max(largest, below), largest)
        return Constants(max(largest, below), largest, smallest, smallest / max(1.0, below) / max(1.0, below))

    def parameter(self, dtype: DTypeLike) -> float:
        """Return the cap; beyond 80, exponentials exceed the range of float32."""
        if dtype == np.float32 and self.cap > 80:
            raise refuse("cap", self.cap, "at most 80 for a model in float32")
        return self.cap

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return eᵐ − ym as a cvxpy expression, without the tangent: solvers do not reach the cap."""
        cp = cvxpy()
        return cp.exp(margin) - cp.multiply(y, margin)
