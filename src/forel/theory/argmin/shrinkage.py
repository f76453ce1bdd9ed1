"""Shrinking towards zero: each coordinate (elastic net, box), or each group by its norm."""

import math

import numpy as np
from scipy.optimize import brentq

from forel.theory.argmin.problem import Problem, Solve, shrink
from forel.theory.geometries import safe_divide
from forel.theory.norms import L2
from forel.theory.sets import Box, Reals
from forel.validation import Unbounded, Vector


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


def group(problem: Problem) -> Solve | None:
    r"""Plan $x_g = -S_{\alpha\lambda_1}(z_g)/(\sigma_g + \alpha\lambda_2 + \nu_g)$, $\nu_g\|x_g\|_2 = \alpha\lambda_g$.

    A group whose thresholded slope is within its λ is exactly zero. With one strength for all coordinates ν is a ratio;
    otherwise it is the root of an increasing function, one for each group.

    Survey: section 5
    """
    geometry = problem.geometry
    fits = geometry.quadratic and geometry.separable and len(problem.groups) == 1 and not problem.others
    if not (fits and isinstance(problem.feasible, Reals)):
        return None
    l1, l2, penalty = problem.l1, problem.l2, problem.groups[0]

    def solve(z: Vector, strength: float | Vector, weight: float) -> Vector:
        slope = shrink(z, weight * l1)
        norms = penalty.norms(slope)
        factors = np.broadcast_to(weight * penalty.factor, norms.shape)
        kept = norms > factors
        curvature = strength + weight * l2
        share = kept.astype(np.float64)
        if isinstance(curvature, np.ndarray):
            found = np.zeros_like(norms)
            for g in np.flatnonzero(kept & (factors > 0)):
                members = slice(None) if penalty.groups is None else penalty.groups == g
                found[g] = _multiplier(slope[members], curvature[members], float(factors[g]))
            curvature = curvature + penalty.spread(found, 0.0, z.size)
        else:
            share[kept] -= factors[kept] / norms[kept]
        slope *= penalty.spread(share, 1.0, z.size)
        return safe_divide(slope, curvature)

    return solve


def _multiplier(slope: Vector, curvature: Vector, factor: float) -> float:
    """Return the ν > 0 with ν‖slope/(curvature + ν)‖ = factor, for ‖slope‖ > factor."""

    def excess(multiplier: float) -> float:
        return L2(slope * (multiplier / (curvature + multiplier))) / factor - 1

    spare = L2(slope) - factor
    low, high = factor * float(curvature.min()) / spare, factor * float(curvature.max()) / spare
    if low == 0:
        low = high * 1e-300 if high > 0 else math.ulp(0.0)
        if excess(low) >= 0:
            raise Unbounded("strength: got 0 where the slope exceeds the group penalty, expected positive strengths")
    low, high = low * (1 - 1e-12), high * (1 + 1e-12)
    return float(brentq(excess, low, high, xtol=1e-300, rtol=1e-15, maxiter=2000))
