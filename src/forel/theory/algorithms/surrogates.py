"""Surrogates for a loss in FTRL: its tangent, a quadratic lower bound, or the loss itself."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from forel.losses import Loss, Quadratic, Total, linear_bound, quadratic_bound
from forel.theory.geometries import Geometry
from forel.validation import Shape, Strength, Vector, positive

__all__ = ["Exact", "ExpConcave", "Linearized", "QuadraticBound", "Surrogate"]


class Surrogate(Protocol):
    """A lower bound that replaces f_t in the sum that FTRL minimizes."""

    @property
    def keeps_curvature(self) -> bool:
        """Whether it is as strongly convex as f_t."""
        ...

    @property
    def shape(self) -> Shape:
        """The shape of its curvature."""
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
    shape: ClassVar[Shape] = "scalar"

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
    shape: ClassVar[Shape] = "scalar"

    def lower_bound(self, loss: Loss, x: Vector) -> Loss:
        """Return the quadratic that touches at x."""
        return quadratic_bound(loss, x) if loss.strong_convexity > 0 else linear_bound(loss, x)

    def add(self, total: Total, loss: Loss, x: Vector, g: Vector) -> Total:
        """Add the quadratic."""
        return total.plus(self.lower_bound(loss, x))


@dataclass(frozen=True)
class ExpConcave:
    r"""The quadratic below an exp-concave loss, $f_t(x_t) + g_t \cdot d + \frac\gamma2 (g_t \cdot d)^2$ at $x_t + d$.

    Below an α-exp-concave loss where $\gamma \le \frac12\min(\alpha, 1/(GD))$ and $|g_t \cdot (x - y)| \le GD$ on X.

    Parameters
    ----------
    gamma : γ, positive

    >>> from forel.losses import Linear
    >>> ExpConcave(2.0).lower_bound(Linear([1.0, 0.0]), np.zeros(2))(np.array([3.0, 5.0]))
    12.0

    After Hazan, Agarwal and Kale, "Logarithmic regret algorithms for online convex optimization" (2007), Lemma 3, which
    has 1/(4GD). It is enough that $-\log(1 - z) \ge z + z^2/4$ for $z = 2\gamma g_t \cdot d$, which holds for
    $z \ge -1$.
    """

    gamma: float

    keeps_curvature: ClassVar[bool] = True
    shape: ClassVar[Shape] = "matrix"

    def __post_init__(self) -> None:
        positive("gamma", self.gamma)

    def lower_bound(self, loss: Loss, x: Vector) -> Loss:
        """Return the quadratic with the curvature γggᵀ."""
        g = loss.subgradient(x)
        return Quadratic(x, self.gamma * np.outer(g, g), g, loss(x))

    def add(self, total: Total, loss: Loss, x: Vector, g: Vector) -> Total:
        """Add the quadratic."""
        return total.plus(self.lower_bound(loss, x))


def split_curvature(loss: Loss, x: Vector, geometry: Geometry, strength: Strength) -> tuple[Loss, Strength]:
    """Return the lower bound with as much of a round's strength as the loss has curvature, and the strength left over.

    What Mirror Descent adds for strongly convex losses is theirs, and no regularizer.
    """
    if loss.strong_convexity == 0 or not geometry.quadratic or geometry.shape == "matrix" or not np.any(strength):
        return linear_bound(loss, x), strength
    shared = np.minimum(strength, loss.strong_convexity)
    return Quadratic(x, shared, loss.subgradient(x), loss(x)), strength - shared


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
    shape: ClassVar[Shape] = "scalar"

    def lower_bound(self, loss: Loss, x: Vector) -> Loss:
        """Return the loss."""
        return loss

    def add(self, total: Total, loss: Loss, x: Vector, g: Vector) -> Total:
        """Add the loss."""
        return total.plus(loss)
