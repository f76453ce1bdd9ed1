"""Dispatch an argmin to the first closed form that applies, otherwise to the solver."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.argmin.ball import ball
from forel.theory.argmin.linear import affine, half_space
from forel.theory.argmin.mirror_map import IMAGES, dual_exponent, softmax
from forel.theory.argmin.problem import Problem, Solve
from forel.theory.argmin.shrinkage import coordinate, group
from forel.theory.argmin.simplex import l1_ball, simplex
from forel.theory.argmin.solver import solver
from forel.theory.geometries import Diagonal, Euclidean, FullMatrix, Geometry
from forel.theory.norms import eigen, rotate
from forel.theory.penalties import NONE, Penalty
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet, Reals
from forel.validation import Matrix, Strength, Unbounded, Vector, all_finite, non_negative, vector


def own(problem: Problem) -> Solve | None:
    """Plan the set's own argmin, where it has one; it takes no penalty."""
    solve: Callable[[Vector, Strength], Vector] | None = getattr(problem.feasible, "argmin", None)
    plain = problem.geometry.quadratic and not (np.any(problem.l1) or np.any(problem.l2))
    if solve is None or problem.groups or problem.others or not plain:
        return None
    return lambda z, strength, weight: vector("argmin(z, strength)", solve(z, strength), z.size)


def rotation(problem: Problem) -> Solve | None:
    r"""Plan $x = V\,\arg\min_u\ (V^\top z) \cdot u + \frac12\sum_i q_i u_i^2$ for $Q + \alpha\lambda_2 = V\mathrm{diag}(q)V^\top$.

    It holds for sets that rotate into sets of their kind, and for penalties without corners.

    Survey: section 3.4
    """  # noqa: E501
    smooth = not (np.any(problem.l1) or problem.groups or problem.others)
    if not (problem.geometry.shape == "matrix" and smooth and problem.feasible.rotatable):
        return None
    l2, feasible = problem.l2, cast(Any, problem.feasible)

    def solve(z: Vector, strength: Matrix, weight: float) -> Vector:
        q, basis = eigen("strength", strength + np.diag(np.broadcast_to(weight * l2, z.size)))
        turned = replace(problem, geometry=Diagonal(), l2=0.0, feasible=feasible.rotated(basis))
        diagonal = next(s for plan in (coordinate, ball, half_space, affine) if (s := plan(turned)))
        u = diagonal(rotate(basis, z), q, weight)
        return basis @ u if np.isfinite(u).all() else u

    return solve


CLOSED_FORMS: dict[str, Callable[[Problem], Solve | None]] = {
    "the set's own": own,
    "coordinate-wise": coordinate,
    "threshold, then scale or root": ball,
    "sort": simplex,
    "sort of absolute values": l1_ball,
    "one multiplier": half_space,
    "linear system": affine,
    "group shrinkage": group,
    "softmax": softmax,
    "dual exponent": dual_exponent,
    "eigenbasis": rotation,
}
SOLVER = "solver"
EVERYWHERE = Reals()


class Minimizer(NamedTuple):
    """A minimizer x and its mirror image ∇φ_1(x), which keeps coordinates that underflow in x; None if not needed."""

    x: Vector
    image: Vector | None = None


