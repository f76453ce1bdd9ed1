"""Experts one round at a time: state in, state out."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.exponential import ExponentialWeights
from forel.experts.guarantee import Guarantee
from forel.experts.hedge import AdaHedge
from forel.experts.log_loss import Probabilities
from forel.experts.pool import Pool
from forel.experts.rule import Rule
from forel.validation import Vector, refuse, whole

__all__ = ["Panel", "Tally", "guarantee", "rule_for"]

PROBABILITIES = Probabilities()


class Tally(NamedTuple):
    """The rule's state, and what the mixture and each expert lost so far."""

    rule: Any
    loss: float
    totals: Vector

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return int(self.rule.rounds)


@dataclass(frozen=True)
class Panel:
    """Experts whose predictions are mixed as they come; whatever makes them, the proof holds.

    Parameters
    ----------
    pool : what they predict, and what it costs
    rule : how they are weighed; exponential weights at the pool's η if not given, AdaHedge where that is 0
    names : of the experts, to be used in words

    >>> panel = Panel(names=("rain as yesterday", "rain one day in three"))
    >>> state, yesterday = panel.init(2), 1
    >>> for rained in (1, 1, 0, 0, 0, 1, 1, 1, 1, 1):
    ...     predictions = [0.8 if yesterday else 0.2, 1 / 3]
    ...     p = panel.predict(state, predictions)  # before it is known whether it rains
    ...     state = panel.update(state, predictions, rained)
    ...     yesterday = rained
    >>> panel.weights(state).round(2)
    array([0.98, 0.02])
    >>> print(panel.guarantee(state))
    within 0.070 per example of the best of 2 experts, which is rain as yesterday (0.5004 per example)

    Survey: section 3.6
    """

    pool: Pool = PROBABILITIES
    rule: Rule | None = None
    names: tuple[str, ...] | None = None
    weigh: Rule = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weigh", rule_for(self.pool, self.rule))

    def init(self, n: int) -> Tally:
        """Return the state before round 1, for n experts."""
        n = whole("n", n, low=1)
        if self.names is not None and len(self.names) != n:
            raise refuse("n", n, f"{len(self.names)}, one for each name")
        return Tally(self.weigh.init(n), 0.0, np.zeros(n))

    def weights(self, state: Tally) -> Vector:
        """Return the weights for the next round."""
        return self.weigh.play(state.rule)

    def predict(self, state: Tally, predictions: ArrayLike) -> float:
        """Return the mixture of predictions for the next round."""
        return float(self.pool.predict(state.rule.log_weights, self._checked(state, predictions)))

    def update(self, state: Tally, predictions: ArrayLike, y: Any = None) -> Tally:
        """Observe what came, and weigh the experts by what they lost."""
        array, label = self._checked(state, predictions), self.pool.check_labels(y)
        if np.ndim(label):
            raise ValueError(f"y: got shape {np.shape(label)}, expected one label; for many rounds use mix")
        losses = self.pool.losses(array, label)
        lost = float(self.pool.loss(state.rule.log_weights, array, label))
        return Tally(self.weigh.update(state.rule, losses), state.loss + lost, state.totals + losses)

    def guarantee(self, state: Tally, expert: int | None = None) -> Guarantee:
        """Return what is proved against an expert, the best so far if none is named."""
        return guarantee(self.weigh, state.rule, state.loss, state.totals, self.names, expert)

    def _checked(self, state: Tally, predictions: ArrayLike) -> Vector:
        array = self.pool.check_predictions(predictions)
        if array.shape != state.totals.shape:
            raise ValueError(f"predictions: got shape {array.shape}, expected {state.totals.shape}, one an expert")
        return array


def rule_for(pool: Pool, rule: Rule | None) -> Rule:
    """Return the rule, once the pool suits it, or the one the pool asks for."""
    if rule is None:
        return ExponentialWeights(pool.eta) if pool.eta > 0 else AdaHedge()
    rule.suit(pool.eta)
    return rule


def guarantee(
    rule: Rule, state: Any, loss: float, totals: Vector, names: tuple[str, ...] | None, expert: int | None = None
) -> Guarantee:
    """Return what a rule proves against one expert, the best if none is named."""
    n = totals.size
    k = int(np.argmin(totals)) if expert is None else whole("expert", expert)
    if k >= n:
        raise refuse("expert", expert, f"a number from 0 to {n - 1}")
    name = f"expert {k}" if names is None else names[k]
    against = f"the best of {n} experts, which is {name}" if expert is None else name
    limit = float(rule.bound(state)[k])
    return Guarantee(rule.result, against, int(state.rounds), loss, float(totals[k]), limit, rule.void(state))
