"""Certificates and loss floors of lanes, from the sums and records of a state.

The slice ``lanes`` selects the lanes of one model: one lane, or all classes of a joint loss.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.certificate import Certificate
from forel.learner.certificate_sums import (
    CertificateSums,
    Evidence,
    GradientNorms,
    Norm,
    clipping,
    difference,
    in_scales,
)
from forel.learner.dual import DualPoint
from forel.learner.layout import Lane
from forel.learner.loss_floor import LossFloor
from forel.learner.polish import SampledRows, polished_points
from forel.learner.state import BLOCK, State

__all__ = ["certificate", "loss_floor", "snapshot"]


def certificate(
    state: State, lanes: slice, among: NDArray[np.int64] | None = None, candidates: Sequence[slice] = ()
) -> Certificate:
    """Return the certificate of one model, against comparators in all coordinates or in some.

    Parameters
    ----------
    state : the lanes
    lanes : the lanes of one model
    among : the coordinates of comparators; None for all
    candidates : lanes that learn from the same labels, whose slopes give loss floors as well
    """
    settings, primal = state.settings, state.layout.primal
    some = np.arange(state.features + int(settings.bias)) if among is None else among
    totals, models = state.sums[:, lanes].sum(axis=1), len(range(state.n_lanes)[lanes])
    columns, added = np.empty((5, models, some.size)), 0.0
    for start, found, term in _parts(state, lanes, some):
        for column, block in zip(columns, found, strict=True):
            column[:, start : start + BLOCK] = block
        added += term
    gradients, strength, linear, l1, l2 = columns.reshape(5, -1)
    if among is not None:
        # Comparators are 0 in the other coordinates, but the learner is not.
        others = np.setdiff1d(state.active_coordinates, among, assume_unique=True)
        added += sum(term for _, _, term in _parts(state, lanes, others))
    evidence, scaled = _evidence(state), settings.rate == "scale_free"
    norms, _ = _norms(state, some)
    all_models = [lanes, *(each for each in candidates if each != lanes)]
    valid = [one for one in all_models if not evidence.clipped(one)]
    kinds: tuple[Norm, ...] = ("l2", "l1", "box", *(("scaled",) if scaled else ()))
    return Certificate(
        rounds=state.rounds,
        weight=state.total_importance,
        loss=float(totals[0]),
        # Clipped gradients are not in the sums: the regret may be any number.
        lower=float(totals[0]) - float(totals[1]) if not evidence.clipped(lanes) else -np.inf,
        gradients=gradients,
        strength=strength,
        linear=linear,
        # The stability terms telescope: their sum is Σ g·x minus the last objective at its minimizer.
        constant=float(totals[2 if primal else 1]) + added,
        l1=l1,
        l2=l2,
        radius=None
        if settings.radius is None
        else float(Lane(*state.parameters.reshape(len(Lane._fields), -1)[:, lanes]).radius.min()),
        result="Theorem 12" if primal else "Lemma 5",
        void=_void(state, lanes),
        rounding=evidence.rounding(lanes),
        slack=evidence.slack(lanes),
        least=settings.least,
        bias=bool(some.size and some[-1] == state.features),
        floor_void=evidence.void(all_models),
        counts=evidence.counts,
        models=models,
        points={kind: tuple(evidence.point(one, norms, kind) for one in valid) for kind in kinds},
        scales=np.tile(state.scales[some].astype(np.float64), models) if scaled else None,
    )


def snapshot(state: State) -> CertificateSums:
    """Return the current sums of certificates."""
    if not state.certified:
        return CertificateSums(state.rounds, state.total_importance)
    slots = state.active_coordinates
    gradients = state.gradients[slots] * state.units(slots)[:, None]
    scales = state.scales[slots].astype(np.float64) if state.settings.rate == "scale_free" else None
    return CertificateSums(state.rounds, state.total_importance, state.all_sums.copy(), slots, gradients, scales)


def loss_floor(
    state: State,
    lanes: slice,
    candidates: Sequence[slice],
    since: CertificateSums | None = None,
    total_loss: float | None = None,
    sample: SampledRows | None = None,
) -> LossFloor:
    """Return lower bounds on the losses of fixed models, on all rows or on those since a snapshot.

    Parameters
    ----------
    state : the lanes
    lanes : the lanes of the learned model, whose norm is compared
    candidates : lanes that learn from the same labels; the slopes of each are a point of the dual problem
    since : the snapshot
    total_loss : the loss on these rows; None for that of the lanes
    sample : a sample of these rows, whose slopes are polished; None for none
    """
    evidence, used = _evidence(state, since), state.active_coordinates
    if since is not None and since.slots is not None:
        used = np.union1d(used, since.slots)
    norms, (weights, biases) = _norms(state, used, since, lanes)
    scaled = state.settings.rate == "scale_free"
    valid = [one for one in candidates if not evidence.clipped(one)]
    floor = LossFloor(
        rows=evidence.rows.rounds,
        weight=evidence.rows.weight,
        loss=evidence.total_loss(lanes) if total_loss is None else total_loss,
        norm=math.hypot(weights, biases),
        points=tuple(evidence.point(one, norms, "scaled" if scaled else "l2") for one in valid),
        least=state.settings.least,
        bias=len(range(state.n_lanes)[lanes]) * state.settings.bias,
        scaled=scaled,
        void=evidence.void(candidates),
        counts=evidence.counts,
        weights_norm=weights,
        bias_norm=biases,
    )
    if sample is None or floor.void or state.n_lanes != state.settings.n_settings:
        return floor
    return floor.with_points(_polished(state, evidence, used, since, valid, floor, sample))


def _polished(
    state: State,
    evidence: Evidence,
    used: NDArray[np.int64],
    since: CertificateSums | None,
    valid: Sequence[slice],
    floor: LossFloor,
    sample: SampledRows,
) -> tuple[DualPoint, ...]:
    """Return points with other slopes of a sample of the rows, and those of the best lane for all others."""
    best = max(range(len(valid)), key=lambda k: floor.points[k].floor(floor.norm))
    lane, columns = valid[best].start or 0, list(state.layout.certified_lanes)
    column = columns.index(lane)
    gradients = state.gradients[used][:, column] * state.units(used)
    if since is not None and since.slots is not None and since.gradients is not None:
        gradients[np.searchsorted(used, since.slots)] -= since.gradients[:, column]
    scales = state.scales[used].astype(np.float64) if floor.scaled else np.ones(used.size)
    bias = bool(used.size and used[-1] == state.features)
    if bias:
        scales[-1] = 1.0
    error = evidence.rounding(valid[best], floor.scaled)
    return polished_points(
        evidence.loss, sample, column, floor.points[best], used, in_scales(gradients, scales), scales, bias,
        floor.norm, error,
    )  # fmt: skip


def _evidence(state: State, since: CertificateSums | None = None) -> Evidence:
    """Return the sums of all rows, or of those since a snapshot, without a table of gradients."""
    now = CertificateSums(state.rounds, state.total_importance, state.all_sums)
    rows = now if since is None else difference(now, since)
    return Evidence(rows, state.layout, state.settings.loss_function)


def _norms(
    state: State, used: NDArray[np.int64], before: CertificateSums | None = None, lanes: slice | None = None
) -> tuple[GradientNorms, tuple[float, float]]:
    """Return the norms of g_{1:T} for each lane, and ‖x‖ of the weights and biases of some, without tables of either.

    Parameters
    ----------
    state : the lanes
    used : the coordinates, in order
    before : sums of gradients that are subtracted
    lanes : the lanes of the learned model; None for no ‖x‖
    """
    certified, scaled = list(state.layout.certified_lanes), state.settings.rate == "scale_free"
    norms, squares, constants = GradientNorms.zero(len(certified)), 0.0, 0.0
    for start in range(0, used.size, BLOCK):
        some = used[start : start + BLOCK]
        g = state.gradients[some] * state.units(some)[:, None]
        scales = state.scales[some].astype(np.float64) if scaled else None
        if before is not None and before.slots is not None and before.gradients is not None:
            low, high = np.searchsorted(before.slots, (some[0], some[-1] + 1))
            g[np.searchsorted(some, before.slots[low:high])] -= before.gradients[low:high]
        bias = bool(some[-1] == state.features)
        norms = norms.add(g, scales, bias, every=lanes is None)
        if lanes is not None:
            x = state.weights_at(some)[:, lanes].astype(np.float64)
            each = np.sum(np.square(x if scales is None else x * scales[:, None]), axis=1)
            squares += float((each[:-1] if bias else each).sum())
            constants += float(each[-1]) if bias else 0.0
    return norms.of_lanes(certified, state.n_lanes), (math.sqrt(squares), math.sqrt(constants))


def _parts(state: State, lanes: slice, some: NDArray[np.int64]) -> Iterator[tuple[int, tuple[Any, ...], float]]:
    """Yield g_{1:T}, strength, Σσx and penalties of some coordinates, in blocks that fit into a cache.

    Each block comes with the position of its first coordinate, and with the term that it adds to the constant.
    """
    for start in range(0, some.size, BLOCK):
        yield start, *_part(state, lanes, some[start : start + BLOCK])


def _part(state: State, lanes: slice, some: NDArray[np.int64]) -> tuple[tuple[Any, ...], float]:
    """Return the same for a few coordinates.

    The term of the constant is −h_{0:T} at the current point for FTRL, and 0 for Mirror Descent.
    """
    settings, layout = state.settings, state.layout
    p = Lane(*state.parameters.reshape(-1, state.n_lanes, 1)[:, lanes].astype(np.float64))
    parts = state.numbers[some][:, :, lanes].transpose(1, 2, 0).astype(np.float64)
    x = state.weights_at(some)[:, lanes].T.astype(np.float64)
    units = state.units(some)
    parts[1:] *= units
    parts[1] *= units
    parts[0] *= 1 if layout.primal else units
    z, n = parts[:2]
    gradients = z if layout.parts == 2 else parts[2]
    if layout.gradient_lanes:
        columns = [layout.gradient_lanes.index(lane) for lane in range(state.n_lanes)[lanes]]
        gradients = state.gradients[some][:, columns].T.astype(np.float64) * units
    linear = parts[3] if layout.parts == 4 else gradients - z
    strength = np.broadcast_to(layout.strength(n, _scales(state, some), p), z.shape)
    penalized = (some < state.features).astype(np.float64)
    total = state.rounds if settings.penalty_weight == "every" else min(state.rounds, 1)
    l1, l2 = total * p.l1 * penalized, total * p.l2 * penalized
    objective = (gradients - linear) * x + l1 * np.abs(x) + 0.5 * (strength + l2) * x * x
    term = 0.0 if layout.primal else float(np.sum(-objective))
    return (gradients, strength, linear, l1, l2), term


def _void(state: State, lanes: slice) -> str:
    """Return why no theorem bounds the regret; empty if one does."""
    if rows := int(state.clipped[lanes].max()):
        return clipping(state.layout, rows)
    if state.layout.primal and state.settings.rate == "scale_free":
        return (
            "Mirror Descent adds the strength of a growing scale around the current weights, which is not counted; "
            "use algorithm='proximal'"
        )
    return ""


def _scales(state: State, some: NDArray[np.int64]) -> Any:
    """Return the scales of coordinates; 1 for rates without scales."""
    return state.scales[some].astype(np.float64) if state.layout.rate == "scale_free" else 1.0
