"""Mix experts one round at a time, with an explicit state."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.adahedge import AdaHedge
from forel.experts.exponential_weights import ExponentialWeights
from forel.experts.guarantee import Guarantee
from forel.experts.pools import Pool, Probabilities
from forel.experts.rule import Rule
from forel.validation import Unsupported, Vector, refuse, whole

__all__ = ["ExpertMixture", "ExpertMixtureState", "guarantee", "resolve_rule"]

PROBABILITIES = Probabilities()


class ExpertMixtureState(NamedTuple):
    """The rule's state, and the cumulative losses of the mixture and of each expert."""

    rule: Any
    loss: float
    totals: Vector

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return int(self.rule.rounds)


@dataclass(frozen=True)
class ExpertMixture:
    """A mixture of experts, one round at a time; the bound holds for any experts.

    Parameters
    ----------
    pool : the predictions and their loss
    rule : how experts are weighted; if None, exponential weights with the pool's η, or AdaHedge if that is 0
    names : of the experts, for messages

    >>> panel = ExpertMixture(names=("rain as yesterday", "rain one day in three"))
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
    resolved_rule: Rule = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "resolved_rule", resolve_rule(self.pool, self.rule))

    def init(self, n: int) -> ExpertMixtureState:
        """Return the state before round 1, for n experts."""
        n = whole("n", n, low=1)
        if self.names is not None and len(self.names) != n:
            raise refuse("n", n, f"{len(self.names)}, one for each name")
        return ExpertMixtureState(self.resolved_rule.init(n), 0.0, np.zeros(n))

    def weights(self, state: ExpertMixtureState) -> Vector:
        """Return the weights for the next round."""
        return self.resolved_rule.play(state.rule)

    def predict(self, state: ExpertMixtureState, predictions: ArrayLike) -> float:
        """Return the mixture of predictions for the next round."""
        return float(self.pool.predict(state.rule.log_weights, self._checked(state, predictions)))

    def update(self, state: ExpertMixtureState, predictions: ArrayLike, y: Any = None) -> ExpertMixtureState:
        """Observe the label, and reweight the experts by their losses."""
        array, label = self._checked(state, predictions), self.pool.check_labels(y)
        if np.ndim(label):
            raise ValueError(f"y: got shape {np.shape(label)}, expected one label; for many rounds use mix")
        losses = self.pool.losses(array, label)
        loss = float(self.pool.loss(state.rule.log_weights, array, label))
        return ExpertMixtureState(
            self.resolved_rule.update(state.rule, losses), state.loss + loss, state.totals + losses
        )

    def guarantee(self, state: ExpertMixtureState, expert: int | None = None) -> Guarantee:
        """Return the guarantee against one expert; None for the best."""
        return guarantee(self.resolved_rule, state.rule, state.loss, state.totals, self.names, expert)

    def _checked(self, state: ExpertMixtureState, predictions: ArrayLike) -> Vector:
        array = self.pool.check_predictions(predictions)
        if array.shape != state.totals.shape:
            raise ValueError(f"predictions: got shape {array.shape}, expected {state.totals.shape}, one per expert")
        return array


def resolve_rule(pool: Pool, rule: Rule | None) -> Rule:
    """Return the rule after checking it against the pool, or the pool's default rule."""
    if rule is None:
        return ExponentialWeights(pool.eta) if pool.eta > 0 else AdaHedge()
    if rule.eta > pool.eta * (1 + 1e-12):
        remedy = "use AdaHedge()" if pool.eta == 0 else f"use eta={pool.eta:.6g}, or AdaHedge()"
        raise Unsupported(f"eta: got {rule.eta:.6g}, more than the pool's {pool.eta:.6g}; {remedy}")
    return rule


def guarantee(
    rule: Rule, state: Any, loss: float, totals: Vector, names: tuple[str, ...] | None, expert: int | None = None
) -> Guarantee:
    """Return a rule's guarantee against one expert; None for the best."""
    n = totals.size
    k = int(np.argmin(totals)) if expert is None else whole("expert", expert)
    if k >= n:
        raise refuse("expert", expert, f"a number from 0 to {n - 1}")
    name = f"expert {k}" if names is None else names[k]
    against = f"the best of {n} experts, which is {name}" if expert is None else name
    limit = float(rule.bound(state)[k])
    return Guarantee(rule.result, against, int(state.rounds), loss, float(totals[k]), limit, state.void)
