"""Delayed gradients: FTRL on those that have arrived, which is FTRL with a hint."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from forel.losses import Loss, linear_bound
from forel.theory.algorithms.algorithm import Algorithm, Round
from forel.theory.algorithms.ftrl import FTRL
from forel.theory.algorithms.surrogates import Linearized
from forel.theory.geometries import Diagonal
from forel.theory.norms import without_rounding
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import DiagonalAdaGrad, Rate, strength_increment
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import Once, Weights
from forel.validation import Strength, Unsupported, Vector, positive, whole

__all__ = ["Delayed", "delay_tolerant_adagrad", "delayed", "huber"]

EVERYWHERE = Reals()


def huber(error: Any, length: Any) -> Any:
    r"""Return $a^2 - \max(a - b, 0)^2 \le \min(a^2, 2ab)$: twice Huber's loss, of a hint wrong by a of a gradient b.

    >>> [float(huber(*pair)) for pair in ((0.5, 2.0), (3.0, 1.0), (1.0, 1.0))]
    [0.25, 5.0, 1.0]

    After Flaspohler et al., "Online learning with optimism and delay" (2021).
    """
    over = np.maximum(error - length, 0.0)
    return (error - over) * (error + over)


class Late(NamedTuple):
    """A gradient, the last round whose point does not use it, and the hint in its round."""

    until: int
    g: Vector
    hint: Vector


class DelayedState(NamedTuple):
    """The sum of gradients that the rate has seen, those that it has not, and the strength of r_{0:t}, around x_1."""

    t: int
    first: Vector
    total: Vector
    late: tuple[Late, ...]
    rate: Any
    strength: Strength
    x: Vector
    hint: Vector


@dataclass(frozen=True, eq=False)
class Delayed:
    r"""$x_t = \arg\min_{x \in X} \sum_{s < t, s \notin U_t} g_s \cdot x + r_{0:t-1}(x)$, $U_t$ being outstanding.

    It is FTRL with the hint $m_t = -\sum_{s \in U_t} g_s$, so that every result about hints is one about delays. The
    rate sees a gradient once all earlier ones are there, as the root of Huber's loss of $g_t - m_t$ and $g_t$.

    Parameters
    ----------
    inner : the algorithm without delays: FTRL on linearized losses around x_1, without a penalty
    delays : by how many rounds each gradient is late; the last one goes on

    >>> from forel.losses import Linear
    >>> from forel.theory.algorithms import gradient_descent
    >>> late = delayed(gradient_descent(1.0), 1)
    >>> state = late.update(late.init(1), Linear([1.0]))
    >>> late.play(state), late.play(late.update(state, Linear([1.0])))
    (array([0.]), array([-1.]))

    After Flaspohler et al., "Online learning with optimism and delay" (2021).
    """

    inner: FTRL
    delays: tuple[int, ...]

    proximal: ClassVar[bool] = False
    penalty: ClassVar[Penalty] = NONE
    weights: ClassVar[Weights] = Once()

    @property
    def rate(self) -> Rate[Any]:
        """η_t."""
        return self.inner.rate

    @property
    def feasible(self) -> FeasibleSet:
        """X."""
        return self.inner.feasible

    def init(self, n: int) -> DelayedState:
        """Return the state before round 1."""
        start, nothing = self.inner.init(n), np.zeros(n)
        return DelayedState(0, start.first, nothing, (), start.rate, start.strength, start.x, nothing)

    def play(self, state: DelayedState) -> Vector:
        """Return x_{t+1}."""
        return state.x

    def update(self, state: DelayedState, loss: Loss) -> DelayedState:
        """Keep g_t until it arrives, and find x_{t+1} from the gradients that are there."""
        t, g = state.t + 1, loss.subgradient(state.x)
        late = [*state.late, Late(t + self.delays[min(t, len(self.delays)) - 1], g, state.hint)]
        total, rate = state.total, state.rate
        while late and late[0].until <= t:
            seen = late.pop(0)
            total, rate = total + seen.g, self.rate.update(rate, self._measured(seen))
        zero, strength = np.zeros_like(g), self.rate.strength(rate)
        there = sum((one.g for one in late if one.until <= t), total)
        missing = sum((one.g for one in late if one.until > t), zero)
        geometry = self.inner.geometry
        z = there - geometry.gradient(strength, state.first)
        z = without_rounding(z, strength, getattr(rate, "root", 0.0))
        x = self.inner.argmin.solve(z, strength)
        return DelayedState(t, state.first, total, tuple(late), rate, strength, x, -missing)

    def _measured(self, seen: Late) -> Vector:
        """Return what the rate sees: for each coordinate, or in its norm."""
        error = seen.g - seen.hint
        if self.rate.shape == "diagonal":
            root: Vector = np.sqrt(huber(np.abs(error), np.abs(seen.g)))
            return root
        norm = self.rate.gradient_norm
        length = norm(error)
        return error * math.sqrt(huber(length, norm(seen.g))) / length if length else error

    def initial(self, state: DelayedState) -> Regularizer:
        """Return r_0, around x_1."""
        return Regularizer.around(self.inner.geometry, state.strength, state.first)

    def added(self, before: DelayedState, loss: Loss, after: DelayedState) -> Round:
        """Return the round, with minus the sum of what was outstanding as its hint."""
        bound, strength = linear_bound(loss, before.x), strength_increment(before.strength, after.strength)
        regularizer = Regularizer.around(self.inner.geometry, strength, before.first)
        return Round(bound.g, bound, self.weights(after.t), NONE, regularizer, hint=before.hint)


def delayed(algorithm: Algorithm, delays: int | Sequence[int]) -> Delayed:
    """Return an algorithm whose gradients arrive late; raise Unsupported where nothing is proved.

    >>> from forel.theory.algorithms import greedy_projection
    >>> from forel.theory.sets import Box
    >>> delayed(greedy_projection(1.0, Box(-1, 1)), 3)
    Traceback (most recent call last):
    forel.validation.Unsupported: delays: these need FTRL around x_1 on linearized losses, without penalty or hint

    After Flaspohler et al., "Online learning with optimism and delay" (2021).
    """
    if (
        not isinstance(algorithm, FTRL)
        or not isinstance(algorithm.surrogate, Linearized)
        or algorithm.proximal
        or algorithm.penalty is not NONE
        or algorithm.hint is not None
        or algorithm.observes
    ):
        raise Unsupported("delays: these need FTRL around x_1 on linearized losses, without penalty or hint")
    found = np.atleast_1d(np.asarray(delays, object)).tolist()
    return Delayed(algorithm, tuple(whole("delays", one) for one in found))


def delay_tolerant_adagrad(radius: float, lipschitz: float, delay: int, feasible: FeasibleSet = EVERYWHERE) -> FTRL:
    r"""Return dual averaging with $\eta_{t,i} = \frac{R}{\sqrt2}\bigl((D+1)(2D+1)G^2 + \sum 2q_{s,i}\bigr)^{-1/2}$.

    The sum is over arrived rounds s, and $q_{s,i}$ is Huber's loss of $|g_{s,i} + \sum_{r \in U_s} g_{r,i}|$ and
    $|g_{s,i}|$: what round s cost, delay included. The constant $(D+1)(2D+1)G^2$, for the D + 1 rounds of which that
    is not known yet, is our own.

    Parameters
    ----------
    radius : R, with $|x^*_i| \le R$
    lipschitz : G, with $|g_{t,i}| \le G$
    delay : D, the largest number of gradients outstanding

    >>> delay_tolerant_adagrad(1.0, 1.0, 0).rate.offset
    1.0

    After Flaspohler et al., "Online learning with optimism and delay" (2021), and McMahan and Streeter, "Delay-tolerant
    algorithms for asynchronous distributed online learning" (2014).
    """
    delay = whole("delay", delay)
    offset = positive("lipschitz", lipschitz) * math.sqrt((delay + 1) * (2 * delay + 1))
    return FTRL(DiagonalAdaGrad(positive("radius", radius) / math.sqrt(2), offset), Diagonal(), feasible=feasible)
