"""One form of Mirror Descent: a step from one round to the next for a fixed R = r + I_X."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.losses import Loss
from forel.theory.argmin import Argmin, Minimizer
from forel.theory.geometries import Geometry
from forel.theory.norms import eigen
from forel.theory.regularizers import Regularizer, gradient_at
from forel.theory.sets import FeasibleSet, Reals
from forel.validation import Strength, Vector, constants, frozen, matrix, whole

__all__ = ["EVERYWHERE", "Form", "FormState", "Step"]

EVERYWHERE = Reals()


class FormState(NamedTuple):
    """r, the point, and the sums that forms are written with: θ, g_{1:t}, g^(Ψ)_{1:t}; those not needed stay 0.

    Forms that continue from the point use its mirror image, as a coordinate of the point may underflow.
    """

    r: Regularizer
    theta: Vector
    g: Vector
    slopes: Vector
    x: Vector
    image: Vector | None


# (form, state, g_t) -> the next state
Step = Callable[["Form", FormState, Vector], FormState]


@dataclass(frozen=True, eq=False)
class Form:
    r"""One form of non-adaptive Mirror Descent for $R(x) = B_{\phi_\sigma}(x, x_1) + I_X(x)$.

    As in the other algorithms, $x_1$ is the point of X where the geometry is smallest. Take one from ``UNCONSTRAINED``
    (Figure 5), ``LAZY`` or ``GREEDY`` (Figure 6).

    Parameters
    ----------
    step : how the form gets from one state to the next, given g_t
    geometry : φ
    strength : σ, fixed and positive: a number, or a vector or matrix where the geometry takes one
    feasible : X

    >>> from forel.theory.algorithms.forms import GREEDY, LAZY
    >>> from forel.theory.geometries import Euclidean
    >>> from forel.losses import Linear
    >>> from forel.theory.sets import Box
    >>> for column in (LAZY, GREEDY):
    ...     form = column["projection"](Euclidean(), 2.0, Box(-1, 1))
    ...     state = form.init(1)
    ...     for g in (-6.0, 2.0):
    ...         state = form.update(state, Linear([g]))
    ...     form.play(state)
    array([1.])
    array([0.])

    Survey: appendix C
    """

    step: Step
    geometry: Geometry
    strength: Strength
    feasible: FeasibleSet = EVERYWHERE
    argmin: Argmin = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", _positive(self.strength))
        object.__setattr__(self, "argmin", Argmin(self.geometry, feasible=self.feasible))

    def init(self, n: int) -> FormState:
        """Return the state before round 1, at the point of X where the geometry is smallest."""
        zero = np.zeros(whole("n", n, low=1))
        first = self.argmin(zero, 1.0)
        r = Regularizer.around(self.geometry, self.strength, first)
        return FormState(r, zero, zero, zero, first, None)

    def play(self, state: FormState) -> Vector:
        """Return x_{t+1}."""
        return state.x

    def update(self, state: FormState, loss: Loss) -> FormState:
        """Step with g_t, the subgradient of the loss at x_t."""
        return self.step(self, state, loss.subgradient(state.x))

    def solve_with_image(self, z: Vector, r: Regularizer) -> Minimizer:
        """Return argmin z·x + r(x) over X, and its mirror image."""
        return self.argmin.solve_with_image(z - r.linear, r.strength)

    def minimizer(self, z: Vector, r: Regularizer) -> Vector:
        """Return argmin z·x + r(x) over X."""
        return self.solve_with_image(z, r).x

    def conjugate_gradient(self, theta: Vector, r: Regularizer) -> Vector:
        """Return ∇R⋆(θ): from the formula of r⋆ where X is everything, otherwise as the point that attains R⋆(θ)."""
        return r.conjugate_gradient(theta) if isinstance(self.feasible, Reals) else self.minimizer(-theta, r)

    def project(self, u: Vector) -> Vector:
        r"""Return $\Pi^r_X(u) = \arg\min_{x \in X} B_r(x, u)$, which sees only the φ_σ in r: the rest is linear."""
        return self.project_from(Minimizer(u)).x

    def project_from(self, u: Minimizer) -> Minimizer:
        """Return the same for a u that may be beyond what floats hold, and is then known by its image."""
        return self.argmin.solve_with_image(-gradient_at(self.geometry, self.strength, *u), self.strength)


def _positive(strength: ArrayLike) -> Strength:
    if np.ndim(strength) < 2:
        return constants("strength", strength, "positive numbers", low=math.ulp(0.0))
    checked = matrix("strength", strength)
    if eigen("strength", checked)[0][0] <= 0:
        raise ValueError("strength: got a singular matrix, expected a positive definite one")
    return frozen(checked)
