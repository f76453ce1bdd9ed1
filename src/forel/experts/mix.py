"""Mix a table of forecasts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.expert_mixture import PROBABILITIES, guarantee, resolve_rule
from forel.experts.fixed_share import FixedShare, best_switching
from forel.experts.guarantee import Guarantee
from forel.experts.pools import Pool
from forel.experts.rule import Rule
from forel.validation import Matrix, Unsupported, Vector, whole

__all__ = ["MixtureResult", "mix"]


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
