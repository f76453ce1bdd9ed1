r"""Merging states: several learners continue one state on different rows, and their changes become one state.

Let $G_k$ be learner k's sum of gradients of a coordinate and $D_k$ its sum of squares since the common state. Adding
both up over K learners would make steps K times too long. With the strengths of delayed feedback, gradients of one sign
count as one large gradient: $n = n_0 + \sum_k D_k + \max(0, (\sum_k G_k)^2 - \sum_k G_k^2)$. For proximal regularizers,
the sum of centers that learners added, $\sum \sigma x$, is scaled to the strength of that n:
$z = z_0 + \sum_k G_k - (1/\eta - 1/\eta_0) \sum_k \sum \sigma x / \sum_k \sum \sigma$. A coordinate that occurs in the
rows of one learner only has exactly that learner's state.

Sums of certificates add up, because loss floors need convexity alone, and Lemma 5 needs only that the next point
minimizes the objective. The loss of a mixture is that of its predictions. What mixtures lose because they do not see
each other's losses is computed from these losses, and is part of the guarantee.

Reference: B. McMahan and M. Streeter, Delay-Tolerant Algorithms for Asynchronous Distributed Online Learning, 2014.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.dual_points import in_scales
from forel.learner.guard import changing
from forel.learner.lanes import Lanes
from forel.learner.layout import SUMS
from forel.learner.ledger import Ledger
from forel.learner.mixture import Mixture
from forel.learner.protocol import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.units import units_of
from forel.validation import refuse

__all__ = ["StateSlice", "check_mergeable", "learn_shard", "merge", "restore", "slice_of"]

SQUARES, SCALED = 4, SUMS  # sums of squares that bound the rounding of g_{1:t}, in units of features and of scales


@dataclass(frozen=True, eq=False)
class StateSlice:
    """The state of a learner at some coordinates, and all of its sums.

    Parameters
    ----------
    slots : coordinates, in order; the bias is the number of features
    records : their records, by coordinate, part and lane
    scales : their scales; None for rates without scales
    sums, rounds, weight : as in :class:`forel.learner.lanes.Lanes`
    ledger : the losses of a mixture; None for one model
    """

    slots: NDArray[np.int64]
    records: NDArray[Any]
    scales: NDArray[Any] | None
    sums: NDArray[np.float64]
    rounds: int
    weight: float
    ledger: NDArray[np.float64] | None = None


def check_mergeable(model: Learner) -> None:
    """Raise for models whose states cannot be merged."""
    settings, layout = model.settings, model.linear._lanes.layout
    if settings.rule not in ("proximal", "centered"):
        raise refuse(
            "merge",
            f"algorithm={settings.rule}",
            "proximal or centered; other algorithms store points instead of gradients",
        )
    if settings.filters:
        raise refuse("merge", "filters", "settings without filters, which store means, such as default_grid(lanes=16)")
    if settings.rate not in ("adagrad", "scale_free") or settings.penalty_weight != "once":
        got = f"rate={settings.rate}, penalty_weight={settings.penalty_weight}"
        raise refuse("merge", got, "rate adagrad or scale_free and penalty_weight once; others count rounds")
    if model.share is not None:
        raise refuse("merge", f"share={model.share:g}", "no share: with one, weights depend on the order of all rows")
    if layout.rule == "proximal" and layout.parts < 3:
        raise refuse("merge", "a model without certificate", "certified=True, which stores the sums of gradients")


def slice_of(model: Learner, slots: NDArray[np.int64]) -> StateSlice:
    """Return a copy of a learner's state at some coordinates, in increasing order."""
    lanes = model.linear._lanes
    return StateSlice(
        slots,
        lanes.state[slots],
        lanes.scales[slots] if _scaled(lanes) else None,
        lanes.all_sums.copy(),
        lanes.rounds,
        lanes.weight,
        model.ledger.array.copy() if isinstance(model, Mixture) else None,
    )


def restore(model: Learner, part: StateSlice) -> None:
    """Set a learner's state at the coordinates of a slice, and all of its sums."""
    lanes = model.linear._lanes
    with changing(model._guard, model.linear._guard):
        lanes.state[part.slots] = part.records
        if part.scales is not None:
            lanes.scales[part.slots] = part.scales
        lanes.all_sums[:] = part.sums
        lanes.rounds, lanes.weight = part.rounds, part.weight
        if isinstance(model, Mixture) and part.ledger is not None:
            model.ledger.array[:] = part.ledger


