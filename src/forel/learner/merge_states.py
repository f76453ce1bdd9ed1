r"""Merging states: several learners continue one state on different rows, and their changes become one state.

Let $D_k$ be learner k's sum of squared gradients of a coordinate. They add up, so that rates become what they are in
order, $n = n_0 + \sum_k D_k$. Steps do not: where the rows of one learner determine a weight, all learners find the
same weight, and the sum of their steps is K times too long; where its rows are few, the sum is right, and an average
too short. For proximal regularizers, the rows of learner k are taken to pull the weight towards a target $t_k$, from
$s_k$ to $x_k = s_k + (1 - e^{-a_k})(t_k - s_k)$. The merged weight is where all of them pull it from $x_0$:

$$x = x_0 + (1 - e^{-A}) \Big(\sum_k \frac{a_k}{A} t_k - x_0\Big), \qquad A = \sum_k a_k, \qquad a_k = c\,\eta_k D_k,$$

where $cD_k$ bounds the curvature of losses, see :mod:`forel.learner.curvature`. It is the sum of steps for small $a_k$,
and the average of points for large ones, as well as for losses whose curvature has no bound. L1 makes weights 0 where
sums of gradients are within the penalty; these are merged in the same way, and add up where weights are 0 throughout.

Centered regularizers have no freedom in z, which is $z_0 + \sum_k G_k$ with the sums of gradients $G_k$; their
strengths are those of delayed feedback, where gradients of one sign count as one large gradient:
$n = n_0 + \sum_k D_k + \max(0, (\sum_k G_k)^2 - \sum_k G_k^2)$. Gaussian filters add up their information, see
:mod:`forel.learner.merge_ledgers`. A coordinate that occurs in the rows of one learner only has exactly that learner's
state.

A learner may first learn some rows before its own, which other learners count: its changes are those since then.

Sums of certificates add up, because loss floors need convexity alone, and Lemma 5 needs only that the next point
minimizes the objective. The loss of a mixture is that of its predictions. What mixtures lose because they do not see
each other's losses is computed from these losses, and is part of the guarantee.

Reference: B. McMahan and M. Streeter, Delay-Tolerant Algorithms for Asynchronous Distributed Online Learning, 2014.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.learner.curvature import curvature_of
from forel.learner.dual_points import in_scales
from forel.learner.full_filters import FullFilters
from forel.learner.guard import changing
from forel.learner.lanes import Lanes
from forel.learner.layout import SUMS
from forel.learner.merge_full_filters import merged_full_filters
from forel.learner.merge_ledgers import merged_ledger
from forel.learner.protocol import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.shard_rows import check_warm_up, row_digests, split_rows
from forel.learner.units import units_of
from forel.validation import refuse, whole

__all__ = ["StateSlice", "check_mergeable", "learn_shard", "merge", "restore", "slice_of", "slots_of"]

ADDED, KEPT = 5, 1  # as in forel.learner.kernels.merging, which imports numba
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
    gradients : sums of gradients that are kept beside scales; None if records have them
    start : of a shard, the state before its own rows at the coordinates that differ from the common state; None if
        that is the common state
    curvature : of the losses of its rows, as in :func:`forel.learner.curvature.curvature_of`
    full : full-covariance filters of a mixture; None without
    digests : of the rows of a shard, as :func:`forel.learner.shard_rows.row_digests` returns them; None if unknown
    """

    slots: NDArray[np.int64]
    records: NDArray[Any]
    scales: NDArray[Any] | None
    sums: NDArray[np.float64]
    rounds: int
    weight: float
    ledger: NDArray[np.float64] | None = None
    gradients: NDArray[Any] | None = None
    start: "StateSlice | None" = None
    curvature: float = math.inf
    full: FullFilters | None = None
    digests: NDArray[np.uint64] | None = None


