"""Intersections of sets."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import minimize
from forel.theory.sets.boxes import Box, Reals
from forel.theory.sets.feasible import TOLERANCE, FeasibleSet
from forel.validation import Unbounded, Vector, vector


@dataclass(frozen=True, eq=False)
class Intersection:
    r"""The points that are in every one of several sets, $X_1 \cap \dots \cap X_k$.

    An empty one raises Infeasible when the first problem over it is solved. Build it with :func:`intersect`, which
    simplifies where possible.

    >>> from forel.theory.sets import l2_ball
    >>> both = Intersection((Box(0, 1), l2_ball(1.0)))
    >>> [0.6, 0.8] in both, [0.9, 0.9] in both
    (True, False)

    Survey: section 2.4
    """

    members: tuple[FeasibleSet, ...]

    separable: ClassVar[bool] = False
    rotatable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len(self.members) < 2:
            raise ValueError(f"members: got {len(self.members)}, expected at least two sets")
        if len({m.dimension for m in self.members} - {None}) > 1:
            dimensions = [m.dimension for m in self.members]
            raise ValueError(f"members: got dimensions {dimensions}, expected one dimension for all")

    @property
    def on_simplex(self) -> bool:
        """Whether one of the members is inside the simplex."""
        return any(m.on_simplex for m in self.members)

    @property
    def dimension(self) -> int | None:
        """The members' dimension."""
        return next((m.dimension for m in self.members if m.dimension is not None), None)

    def contains(self, x: ArrayLike, tolerance: float = TOLERANCE) -> bool:
        """Return whether x is in every member."""
        return all(m.contains(x, tolerance) for m in self.members)

    def __contains__(self, x: ArrayLike) -> bool:
        return self.contains(x)

    def support(self, g: Vector) -> float:
        """Return max g·x, by the solver."""
        g = vector("g", g, self.dimension)
        try:
            return float(g @ minimize(g.size, lambda x: -g @ x, self.constraints))
        except Unbounded:
            return math.inf

    def largest_norm(self, n: int) -> float:
        """Return the smallest of the members' largest norms."""
        return min(m.largest_norm(n) for m in self.members)

    def diameter(self, n: int) -> float:
        """Return the smallest of the members' diameters."""
        return min(m.diameter(n) for m in self.members)

    def constraints(self, x: Any) -> list[Any]:
        """Return all members' constraints."""
        return [limit for m in self.members for limit in m.constraints(x)]


def intersect(*sets: FeasibleSet) -> FeasibleSet:
    """Return the intersection, with nested ones flattened, R^n left out and boxes merged into one box.

    >>> intersect(Reals(), Box(-1, 5), Box(0, 9))
    Box(0.0, 5.0)

    Survey: section 2.4
    """
    flat = [m for s in sets for m in (s.members if isinstance(s, Intersection) else (s,))]
    boxes = [m for m in flat if isinstance(m, Box)]
    others = [m for m in flat if not isinstance(m, Box | Reals)]
    merged: list[FeasibleSet] = []
    if boxes:
        lower, upper = boxes[0].bounds
        for box in boxes[1:]:
            lower, upper = np.maximum(lower, box.lower), np.minimum(upper, box.upper)
        merged = [Box(lower, upper)]
    members = merged + others
    if not members:
        return Reals()
    return members[0] if len(members) == 1 else Intersection(tuple(members))
