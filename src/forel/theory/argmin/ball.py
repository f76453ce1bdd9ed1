"""The L2 ball: threshold, then scale, or find the multiplier of the constraint."""

import math

import numpy as np
from scipy.optimize import brentq

from forel.theory.argmin.problem import Problem, Solve, shrink
from forel.theory.geometries import safe_divide
from forel.theory.norms import L2
from forel.theory.sets import Ball
from forel.validation import Vector


def ball(problem: Problem) -> Solve | None:
    r"""Plan $x(\mu) = -S_{\alpha\lambda_1}(z - \mu c)/(\sigma + \alpha\lambda_2 + \mu)$ with $\|x(\mu) - c\|_2 = R$.

    S is soft-thresholding and μ the multiplier. With one strength for all coordinates and a ball around 0 that is a
    threshold and a scaling; otherwise the root of one decreasing function. Where the objective is flat, the minimizer
    nearest 0 is taken.

    Survey: section 2.4
    """
    feasible = problem.feasible
    if not (problem.separable_quadratic and isinstance(feasible, Ball) and feasible.norm == L2):
        return None
    l1, l2, radius = problem.l1, problem.l2, feasible.radius
    around_origin = not np.any(feasible.center)

    @np.errstate(over="ignore")  # a slope over next to no strength, which the ball then cuts off
    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        threshold, curvature = weight * l1, strength + weight * l2
        center = np.broadcast_to(feasible.center, z.shape)
        x = safe_divide(shrink(z, threshold), curvature)
        if L2(x - center) <= radius:
            return x
        if around_origin and np.ndim(curvature) == 0:
            direction = shrink(z, threshold)
            direction /= L2(direction)
            direction *= radius
            return direction
        # ‖x(μ) − c‖ ≤ ‖ |z| + threshold + curvature·|c| ‖ / μ, so that in this unit the multiplier is at most 1.
        unit = L2(np.abs(z) + threshold + curvature * np.abs(center)) / radius
        slope, limit, curve = (_over_unit(part, unit) for part in (z, threshold, curvature))
        nearest = _along_flat(x, slope, limit, curve, center, radius)
        if nearest is not None:
            return nearest
        x = _on_sphere(slope, limit, curve, center, radius)
        if around_origin:
            x *= radius / L2(x)
        return x

    return solve


def _over_unit(part: float | Vector, unit: float) -> Vector:
    """Return part/unit, with 0 for what is too small for a multiplier to be found from it."""
    ratio: Vector = np.divide(part, unit) if unit > 0 else np.zeros_like(part)
    return np.where(np.abs(ratio) < 1e-290, 0.0, ratio)


def _along_flat(
    x: Vector, z: Vector, threshold: Vector, curvature: Vector, center: Vector, radius: float
) -> Vector | None:
    """Return x moved into the ball along the coordinates in which the objective is flat, or None if that is too short.

    As the multiplier falls to 0 such a coordinate stays at its center, and at 0 it jumps: there is no root to find.
    """
    flat = (curvature == 0) & (np.abs(z) == threshold) & (np.sign(z) * np.sign(center) <= 0)
    outwards = x - center
    distance = L2(outwards[~flat])
    if distance > radius:
        return None
    reach = math.sqrt((radius - distance) * (radius + distance))
    outwards[flat] *= reach / L2(outwards[flat])
    return np.where(flat, center + outwards, x)


def _on_sphere(z: Vector, threshold: Vector, curvature: Vector, center: Vector, radius: float) -> Vector:
    """Return x(μ) for the μ in (0, 1] with ‖x(μ) − c‖ = R, given that ‖x(μ) − c‖ > R for small μ."""

    def point(multiplier: float) -> Vector:
        return safe_divide(shrink(z - multiplier * center, threshold), curvature + multiplier)

    def excess(multiplier: float) -> float:
        return L2(point(multiplier) - center) / radius - 1

    low, high = 2.0, 2.0
    while excess(low) < 0 and low > 1e-295:
        low, high = low / 1024, low
    if excess(low) <= 0:  # x(0) itself is on the sphere, but for a rounding
        return point(low)
    return point(float(brentq(excess, low, high, xtol=1e-300, rtol=1e-15, maxiter=500)))