def check_mergeable(model: Learner) -> None:
    """Raise for models whose states cannot be merged."""
    settings = model.settings
    if settings.rule not in ("proximal", "centered"):
        raise refuse(
            "merge",
            f"algorithm={settings.rule}",
            "proximal or centered; other algorithms store points instead of gradients",
        )
    if settings.rate not in ("adagrad", "scale_free") or settings.penalty_weight != "once":
        got = f"rate={settings.rate}, penalty_weight={settings.penalty_weight}"
        raise refuse("merge", got, "rate adagrad or scale_free and penalty_weight once; others count rounds")
    if model.share is not None:
        raise refuse("merge", f"share={model.share:g}", "no share: with one, weights depend on the order of all rows")


def slice_of(model: Learner, slots: NDArray[np.int64]) -> StateSlice:
    """Return a copy of a learner's state at some coordinates, in increasing order."""
    lanes, pool = model.linear._lanes, model.pool
    return StateSlice(
        slots,
        lanes.state[slots],
        lanes.scales[slots] if _scaled(lanes) else None,
        lanes.all_sums.copy(),
        lanes.rounds,
        lanes.weight,
        None if pool is None else pool.ledger.array.copy(),
        lanes.gradients[slots] if lanes.layout.gradient_lanes else None,
        full=None if pool is None or pool.full is None else pool.full.copy(),
    )


def restore(model: Learner, part: StateSlice) -> None:
    """Set a learner's state at the coordinates of a slice, and all of its sums."""
    lanes = model.linear._lanes
    with changing(model._guard, model.linear._guard):
        lanes.state[part.slots] = part.records
        if part.scales is not None:
            lanes.scales[part.slots] = part.scales
        if part.gradients is not None:
            lanes.gradients[part.slots] = part.gradients
        lanes.all_sums[:] = part.sums
        lanes.rounds, lanes.weight = part.rounds, part.weight
        if model.pool is not None and part.ledger is not None:
            model.pool.restore(part.ledger, part.full)


def learn_shard(
    model: Learner,
    rows: CoalescedRows,
    labels: Any,
    importance: Any,
    held_out: Any = None,
    again: bool = False,
    offset: int = 0,
    warm_up: int = 0,
    verify: bool = True,
) -> tuple[NDArray[Any], StateSlice]:
    """Learn rows, and return their margins and the state afterwards; the model itself does not change.

    Parameters
    ----------
    model : the common state
    rows, labels, importance, held_out : as in :meth:`forel.learner.linear.Linear.progress`
    again : whether the rows are those of an earlier pass, as in :meth:`forel.learner.linear.Linear.relearn`
    offset : the number of rows in the shards before this one, which gives each shard different rounding noise
    warm_up : the number of rows at the beginning that belong to another shard of the same round; they are learned, and
        not counted
    verify : record digests of rows, by which :func:`merge` refuses ``warm_up`` for rows that no other shard has; False
        for callers that divide the rows of a round themselves

    >>> from forel.learner.linear import Linear, Settings
    >>> model = Linear(2, Settings(alpha=1.0, bias=False), certified=True, dtype=np.float64)
    >>> one = CoalescedRows(np.array([0, 1]), np.int32([0]), np.ones(1))
    >>> parts = [learn_shard(model, one, [1], [1.0])[1] for _ in range(2)]
    >>> restore(model, merge(model, parts))
    >>> model.rounds, model.state[0].ravel().round(3)  # squares of two gradients of -1/2 add up
    (2, array([-1.051,  0.5  , -1.   ]))
    >>> float(parts[0].records[0, 0, 0]), model.weights.ravel().round(3)  # from 1/3 of each shard, almost twice as far
    (-0.5, array([0.615, 0.   ]))
    """
    if whole("warm_up", warm_up) and warm_up >= rows.number:
        raise refuse("warm_up", warm_up, f"less than {rows.number}, the number of rows: others are the shard's own")
    lanes, learn = model.linear._lanes, model.relearn if again else model.progress
    digests = row_digests(rows, labels, importance, held_out) if verify else None
    slots = slots_of(model, rows)
    before = slice_of(model, slots)
    lanes.rounds += offset
    try:
        start = None
        if warm_up:
            first, rows = split_rows(rows, warm_up)
            early = None if held_out is None else held_out[:warm_up]
            learn(first, labels[:warm_up], importance[:warm_up], early)
            labels, importance = labels[warm_up:], importance[warm_up:]
            held_out = None if held_out is None else held_out[warm_up:]
            start = slice_of(model, slots_of(model, first))
            start = replace(start, rounds=start.rounds - offset, digests=None if digests is None else digests[:warm_up])
        margins = learn(rows, labels, importance, held_out)
        lanes.rounds -= offset
        curvature = curvature_of(model, rows, margins, labels, importance, held_out)
        own = None if digests is None else digests[warm_up:]
        return margins, replace(slice_of(model, slots), start=start, curvature=curvature, digests=own)
    finally:
        restore(model, before)


