"""AdaHedge: a rule for all convex losses, with a rate that depends on the data."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.losses.sigmoid import log_normalized
from forel.validation import Vector, vector, whole

__all__ = ["AdaHedge", "AdaHedgeState"]

FINITE = "; an infinite loss needs exponential weights, or probabilities kept away from 0 and 1"


class AdaHedgeState(NamedTuple):
    """Rounds, ℓ_{1:t}, the mixability gap Δ_t, the largest range S, √Σ of squared ranges, and log weights."""

    rounds: int
    totals: Vector
    gap: float
    largest: float
    root: float
    log_weights: Vector
    void: str = ""  # the bound always holds


@dataclass(frozen=True)
class AdaHedge:
    r"""$w_{t+1,k} \propto e^{-\eta_{t+1} \ell_{1:t,k}}$ with $\eta_{t+1} = \log K / \Delta_t$, for losses of any size.

    The mixability gap $\Delta_t = \sum_{s \le t} \bigl(w_s \cdot \ell_s + \frac1{\eta_s}\log\sum_k w_{s,k}
    e^{-\eta_s\ell_{s,k}}\bigr)$ is the cost of mixing; regret is at most $2\Delta_T$, which is known at any time.
    With $s_t$ the range of losses in round t, it is in turn at most
    $\sqrt{\sum_t s_t^2 \log K} + \max_t s_t\,(\frac43\log K + 2)$ (:meth:`worst`). Nothing is assumed about the
    losses, and weights do not depend on their offset or scale.

    >>> rule = AdaHedge()
    >>> state = rule.init(2)
    >>> for losses in ([1.0, 0.0], [0.0, 1.0], [1.0, 0.0]):
    ...     state = rule.update(state, losses)
    >>> rule.play(state).round(3), rule.bound(state)
    (array([0.289, 0.711]), array([1.536..., 1.536...]))

    Survey: section 3.6, with the rate of S. de Rooij, T. van Erven, P. Grünwald and W. Koolen, "Follow the leader if
    you can, hedge if you must" (2014)
    """

    eta: ClassVar[float] = 0.0

    @property
    def result(self) -> str:
        """A short description of the bound."""
        return "AdaHedge, twice the mixability gap"

    def init(self, n: int) -> AdaHedgeState:
        """Return uniform weights over n experts."""
        n = whole("n", n, low=1)
        return AdaHedgeState(0, np.zeros(n), 0.0, 0.0, 0.0, np.full(n, -math.log(n)))

    def play(self, state: AdaHedgeState) -> Vector:
        """Return w_{t+1}."""
        return np.exp(state.log_weights)

    def update(self, state: AdaHedgeState, losses: ArrayLike) -> AdaHedgeState:
        """Add the losses and their mixability gap, and update the rate."""
        losses = _finite(losses, state.totals.size)
        excess = losses - losses.min()  # weights do not depend on an offset; removing it keeps the sums accurate
        expected, mix_loss, log = float(np.exp(state.log_weights) @ excess), 0.0, math.log(losses.size)
        if state.gap > 0:  # before, the rate is infinite and all experts have the same total loss
            mix_loss = -float(np.logaddexp.reduce(state.log_weights - log * (excess / state.gap))) * state.gap / log
        gap = state.gap + max(0.0, expected - mix_loss)
        totals = state.totals + excess
        totals -= totals.min()
        log_weights = log_normalized(-log * (totals / gap)) if gap > 0 else state.log_weights
        span = float(excess.max())
        largest, root = max(state.largest, span), math.hypot(state.root, span)
        return AdaHedgeState(state.rounds + 1, totals, gap, largest, root, log_weights)

    def bound(self, state: AdaHedgeState) -> Vector:
        """Return 2Δ_T, the same for all experts."""
        return np.full(state.totals.size, 2 * state.gap)

    def worst(self, state: AdaHedgeState) -> float:
        """Return the bound in terms of the ranges of losses alone."""
        log = math.log(state.totals.size)
        return state.root * math.sqrt(log) + state.largest * (4 / 3 * log + 2)


def _finite(losses: ArrayLike, n: int) -> Vector:
    try:
        return vector("losses", losses, n)
    except ValueError as error:
        raise ValueError(f"{error}{FINITE if 'inf' in str(error) else ''}") from None
