"""The steps: the seven different updates that both figures are made of.

Survey: Figures 5 and 6
"""

import numpy as np

from forel.theory.algorithms.forms.form import Form, FormState
from forel.theory.argmin import Minimizer
from forel.theory.geometries import Entropy
from forel.theory.regularizers import Regularizer, gradient_at
from forel.validation import Vector

__all__ = [
    "explicit_from_dual",
    "explicit_from_point",
    "ftrl",
    "greedy_ftrl",
    "greedy_projection",
    "implicit",
    "lazy_projection",
    "unconstrained",
]


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
