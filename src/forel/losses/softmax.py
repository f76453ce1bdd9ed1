"""A margin loss for several classes."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.cvx import cvxpy
from forel.losses.labels import Classes
from forel.losses.links import SoftmaxLink
from forel.losses.margin import (
    ROUNDING,
    Array,
    Constants,
    DualShape,
    MarginLoss,
    Mixing,
    conjugate_within,
    reach,
    share,
    xlogx,
)
from forel.validation import whole

__all__ = ["Softmax"]


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
