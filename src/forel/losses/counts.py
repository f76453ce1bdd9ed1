"""A margin loss for counts."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from forel.cvx import cvxpy
from forel.losses.labels import Interval
from forel.losses.links import Exponential
from forel.losses.margin import Array, Constants, DualShape, MarginLoss, conjugate_within, reach, share, xlogx
from forel.validation import number, refuse

__all__ = ["Poisson"]


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
        """Return the least loss of any margin for a label, y − y log y: the deviance is twice the loss above it."""
        counts = np.asarray(y, dtype=np.float64)
        return np.asarray(counts - xlogx(counts))

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
