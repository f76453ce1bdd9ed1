"""The doubling trick: restart an algorithm that is tuned for a horizon, each time with twice the horizon."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from forel.losses import Loss
from forel.theory.algorithms.algorithm import Bound, Round, first_larger
from forel.theory.algorithms.ftrl import FTRL
from forel.theory.geometries import Euclidean
from forel.theory.norms import L2
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Constant, Doubling
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import Once, Weights
from forel.validation import Unsupported, Vector, whole

if TYPE_CHECKING:
    from forel.theory.analysis import Trace

__all__ = ["DoublingTrick", "doubling_trick"]

EVERYWHERE = Reals()


class DoublingState(NamedTuple):
    """The round, and the state of the algorithm of the present epoch."""

    t: int
    inner: Any


@dataclass(frozen=True, eq=False)
class DoublingTrick:
    r"""Constant-rate FTRL tuned for 1, 2, 4, … rounds, restarted at the end of each horizon.

    Parameters
    ----------
    epochs : the horizons and their rates
    feasible : X

    >>> from forel.losses import Linear
    >>> trick = doubling_trick(radius=1.0, lipschitz=1.0)
    >>> state = trick.update(trick.init(1), Linear([1.0]))
    >>> trick.play(state)  # the epoch of one round is over
    array([0.])

    Survey: section 3.1
    """

    epochs: Doubling
    feasible: FeasibleSet = EVERYWHERE

    penalty: ClassVar[Penalty] = NONE
    weights: ClassVar[Weights] = Once()
    proximal: ClassVar[bool] = False

    @property
    def rate(self) -> Constant:
        """The rate of the first epoch."""
        return self.epochs.rate(0)

    def _algorithm(self, t: int) -> FTRL:
        return FTRL(self.epochs.rate(self.epochs.epoch(t).number), Euclidean(), feasible=self.feasible)

    def init(self, n: int) -> DoublingState:
        """Return the state before round 1."""
        return DoublingState(0, self._algorithm(1).init(whole("n", n, low=1)))

    def play(self, state: DoublingState) -> Vector:
        """Return x_{t+1}, x_1 at the start of an epoch."""
        point: Vector = state.inner.x
        return point

    def update(self, state: DoublingState, loss: Loss) -> DoublingState:
        """Update the epoch's algorithm, or restart at the end of its horizon."""
        t = state.t + 1
        if self.epochs.epoch(t + 1).first_round == t + 1:
            loss.subgradient(state.inner.x)  # evaluated, and discarded with the epoch
            return DoublingState(t, self._algorithm(t + 1).init(state.inner.x.size))
        return DoublingState(t, self._algorithm(t).update(state.inner, loss))

    def initial(self, state: DoublingState) -> Regularizer:
        """Return the first epoch's r_0."""
        return self._algorithm(1).initial(state.inner)

    def added(self, before: DoublingState, loss: Loss, after: DoublingState) -> Round:
        """Raise Unsupported: there is no single objective across restarts."""
        raise Unsupported("the objective restarts with each epoch; the bound is DoublingTrick.bound")

    def bound(self, trace: "Trace", x: Vector) -> Bound:
        """Return the sum of the epochs' bounds, for comparators in X of norm at most R and gradients of at most G."""
        void = "" if self.feasible.contains(x, 1e-9) else "the comparator lies outside X"
        if L2(x) > self.epochs.radius * (1 + 1e-12):
            void = f"the comparator has norm {L2(x):.6g}, more than R = {self.epochs.radius:.6g}"
        void = void or first_larger(trace.gradients, self.epochs.lipschitz, L2)
        total = np.array([self.epochs.bound(t) for t in range(1, trace.rounds + 1)])
        return Bound("doubling trick", total, np.zeros(trace.rounds), void)


def doubling_trick(radius: float, lipschitz: float, feasible: FeasibleSet = EVERYWHERE) -> DoublingTrick:
    r"""Return the doubling trick around $\eta = R/(G\sqrt{T'})$.

    >>> doubling_trick(radius=1.0, lipschitz=1.0).epochs.rate(2)
    Constant(eta=0.5, ...)

    Survey: section 3.1
    """
    return DoublingTrick(Doubling(radius, lipschitz), feasible)
