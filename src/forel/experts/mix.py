"""Mix experts: a table of forecasts, or one round at a time with an explicit state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.guarantee import Guarantee
from forel.experts.pools import Pool, Probabilities
from forel.experts.rules import AdaHedge, ExponentialWeights, FixedShare, Rule, best_switching
from forel.validation import Matrix, Unsupported, Vector, refuse, whole

__all__ = ["ExpertMixture", "ExpertMixtureState", "MixtureResult", "mix"]

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


@dataclass(frozen=True, eq=False)
class MixtureResult:
    """The result of mixing a table of forecasts: predictions, losses and guarantees.

    Parameters
    ----------
    names : of the experts
    pool, rule, state : the pool, the rule, and the rule's final state
    predictions, losses : of the mixture, one per round
    expert_losses : one row per round, one column per expert
    weights : one row per round, as used in it, and one more for the final weights

    >>> mix([[0.9, 0.5], [0.8, 0.5]], [1, 1])
    MixtureResult of 2 experts in 2 rounds: loss 0.723606, the best of them 0.328504

    Survey: section 3.6
    """

    names: tuple[str, ...]
    pool: Pool
    rule: Rule
    state: Any
    predictions: Vector
    losses: Vector
    expert_losses: Matrix
    weights: Matrix

    def __repr__(self) -> str:
        T, K = self.expert_losses.shape
        best = self.totals[self.best]
        return f"MixtureResult of {K} experts in {T} rounds: loss {self.loss:.6g}, the best of them {best:.6g}"

    @property
    def loss(self) -> float:
        """The total loss of the mixture."""
        return float(self.losses.sum())

    @cached_property
    def totals(self) -> Vector:
        """The total loss of each expert."""
        return np.asarray(self.expert_losses.sum(axis=0))

    @property
    def best(self) -> int:
        """The index of the expert with the smallest total loss."""
        return int(np.argmin(self.totals))

    @property
    def posterior(self) -> Vector:
        """The weights after the last round."""
        return np.asarray(self.weights[-1])

    def guarantee(self, expert: int | None = None, switches: int = 0) -> Guarantee:
        """Return the guarantee against one expert (None for the best) or, with ``switches``, the best sequence.

        >>> first, then = [[0.9, 0.1]] * 50, [[0.1, 0.9]] * 50
        >>> mixed = mix(first + then, [1] * 100, rule=FixedShare())
        >>> print(mixed.guarantee(switches=1))
        within 0.099 per example of the best sequence of 2 experts with at most 1 switch (0.10536 per example)
        """
        if whole("switches", switches) == 0:
            return guarantee(self.rule, self.state, self.loss, self.totals, self.names, expert)
        if not isinstance(self.rule, FixedShare) or expert is not None:
            raise Unsupported(
                "switches: only FixedShare bounds regret against sequences; use rule=FixedShare(pool.eta)"
            )
        limit = float(self.rule.bound(self.state, switches)[0])
        T, K = self.expert_losses.shape
        other = float(best_switching(self.expert_losses, switches)[-1])
        against = f"the best sequence of {K} experts with at most {switches} switch{'es' * (switches > 1)}"
        return Guarantee(self.rule.result, against, T, self.loss, other, limit, self.state.void)


def mix(
    predictions: ArrayLike | Mapping[str, ArrayLike],
    labels: ArrayLike | None = None,
    pool: Pool = PROBABILITIES,
    rule: Rule | None = None,
    names: Sequence[str] | None = None,
) -> MixtureResult:
    """Mix a table of forecasts round by round; no prediction uses its own label.

    Parameters
    ----------
    predictions : one row per round, one column per expert: an array, a dataframe, or columns by name
    labels : one per round; None for pools without labels
    pool : the predictions and their loss
    rule : how experts are weighted; if None, exponential weights with the pool's η, or AdaHedge if that is 0
    names : of the experts; None for those of the columns

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 1000)
    >>> table = {"guess": np.full(1000, 0.5), "know": np.where(labels, 0.8, 0.2), "err": np.where(labels, 0.2, 0.8)}
    >>> mixed = mix(table, labels)
    >>> mixed.posterior.round(6)
    array([0., 1., 0.])
    >>> print(mixed.guarantee())
    within 0.0011 per example of the best of 3 experts, which is know (0.22314 per example)

    Survey: section 3.6
    """
    raw, column_names = _table(predictions)
    table, y = pool.check_predictions(raw), pool.check_labels(labels)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"predictions: got shape {table.shape}, expected one row per round and one column per expert")
    T, K = table.shape
    if y is not None and y.shape != (T,):
        raise ValueError(f"labels: got shape {y.shape}, expected ({T},), one for each row of predictions")
    experts = tuple(column_names if names is None else map(str, names)) or tuple(f"expert {k}" for k in range(K))
    if len(experts) != K:
        raise ValueError(f"names: got {len(experts)}, expected {K}, one for each column of predictions")
    rule, expert_losses = resolve_rule(pool, rule), pool.losses(table, y)
    state, log_weights = rule.init(K), np.empty((T + 1, K))
    log_weights[0] = state.log_weights
    for t, row in enumerate(expert_losses, start=1):
        state = rule.update(state, row)
        log_weights[t] = state.log_weights
    before = log_weights[:-1]
    mixed, losses = pool.predict(before, table), pool.loss(before, table, y)
    return MixtureResult(experts, pool, rule, state, mixed, losses, expert_losses, np.exp(log_weights))


def _table(predictions: Any) -> tuple[Any, tuple[str, ...]]:
    """Return predictions as an array, and the names of its columns, if any."""
    if isinstance(predictions, Mapping):
        columns = [np.asarray(column) for column in predictions.values()]
        if len({column.shape for column in columns}) > 1 or any(column.ndim != 1 for column in columns):
            shapes = [column.shape for column in columns]
            raise ValueError(f"predictions: got columns of shapes {shapes}, expected vectors of one length")
        return np.array(columns).T, tuple(map(str, predictions))
    return predictions, tuple(map(str, getattr(predictions, "columns", ())))
