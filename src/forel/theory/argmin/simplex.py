"""The simplex and the L1 ball: sort once, read off the threshold."""

import math

import numpy as np

from forel.theory.argmin.problem import Problem, Solve, shrink
from forel.theory.geometries import safe_divide
from forel.theory.norms import L1
from forel.theory.sets import Ball, Simplex
from forel.validation import Vector


def simplex(problem: Problem) -> Solve | None:
    r"""Plan $x_i = \max(0, -z_i - \alpha\lambda_{1,i} - \tau)/(\sigma_i + \alpha\lambda_{2,i})$ with $\sum_i x_i = s$.

    On the simplex |x_i| = x_i, so an L1 penalty is linear (and without effect when it is the same for all).

    Survey: section 3.6
    """
    feasible = problem.feasible
    if not (problem.separable_quadratic and isinstance(feasible, Simplex)):
        return None
    l1, l2, total = problem.l1, problem.l2, feasible.total

    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        return fill(-z - weight * l1, strength + weight * l2, total)

    return solve


def l1_ball(problem: Problem) -> Solve | None:
    r"""Plan the simplex's solution for absolute values: the ball's multiplier only raises the L1 threshold.

    $x_i = -\mathrm{sign}(z_i)\max(0, |z_i| - \alpha\lambda_{1,i} - \tau)/(\sigma_i + \alpha\lambda_{2,i})$, with τ = 0
    inside the ball. Around a center c the problem is shifted, which an L1 penalty around 0 does not allow.

    Survey: section 2.4
    """
    feasible = problem.feasible
    if not (problem.separable_quadratic and isinstance(feasible, Ball) and feasible.norm == L1):
        return None
    l1, l2, radius, center = problem.l1, problem.l2, feasible.radius, feasible.center
    shifted = bool(np.any(center))
    if shifted and np.any(l1):
        return None

    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        curvature = strength + weight * l2
        slope = shrink(z + strength * center + weight * l2 * center if shifted else z, weight * l1)
        x = safe_divide(slope.copy(), curvature)
        if not np.abs(x).sum() <= radius:
            x = np.copysign(fill(np.abs(slope), curvature, radius), slope)
        return x + center if shifted else x

    return solve


def fill(height: Vector, curvature: float | Vector, total: float) -> Vector:
    """Maximize height·x − ½Σ curvature_i x_i² over the simplex of that total, by water-filling.

    x_i = max(0, level − depth_i)/curvature_i with the depth counted down from the highest coordinate, and the level the
    one at which the x_i have the right sum.
    """
    depth: Vector = height.max() - height
    x = _even(depth, curvature, total) if isinstance(curvature, float) else _uneven(depth, curvature, total)
    x *= total / x.sum()
    return x


def _even(depth: Vector, curvature: float, total: float) -> Vector:
    """Fill with the same curvature for all coordinates."""
    if curvature == 0:
        return np.where(depth == 0, 1.0, 0.0)
    total *= curvature
    # The highest coordinate alone would bring the level to total, so every deeper coordinate is 0.
    depths = depth[depth < total]
    depths.sort()
    level = _level(depths, np.arange(1.0, depths.size + 1), np.cumsum(depths), total)
    np.subtract(level, depth, out=depth)
    np.maximum(depth, 0.0, out=depth)
    depth /= curvature
    return depth


def _uneven(depth: Vector, curvature: Vector, total: float) -> Vector:
    """Fill with a curvature per coordinate; those with none share the rest equally."""
    flat = curvature == 0
    floor = float(np.min(depth, where=flat, initial=math.inf))
    x = np.zeros_like(depth)
    np.divide(floor - depth, curvature, out=x, where=~flat & (depth < floor))
    rest = total - float(x.sum())
    if rest > 0:
        best = flat & (depth == floor)
        x[best] = rest / np.count_nonzero(best)
        return x
    order = np.argsort(depth, kind="stable")
    order = order[~flat[order]]
    depths, widths = depth[order], 1 / curvature[order]
    level = _level(depths, np.cumsum(widths), np.cumsum(depths * widths), total)
    x[order] = np.maximum(level - depths, 0.0) * widths
    return x


def _level(depths: Vector, widths: Vector, volumes: Vector, total: float) -> float:
    """Return the level, given sorted depths and running sums of 1/curvature and depth/curvature."""
    needed = depths * widths  # the total at which the level reaches each coordinate, increasing
    needed -= volumes
    last = max(0, int(np.searchsorted(needed, total)) - 1)
    return float((total + volumes[last]) / widths[last])
