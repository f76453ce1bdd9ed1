r"""Mirror Descent with a fixed regularizer, in every form in which the survey lists it: Figures 5 and 6.

Throughout, $R = r + I_X$ with $r(x) = B_{\phi_\sigma}(x, x_1)$, so that r is smallest at $x_1$. A form is the step it
takes from one round to the next; which forms select the same points is a theorem about them, not how they are written.

==================== ========================================= ==============================================
form                 lazy                                      greedy
==================== ========================================= ==============================================
explicit             θ_{t+1} = θ_t − g_t, x = ∇R⋆(θ_{t+1})     θ_{t+1} = ∇r(x_t) − g_t, x = ∇R⋆(θ_{t+1})
implicit                                                       argmin g_t·x + B_r(x, x_t) over X
FTRL                 argmin g_{1:t}·x + R(x)                   argmin (g_{1:t} + g^(Ψ)_{1:t−1})·x + R(x)
projection           Π^r_X(∇r⋆(−g_{1:t}))                      Π^r_X(∇r⋆(∇r(x_t) − g_t))
==================== ========================================= ==============================================

Without constraints g^(Ψ) = 0 and nothing is projected, which leaves the four forms of Figure 5, all of them equal.

Survey: Theorems 17, 18 and 19, and Figures 5 and 6
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.losses import Loss
from forel.theory.argmin import Argmin, Minimizer
from forel.theory.geometries import Entropy, Geometry
from forel.theory.norms import eigen
from forel.theory.regularizers import Regularizer, gradient_at
from forel.theory.sets import FeasibleSet, Reals
from forel.validation import Strength, Unsupported, Vector, constants, frozen, matrix, whole

__all__ = ["GREEDY", "LAZY", "UNCONSTRAINED", "Form", "FormState"]

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


def unconstrained(theta: Vector, r: Regularizer) -> Minimizer:
    r"""Return $u = \nabla r^\star(\theta)$ with r on its whole domain.

    For the entropy that is the positive orthant, on which $\log u = (\theta + a)/\sigma - 1$ for r's linear part
    a; u itself may be beyond what floats hold, and is known by its mirror image.

    >>> around_uniform = Regularizer.around(Entropy(), 2.0, np.array([0.5, 0.5]))
    >>> unconstrained(np.array([0.0, 2 * np.log(3)]), around_uniform).x
    array([0.5, 1.5])

    Survey: appendix C.2
    """
    if not isinstance(r.geometry, Entropy):
        return Minimizer(r.conjugate_gradient(theta))
    # The conjugate of the geometry is that on the simplex, where the point is already normalized.
    logarithms: Vector = (theta + r.linear) / r.strength - 1
    with np.errstate(over="ignore"):
        return Minimizer(np.exp(logarithms), 1 + logarithms)


def slope(state: FormState) -> Vector:
    r"""Return $\nabla r(x_t)$."""
    return gradient_at(state.r.geometry, state.r.strength, state.x, state.image) - state.r.linear


def explicit_from_dual(form: Form, state: FormState, g: Vector) -> FormState:
    r"""Step $\theta_{t+1} = \theta_t - g_t$, $x_{t+1} = \nabla R^\star(\theta_{t+1})$.

    Survey: Figure 5, and the lazy column of Figure 6
    """
    theta = state.theta - g
    return state._replace(theta=theta, x=form.conjugate_gradient(theta, state.r))


def explicit_from_point(form: Form, state: FormState, g: Vector) -> FormState:
    r"""Step $\theta_{t+1} = \nabla r(x_t) - g_t$, $x_{t+1} = \nabla R^\star(\theta_{t+1})$, as Beck and Teboulle do.

    Survey: Figure 5, and the greedy column of Figure 6
    """
    theta = slope(state) - g
    x = form.conjugate_gradient(theta, state.r)
    return state._replace(theta=theta, x=x, image=form.solve_with_image(-theta, state.r).image)


def implicit(form: Form, state: FormState, g: Vector) -> FormState:
    r"""Step $x_{t+1} = \arg\min_{x \in X}\ g_t \cdot x + B_r(x, x_t)$.

    Survey: Figure 5, and the greedy column of Figure 6
    """
    near = Regularizer.around(form.geometry, form.strength, state.x, state.image)
    x, image = form.solve_with_image(g, near)
    return state._replace(x=x, image=image)


def ftrl(form: Form, state: FormState, g: Vector) -> FormState:
    r"""Step $x_{t+1} = \arg\min_x\ g_{1:t} \cdot x + R(x)$.

    Survey: Figure 5, and the lazy column of Figure 6
    """
    total = state.g + g
    return state._replace(g=total, x=form.minimizer(total, state.r))


def greedy_ftrl(form: Form, state: FormState, g: Vector) -> FormState:
    r"""Step $x_{t+1} = \arg\min_x\ (g_{1:t} + g^{(\Psi)}_{1:t-1}) \cdot x + R(x)$.

    Here $g^{(\Psi)}_t \in \partial I_X(x_{t+1})$ is the one with $g_{1:t} + g^{(\Psi)}_{1:t} + \nabla r(x_{t+1}) = 0$.
    That this is the greedy column needs $\nabla r(x_1) = 0$, as r around $x_1$ has it: the other three forms start from
    $\nabla r(x_1)$, this one from 0.

    Survey: Figure 6, greedy
    """
    total = state.g + g
    x, image = form.solve_with_image(total + state.slopes, state.r)
    after = state._replace(g=total, x=x, image=image)
    return after._replace(slopes=-total - slope(after))


def lazy_projection(form: Form, state: FormState, g: Vector) -> FormState:
    r"""Step $u_{t+1} = \arg\min_u\ g_{1:t} \cdot u + r(u)$, $x_{t+1} = \Pi^r_X(u_{t+1})$.

    Survey: Figure 6, lazy
    """
    total = state.g + g
    return state._replace(g=total, x=form.project_from(unconstrained(-total, state.r)).x)


def greedy_projection(form: Form, state: FormState, g: Vector) -> FormState:
    r"""Step $u_{t+1} = \nabla r^\star(\nabla r(x_t) - g_t)$, $x_{t+1} = \Pi^r_X(u_{t+1})$.

    Survey: Figure 6, greedy
    """
    x, image = form.project_from(unconstrained(slope(state) - g, state.r))
    return state._replace(x=x, image=image)


def _everywhere(step: Step, geometry: Geometry, strength: ArrayLike, feasible: FeasibleSet = EVERYWHERE) -> Form:
    """Return a form of Figure 5; raise Unsupported with a constraint, under which the forms differ."""
    if not isinstance(feasible, Reals):
        raise Unsupported(
            f"feasible: got {feasible}, expected Reals(); with constraints, take a form of LAZY or GREEDY"
        )
    return Form(step, geometry, strength)


# Each builds a form from geometry, strength and feasible set.
UNCONSTRAINED: Mapping[str, Callable[..., Form]] = {
    "explicit from the dual": partial(_everywhere, explicit_from_dual),
    "explicit from the point": partial(_everywhere, explicit_from_point),
    "implicit": partial(_everywhere, implicit),
    "FTRL": partial(_everywhere, ftrl),
}
LAZY: Mapping[str, Callable[..., Form]] = {
    "explicit": partial(Form, explicit_from_dual),
    "FTRL": partial(Form, ftrl),
    "projection": partial(Form, lazy_projection),
}
GREEDY: Mapping[str, Callable[..., Form]] = {
    "explicit": partial(Form, explicit_from_point),
    "implicit": partial(Form, implicit),
    "FTRL": partial(Form, greedy_ftrl),
    "projection": partial(Form, greedy_projection),
}
