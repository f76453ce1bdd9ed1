"""Half-spaces and affine subspaces: one multiplier, or a small linear system."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from forel.theory.argmin.problem import Problem, Solve, shrink
from forel.theory.sets import Affine, HalfSpace
from forel.validation import Unsupported, Vector


def half_space(problem: Problem) -> Solve | None:
    r"""Plan $x(\mu) = -S_{\alpha\lambda_1}(z + \mu a)/(\sigma + \alpha\lambda_2)$ with $a \cdot x(\mu) \le b$.

    Without L1 the multiplier is a ratio; with it, the root of a decreasing, piecewise linear function.

    Survey: section 2.4
    """
    feasible = problem.feasible
    if not (problem.separable_quadratic and isinstance(feasible, HalfSpace)):
        return None
    l1, l2, normal, offset = problem.l1, problem.l2, feasible.normal, feasible.offset
    sparse = bool(np.any(l1))

    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        curvature = _positive(strength + weight * l2)

        def point(multiplier: float) -> Vector:
            return shrink(z + multiplier * normal, weight * l1) / curvature

        def excess(multiplier: float) -> float:
            return float(normal @ point(multiplier)) - offset

        x = point(0.0)
        if normal @ x <= offset:
            return x
        # The multiplier without the L1 part; with it, thresholds shift every coordinate by at most that much.
        gain = float(np.sum(normal**2 / curvature))
        multiplier = excess(0.0) / gain
        if sparse:
            high = multiplier + 2 * float(np.sum(np.abs(normal) / curvature * weight * l1)) / gain
            multiplier = brentq(excess, 0.0, 2 * high, xtol=1e-300, rtol=1e-15, maxiter=500)
        return point(multiplier)

    return solve


def affine(problem: Problem) -> Solve | None:
    r"""Plan $x = -H^{-1}(z + C^\top\nu)$ with $CH^{-1}C^\top\nu = -(d + CH^{-1}z)$, for H = diag(σ + αλ_2) and no L1.

    Survey: section 2.4
    """
    feasible = problem.feasible
    if not (problem.separable_quadratic and isinstance(feasible, Affine)) or np.any(problem.l1):
        return None
    l2, rows, target = problem.l2, feasible.matrix, feasible.target

    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        curvature = _positive(strength + weight * l2)
        scaled = rows / curvature
        system = cho_factor(scaled @ rows.T)
        x: Vector = -z / curvature
        for _ in range(2):  # the second step removes the rounding of the first
            x += scaled.T @ cho_solve(system, target - rows @ x)
        return x

    return solve


def _positive(curvature: float | Vector) -> float | Vector:
    if np.min(curvature) <= 0:
        raise Unsupported(
            "strength: got 0 in some coordinate, expected positive strengths over a half-space or affine subspace; "
            "give the rate an offset, or the regularizer r_0 some strength"
        )
    return curvature
