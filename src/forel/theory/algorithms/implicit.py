"""Implicit updates: a step that does not linearize the loss."""

from dataclasses import dataclass, field
from typing import Any

from scipy.optimize import brentq

from forel.cvx import minimize
from forel.losses import Example, Loss
from forel.theory.algorithms.algorithm import Round
from forel.theory.algorithms.mirror_descent import MirrorDescent, MirrorState
from forel.theory.argmin import Minimizer
from forel.theory.geometries import Geometry
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Rate
from forel.theory.regularizers import Regularizer, gradient_at
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import EveryRound, Weights
from forel.validation import Strength, Unsupported, Vector

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
        raise Unsupported("the survey proves no bound for implicit updates; use MirrorDescent for one that has a proof")