def learn_shard(
    model: Learner,
    rows: CoalescedRows,
    labels: Any,
    importance: Any,
    held_out: Any = None,
    again: bool = False,
    offset: int = 0,
) -> tuple[NDArray[Any], StateSlice]:
    """Learn rows, and return their margins and the state afterwards; the model itself does not change.

    Parameters
    ----------
    model : the common state
    rows, labels, importance, held_out : as in :meth:`forel.learner.linear.Linear.progress`
    again : whether the rows are those of an earlier pass, as in :meth:`forel.learner.linear.Linear.relearn`
    offset : the number of rows in the shards before this one, which gives each shard different rounding noise

    >>> from forel.learner.linear import Linear, Settings
    >>> model = Linear(2, Settings(alpha=1.0, bias=False), certified=True, dtype=np.float64)
    >>> one = CoalescedRows(np.array([0, 1]), np.int32([0]), np.ones(1))
    >>> parts = [learn_shard(model, one, [1], [1.0])[1] for _ in range(2)]
    >>> restore(model, merge(model, parts))
    >>> model.rounds, model.state[0].ravel()  # two gradients of -1/2 count as one of -1
    (2, array([-1.,  1., -1.]))
    """
    lanes = model.linear._lanes
    slots = np.unique(rows.indices[: rows.indptr[-1]]).astype(np.int64)
    slots = np.append(slots, model.features) if model.settings.bias else slots
    before = slice_of(model, slots)
    lanes.rounds += offset
    try:
        margins = (model.relearn if again else model.progress)(rows, labels, importance, held_out)
        lanes.rounds -= offset
        return margins, slice_of(model, slots)
    finally:
        restore(model, before)


def merge(model: Learner, shards: Sequence[StateSlice]) -> StateSlice:
    """Return a learner's state with the changes of all shards, at the coordinates of any of them.

    Parameters
    ----------
    model : the common state that all shards started from, which is not changed
    shards : their states afterwards, as :func:`learn_shard` returns them
    """
    check_mergeable(model)
    lanes = model.linear._lanes
    slots = np.unique(np.concatenate([shard.slots for shard in shards]))
    base, places = slice_of(model, slots), [np.searchsorted(slots, shard.slots) for shard in shards]
    records, scales = base.records.copy(), base.scales
    if scales is not None:
        scales = scales.copy()
        for place, shard in zip(places, shards, strict=True):
            scales[place] = np.maximum(scales[place], np.asarray(shard.scales))
    owners = np.zeros(slots.size, np.int64)
    for place, shard in zip(places, shards, strict=True):
        owners[place] += 1
        records[place] = shard.records  # final for coordinates of one shard
    sums = base.sums + sum((shard.sums - base.sums for shard in shards), np.zeros_like(base.sums))
    several = np.flatnonzero(owners > 1)
    if several.size:
        merged = _Coordinates(lanes, base, scales, several).merged(shards, places)
        records[several] = merged
        _count_rounding(lanes, sums, merged, None if scales is None else scales[several])
    ledger = None
    if isinstance(model, Mixture):
        ledger = _merged_ledger(model, [shard.ledger for shard in shards if shard.ledger is not None])
    rounds = base.rounds + sum(shard.rounds - base.rounds for shard in shards)
    weight = base.weight + sum(shard.weight - base.weight for shard in shards)
    return StateSlice(slots, records, scales, sums, rounds, weight, ledger)


