"""Running sums of losses, f_{1:t}."""

from typing import Any, NamedTuple

import numpy as np

from forel.cvx import cvxpy
from forel.losses.functions import Linear, Loss, Quadratic
from forel.validation import Vector

__all__ = ["Total"]


class Total(NamedTuple):
    r"""A sum of losses, $f_{1:t}(x) = b + g \cdot x + \frac\sigma2\|x\|_2^2 + \sum_k w_k f_k(x)$.

    Linear and quadratic losses are accumulated in g, σ and b; other losses are kept individually, each with its weight.

    >>> total = Total.zero(2).plus(Linear([1.0, 0.0])).plus(Quadratic([0.0, 1.0]))
    >>> total(np.array([2.0, 1.0])), total.quadratic, total.strong_convexity
    (4.0, True, 1.0)

    Survey: section 1
    """

    g: Vector
    curvature: float
    constant: float
    others: tuple[tuple[float, Loss], ...]

    @classmethod
    def zero(cls, n: int) -> "Total":
        """Return the empty sum on R^n."""
        return cls(np.zeros(n), 0.0, 0.0, ())

    @property
    def quadratic(self) -> bool:
        """Whether the sum is linear or quadratic."""
        return not self.others

    @property
    def strong_convexity(self) -> float:
        """The sum of the terms' constants."""
        return self.curvature + sum(w * f.strong_convexity for w, f in self.others)

    def plus(self, loss: Loss, weight: float = 1.0) -> "Total":
        """Return the sum with one more term."""
        if isinstance(loss, Linear):
            return self._replace(g=self.g + weight * loss.g, constant=self.constant + weight * loss.constant)
        if isinstance(loss, Quadratic):
            gradient_at_0 = loss.g - loss.curvature * loss.center
            value_at_0 = loss.constant - float((loss.g - 0.5 * loss.curvature * loss.center) @ loss.center)
            return Total(
                self.g + weight * gradient_at_0,
                self.curvature + weight * loss.curvature,
                self.constant + weight * value_at_0,
                self.others,
            )
        if any(f is loss for _, f in self.others):
            return self._replace(others=tuple((w + weight if f is loss else w, f) for w, f in self.others))
        return self._replace(others=(*self.others, (weight, loss)))

    def __call__(self, x: Vector) -> float:
        """Return f_{1:t}(x)."""
        smooth = float(self.g @ x) + 0.5 * self.curvature * float(x @ x) + self.constant
        return smooth + sum(w * f(x) for w, f in self.others)

    def subgradient(self, x: Vector) -> Vector:
        """Return a subgradient of the sum."""
        g: Vector = self.g + self.curvature * x
        for w, f in self.others:
            g = g + w * f.subgradient(x)
        return g

    def expression(self, x: Any) -> Any:
        """Return f_{1:t}(x) as a cvxpy expression."""
        smooth = self.g @ x + 0.5 * self.curvature * cvxpy().sum_squares(x) + self.constant
        return smooth + sum(w * f.expression(x) for w, f in self.others)
