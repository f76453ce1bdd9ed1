"""Adaptive composite Mirror Descent, whose state is the point itself."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from forel.losses import Linear, Loss
from forel.theory.algorithms.algorithm import Round, check_curvature, check_shapes
from forel.theory.algorithms.surrogates import split_curvature
from forel.theory.argmin import Argmin
from forel.theory.geometries import Geometry
from forel.theory.norms import without_rounding
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Rate, strength_increment
from forel.theory.regularizers import Regularizer, gradient_at
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import EveryRound, Weights
from forel.validation import Strength, Vector, whole

__all__ = ["MirrorDescent", "MirrorState", "fobos"]

EVERYWHERE = Reals()
EVERY_ROUND = EveryRound()


class MirrorState(NamedTuple):
    """The state of Mirror Descent: the point, its mirror image, and the rate's state.

    ``updated`` is the strength after the last update, before observing features added to it.
    """

    t: int
    rate: Any
    strength: Strength
    x: Vector
    image: Vector | None
    updated: Strength


@dataclass(frozen=True, eq=False)
class MirrorDescent:
    r"""$x_{t+1} = \arg\min_{x \in X}\ g_t \cdot x + \alpha_t\Psi(x) + B_{r_{0:t}}(x, x_t)$.

    Only this round's penalty is kept exactly; earlier ones enter as subgradients through the point. The feasible set
    is a penalty of every round (greedy projection).

    Parameters
    ----------
    rate : η_t
    geometry : φ, with $r_{0:t} = \phi_{1/\eta_t}$
    penalty, weights : Ψ and α_t
    feasible : X

    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.penalties import l1
    >>> from forel.theory.rates import Constant
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
        check_curvature(self.rate, False, "Mirror Descent")
        object.__setattr__(self, "argmin", Argmin(self.geometry, self.penalty, self.feasible))

    def init(self, n: int) -> MirrorState:
        """Return the state before round 1, at the point of X where the geometry is smallest."""
        n = whole("n", n, low=1)
        rate = self.rate.init(n)
        strength, x = self.rate.strength(rate), self.argmin(np.zeros(n), 1.0, weight=0.0)
        return MirrorState(0, rate, strength, x, None, strength)

    def play(self, state: MirrorState) -> Vector:
        """Return x_{t+1}."""
        return state.x

    @property
    def observes(self) -> bool:
        """Whether the rate uses the features of the next example."""
        return hasattr(self.rate, "observe")

    def observe(self, state: MirrorState, features: Vector) -> MirrorState:
        """Pass the features of the next example to the rate; the strength this adds is around x_t."""
        observe = getattr(self.rate, "observe", None)
        if observe is None:
            return state
        rate = observe(state.rate, features)
        return state._replace(rate=rate, strength=self.rate.strength(rate))

    def update(self, state: MirrorState, loss: Loss) -> MirrorState:
        """Step against g_t from x_t, with this round's penalty."""
        t, g = state.t + 1, loss.subgradient(state.x)
        rate = self.rate.update(state.rate, g)  # the curvature of f_t is not kept
        strength = self.rate.strength(rate)
        z = g - gradient_at(self.geometry, strength, state.x, state.image)
        z = without_rounding(z, strength, getattr(rate, "root", 0.0))
        return MirrorState(t, rate, strength, *self.argmin.solve_with_image(z, strength, self.weights(t)), strength)

    def initial(self, state: MirrorState) -> Regularizer:
        """Return r_0, around x_1."""
        return Regularizer.around(self.geometry, state.strength, state.x)

    def added(self, before: MirrorState, loss: Loss, after: MirrorState) -> Round:
        r"""Return the round in its FTRL-Proximal form: Ψ as its tangent at $x_{t+1}$, and $r_t = B_{r_t}(x, x_t)$."""
        x, following, weight = before.x, after.x, self.weights(after.t)
        g, strength = loss.subgradient(x), strength_increment(before.strength, after.updated)
        bound, strength = split_curvature(loss, x, self.geometry, strength)
        ends = [gradient_at(self.geometry, after.updated, s.x, s.image) for s in (before, after)]
        slope = ends[0] - ends[1] - g  # g^(Ψ)_t, a subgradient of α_tΨ + I_X at x_{t+1}
        value = weight * self.penalty(following) if weight > 0 else 0.0
        tangent = Linear(slope, value - float(slope @ following))
        regularizer = Regularizer.around(self.geometry, strength, x, before.image)
        if not self.observes:
            return Round(g, bound, 1.0, tangent, regularizer)
        observed = Regularizer.around(
            self.geometry, strength_increment(after.updated, after.strength), following, after.image
        )
        return Round(g, bound, 1.0, tangent, regularizer + observed, after.updated)


def fobos(rate: Rate[Any], geometry: Geometry, penalty: Penalty, feasible: FeasibleSet = EVERYWHERE) -> MirrorDescent:
    r"""Return FOBOS, Mirror Descent with a penalty in every round, $\arg\min g_t \cdot x + \Psi(x) + \frac{1}{2\eta_t}\|x - x_t\|^2$.

    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.penalties import l1
    >>> from forel.theory.rates import Constant
    >>> fobos(Constant(0.1), Euclidean(), l1(0.5)).weights
    EveryRound()

    Survey: section 6.2
    """  # noqa: E501
    return MirrorDescent(rate, geometry, penalty, EveryRound(), feasible)
