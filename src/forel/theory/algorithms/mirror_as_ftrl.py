"""Mirror Descent in its equivalent FTRL-Proximal form."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from forel.losses import Linear, Loss
from forel.theory.algorithms.algorithm import Round
from forel.theory.algorithms.mirror_descent import MirrorDescent
from forel.theory.algorithms.surrogates import split_curvature
from forel.theory.norms import without_rounding
from forel.theory.penalties import Penalty
from forel.theory.rates import Rate, strength_increment
from forel.theory.regularizers import Regularizer, gradient_at
from forel.theory.sets import FeasibleSet
from forel.theory.weights import Weights
from forel.validation import Strength, Vector

__all__ = ["MirrorAsFTRL", "MirrorAsFTRLState", "as_ftrl_proximal"]


class MirrorAsFTRLState(NamedTuple):
    """Sums of g_s and of g^(Ψ)_s, and the strength and linear part of r^B_{0:t}; the last three as in MirrorState."""

    t: int
    g: Vector
    slopes: Vector
    rate: Any
    strength: Strength
    linear: Vector
    x: Vector
    image: Vector | None
    updated: Strength


@dataclass(frozen=True, eq=False)
class MirrorAsFTRL:
    r"""$x_{t+1} = \arg\min_{x \in X}\ (g_{1:t} + g^{(\Psi)}_{1:t-1}) \cdot x + \alpha_t\Psi(x) + r^B_{0:t}(x)$.

    Here $r^B_t(x) = B_{r_t}(x, x_t)$, and $g^{(\Psi)}_t \in \partial(\alpha_t\Psi + I_X)(x_{t+1})$ is the subgradient
    for which $g_{1:t} + g^{(\Psi)}_{1:t} + \nabla r^B_{0:t}(x_{t+1}) = 0$. The state depends on the point only through
    these sums, so that it plays Mirror Descent's points is a theorem, not a definition.

    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.penalties import l1
    >>> from forel.theory.rates import Constant
    >>> form = as_ftrl_proximal(MirrorDescent(Constant(0.5), Euclidean(), l1(1.0)))
    >>> state = form.update(form.init(2), Linear([0.5, -3.0]))
    >>> form.play(state), state.slopes
    (array([0., 1.]), array([-0.5,  1. ]))

    Survey: Theorem 11
    """

    mirror: MirrorDescent
    proximal: bool = field(init=False, default=True)

    @property
    def rate(self) -> Rate[Any]:
        """The rate of Mirror Descent."""
        return self.mirror.rate

    @property
    def penalty(self) -> Penalty:
        """Ψ."""
        return self.mirror.penalty

    @property
    def weights(self) -> Weights:
        """α_t."""
        return self.mirror.weights

    @property
    def feasible(self) -> FeasibleSet:
        """X."""
        return self.mirror.feasible

    def init(self, n: int) -> MirrorAsFTRLState:
        """Return the state before round 1."""
        start = self.mirror.init(n)
        zero, linear = np.zeros(n), self.mirror.geometry.gradient(start.strength, start.x)
        return MirrorAsFTRLState(0, zero, zero, start.rate, start.strength, linear, start.x, start.image, start.updated)

    def play(self, state: MirrorAsFTRLState) -> Vector:
        """Return x_{t+1}."""
        return state.x

    @property
    def observes(self) -> bool:
        """Whether the rate uses the features of the next example."""
        return self.mirror.observes

    def observe(self, state: MirrorAsFTRLState, features: Vector) -> MirrorAsFTRLState:
        """Pass the features of the next example to the rate; the strength this adds is around x_t."""
        observe = getattr(self.rate, "observe", None)
        if observe is None:
            return state
        rate = observe(state.rate, features)
        strength = self.rate.strength(rate)
        linear = state.linear + gradient_at(self.mirror.geometry, strength - state.strength, state.x, state.image)
        return state._replace(rate=rate, strength=strength, linear=linear)

    def update(self, state: MirrorAsFTRLState, loss: Loss) -> MirrorAsFTRLState:
        """Add g_t and r^B_t, find x_{t+1}, and read g^(Ψ)_t off its optimality."""
        t = state.t + 1
        gradient = loss.subgradient(state.x)
        g = state.g + gradient
        rate = self.rate.update(state.rate, gradient)  # the curvature of f_t is not kept
        strength = self.rate.strength(rate)
        linear = state.linear + gradient_at(self.mirror.geometry, strength - state.strength, state.x, state.image)
        z = without_rounding(g + state.slopes - linear, strength, getattr(rate, "root", 0.0))
        x, image = self.mirror.argmin.solve_with_image(z, strength, self.weights(t))
        slopes = linear - gradient_at(self.mirror.geometry, strength, x, image) - g
        return MirrorAsFTRLState(t, g, slopes, rate, strength, linear, x, image, strength)

    def initial(self, state: MirrorAsFTRLState) -> Regularizer:
        """Return r_0, around x_1."""
        return Regularizer.around(self.mirror.geometry, state.strength, state.x)

    def added(self, before: MirrorAsFTRLState, loss: Loss, after: MirrorAsFTRLState) -> Round:
        """Return the round, with Ψ as its tangent at x_{t+1}."""
        weight = self.weights(after.t)
        slope = after.slopes - before.slopes
        value = weight * self.penalty(after.x) if weight > 0 else 0.0
        tangent = Linear(slope, value - float(slope @ after.x))
        geometry, strength = self.mirror.geometry, strength_increment(before.strength, after.updated)
        bound, strength = split_curvature(loss, before.x, geometry, strength)
        g = after.g - before.g
        regularizer = Regularizer.around(geometry, strength, before.x, before.image)
        if not self.observes:
            return Round(g, bound, 1.0, tangent, regularizer)
        observed = Regularizer.around(geometry, strength_increment(after.updated, after.strength), after.x, after.image)
        return Round(g, bound, 1.0, tangent, regularizer + observed, after.updated)


def as_ftrl_proximal(mirror: MirrorDescent) -> MirrorAsFTRL:
    """Return the FTRL-Proximal algorithm that selects the same points as a Mirror Descent algorithm.

    >>> from forel.theory.geometries import Euclidean
    >>> from forel.theory.rates import Constant
    >>> as_ftrl_proximal(MirrorDescent(Constant(1.0), Euclidean())).proximal
    True

    Survey: Theorem 11
    """
    return MirrorAsFTRL(mirror)
