"""Margin losses whose minimizer is the median, or another quantile, of the labels."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from forel.cvx import cvxpy
from forel.losses.margin import Array, Constants, DualShape, MarginLoss, conjugate_within, product, residual
from forel.validation import number

__all__ = ["Absolute", "Quantile"]


@dataclass(frozen=True)
class Absolute(MarginLoss):
    r"""The absolute loss, $|m - y|$; its minimizer is the median.

    >>> Absolute().slope([0.0, 1.0, 3.0], 1.0)
    array([-1.,  0.,  1.])

    Survey: section 1
    """

    name: ClassVar[str] = "absolute"
    smooth: ClassVar[bool] = False
    title: ClassVar[str] = "mean absolute error"
    dual_shape: ClassVar[DualShape] = DualShape.LINEAR

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return |m − y|."""
        return np.abs(residual(margin, y))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return the sign of m − y."""
        return np.sign(residual(margin, y))

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy for |s| ≤ 1."""
        s = np.asarray(slope, dtype=np.float64)
        return conjugate_within(np.abs(s) <= 1, product(s, y))

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants, the same for every range."""
        return Constants(lipschitz=1.0)

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return |m − y| as a cvxpy expression."""
        return cvxpy().abs(margin - y)


@dataclass(frozen=True)
class Quantile(MarginLoss):
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
    smooth: ClassVar[bool] = False
    title: ClassVar[str] = "quantile loss"
    dual_shape: ClassVar[DualShape] = DualShape.LINEAR

    def __post_init__(self) -> None:
        low, high = math.ulp(0.0), math.nextafter(1.0, 0.0)
        object.__setattr__(self, "q", number("q", self.q, "a number strictly between 0 and 1", low, high))

    def __call__(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return max(q(y − m), (1 − q)(m − y))."""
        d = residual(margin, y)
        return np.asarray(np.maximum(-self.q * d, (1 - self.q) * d))

    def slope(self, margin: ArrayLike, y: ArrayLike) -> Array:
        """Return −q below the label, 1 − q above, 0 at it."""
        d = residual(margin, y)
        return np.where(d > 0, 1 - self.q, np.where(d < 0, -self.q, 0.0))

    def conjugate(self, slope: ArrayLike, y: ArrayLike) -> Array:
        """Return sy for s in [−q, 1 − q]."""
        s = np.asarray(slope, dtype=np.float64)
        return conjugate_within((s >= -self.q) & (s <= 1 - self.q), product(s, y))

    def constants(self, margin: float = math.inf, label: float = math.inf) -> Constants:
        """Return the constants, the same for every range."""
        return Constants(lipschitz=max(self.q, 1 - self.q))

    def parameter(self, dtype: DTypeLike) -> float:
        """Return the parameter of the kernel."""
        return self.q

    def expression(self, margin: Any, y: ArrayLike) -> Any:
        """Return max(q(y − m), (1 − q)(m − y)) as a cvxpy expression."""
        return cvxpy().maximum(self.q * (y - margin), (1 - self.q) * (margin - y))
