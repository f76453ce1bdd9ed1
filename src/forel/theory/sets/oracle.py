"""A set of the user's own, given by what can be asked of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.sets.feasible import TOLERANCE
from forel.validation import Strength, Unsupported, Vector, vector

__all__ = ["Oracle"]


@dataclass(frozen=True, eq=False)
class Oracle:
    r"""The set of all x with $d(x) \le 0$, with an argmin of its own; everything else has a default.

    Parameters
    ----------
    distance : d(x), 0 or less inside, and about the distance to the set outside
    argmin : maps z and a strength to the minimizer of $z \cdot x + \frac12 x^\top \sigma x$; for one number σ that is
        the projection of $-z/\sigma$

    >>> positive_ball = Oracle(
    ...     lambda x: max(np.linalg.norm(x) - 1, -x.min()),
    ...     lambda z, strength: (p := np.maximum(-z, 0) / strength) / max(1.0, np.linalg.norm(p)),
    ... )
    >>> from forel.losses import Linear
    >>> from forel.theory import FTRL, Constant, Euclidean, bound, play
    >>> trace = play(FTRL(Constant(1.0), Euclidean(), feasible=positive_ball), [Linear([-3.0, 1.0])] * 2)
    >>> trace.points[-1], round(bound(trace, [1.0, 0.0]).total, 9)
    (array([1., 0.]), 10.5)

    Survey: section 2.4
    """

    distance: Callable[[Vector], float]
    argmin: Callable[[Vector, Strength], Vector]

    separable: ClassVar[bool] = False
    on_simplex: ClassVar[bool] = False
    rotatable: ClassVar[bool] = False
    dimension: ClassVar[None] = None

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether d(x) ≤ 0, up to the tolerance relative to x."""
        x = vector("x", x)
        return bool(self.distance(x) <= tolerance * float(np.abs(x).max()))

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return ∞: what is not known is not assumed."""
        return math.inf

    def largest_norm(self, n: int) -> float:
        """Return ∞, as above."""
        return math.inf

    def diameter(self, n: int) -> float:
        """Return ∞, as above."""
        return math.inf

    def constraints(self, x: Any) -> list[Any]:
        """Raise Unsupported: there is no program for the solver."""
        raise Unsupported("feasible: an Oracle is no constraint for a solver; use a quadratic geometry and no penalty")
