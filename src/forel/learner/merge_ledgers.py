r"""Merging of ledgers: losses of mixtures that continue one state on different rows, and the states of their mixers.

Mixers are Gaussian: several learners continue the mean $\mu_0$ and precision $\Lambda_0$ on rows of their own, from
$\mu_k'$ and $\Lambda_k'$ to $\mu_k$ and $\Lambda_k$. The likelihood of learner k's rows has the information
$\Lambda_k - \Lambda_k'$ and the information vector $\Lambda_k\mu_k - \Lambda_k'\mu_k'$. Both add up:

$$\Lambda = \Lambda_0 + \sum_k (\Lambda_k - \Lambda_k'), \qquad
\Lambda\mu = \Lambda_0\mu_0 + \sum_k (\Lambda_k\mu_k - \Lambda_k'\mu_k').$$

For mixers that forget, $\Lambda_k'$ is what would be left of it without rows, and $\Lambda_0$ what is left after the
rows of all learners.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forel.learner.expert_pool import ExpertPool
from forel.learner.ledger import Ledger

__all__ = ["merged_gaussian", "merged_ledger"]

Array = NDArray[np.float64]


def merged_ledger(pool: ExpertPool, starts: Sequence[Array], shards: Sequence[Array], dropped: bool = False) -> Array:
    """Return the ledger of a mixture, with the cost of not seeing the losses of other shards.

    With Φ(L) = −(1/η) log mean e^{−ηL}, a shard that started from losses L' lost at most Φ(L_k) − Φ(L_k') beyond the
    gap in its ledger. A mixture that sees all rows in order loses at most Φ(L₀ + Σ (L_k − L_k')) − Φ(L₀), from which
    its bound follows. The difference is added to the gap. Where full-covariance filters are dropped, Φ(L₀) and the sum
    are those of the other experts, with what that costs in the gap, and Φ of shards those of the experts that they had.

    Parameters
    ----------
    pool : the experts with the common ledger
    starts, shards : the ledgers of shards before and after their rows
    dropped : whether full-covariance filters are dropped, as some shards may have done already
    """
    rate = pool.pooling.rate
    before, after = ([_ledger(pool, array) for array in arrays] for arrays in (starts, shards))
    alone = sum(
        _potential(end, rate(end)) - _potential(start, rate(start)) for start, end in zip(before, after, strict=True)
    )
    gaps = sum(end.gap - start.gap for start, end in zip(before, after, strict=True))
    base, *same = (_without_full_filters(pool, one) if dropped else one for one in (pool.ledger, *before, *after))
    before, after = same[: len(before)], same[len(before) :]
    merged = base.copy()
    for start, end in zip(before, after, strict=True):
        merged.array[:] += end.array - start.array
    merged.gap = base.gap + gaps
    merged.largest_importance = max(end.largest_importance for end in after)
    merged.lowest = min(end.lowest for end in after)
    merged.highest = max(end.highest for end in after)
    _merge_mixers(base, before, after, merged)
    if merged.tracker:
        _merge_tracker(base, before, after, merged)
    merged.gap += max(0.0, alone - (_potential(merged, rate(merged)) - _potential(base, rate(base))))
    return merged.array


def _ledger(pool: ExpertPool, array: Array) -> Ledger:
    """Return a ledger of the pool, or of the pool without its full-covariance filters."""
    ledger = pool.ledger.copy()
    if array.size != ledger.array.size and pool.full is not None:
        ledger = ledger.without_last(len(pool.full.filters))
    ledger.array[:] = array
    return ledger


def _without_full_filters(pool: ExpertPool, ledger: Ledger) -> Ledger:
    if pool.full is None or ledger.settings < pool.ledger.settings:
        return ledger
    return pool.pooling.without_last(ledger, len(pool.full.filters))


def _potential(ledger: Ledger, rate: float) -> float:
    """Return −(1/η) log mean e^{−ηL} of the losses of settings: their mean for η = 0, their minimum for η = ∞."""
    least = float(ledger.losses.min())
    if rate == 0 or not np.isfinite(rate):
        return float(ledger.losses.mean()) if rate == 0 else least
    return least - float(np.log(np.mean(np.exp(-rate * (ledger.losses - least))))) / rate


def _merge_tracker(base: Ledger, before: Sequence[Ledger], after: Sequence[Ledger], merged: Ledger) -> None:
    r"""Set the weights of fixed share: $w \propto w_0 \prod_k w_k/w_k'$, each at least what it receives in a row."""
    logs, count, rows = np.log(base.weights), base.weights.size, base.tracked_rows
    for start, end in zip(before, after, strict=True):
        logs += np.log(end.weights) - np.log(start.weights)
        rows += end.tracked_rows - start.tracked_rows
    weights = np.exp(logs - logs.max())
    received = 1 / ((rows + 1) * (count - 1))
    merged.weights[:] = (1 - received * count) * weights / weights.sum() + received
    merged.tracked_rows = rows


def _merge_mixers(base: Ledger, before: Sequence[Ledger], after: Sequence[Ledger], merged: Ledger) -> None:
    """Set the states of mixers."""
    span, pairs = merged.highest - merged.lowest, list(zip(before, after, strict=True))
    for j, mixer in enumerate(base.mixers):
        memories = [mixer.memory ** (end.rows - start.rows) for start, end in pairs]
        states = [(start.mixer_states[j], end.mixer_states[j]) for start, end in pairs]
        merged.mixer_states[j] = merged_gaussian(base.mixer_states[j], states, memories, mixer.variance)
        if mixer.residuals:
            residuals = [(start.residuals[j], end.residuals[j]) for start, end in pairs]
            merged.residuals[j] = _merged_residuals(base.residuals[j], residuals, memories, span)


def merged_gaussian(
    base: Array, states: Sequence[tuple[Array, Array]], memories: Sequence[float], variance: float
) -> Array:
    """Return the mean of weights, and the rows of their covariances below it.

    Parameters
    ----------
    base : the common state
    states : of each shard before and after its rows
    memories : the part of what is known that stays known after the rows of each
    variance : of the prior
    """

    def kept(state: Array, memory: float) -> Array:
        prior = variance * np.eye(len(state) - 1)
        return np.asarray(np.linalg.inv(memory * state[1:] + (1 - memory) * prior))

    precision = kept(base, float(np.prod(memories)))
    information = precision @ base[0]
    for (start, end), memory in zip(states, memories, strict=True):
        before, after = kept(start, memory), kept(end, 1.0)
        precision = precision + (after - before)
        information = information + (after @ end[0] - before @ start[0])
    covariance = np.linalg.inv((precision + precision.T) / 2)
    return np.vstack((covariance @ information, (covariance + covariance.T) / 2))


def _merged_residuals(
    base: Array, states: Sequence[tuple[Array, Array]], memories: Sequence[float], span: float
) -> Array:
    """Return the sums of squared residuals and of importances, and their unit, the range of labels."""

    def in_unit(state: Array) -> Array:
        squares, weight, unit = state.tolist()
        return np.array([squares * (unit / span) ** 2 if span > 0 else 0.0, weight])

    sums = float(np.prod(memories)) * in_unit(base)
    for (start, end), memory in zip(states, memories, strict=True):
        sums = sums + (in_unit(end) - memory * in_unit(start))
    return np.array([*np.maximum(sums, 0.0), span])