@dataclass(frozen=True, eq=False)
class Argmin:
    r"""The map $(z, \sigma, \alpha) \mapsto \arg\min_{x \in X}\ z \cdot x + \alpha\Psi(x) + \phi_\sigma(x)$.

    The method is chosen once, at construction, which raises Unsupported for a combination that cannot be solved. Calls
    then cost no more than the formula.

    Parameters
    ----------
    geometry : φ, with the shape of strength it takes
    penalty : Ψ
    feasible : X

    >>> from forel.theory.penalties import l1
    >>> from forel.theory.sets import Box
    >>> play = Argmin(Euclidean(), l1(1.0), Box(-1, 1))
    >>> play.method, play(np.array([0.5, -3.0, 9.0]), strength=4.0)
    ('coordinate-wise', array([ 0. ,  0.5, -1. ]))

    Survey: Algorithm 2 and section 5
    """

    geometry: Geometry
    penalty: Penalty = NONE
    feasible: FeasibleSet = EVERYWHERE
    method: str = field(init=False)
    dimension: int | None = field(init=False)
    _solve: Solve = field(init=False, repr=False)
    _image: Solve | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        problem = Problem.of(self.geometry, self.penalty, self.feasible)
        found = ((name, plan(problem)) for name, plan in CLOSED_FORMS.items())
        method, solve = next(((name, s) for name, s in found if s is not None), (SOLVER, None))
        object.__setattr__(self, "dimension", problem.dimension)
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "_solve", solve or solver(problem))
        object.__setattr__(self, "_image", IMAGES[method](problem) if method in IMAGES else None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts; the method is chosen again on load."""
        return Argmin, (self.geometry, self.penalty, self.feasible)

    def __call__(self, z: Vector, strength: Strength, weight: float = 1.0) -> Vector:
        """Return the minimizer."""
        z = vector("z", z, self.dimension)
        return self.solve(z, self.geometry.check(strength, z.size), non_negative("weight", weight))

    def solve(self, z: Vector, strength: Strength, weight: float = 1.0) -> Vector:
        """Return the minimizer for arguments that are known to be valid: what algorithms call every round."""
        x = self._solve(z, strength, weight)
        if not all_finite(x):
            index = int(np.argmin(np.isfinite(x)))
            raise Unbounded(
                f"strength: got 0 at index {index} where z is {z[index]}, so the objective has no minimum; expected a "
                "positive strength or a bounded feasible set"
            )
        return x

    def lifted(self, shape: int) -> "Argmin":
        """Return the same for strengths of another shape: 2 for matrices, which need a geometry of their own."""
        fits = shape < 2 or self.geometry.shape == "matrix"
        return self if fits else Argmin(FullMatrix(), self.penalty, self.feasible)

    def solve_with_image(self, z: Vector, strength: Strength, weight: float = 1.0) -> Minimizer:
        """Return the minimizer, and its mirror image where coordinates may underflow."""
        return Minimizer(self.solve(z, strength, weight), self._image and self._image(z, strength, weight))

    def objective(self, x: Vector, z: Vector, strength: Strength, weight: float = 1.0) -> float:
        """Return z·x + αΨ(x) + φ_σ(x), infinite outside X."""
        if not self.feasible.contains(x):
            return float("inf")
        charge = weight * self.penalty(x) if weight > 0 else 0.0
        return float(z @ x) + charge + self.geometry.value(strength, x)

    def conjugate(self, g: Vector, strength: Strength, weight: float = 1.0) -> float:
        """Return the conjugate of αΨ + φ_σ + I_X at g."""
        x = self(-g, strength, weight)
        return -self.objective(x, -g, strength, weight)


def argmin(
    z: ArrayLike,
    regularizer: Regularizer,
    penalty: Penalty = NONE,
    weight: float = 1.0,
    feasible: FeasibleSet = EVERYWHERE,
) -> Vector:
    r"""Return $\arg\min_{x \in X}\ z \cdot x + \alpha\Psi(x) + r(x)$.

    For many rounds with the same parts, keep an :class:`Argmin` instead.

    >>> from forel.theory.penalties import l1
    >>> proximal = Regularizer.around(Euclidean(), 2.0, np.array([1.0, 1.0]))
    >>> argmin([0.0, 4.0], proximal, l1(0.5))
    array([ 0.75, -0.75])

    Survey: equation (genhupdate), section 5
    """
    slope = vector("z", z, regularizer.linear.size) - regularizer.linear
    return Argmin(regularizer.geometry, penalty, feasible)(slope, regularizer.strength, weight)


def project(u: ArrayLike, feasible: FeasibleSet, metric: Any = 1.0) -> Vector:
    r"""Return the projection $\Pi_X(u) = \arg\min_{x \in X}\ \frac12(x - u)^\top Q (x - u)$.

    Parameters
    ----------
    u : the point to project
    feasible : X
    metric : Q, as a number (the Euclidean projection), a vector (its diagonal) or a matrix

    >>> from forel.theory.sets import Simplex
    >>> project([1.0, 1.0, -9.0], Simplex())
    array([0.5, 0.5, 0. ])

    Survey: section 3.1
    """
    geometry: Geometry = (Euclidean(), Diagonal(), FullMatrix())[np.ndim(metric)]
    return bregman_project(u, feasible, geometry, metric)


def bregman_project(u: ArrayLike, feasible: FeasibleSet, geometry: Geometry, strength: Strength = 1.0) -> Vector:
    r"""Return the Bregman projection $\Pi^r_X(u) = \arg\min_{x \in X} B_r(x, u)$ for $r = \phi_\sigma$.

    >>> from forel.theory.geometries import Entropy
    >>> from forel.theory.sets import Simplex
    >>> bregman_project([1.0, 3.0], Simplex(), Entropy())
    array([0.25, 0.75])

    Survey: appendix C.2
    """
    point = vector("u", u)
    return argmin(np.zeros_like(point), Regularizer.around(geometry, strength, point), feasible=feasible)
