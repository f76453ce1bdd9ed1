"""Coordinate by coordinate: separable quadratic, elastic net, box."""

import math

import numpy as np

from forel.theory.argmin.problem import Problem, Solve, shrink
from forel.theory.geometries import safe_divide
from forel.theory.sets import Box
from forel.validation import Vector


def coordinate(problem: Problem) -> Solve | None:
    r"""Plan $x_i = \Pi_{[l_i, u_i]}\left(-\frac{\mathrm{sign}(z_i)\max(|z_i| - \alpha\lambda_1, 0)}{\sigma_i + \alpha\lambda_2}\right)$.

    A coordinate with neither strength nor slope stays at the feasible point nearest 0.

    Survey: section 6.2
    """  # noqa: E501
    if not (problem.separable_quadratic and problem.feasible.separable):
        return None
    l1, l2 = problem.l1, problem.l2
    lower, upper = problem.feasible.bounds if isinstance(problem.feasible, Box) else (-math.inf, math.inf)
    bounded = np.any(np.isfinite(lower)) or np.any(np.isfinite(upper))
    ridge = np.any(l2)

    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        x = safe_divide(shrink(z, weight * l1), strength + weight * l2 if ridge else strength)
        return x.clip(lower, upper, out=x) if bounded else x

    return solve