def slots_of(model: Learner, rows: CoalescedRows) -> NDArray[np.int64]:
    """Return the coordinates of rows, in order, with the bias."""
    slots = _unique(rows.indices[: rows.indptr[-1]]).astype(np.int64)
    return np.append(slots, model.features) if model.settings.bias else slots


def _unique(numbers: NDArray[Any], kind: Literal["quicksort", "stable"] = "quicksort") -> Any:
    """Return different numbers in order; for integers several times as fast as numpy's function."""
    ordered = np.sort(numbers, kind=kind)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]


def merge(model: Learner, shards: Sequence[StateSlice]) -> StateSlice:
    """Return a learner's state with the changes of all shards, at the coordinates of any of them.

    Parameters
    ----------
    model : the common state, which is not changed
    shards : their states, as :func:`learn_shard` returns them
    """
    check_mergeable(model)
    check_warm_up([(None if shard.start is None else shard.start.digests, shard.digests) for shard in shards])
    slots = _unique(np.concatenate([shard.slots for shard in shards]), "stable")  # which merges sorted parts
    base, places = slice_of(model, slots), [np.searchsorted(slots, shard.slots) for shard in shards]
    starts = [base if shard.start is None else shard.start for shard in shards]
    merged = _merged_records(model.linear._lanes, base, shards, places)
    sums, ledger, full, pairs = base.sums.copy(), None, None, list(zip(starts, shards, strict=True))
    for start, shard in pairs:
        sums += shard.sums - start.sums
    _count_rounding(model.linear._lanes, sums, merged)
    if model.pool is not None:
        full = merged_full_filters(model.pool.full, [(a.full, b.full, b.rounds - a.rounds) for a, b in pairs])
        ledgers = [_ledger(start) for start in starts], [_ledger(shard) for shard in shards]
        ledger = merged_ledger(model.pool, *ledgers, dropped=full is None)
    rounds = base.rounds + sum(shard.rounds - start.rounds for start, shard in pairs)
    weight = base.weight + sum(shard.weight - start.weight for start, shard in pairs)
    return StateSlice(slots, merged.records, merged.scales, sums, rounds, weight, ledger, merged.gradients, full=full)


class _Merged(NamedTuple):
    """Merged numbers of coordinates, and which of these several shards have."""

    records: NDArray[Any]
    scales: NDArray[Any] | None
    gradients: NDArray[Any] | None
    several: NDArray[np.bool_]


def _ledger(part: StateSlice) -> NDArray[np.float64]:
    assert part.ledger is not None
    return part.ledger


