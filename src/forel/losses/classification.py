"""Margin losses for two classes, and for several."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.cvx import cvxpy
from forel.losses.labels import Choice, Classes, Interval
from forel.losses.links import Probability, Sign, SoftmaxLink
from forel.losses.margin import (
    ROUNDING,
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
from forel.validation import whole

__all__ = ["Hinge", "Logistic", "Softmax", "SquaredHinge"]


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


@dataclass(frozen=True)
class Softmax(MarginLoss):
    r"""The negative log-likelihood of the probabilities $p_k \propto e^{m_k}$, $\log \sum_k e^{m_k} - m_y$.

    The last axis of the margins has one entry per class, and labels are the classes 0, 1, …. Slopes have the shape of
    the margins. The constants are those of a function of the vector of margins, in the Euclidean norm.

    Parameters
    ----------
    classes : the number of classes, at least 2; None for the number of margins

    >>> loss = Softmax(3)
    >>> loss([0.0, 0.0, math.log(2)], 2), loss.slope([0.0, 0.0, math.log(2)], 2)
    (array(0.69314718), array([ 0.25,  0.25, -0.5 ]))

    Survey: section 1
    """

    classes: int | None = None
    name: ClassVar[str] = "softmax"
    title: ClassVar[str] = "log-loss"
    link: ClassVar[SoftmaxLink] = SoftmaxLink()
    joint: ClassVar[bool] = True
    mixing: ClassVar[Mixing] = Mixing.BAYES
    dual_shape: ClassVar[DualShape] = DualShape.ENTROPY

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", whole("classes", self.classes, low=2))

    @property
    def labels(self) -> Classes:
        """The classes."""
        return Classes(self.classes)

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return log Σ exp(m) − m_y as (max m − m_y) + log(1 + the rest), without cancellation."""
        m, hit = self._align(margin, y)
        top = np.arange(m.shape[-1]) == np.argmax(m, axis=-1, keepdims=True)
        largest = np.max(m, axis=-1, keepdims=True)
        rest = np.sum(np.exp(m - largest), axis=-1, where=~top)
        return np.asarray(np.sum(largest - m, axis=-1, where=hit) + np.log1p(rest))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return p − e_y, where p_y − 1 is minus the sum of the others, exact to rounding."""
        m, hit = self._align(margin, y)
        p = self.link(m)
        return np.where(hit, -np.sum(p, axis=-1, where=~hit, keepdims=True), p)

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return Σ p log p for p = s + e_y in the simplex, up to rounding; the last axis is that of classes."""
        s, hit = self._align(slope, y)
        inside, p = share(s, hit, 1.0)
        balanced = np.abs(np.sum(s, axis=-1)) <= ROUNDING * s.shape[-1]
        return conjugate_within(balanced & inside.all(axis=-1), np.sum(xlogx(p), axis=-1))

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        r"""Return the constants for $|m_k| \le$ ``margin``; the first two hold for every range.

        The Hessian $H = \mathrm{diag}(p) - pp^\top$ vanishes along the vector of ones, so there is no strong convexity;
        $e^{-\alpha\ell}$ is concave where $H \succeq \alpha gg^\top$, which is where $\alpha \le p_y/(1 - p_y)$.
        """
        others = math.inf if self.classes is None else self.classes - 1
        rarest = math.exp(-2 * reach("margin", margin)) / others
        return Constants(math.sqrt(2), 0.5, 0.0, rarest)

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return log Σ exp(m) − m_y as a cvxpy expression."""
        cp, axis = cvxpy(), len(margin.shape) - 1
        hit = np.arange(self.classes or margin.shape[-1]) == np.asarray(y)[..., np.newaxis]
        return cp.log_sum_exp(margin, axis=axis) - cp.sum(cp.multiply(hit, margin), axis=axis)

    def _align(self, margin: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
        array = np.asarray(margin, dtype=np.float64)
        hit = np.arange(self.classes or array.shape[-1]) == np.asarray(y)[..., np.newaxis]
        m, hit = np.broadcast_arrays(array, hit)
        return m, hit


def _shortfall(margin: ArrayLike, y: ArrayLike) -> Array:
    return np.asarray(np.maximum(0.0, 1 - product(y, margin)))
