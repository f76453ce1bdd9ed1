"""An objective split into the terms that closed forms handle."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forel.theory.geometries import Geometry
from forel.theory.penalties import GroupL2, Penalty, split_penalty
from forel.theory.sets import FeasibleSet, intersect
from forel.validation import Unsupported, Vector

# (z, strength, weight) -> the minimizer of z·x + weight·Ψ(x) + φ_strength(x) over X
Solve = Callable[[Vector, Any, float], Vector]


@dataclass(frozen=True, eq=False)
class Problem:
    """Geometry, penalty and feasible set of an objective, with the penalty split into its terms."""

    geometry: Geometry
    l1: float | Vector
    l2: float | Vector
    groups: tuple[GroupL2, ...]
    others: tuple[Penalty, ...]
    feasible: FeasibleSet

    @classmethod
    def of(cls, geometry: Geometry, penalty: Penalty, feasible: FeasibleSet) -> "Problem":
        """Split the penalty; an indicator joins the feasible set."""
        l1, l2, groups, within, others = split_penalty(penalty)
        problem = cls(geometry, l1, l2, groups, others, intersect(feasible, within))
        if geometry.on_simplex and not problem.feasible.on_simplex:
            raise Unsupported(
                f"geometry: {geometry} needs a subset of the simplex, which {problem.feasible} is not; use "
                "feasible=Simplex(), or intersect(Simplex(), …) for a part of it, or a Euclidean geometry"
            )
        return problem

    @property
    def dimension(self) -> int | None:
        """The dimension of the parts; None if they fit any."""
        sizes = {v.size for v in (self.l1, self.l2) if isinstance(v, np.ndarray)}
        sizes |= {g.groups.size for g in self.groups if g.groups is not None}
        sizes |= {self.feasible.dimension} if self.feasible.dimension is not None else set()
        if len(sizes) > 1:
            raise ValueError(f"penalty, feasible: got parts for dimensions {sorted(sizes)}, expected one dimension")
        return next(iter(sizes), None)

    @property
    def separable_quadratic(self) -> bool:
        """Whether geometry and penalty are a quadratic plus an absolute value in each coordinate."""
        return self.geometry.quadratic and self.geometry.separable and not self.groups and not self.others


def shrink(z: Vector, threshold: float | Vector) -> Vector:
    """Return −sign(z)·max(|z| − threshold, 0) as a new array: the numerator of every closed form with L1."""
    if isinstance(threshold, float) and threshold == 0:
        negative: Vector = np.subtract(0.0, z)  # not np.negative, which would make −0.0 of 0.0
        return negative
    shrunk: Vector = z.clip(np.negative(threshold), threshold)
    shrunk -= z
    return shrunk
