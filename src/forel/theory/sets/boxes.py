"""All of R^n, and products of intervals."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.sets.feasible import TOLERANCE
from forel.validation import Infeasible, Matrix, Vector, constants, positive, same_length, vector


@dataclass(frozen=True)
class Reals:
    """All of R^n: no constraint.

    >>> [1e300, -1e300] in Reals()
    True

    Survey: section 2.4
    """

    separable: ClassVar[bool] = True
    on_simplex: ClassVar[bool] = False
    rotatable: ClassVar[bool] = True
    dimension: ClassVar[None] = None
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether x is a finite vector."""
        return bool(np.isfinite(np.asarray(x, dtype=np.float64)).all())

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return 0 for g = 0 and ∞ otherwise."""
        return math.inf if vector("g", g).any() else 0.0

    def largest_norm(self, n: int) -> float:
        """Return ∞."""
        return math.inf

    def diameter(self, n: int) -> float:
        """Return ∞."""
        return math.inf

    def constraints(self, x: Any) -> list[Any]:
        """Return no constraint."""
        return []

    def rotated(self, basis: Matrix) -> "Reals":
        """Return the same set."""
        return self


@dataclass(frozen=True, eq=False)
class Box:
    r"""A box, $\{x : l_i \le x_i \le u_i\}$.

    Parameters
    ----------
    lower, upper : one number for all coordinates or one per coordinate; may be infinite

    >>> box = Box(-1, [1, 2])
    >>> [0.5, 1.5] in box, box.support(np.array([1.0, -3.0])), Box(-1, 1).largest_norm(4)
    (True, 4.0, 2.0)

    Survey: section 3.4
    """

    lower: float | Vector
    upper: float | Vector

    separable: ClassVar[bool] = True
    on_simplex: ClassVar[bool] = False
    rotatable: ClassVar[bool] = False

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        low = constants("lower", lower, "numbers or -inf", infinite=True)
        high = constants("upper", upper, "numbers or inf", infinite=True)
        if isinstance(low, np.ndarray) and isinstance(high, np.ndarray):
            same_length(lower=low, upper=high)
        empty = np.atleast_1d(np.greater(low, high) | np.equal(low, math.inf) | np.equal(high, -math.inf))
        if empty.any():
            i = int(np.argmax(empty))
            pair = tuple(float(np.broadcast_to(side, empty.shape)[i]) for side in (low, high))
            raise Infeasible(f"lower, upper: got {pair} at index {i}, expected lower ≤ upper with a number between")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    def __repr__(self) -> str:
        return f"Box({self.lower!r}, {self.upper!r})"

    @property
    def bounds(self) -> tuple[float | Vector, float | Vector]:
        """The lower and upper bounds."""
        return self.lower, self.upper

    @property
    def dimension(self) -> int | None:
        """The length of the bounds, None when both are numbers."""
        return next((side.size for side in self.bounds if isinstance(side, np.ndarray)), None)

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether every coordinate is within its bounds."""
        x = vector("x", np.atleast_1d(np.asarray(x, dtype=np.float64)), self.dimension)
        width = np.subtract(self.upper, self.lower)
        ends = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in self.bounds]
        size = np.where(np.isfinite(width) & (width > 0), width, np.maximum(*ends))
        slack = tolerance * np.where(size > 0, size, np.abs(x).max())  # a side at 0 alone has no size
        return bool(((x >= self.lower - slack) & (x <= self.upper + slack)).all())

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return Σ max(g_i l_i, g_i u_i), with 0·∞ = 0."""
        g = vector("g", g, self.dimension)
        ends = np.where(g > 0, self.upper, self.lower)
        return float(np.sum(np.multiply(g, ends, out=np.zeros_like(g), where=g != 0)))

    def largest_norm(self, n: int) -> float:
        """Return the norm of the farthest corner."""
        corner = np.broadcast_to(np.maximum(np.abs(self.lower), np.abs(self.upper)), n)
        return float(np.linalg.norm(corner))

    def diameter(self, n: int) -> float:
        """Return the length of the diagonal."""
        return float(np.linalg.norm(np.broadcast_to(np.subtract(self.upper, self.lower), n)))

    def constraints(self, x: Any) -> list[Any]:
        """Return the finite bounds as cvxpy constraints."""
        limits = []
        for sign, side in ((1, self.lower), (-1, self.upper)):
            full = np.broadcast_to(side, x.shape)
            (kept,) = np.nonzero(np.isfinite(full))
            if kept.size:
                limits.append(sign * x[kept] >= sign * full[kept])
        return limits


def linf_ball(radius: float, center: ArrayLike = 0.0) -> Box:
    r"""Return the L∞ ball $\{x : \|x - c\|_\infty \le R\}$, which is a box.

    >>> linf_ball(2.0, center=[1.0, 0.0])
    Box(array([-1., -2.]), array([3., 2.]))

    Survey: section 3.4
    """
    radius = positive("radius", radius)
    middle = constants("center", center)
    return Box(middle - radius, middle + radius)
