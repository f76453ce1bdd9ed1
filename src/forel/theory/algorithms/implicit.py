"""Implicit updates: a step that does not linearize the loss."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from forel.cvx import minimize
from forel.losses import Example, Loss
from forel.theory.algorithms.algorithm import Bound, Round
from forel.theory.algorithms.mirror_descent import MirrorDescent, MirrorState
from forel.theory.argmin import Minimizer
from forel.theory.geometries import Geometry
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Rate, strength_increment
from forel.theory.regularizers import Regularizer, gradient_at
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import EveryRound, Weights
from forel.validation import Strength, Unsupported, Vector

if TYPE_CHECKING:
    from forel.theory.analysis import Trace

__all__ = ["Implicit"]

EVERYWHERE = Reals()
EVERY_ROUND = EveryRound()


@dataclass(frozen=True, eq=False)
class Implicit:
    r"""$x_{t+1} = \arg\min_{x \in X}\ f_t(x) + \alpha_t\Psi(x) + B_{r_{0:t}}(x, x_t)$.

    For a loss of a margin the only unknown is a number: $x_{t+1}$ is Mirror Descent's step for the slope
    $s \in \partial\ell(a \cdot x_{t+1}, y)$, and $s - \ell'(a \cdot x(s))$ grows with s. Other losses go to the solver.

    Parameters
    ----------
    rate, geometry, penalty, weights, feasible : as in :class:`MirrorDescent`

    >>> from forel.theory.geometries import Euclidean
    >>> from forel.losses import Squared
    >>> from forel.theory.rates import Constant
    >>> implicit = Implicit(Constant(1e6), Euclidean())
    >>> state = implicit.update(implicit.init(1), Example(Squared(), [2.0], 3.0))
    >>> implicit.play(state).round(3)  # however large the rate, it never steps past the label
    array([1.5])

    Survey: section 6, equation (implicit)
    """

    rate: Rate[Any]
    geometry: Geometry
    penalty: Penalty = NONE
    weights: Weights = EVERY_ROUND
    feasible: FeasibleSet = EVERYWHERE
    proximal: bool = field(init=False, default=True)
    mirror: MirrorDescent = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mirror = MirrorDescent(self.rate, self.geometry, self.penalty, self.weights, self.feasible)
        object.__setattr__(self, "mirror", mirror)

    def init(self, n: int) -> MirrorState:
        """Return the state before round 1."""
        return self.mirror.init(n)

    def play(self, state: MirrorState) -> Vector:
        """Return x_{t+1}."""
        return state.x

    @property
    def observes(self) -> bool:
        """Whether the rate uses the features of the next example."""
        return self.mirror.observes

    def observe(self, state: MirrorState, features: Vector) -> MirrorState:
        """Pass the features of the next example to the rate."""
        return self.mirror.observe(state, features)

    def update(self, state: MirrorState, loss: Loss) -> MirrorState:
        """Minimize the loss itself near x_t."""
        t = state.t + 1
        rate = self.rate.update(state.rate, loss.subgradient(state.x))  # the curvature of f_t is used in this step only
        strength, weight = self.rate.strength(rate), self.weights(t)
        pull = gradient_at(self.geometry, strength, state.x, state.image)
        if isinstance(loss, Example) and not loss.loss.joint:
            following = self._margin(loss, pull, strength, weight)
        else:
            following = self._program(loss, pull, strength, weight)
        return MirrorState(t, rate, strength, *following, strength)

    def _margin(self, loss: Example, pull: Vector, strength: Strength, weight: float) -> Minimizer:
        def point(slope: float) -> Vector:
            return self.mirror.argmin.solve(slope * loss.features - pull, strength, weight)

        def excess(slope: float) -> float:
            return slope - float(loss.loss.slope(loss.features @ point(slope), loss.label))

        # The farther it steps the flatter the loss, so the slope lies between none and the one without a step.
        steepest = -excess(0.0)
        slope = steepest
        if steepest * excess(steepest) > 0:  # otherwise there is no step, or one that rounding hides in a·x
            slope = float(brentq(excess, *sorted((0.0, steepest)), xtol=1e-300, rtol=1e-15, maxiter=500))
        return self.mirror.argmin.solve_with_image(slope * loss.features - pull, strength, weight)

    def _program(self, loss: Loss, pull: Vector, strength: Strength, weight: float) -> Minimizer:
        factor = self.geometry.factor(strength)

        def objective(x: Any) -> Any:
            near = self.geometry.expression(factor, x) - pull @ x
            return loss.expression(x) + weight * self.penalty.expression(x) + near

        return Minimizer(minimize(pull.size, objective, self.feasible.constraints))

    def initial(self, state: MirrorState) -> Regularizer:
        """Return r_0, around x_1."""
        return self.mirror.initial(state)

    def added(self, before: MirrorState, loss: Loss, after: MirrorState) -> Round:
        """Raise Unsupported: the survey's lemmas are about losses linearized at x_t."""
        raise Unsupported("the survey proves no bound for implicit updates; they have one of their own, Implicit.bound")

    def bound(self, trace: "Trace", x: Vector) -> Bound:
        r"""Return $r^B_{0:T}(x^*) + \sum_t F_t(x_t) - F_t(x_{t+1}) - B_{r_{0:t}}(x_{t+1}, x_t)$.

        Here $F_t = f_t + \alpha_t\Psi$. Each term of the sum is between 0 and $\frac12\|g_t\|^2_{(t),\star}$, of a
        subgradient of $F_t$: never worse than Mirror Descent, and 0 where the loss does not change on the way.

        After Campolongo and Orabona, "Temporal variability in implicit online learning" (2020).
        """
        if self.observes or not (self.feasible.contains(x, 1e-9) and self.penalty(x) < math.inf):
            void = "the rate uses features" if self.observes else "the comparator lies outside X"
            return Bound("implicit updates", void=void)
        kept, spent = [], []
        start = self.mirror.initial(trace.states[0])(x)
        for t, (before, loss, after) in enumerate(zip(trace.states, trace.losses, trace.states[1:], strict=False), 1):
            weight = self.weights(t)
            near = Regularizer.around(self.geometry, after.strength, before.x, before.image)
            added = strength_increment(before.strength, after.strength)
            kept.append(Regularizer.around(self.geometry, added, before.x, before.image)(x))
            moved = weight * (self.penalty(before.x) - self.penalty(after.x)) if weight else 0.0
            spent.append(loss(before.x) - loss(after.x) + moved - near(after.x))
        return Bound("implicit updates", start + np.cumsum(kept), np.array(spent))
