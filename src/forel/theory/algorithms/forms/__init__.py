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

Survey: Theorems 17, 18 and 19
"""

from collections.abc import Callable, Mapping
from functools import partial

from numpy.typing import ArrayLike

from forel.theory.algorithms.forms import steps
from forel.theory.algorithms.forms.form import EVERYWHERE, Form, FormState, Step
from forel.theory.geometries import Geometry
from forel.theory.sets import FeasibleSet, Reals
from forel.validation import Unsupported

__all__ = ["GREEDY", "LAZY", "UNCONSTRAINED", "Form", "FormState"]


def _everywhere(
    step: Step,
    geometry: Geometry,
    strength: ArrayLike,
    feasible: FeasibleSet = EVERYWHERE,
) -> Form:
    """Return a form of Figure 5; raise Unsupported with a constraint, under which the forms differ."""
    if not isinstance(feasible, Reals):
        raise Unsupported(
            f"feasible: got {feasible}, expected Reals(); with constraints, take a form of LAZY or GREEDY"
        )
    return Form(step, geometry, strength)


# Each builds a form from geometry, strength and feasible set.
UNCONSTRAINED: Mapping[str, Callable[..., Form]] = {
    "explicit from the dual": partial(_everywhere, steps.explicit_from_dual),
    "explicit from the point": partial(_everywhere, steps.explicit_from_point),
    "implicit": partial(_everywhere, steps.implicit),
    "FTRL": partial(_everywhere, steps.ftrl),
}
LAZY: Mapping[str, Callable[..., Form]] = {
    "explicit": partial(Form, steps.explicit_from_dual),
    "FTRL": partial(Form, steps.ftrl),
    "projection": partial(Form, steps.lazy_projection),
}
GREEDY: Mapping[str, Callable[..., Form]] = {
    "explicit": partial(Form, steps.explicit_from_point),
    "implicit": partial(Form, steps.implicit),
    "FTRL": partial(Form, steps.greedy_ftrl),
    "projection": partial(Form, steps.greedy_projection),
}
