"""The probability simplex."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import cvxpy
from forel.theory.sets.feasible import TOLERANCE
from forel.validation import Vector, positive, vector


@dataclass(frozen=True)
class Simplex:
    r"""The simplex $\Delta = \{x : x_i \ge 0, \sum_i x_i = s\}$: distributions over n choices when s is 1.

    >>> [0.25, 0.75] in Simplex(), Simplex().support(np.array([1.0, 3.0])), Simplex().diameter(3)
    (True, 3.0, 1.414...)

    Survey: section 3.6
    """

    total: float = 1.0

    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = True
    rotatable: ClassVar[bool] = False
    dimension: ClassVar[None] = None

    def __post_init__(self) -> None:
        positive("total", self.total)

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether x is non-negative with the right total."""
        x = vector("x", np.atleast_1d(np.asarray(x, dtype=np.float64)))
        slack = tolerance * self.total
        return bool(x.min() >= -slack and abs(math.fsum(x) - self.total) <= slack)

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return s·max g_i."""
        return self.total * float(np.max(vector("g", g)))

    def largest_norm(self, n: int) -> float:
        """Return s, the norm of a corner."""
        return self.total

    def diameter(self, n: int) -> float:
        """Return √2·s, the distance between two corners."""
        return math.sqrt(2) * self.total if n > 1 else 0.0

    def constraints(self, x: Any) -> list[Any]:
        """Return x ≥ 0 and Σx = s."""
        return [x >= 0, cvxpy().sum(x) == self.total]
