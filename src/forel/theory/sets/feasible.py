"""The protocol of feasible sets."""

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from forel.validation import Vector

TOLERANCE = 1e-7  # the accuracy of points found by a solver


class FeasibleSet(Protocol):
    r"""A closed convex set X ⊆ R^n.

    It may also have ``argmin(z, strength)``, the minimizer over X of $z \cdot x$ plus half the quadratic of a strength,
    which then takes the place of the solver. :class:`forel.theory.sets.Oracle` needs no more than that.
    """

    @property
    def separable(self) -> bool:
        """Whether it is a product of intervals, and has ``bounds``."""
        ...

    @property
    def on_simplex(self) -> bool:
        """Whether all its points are non-negative with one fixed total."""
        ...

    @property
    def rotatable(self) -> bool:
        """Whether it has ``rotated(basis)``, {Vᵀx : x in the set}, which is then of the same kind."""
        ...

    @property
    def dimension(self) -> int | None:
        """The dimension; None if it fits any."""
        ...

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether x is in the set, up to ``tolerance`` relative to the size of the constraint."""
        ...

    def __contains__(self, x: ArrayLike) -> bool: ...

    def support(self, g: Vector) -> float:
        """Return max over the set of g·x, possibly infinite: what the worst comparator gains on linear losses."""
        ...

    def largest_norm(self, n: int) -> float:
        """Return the survey's R, with ‖x‖₂ ≤ R on the set, possibly infinite."""
        ...

    def diameter(self, n: int) -> float:
        """Return a D with ‖x − y‖₂ ≤ D on the set, possibly infinite."""
        ...

    def constraints(self, x: Any) -> Sequence[Any]:
        """Return the set as cvxpy constraints on x."""
        ...