class _Coordinates:
    """Coordinates of several shards: their common state, in float64 and in the units of the merged scales."""

    def __init__(self, lanes: Lanes, base: StateSlice, scales: NDArray[Any] | None, several: NDArray[np.int64]) -> None:
        self.lanes, self.several = lanes, several
        self.units = np.ones(several.size) if scales is None else units_of(scales[several])
        self.base = self._in_units(base, several, np.arange(several.size))

    def _in_units(self, part: StateSlice, chosen: NDArray[Any], at: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the chosen records of a slice by part, coordinate and lane, in the units of coordinates ``at``."""
        found: NDArray[np.float64] = part.records[chosen].astype(np.float64).transpose(1, 0, 2)
        if part.scales is not None:
            change = np.minimum(units_of(part.scales[chosen]) / self.units[at], 1.0)[:, None]
            found *= change  # z, n and g; n once more
            found[1] *= change
        return found

    def merged(self, shards: Sequence[StateSlice], places: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
        """Return the merged records."""
        gradient = self.lanes.layout.gradient_part
        z0, n0, g0 = self.base[0], self.base[1], self.base[gradient]
        total, added, squares, moved, gained = (np.zeros_like(z0) for _ in range(5))
        for shard, place in zip(shards, places, strict=True):
            chosen = np.isin(place, self.several, assume_unique=True)
            at = np.searchsorted(self.several, place[chosen])
            found = self._in_units(shard, chosen, at)
            z, n, g = found[0], found[1], found[gradient] - g0[at]
            total[at] += g
            squares[at] += g * g
            added[at] += np.maximum(n - n0[at], 0.0)
            moved[at] += g - (z - z0[at])
            gained[at] += np.sqrt(n) - np.sqrt(n0[at])  # strengths grow in proportion to √n
        result = np.empty_like(self.base)
        result[1] = n0 + added + np.maximum(total * total - squares, 0.0)
        result[0] = result[gradient] = g0 + total
        if self.lanes.settings.rule == "proximal":
            gain = np.sqrt(result[1]) - np.sqrt(n0)
            center = np.divide(moved, gained, out=np.zeros_like(moved), where=gained > 0)
            result[0] = z0 + total - gain * center
        largest = float(np.finfo(self.lanes.dtype).max)
        records: NDArray[Any] = np.clip(result, -largest, largest).transpose(1, 0, 2).astype(self.lanes.dtype)
        return records


def _scaled(lanes: Lanes) -> bool:
    return lanes.layout.rate == "scale_free"


def _count_rounding(lanes: Lanes, sums: NDArray[np.float64], merged: NDArray[Any], scales: Any) -> None:
    """Add one more rounding of g_{1:t} of merged coordinates to the sums."""
    if not lanes.certified:
        return
    gradients = merged[:, lanes.layout.gradient_part].astype(np.float64)
    if scales is not None:
        gradients *= units_of(scales)[:, None]
    sums[SQUARES] += np.sum(np.square(gradients), axis=0)
    if scales is not None:
        gradients = in_scales(gradients, np.broadcast_to(scales[:, None], gradients.shape))
    sums[SCALED] += np.sum(np.square(gradients), axis=0)


def _merged_ledger(model: Mixture, shards: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the ledger of a mixture, with the cost of not seeing the losses of other shards.

    With Φ(L) = −(1/η) log mean e^{−ηL}, each shard lost at most Φ(L₀ + L_k) − Φ(L₀) beyond the gap in its ledger. A
    mixture that sees all rows in order loses at most Φ(L₀ + Σ L_k) − Φ(L₀), from which its bound follows. The
    difference is added to the gap.
    """
    base, rate = model.ledger, model._pool.pooling.rate
    merged, parts = base.copy(), [base.copy() for _ in shards]
    for part, array in zip(parts, shards, strict=True):
        part.array[:] = array
    merged.array[:] += sum((part.array - base.array for part in parts), np.zeros_like(base.array))
    merged.largest_importance = max(part.largest_importance for part in parts)
    merged.lowest = min(part.lowest for part in parts)
    merged.highest = max(part.highest for part in parts)
    start = _potential(base, rate(base))
    alone = sum(_potential(part, rate(part)) - start for part in parts)
    merged.gap += max(0.0, alone - (_potential(merged, rate(merged)) - start))
    return merged.array


def _potential(ledger: Ledger, rate: float) -> float:
    """Return −(1/η) log mean e^{−ηL} of the losses of settings: their mean for η = 0, their minimum for η = ∞."""
    least = float(ledger.losses.min())
    if rate == 0 or not np.isfinite(rate):
        return float(ledger.losses.mean()) if rate == 0 else least
    return least - float(np.log(np.mean(np.exp(-rate * (ledger.losses - least))))) / rate
