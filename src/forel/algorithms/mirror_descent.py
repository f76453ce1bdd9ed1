"""Adaptive composite Mirror Descent, whose state is the point itself."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from forel.algorithms.algorithm import Round, check_shapes
from forel.argmin import Argmin
from forel.checks import Strength, Vector, whole
from forel.geometries import Geometry
from forel.losses import Linear, Loss, linear_bound
from forel.penalties import NONE, Penalty
from forel.rates import Rate, increment
from forel.regularizers import Regularizer
from forel.sets import FeasibleSet, Reals
from forel.weights import EveryRound, Weights

__all__ = ["MirrorDescent", "MirrorState"]

EVERYWHERE = Reals()
EVERY_ROUND = EveryRound()


class MirrorState(NamedTuple):
    """What Mirror Descent keeps: the point, and what the rate needs."""

    t: int
    rate: Any
    strength: Strength
    x: Vector


@dataclass(frozen=True, eq=False)
class MirrorDescent:
    r"""$x_{t+1} = \arg\min_{x \in X}\ g_t \cdot x + \alpha_t\Psi(x) + B_{r_{0:t}}(x, x_t)$.

    Only this round's penalty is kept as it is; earlier ones live on as subgradients inside the point. The feasible set
    is a penalty of every round (greedy projection).

    Parameters
    ----------
    rate : η_t
    geometry : φ, with $r_{0:t} = \phi_{1/\eta_t}$
    penalty, weights : Ψ and α_t
    feasible : X

    >>> from forel.geometries import Euclidean
    >>> from forel.penalties import l1
    >>> from forel.rates import Constant
    >>> fobos = MirrorDescent(Constant(0.5), Euclidean(), l1(1.0))
    >>> state = fobos.update(fobos.init(2), Linear([0.5, -3.0]))
    >>> fobos.play(state)
    array([0., 1.])

    Survey: section 6
    """

    rate: Rate[Any]
    geometry: Geometry
    penalty: Penalty = NONE
    weights: Weights = EVERY_ROUND
    feasible: FeasibleSet = EVERYWHERE
    proximal: bool = field(init=False, default=True)
    argmin: Argmin = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_shapes(self.rate, self.geometry)
        object.__setattr__(self, "argmin", Argmin(self.geometry, self.penalty, self.feasible))

    def init(self, n: int) -> MirrorState:
        """Return the state before round 1, at the point of X where the geometry is smallest."""
        n = whole("n", n, low=1)
        rate = self.rate.init(n)
        return MirrorState(0, rate, self.rate.strength(rate), self.argmin(np.zeros(n), 1.0, weight=0.0))

    def play(self, state: MirrorState) -> Vector:
        """Return x_{t+1}."""
        return state.x

    def see(self, state: MirrorState, features: Vector) -> MirrorState:
        """Show the features of the example to come to a rate that looks at them."""
        see = getattr(self.rate, "see", None)
        if see is None:
            return state
        rate = see(state.rate, features)
        return state._replace(rate=rate, strength=self.rate.strength(rate))

    def update(self, state: MirrorState, loss: Loss) -> MirrorState:
        """Step against g_t from x_t, with this round's penalty."""
        t, g = state.t + 1, loss.subgradient(state.x)
        rate = self.rate.update(state.rate, g, loss.strong_convexity)
        strength = self.rate.strength(rate)
        z = g - self.geometry.gradient(strength, state.x)
        return MirrorState(t, rate, strength, self.argmin.solve(z, strength, self.weights(t)))

    def initial(self, state: MirrorState) -> Regularizer:
        """Return r_0, around x_1."""
        return Regularizer.around(self.geometry, state.strength, state.x)

    def added(self, before: MirrorState, loss: Loss, after: MirrorState) -> Round:
        r"""Return the round in its FTRL-Proximal form: Ψ as its tangent at $x_{t+1}$, and $r_t = B_{r_t}(x, x_t)$."""
        x, following, weight = before.x, after.x, self.weights(after.t)
        bound = linear_bound(loss, x)
        moved = self.geometry.gradient(after.strength, x) - self.geometry.gradient(after.strength, following)
        slope = moved - bound.g  # g^(Ψ)_t, a subgradient of α_tΨ + I_X at x_{t+1}
        value = weight * self.penalty(following) if weight > 0 else 0.0
        tangent = Linear(slope, value - float(slope @ following))
        regularizer = Regularizer.around(self.geometry, increment(self.rate, before.rate, after.rate), x)
        return Round(bound.g, bound, 1.0, tangent, regularizer)