def _merged_records(
    lanes: Lanes, base: StateSlice, shards: Sequence[StateSlice], places: Sequence[NDArray[np.int64]]
) -> _Merged:
    """Return the numbers of all coordinates.

    Parameters
    ----------
    lanes : the common state
    base : its slice at all coordinates
    shards, places : the states of shards, and where their coordinates are among all
    """
    from forel.learner.kernels.kernel import routine

    count, first_filter = base.slots.size, lanes.lanes - lanes.layout.filters
    owners, records, scales = np.zeros(count, np.int64), base.records.copy(), None
    if base.scales is not None:
        scales = base.scales.copy()
        for shard, place in zip(shards, places, strict=True):
            scales[place] = np.maximum(scales[place], np.asarray(shard.scales))
    for shard, place in zip(shards, places, strict=True):
        owners[place] += 1
        records[place] = shard.records  # final for coordinates of one shard
    units = np.ones(count) if scales is None else units_of(scales)
    signed_units = np.where(base.slots == lanes.features, -units, units)  # the bias has no penalty
    added = np.zeros((count, ADDED, lanes.lanes))
    added[:, KEPT, first_filter:] = 1
    rule = lanes.parameters.reshape(5, -1).astype(np.float64), _scaled(lanes), first_filter
    proximal, curvature = lanes.settings.rule == "proximal", max(shard.curvature for shard in shards)
    gradients = None if base.gradients is None else base.gradients * _factors(base.scales, units)[:, None]
    merged_scales = _in_units(scales, units)
    for shard, place in zip(shards, places, strict=True):
        start = _start_of(shard, base, place)
        factors, start_factors = (_factors(part.scales, units[place]) for part in (shard, start))
        own_scales = _in_units(shard.scales, units[place])
        routine("merging", "add_shard")(
            place, owners, shard.records, factors, start.records, start_factors, own_scales, merged_scales[place],
            signed_units[place], *rule, proximal, curvature, added,
        )  # fmt: skip
        if gradients is not None and shard.gradients is not None and start.gradients is not None:
            gradients[place] += shard.gradients * factors[:, None] - start.gradients * start_factors[:, None]
    largest = float(np.finfo(lanes.dtype).max)
    routine("merging", "merge_records")(
        owners, base.records, _factors(base.scales, units), merged_scales, signed_units, *rule, proximal,
        curvature, largest, added, records,
    )  # fmt: skip
    if gradients is not None:
        gradients = np.clip(gradients, -largest, largest).astype(lanes.dtype)
        for shard, place in zip(shards, places, strict=True):
            alone = owners[place] == 1
            gradients[place[alone]] = np.asarray(shard.gradients)[alone]
    return _Merged(records, scales, gradients, owners > 1)


def _start_of(shard: StateSlice, base: StateSlice, place: NDArray[np.int64]) -> StateSlice:
    """Return the state of a shard before its own rows, at its coordinates."""
    names = ("records", "scales", "gradients")
    known: dict[str, Any] = {}
    for name in names:
        array = getattr(base, name)
        known[name] = None if array is None else array[place]
    if shard.start is not None:
        at = np.searchsorted(shard.slots, shard.start.slots)
        for name, array in known.items():
            if array is not None:
                array[at] = getattr(shard.start, name)
    return replace(base, slots=shard.slots, **known)


def _factors(scales: NDArray[Any] | None, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the factors from the units of scales into other ones."""
    return np.ones(units.size) if scales is None else np.minimum(units_of(scales) / units, 1.0)


def _in_units(scales: NDArray[Any] | None, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scales in units; 1 for rates without them."""
    return np.ones(units.size) if scales is None else scales / units


def _scaled(lanes: Lanes) -> bool:
    return lanes.layout.rate == "scale_free"


def _count_rounding(lanes: Lanes, sums: NDArray[np.float64], merged: _Merged) -> None:
    """Add one more rounding of g_{1:t} of merged coordinates to the sums."""
    if not lanes.certified:
        return
    found = merged.records[:, lanes.layout.gradient_part] if merged.gradients is None else merged.gradients
    gradients, certified = found[merged.several].astype(np.float64), list(lanes.layout.certified_lanes)
    scales = None if merged.scales is None else merged.scales[merged.several]
    if scales is not None:
        gradients *= units_of(scales)[:, None]
    sums[SQUARES, certified] += np.sum(np.square(gradients), axis=0)
    if scales is not None:
        gradients = in_scales(gradients, np.broadcast_to(scales[:, None], gradients.shape))
    sums[SCALED, certified] += np.sum(np.square(gradients), axis=0)
