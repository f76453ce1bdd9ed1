"""The L2 ball: threshold, then scale, or find the multiplier of the constraint."""

import numpy as np
from scipy.optimize import brentq

from forel.argmin.problem import Problem, Solve, shrink
from forel.checks import Vector
from forel.geometries import over
from forel.norms import L2
from forel.sets import Ball


def ball(problem: Problem) -> Solve | None:
    r"""Plan $x(\mu) = -S_{\alpha\lambda_1}(z - \mu c)/(\sigma + \alpha\lambda_2 + \mu)$ with $\|x(\mu) - c\|_2 = R$.

    S is soft-thresholding and μ the multiplier. With one strength for all coordinates and a ball around 0 that is a
    threshold and a scaling; otherwise the root of one decreasing function.

    Survey: section 2.4
    """
    feasible = problem.feasible
    if not (problem.separable_quadratic and isinstance(feasible, Ball) and feasible.norm == L2):
        return None
    l1, l2, radius, center = problem.l1, problem.l2, feasible.radius, feasible.center
    around_origin = not np.any(center)

    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        threshold, curvature = weight * l1, strength + weight * l2

        def point(multiplier: float) -> Vector:
            pulled = z if around_origin else z - multiplier * center
            return over(shrink(pulled, threshold), curvature + multiplier)

        def excess(multiplier: float) -> float:
            return L2(point(multiplier) - center) / radius - 1

        x = point(0.0)
        norm = L2(x - center)
        if norm <= radius:
            return x
        if around_origin and np.ndim(curvature) == 0:
            direction = shrink(z, threshold)
            direction *= radius / L2(direction)
            return direction
        # ‖x(μ) − c‖ ≤ ‖ |z| + threshold + curvature·|c| ‖ / μ, so the root is below this:
        high = 2 * L2(np.abs(z) + threshold + curvature * np.abs(center)) / radius
        low = high
        while excess(low) < 0 and low > 0:
            high, low = low, low / 1024
        x = point(brentq(excess, low, high, xtol=1e-300, rtol=1e-15, maxiter=500))
        if around_origin:
            x *= radius / L2(x)
        return x

    return solve
