"""Surrogates for a loss in FTRL: its tangent, a quadratic lower bound, or the loss itself."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from forel.losses import Loss, Total, linear_bound, quadratic_bound
from forel.validation import Vector

__all__ = ["Exact", "Linearized", "QuadraticBound", "Surrogate"]


class Surrogate(Protocol):
    """A lower bound that replaces f_t in the sum that FTRL minimizes."""

    @property
    def keeps_curvature(self) -> bool:
        """Whether it is as strongly convex as f_t."""
        ...

    def lower_bound(self, loss: Loss, x: Vector) -> Loss:
        """Return the surrogate: equal to the loss at x and nowhere above it."""
        ...

    def add(self, total: Total, loss: Loss, x: Vector, g: Vector) -> Total:
        """Return the sum with the surrogate added, up to a constant."""
        ...


@dataclass(frozen=True)
class Linearized:
    r"""The tangent, $\bar f_t(x) = f_t(x_t) + g_t \cdot (x - x_t)$.

    >>> import numpy as np
    >>> from forel.losses import Quadratic
    >>> Linearized().lower_bound(Quadratic([0.0]), np.ones(1))(np.zeros(1))
    -0.5

    Survey: Algorithm 2 and section 2.1
    """

    keeps_curvature: ClassVar[bool] = False

    def lower_bound(self, loss: Loss, x: Vector) -> Loss:
        """Return the tangent at x."""
        return linear_bound(loss, x)

    def add(self, total: Total, loss: Loss, x: Vector, g: Vector) -> Total:
        """Add g."""
        return total._replace(g=total.g + g)


@dataclass(frozen=True)
class QuadraticBound:
    r"""The quadratic below a strongly convex loss, $f_t(x_t) + g_t \cdot (x - x_t) + \frac\sigma2\|x - x_t\|_2^2$.

    For a loss with σ = 0 it is the tangent.

    >>> import numpy as np
    >>> from forel.losses import Linear
    >>> QuadraticBound().lower_bound(Linear([1.0]), np.zeros(1))(np.ones(1))
    1.0

    Survey: section 3.7
    """

    keeps_curvature: ClassVar[bool] = True

    def lower_bound(self, loss: Loss, x: Vector) -> Loss:
        """Return the quadratic that touches at x."""
        return quadratic_bound(loss, x) if loss.strong_convexity > 0 else linear_bound(loss, x)

    def add(self, total: Total, loss: Loss, x: Vector, g: Vector) -> Total:
        """Add the quadratic."""
        return total.plus(self.lower_bound(loss, x))


@dataclass(frozen=True)
class Exact:
    r"""The loss itself, $\bar f_t = f_t$.

    >>> import numpy as np
    >>> from forel.losses import Linear
    >>> loss = Linear([1.0])
    >>> Exact().lower_bound(loss, np.zeros(1)) is loss
    True

    Survey: Algorithm 1
    """

    keeps_curvature: ClassVar[bool] = True

    def lower_bound(self, loss: Loss, x: Vector) -> Loss:
        """Return the loss."""
        return loss

    def add(self, total: Total, loss: Loss, x: Vector, g: Vector) -> Total:
        """Add the loss."""
        return total.plus(loss)
