"""Closed forms by the gradient of the conjugate: softmax for the entropy, the dual exponent for p-norms."""

import math
from typing import cast

import numpy as np

from forel.theory.argmin.problem import Problem, Solve, shrink
from forel.theory.geometries import SquaredPNorm
from forel.theory.sets import Reals, Simplex
from forel.validation import Vector

__all__ = ["IMAGES", "dual_exponent", "softmax"]


def softmax(problem: Problem) -> Solve | None:
    r"""Plan $x_i = s\,e^{-(z_i + \alpha\lambda_{1,i})/\sigma} / \sum_j e^{-(z_j + \alpha\lambda_{1,j})/\sigma}$.

    Survey: section 3.6
    """
    feasible, geometry = problem.feasible, problem.geometry
    if not (geometry.on_simplex and isinstance(feasible, Simplex)):
        return None
    if problem.groups or problem.others or np.any(problem.l2):
        return None
    l1, total = problem.l1, feasible.total

    def solve(z: Vector, strength: float, weight: float) -> Vector:
        x = geometry.conjugate_gradient(strength, -z - weight * l1)
        x *= total
        return x

    return solve


def dual_exponent(problem: Problem) -> Solve | None:
    r"""Plan $x = \nabla\phi_\sigma^\star(-S_{\alpha\lambda_1}(z))$ for half the squared p-norm.

    Thresholding the slope first is exact because this gradient keeps signs and zeros.

    Survey: Lemma 15
    """
    geometry = problem.geometry
    if not (isinstance(geometry, SquaredPNorm) and isinstance(problem.feasible, Reals)):
        return None
    if problem.groups or problem.others or np.any(problem.l2):
        return None
    l1 = problem.l1

    def solve(z: Vector, strength: float, weight: float) -> Vector:
        return geometry.conjugate_gradient(strength, shrink(z, weight * l1))

    return solve


def _softmax_image(problem: Problem) -> Solve:
    r"""Plan $1 + \log x$, which is finite where $x$ itself underflows."""
    l1, total = problem.l1, cast(Simplex, problem.feasible).total

    def image(z: Vector, strength: float, weight: float) -> Vector:
        exponents: Vector = (-z - weight * l1) / strength
        exponents -= exponents.max()
        exponents += 1 + math.log(total) - math.log(np.exp(exponents).sum())
        return exponents

    return image


def _dual_exponent_image(problem: Problem) -> Solve:
    r"""Plan $-S_{\alpha\lambda_1}(z)/\sigma$, of which for p near 1 most coordinates underflow in x."""
    l1 = problem.l1
    return lambda z, strength, weight: shrink(z, weight * l1) / strength


# The mirror image ∇φ_1(x) of the minimizer, for the closed forms of this file by their names in CLOSED_FORMS.
IMAGES = {"softmax": _softmax_image, "dual exponent": _dual_exponent_image}
