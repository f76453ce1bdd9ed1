"""Full matrices: rotate to the eigenbasis, where the problem is diagonal."""

from dataclasses import replace

import numpy as np

from forel.theory.argmin.ball import ball
from forel.theory.argmin.coordinatewise import coordinate
from forel.theory.argmin.linear import affine, half_space
from forel.theory.argmin.problem import Problem, Solve
from forel.theory.geometries import Diagonal
from forel.theory.norms import eigen, rotate
from forel.validation import Matrix, Vector


def rotation(problem: Problem) -> Solve | None:
    r"""Plan $x = V\,\arg\min_u\ (V^\top z) \cdot u + \frac12\sum_i q_i u_i^2$ for $Q + \alpha\lambda_2 = V\mathrm{diag}(q)V^\top$.

    It holds for sets that rotate into sets of their kind, and for penalties without corners.

    Survey: section 3.4
    """  # noqa: E501
    smooth = not (np.any(problem.l1) or problem.groups or problem.others)
    if not (problem.geometry.shape == "matrix" and smooth and problem.feasible.rotatable):
        return None
    l2 = problem.l2

    def solve(z: Vector, strength: Matrix, weight: float) -> Vector:
        q, basis = eigen("strength", strength + np.diag(np.broadcast_to(weight * l2, z.size)))
        turned = replace(problem, geometry=Diagonal(), l2=0.0, feasible=problem.feasible.rotated(basis))
        diagonal = next(s for plan in (coordinate, ball, half_space, affine) if (s := plan(turned)))
        u = diagonal(rotate(basis, z), q, weight)
        return basis @ u if np.isfinite(u).all() else u

    return solve
