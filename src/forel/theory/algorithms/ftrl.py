"""Follow-The-Regularized-Leader: Algorithms 1 and 2 of the survey, with composite objectives and feasible sets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.cvx import minimize
from forel.losses import Loss, Total
from forel.losses.functions import plus
from forel.theory.algorithms.algorithm import Round, check_curvature, check_shapes
from forel.theory.algorithms.surrogates import Exact, Linearized, Surrogate
from forel.theory.argmin import Argmin, Minimizer
from forel.theory.geometries import Euclidean, Geometry
from forel.theory.norms import without_rounding
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Rate, Unregularized, strength_increment
from forel.theory.regularizers import Regularizer, gradient_at
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import Once, Weights
from forel.validation import Strength, Unsupported, Vector, refuse, vector, whole

__all__ = ["FTRL", "FTRLState", "follow_the_leader"]

EVERYWHERE = Reals()
ONCE = Once()
LINEARIZED = Linearized()
EXACT = Exact()
Hint = Callable[[int, Vector], Vector]
Center = Literal["first", "played"]


class FTRLState(NamedTuple):
    """The state of FTRL: the sum of losses, and the strength and linear part of r_{0:t}, which determine x_{t+1}.

    ``updated`` is the strength after the last update, before observing features added to it; ``hint`` is m_{t+1}.
    """

    t: int
    first: Vector
    total: Total
    rate: Any
    strength: Strength
    linear: Vector
    x: Vector
    image: Vector | None
    updated: Strength
    hint: Vector | None = None

    @property
    def z(self) -> Vector:
        """The dual state g_{1:t} − Σ ∇φ_σ(center), whose argmin x_{t+1} is."""
        return self.total.g - self.linear


@dataclass(frozen=True, eq=False)
class FTRL:
    r"""$x_{t+1} = \arg\min_{x \in X}\ \bar f_{1:t}(x) + \alpha_{1:t}\Psi(x) + r_{0:t}(x)$, the Native FTRL update.

    Each $r_t$ is a Bregman divergence of strength $\sigma_t = 1/\eta_t - 1/\eta_{t-1}$ around $x_1$ (centered) or
    around $x_t$ (proximal), and $x_1$ is the point of X where the geometry is smallest.

    Parameters
    ----------
    rate : η_t
    geometry : φ, which takes strengths of the rate's shape
    center : what r_t is around, "first" (x_1) or "played" (x_t)
    surrogate : the lower bound that replaces f_t: its tangent, a quadratic, or f_t itself
    penalty, weights : Ψ and α_t
    feasible : X
    hint : $m_{t+1}$, a guess of $g_{t+1}$ from t + 1 and $g_t$ (0 before round 1): one more gradient in the argmin
    start : x_1, the point of X where the geometry is smallest by default; for the entropy, a prior

    >>> from forel.losses import Linear
    >>> from forel.theory.rates import Constant
    >>> descent = FTRL(Constant(0.5), Euclidean())
    >>> state = descent.update(descent.init(2), Linear([1.0, -2.0]))
    >>> descent.play(state)
    array([-0.5,  1. ])

    Survey: Algorithms 1 and 2, and section 5
    """

    rate: Rate[Any]
    geometry: Geometry
    center: Center = "first"
    surrogate: Surrogate = LINEARIZED
    penalty: Penalty = NONE
    weights: Weights = ONCE
    feasible: FeasibleSet = EVERYWHERE
    hint: Hint | None = None
    start: ArrayLike | None = None
    argmin: Argmin = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.center not in ("first", "played"):
            raise refuse("center", self.center, "'first' for regularizers around x_1, or 'played' for those around x_t")
        check_shapes(self.rate, self.geometry)
        check_curvature(self.rate, self.surrogate.keeps_curvature, f"surrogate={self.surrogate}")
        argmin = Argmin(self.geometry, self.penalty, self.feasible)
        shape = 2 if self.surrogate.shape == "matrix" else 0
        object.__setattr__(self, "argmin", argmin.lifted(shape))

    @property
    def proximal(self) -> bool:
        """Whether each r_t is smallest at x_t."""
        return self.center == "played"

    def init(self, n: int) -> FTRLState:
        """Return the state before round 1, whose point x_1 minimizes the geometry over X."""
        n = whole("n", n, low=1)
        first = self.argmin(np.zeros(n), 1.0, weight=0.0) if self.start is None else vector("start", self.start, n)
        if not self.feasible.contains(first):
            raise refuse("start", self.start, f"a point of {self.feasible}")
        rate = self.rate.init(n)
        strength = self.rate.strength(rate)
        linear = self.geometry.gradient(strength, first)
        state = FTRLState(0, first, Total.zero(n), rate, strength, linear, first, None, strength)
        hint = self._hint(1, np.zeros(n))
        if hint is None or not hint.any():
            return state._replace(hint=hint)
        x, image = self._argmin(state.total, linear - hint, strength, 0, rate)
        return state._replace(x=x, image=image, hint=hint)

    def _hint(self, t: int, g: Vector) -> Vector | None:
        return None if self.hint is None else vector("hint", self.hint(t, g), g.size)

    def play(self, state: FTRLState) -> Vector:
        """Return x_{t+1}."""
        return state.x

    @property
    def observes(self) -> bool:
        """Whether the rate uses the features of the next example."""
        return hasattr(self.rate, "observe")

    def observe(self, state: FTRLState, features: Vector) -> FTRLState:
        """Pass the features of the next example to the rate; the strength this adds is around x_1."""
        observe = getattr(self.rate, "observe", None)
        if observe is None:
            return state
        rate = observe(state.rate, features)
        strength = self.rate.strength(rate)
        linear = state.linear + self.geometry.gradient(strength - state.strength, state.first)
        x, image = self._argmin(state.total, _less(linear, state.hint), strength, state.t, rate)
        return state._replace(rate=rate, strength=strength, linear=linear, x=x, image=image)

    def update(self, state: FTRLState, loss: Loss) -> FTRLState:
        """Observe f_t at x_t, add r_t, and find x_{t+1}."""
        x, t = state.x, state.t + 1
        g = loss.subgradient(x)
        total = self.surrogate.add(state.total, loss, x, g)
        rate = self.rate.update(
            state.rate, _less(g, state.hint), loss.strong_convexity if self.surrogate.keeps_curvature else 0.0
        )
        strength = self.rate.strength(rate)
        added = strength - state.strength
        center = (x, state.image) if self.proximal else (state.first, None)
        linear = state.linear + gradient_at(self.geometry, added, *center)
        hint = self._hint(t + 1, g)
        following = self._argmin(total, _less(linear, hint), strength, t, rate)
        return FTRLState(t, state.first, total, rate, strength, linear, *following, strength, hint)

    def _argmin(self, total: Total, linear: Vector, strength: Strength, t: int, rate: Any) -> Minimizer:
        weight = self.weights.total(t)
        curved = bool(np.any(total.curvature))
        if total.quadratic and (not curved or self.geometry.quadratic):
            if curved:
                strength = plus(strength, total.curvature)
            if self.surrogate.shape == "matrix":
                strength = plus(strength, np.zeros((linear.size, linear.size)))
            z = without_rounding(total.g - linear, strength, getattr(rate, "root", 0.0))
            return self.argmin.lifted(np.ndim(strength)).solve_with_image(z, strength, weight)
        factor = self.geometry.factor(strength)

        def objective(x: Any) -> Any:
            regularizer = self.geometry.expression(factor, x) - linear @ x
            return total.expression(x) + weight * self.penalty.expression(x) + regularizer

        return Minimizer(minimize(linear.size, objective, self.feasible.constraints))

    def initial(self, state: FTRLState) -> Regularizer:
        """Return r_0, around x_1."""
        return Regularizer.around(self.geometry, state.strength, state.first)

    def added(self, before: FTRLState, loss: Loss, after: FTRLState) -> Round:
        """Return the round's g_t, its loss as treated, α_tΨ and r_t."""
        x, strength = before.x, strength_increment(before.strength, after.updated)
        center = (x, before.image) if self.proximal else (before.first, None)
        regularizer = Regularizer.around(self.geometry, strength, *center)
        g, treated = loss.subgradient(x), self.surrogate.lower_bound(loss, x)
        if not self.observes:
            return Round(g, treated, self.weights(after.t), self.penalty, regularizer, hint=before.hint)
        observed = Regularizer.around(self.geometry, strength_increment(after.updated, after.strength), before.first)
        return Round(
            g, treated, self.weights(after.t), self.penalty, regularizer + observed, after.updated, before.hint
        )


def _less(v: Vector, hint: Vector | None) -> Vector:
    return v if hint is None else v - hint


def follow_the_leader(feasible: FeasibleSet = EVERYWHERE, surrogate: Surrogate = EXACT) -> FTRL:
    r"""Return Follow-The-Leader, $x_{t+1} = \arg\min_{x \in X} f_{1:t}(x)$, for strongly convex losses.

    In closed form for quadratic losses, by the solver for others. With ``surrogate=QuadraticBound()`` it runs on the
    quadratics below the losses, which is online gradient descent with rate 1/(σt).

    >>> from forel.losses import Quadratic
    >>> leader = follow_the_leader()
    >>> state = leader.init(1)
    >>> for center in (4.0, 1.0, 1.0):
    ...     state = leader.update(state, Quadratic([center]))
    >>> leader.play(state)
    array([2.])

    Survey: section 3.7
    """
    if isinstance(surrogate, Linearized):
        raise Unsupported("surrogate: the leader of linear losses does not exist; use Exact() or QuadraticBound()")
    return FTRL(Unregularized(), Euclidean(), "played", surrogate, feasible=feasible)
