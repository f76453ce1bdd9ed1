"""Balls of the L2 and L1 norm, around any center."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import cvxpy
from forel.theory.norms import L1, L2, PNorm
from forel.theory.sets.feasible import TOLERANCE
from forel.validation import Matrix, Unsupported, Vector, constants, positive, refuse, vector


@dataclass(frozen=True, eq=False)
class Ball:
    r"""A ball, $\{x : \|x - c\| \le R\}$ in the L1 or L2 norm; see :func:`l1_ball`, :func:`l2_ball`.

    >>> ball = l2_ball(2.0, center=[1.0, 0.0])
    >>> [3.0, 0.0] in ball, ball.support(np.array([0.0, 3.0])), ball.largest_norm(2), ball.diameter(2)
    (True, 6.0, 3.0, 4.0)

    Survey: section 2.4
    """

    norm: PNorm
    radius: float
    center: float | Vector

    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = False

    def __init__(self, norm: PNorm, radius: float, center: ArrayLike = 0.0) -> None:
        if norm not in (L1, L2):
            raise refuse("norm", norm, "L1 or L2; the L∞ ball is linf_ball(radius, center)")
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "radius", positive("radius", radius))
        object.__setattr__(self, "center", constants("center", center))

    def __repr__(self) -> str:
        center = f", center={self.center!r}" if np.any(self.center) else ""
        return f"l{self.norm.p}_ball({self.radius!r}{center})"

    @property
    def rotatable(self) -> bool:
        """Whether it is a ball of the Euclidean norm."""
        return self.norm == L2

    @property
    def dimension(self) -> int | None:
        """The length of the center, None when it is one number."""
        return self.center.size if isinstance(self.center, np.ndarray) else None

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether ‖x − c‖ ≤ R."""
        x = vector("x", np.atleast_1d(np.asarray(x, dtype=np.float64)), self.dimension)
        rounding = 4 * float(np.finfo(np.float64).eps) * self.norm(np.broadcast_to(self.center, x.size))
        return self.norm(x - self.center) <= self.radius * (1 + tolerance) + rounding

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return g·c + R‖g‖⋆."""
        g = vector("g", g, self.dimension)
        return float(np.sum(g * self.center)) + self.radius * self.norm.dual(g)

    def largest_norm(self, n: int) -> float:
        """Return ‖c‖₂ + R for the L2 ball, the norm of the farthest corner for the L1 ball."""
        center = np.broadcast_to(self.center, n)
        if self.norm == L2:
            return L2(center) + self.radius
        farthest = np.sort(np.abs(center))
        return math.hypot(L2(farthest[:-1]), farthest[-1] + self.radius)

    def diameter(self, n: int) -> float:
        """Return 2R."""
        return 2 * self.radius

    def constraints(self, x: Any) -> list[Any]:
        """Return ‖x − c‖ ≤ R."""
        return [cvxpy().norm(x - self.center, self.norm.p) <= self.radius]

    def rotated(self, basis: Matrix) -> "Ball":
        """Return the round ball around Vᵀc."""
        if not self.rotatable:
            raise Unsupported(f"rotated: {self} is not rotatable; check ``rotatable`` first")
        return Ball(self.norm, self.radius, basis.T @ np.broadcast_to(self.center, basis.shape[0]))


def l1_ball(radius: float, center: ArrayLike = 0.0) -> Ball:
    r"""Return the L1 ball, $\{x : \|x - c\|_1 \le R\}$.

    >>> [0.5, -0.5] in l1_ball(1.0), l1_ball(2.0).support(np.array([1.0, -3.0]))
    (True, 6.0)

    Survey: section 2.4
    """
    return Ball(L1, radius, center)


def l2_ball(radius: float, center: ArrayLike = 0.0) -> Ball:
    r"""Return the Euclidean ball, $\{x : \|x - c\|_2 \le R\}$.

    >>> [0.6, 0.8] in l2_ball(1.0)
    True

    Survey: section 2.4
    """
    return Ball(L2, radius, center)
