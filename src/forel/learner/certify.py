"""What is proved of lanes: certificates, and their sentences, from the sums and records of a state.

``lanes`` says which of a state's models are meant: one, or those of a joint loss together.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.certificate import Certificate, Snapshot, in_scales
from forel.learner.dual import Concavity, DualPoint, SlopeHistogram
from forel.learner.lanes import BLOCK, Lanes
from forel.learner.layout import BINS, CONCAVITY, SUMS
from forel.learner.loss_floor import LossFloor
from forel.losses.margin import DualShape

__all__ = ["certificate", "clipping", "loss_floor", "snapshot"]


def certificate(state: Lanes, lanes: slice, among: NDArray[np.int64] | None = None) -> Certificate:
    """Return what is proved of some lanes together, whose losses are one loss, in all coordinates or among some."""
    settings, primal = state.settings, state.layout.primal
    some = np.arange(state.features + int(settings.bias)) if among is None else among
    totals = state.sums[:, lanes].sum(axis=1)
    columns, spent = np.empty((5, len(range(state.lanes)[lanes]), some.size)), 0.0
    for start, found, paid in _parts(state, lanes, some):
        for column, block in zip(columns, found, strict=True):
            column[:, start : start + BLOCK] = block
        spent += paid
    gradients, strength, linear, l1, l2 = columns.reshape(5, -1)
    if among is not None:
        # Models are 0 in the other coordinates, but the learner was not.
        others = np.setdiff1d(state.seen, among, assume_unique=True)
        spent += sum(paid for _, _, paid in _parts(state, lanes, others))
    slack = _slack(state, lanes, None)
    scaled = settings.rate == "scale_free"
    return Certificate(
        rounds=state.rounds,
        weight=state.weight,
        loss=float(totals[0]),
        # Of gradients that were clipped nothing is known: any regret may have been suffered.
        lower=float(totals[0]) - float(totals[1]) if not clipping(state, lanes) else -np.inf,
        gradients=gradients,
        strength=strength,
        linear=linear,
        # Stability telescopes: what FTRL paid is Σ g·x minus the last objective at its minimiser.
        constant=float(totals[2 if primal else 1]) + spent,
        l1=l1,
        l2=l2,
        radius=None if settings.radius is None else float(state.parameters.reshape(5, -1)[4, lanes].min()),
        result="Theorem 12" if primal else "Lemma 5",
        void=_void(state, lanes),
        rounding=_rounding(state, lanes),
        slack=slack,
        least=settings.least,
        bias=settings.bias,
        floor_void=clipping(state, lanes),
        concavity=_concavity(state, lanes, None, float(totals[0]) - slack),
        slopes=_slopes(state, lanes, None),
        scales=np.tile(state.scales[some].astype(np.float64), len(range(state.lanes)[lanes])) if scaled else None,
        scaled_rounding=_scaled_rounding(state, lanes) if scaled else 0.0,
    )


def snapshot(state: Lanes) -> Snapshot:
    """Return where the sums of certificates stand."""
    if not state.certified:
        return Snapshot(state.rounds, state.weight)
    slots = state.seen
    gradients = state.state[:, state.layout.gradient_part][slots] * state.units(slots)[:, None]
    return Snapshot(state.rounds, state.weight, state.all_sums.copy(), slots, gradients)


def loss_floor(
    state: Lanes,
    lanes: slice,
    candidates: Sequence[slice],
    since: Snapshot | None = None,
    total_loss: float | None = None,
) -> LossFloor:
    """Return lower bounds on the losses of fixed models, on all rows or on those since a snapshot.

    Parameters
    ----------
    state : the lanes
    lanes : those of the learned model, whose norm is compared
    candidates : lanes that learn from the same labels; each one's slopes are a point of the dual problem
    since : the snapshot
    total_loss : the loss on these rows, where it is not that of the lanes
    """
    before = Snapshot() if since is None else since
    weight, scaled = state.weight - before.weight, state.settings.rate == "scale_free"
    squares, norm = _norms(state, lanes, before, scaled)
    points = []
    for one in candidates:
        if clipping(state, one):
            continue
        loss, played = _sums(state, one, since)
        slack = _slack(state, one, since)
        rounding = _scaled_rounding(state, one) if scaled else _rounding(state, one)
        gradients = float(np.sqrt(squares[one].sum())) + rounding
        concavity = _concavity(state, one, since, loss - slack)
        points.append(DualPoint(loss - played - slack, gradients, concavity, _slopes(state, one, since)))
    return LossFloor(
        rows=state.rounds - before.rounds,
        weight=weight,
        loss=_sums(state, lanes, since)[0] if total_loss is None else total_loss,
        norm=norm,
        points=tuple(points),
        least=state.settings.least,
        bias=state.settings.bias,
        scaled=scaled,
        void="" if points else clipping(state, lanes),
    )


def _sums(state: Lanes, lanes: slice, since: Snapshot | None) -> tuple[float, float]:
    """Return the loss of some lanes together, and Σ g·x."""
    loss, played = _since(state, since)[:2, lanes].sum(axis=1).tolist()
    return loss, played


def _since(state: Lanes, since: Snapshot | None) -> NDArray[np.float64]:
    """Return all sums, or what was added to them since a snapshot."""
    return state.all_sums if since is None or since.sums is None else state.all_sums - since.sums


def _slopes(state: Lanes, lanes: slice, since: Snapshot | None) -> SlopeHistogram | None:
    """Return the histogram of slopes, that of the right class for a joint loss; None for losses without."""
    if not state.layout.histogram:
        return None
    first = range(state.lanes)[lanes][0]
    bins = slice(SUMS + 1, SUMS + 1 + 2 * BINS)
    weights, totals = _since(state, since)[bins, first].reshape(BINS, 2).T
    kept = float(state.all_sums[bins, first][::2].sum())
    return SlopeHistogram(np.maximum(weights, 0.0), np.maximum(totals, 0.0), _relative_rounding(state) * kept)


def _concavity(state: Lanes, lanes: slice, since: Snapshot | None, loss: float) -> Concavity | None:
    """Return the lower bound on E(θ) − θE(1), given a lower bound on the loss; None where nothing is known."""
    if state.settings.loss_function.dual_shape is DualShape.QUADRATIC:
        return Concavity(curvature=max(loss, 0.0))
    if not state.layout.concavity:
        return None
    first = range(state.lanes)[lanes][0]
    rows, *found = _since(state, since)[-CONCAVITY:, first].tolist()
    needed = 1 if state.layout.histogram else state.rounds - (0 if since is None else since.rounds)
    if rows < needed:  # no row, or a state of an earlier version, in which least values of losses are missing
        return None
    kept, relative = state.all_sums[-CONCAVITY:, first].tolist(), _relative_rounding(state)
    least = found[0] - 8 * float(np.finfo(np.float64).eps) * state.rounds * (abs(kept[1]) + 2 * state.weight)
    least = max(least, 0.0) if state.settings.least >= 0 else least
    return Concavity(least, max(found[1] - relative * kept[2], 0.0), max(found[2] - relative * kept[3], 0.0))


def _relative_rounding(state: Lanes) -> float:
    """Return how far a sum of positive numbers may be from that of exact slopes, relative to the sum of all rows.

    Slopes times importances are right to a few last places, and each addition to the last place of a double.
    """
    return 32 * float(np.finfo(state.dtype).eps) + 4 * float(np.finfo(np.float64).eps) * state.rounds


def _rounding(state: Lanes, lanes: slice) -> float:
    """Return how far ‖g_{1:T}‖ as it is kept may be from that of exact sums.

    Each addition is off by a unit in the last place of the sum at most, at random: the square root of the sum of
    their squares is what all of them come to, and a few times that is not exceeded.
    """
    squares = float(state.sums[4, lanes].sum())
    return 4 * float(np.finfo(state.dtype).eps) * float(np.sqrt(squares))


def _scaled_rounding(state: Lanes, lanes: slice) -> float:
    """Return how far the norm of g_{1:T} divided by scales may be from that of exact sums, likewise."""
    return 4 * float(np.finfo(state.dtype).eps) * float(np.sqrt(state.dual_sums[0, lanes].sum()))


def _slack(state: Lanes, lanes: slice, since: Snapshot | None) -> float:
    """Return how far Σ ℓ − Σ g·x may be from exact sums of exact losses and slopes.

    Each loss and slope is right to a few last places, and each addition to the last place of a double.
    """
    loss, played = _sums(state, lanes, since)
    size = abs(loss) + abs(played) + state.weight - (0.0 if since is None else since.weight)
    if state.layout.concavity:
        size += abs(float(_since(state, since)[1 - CONCAVITY, lanes].sum()))
    sums = float(np.abs(state.sums[:2, lanes]).sum())
    added = 2 * float(np.finfo(np.float64).eps) * state.rounds * sums
    return 8 * float(np.finfo(state.dtype).eps) * size + added


def _norms(state: Lanes, lanes: slice, since: Snapshot, scaled: bool) -> tuple[NDArray[np.float64], float]:
    """Return ‖g_{1:T}‖² since a snapshot for each lane, and ‖x‖ of some lanes together, without a table of either.

    With ``scaled``, gradients are divided by the scales of coordinates, and weights are multiplied by them.
    """
    part, gradients, weights, used = state.layout.gradient_part, np.zeros(state.lanes), 0.0, state.seen
    if since.slots is not None:
        used = np.union1d(used, since.slots)
    for start in range(0, used.size, BLOCK):
        some = used[start : start + BLOCK]
        g, x = state.state[some, part] * state.units(some)[:, None], state.weights_at(some)[:, lanes].astype(np.float64)
        if since.slots is not None and since.gradients is not None:
            low, high = np.searchsorted(since.slots, (some[0], some[-1] + 1))
            g[np.searchsorted(some, since.slots[low:high])] -= since.gradients[low:high]
        if scaled:
            scales = state.scales[some].astype(np.float64)[:, None]
            g, x = in_scales(g, np.broadcast_to(scales, g.shape)), x * scales
        # Not vdot, which would start threads on arrays this long.
        gradients += np.sum(np.square(g), axis=0)
        weights += float(np.sum(np.square(x)))
    return gradients, float(np.sqrt(weights))


def _parts(state: Lanes, lanes: slice, some: NDArray[np.int64]) -> Iterator[tuple[int, tuple[Any, ...], float]]:
    """Yield g_{1:T}, strength, Σσx and penalties of some coordinates, in blocks that stay in a cache.

    With each comes the place of its first coordinate, and what its coordinates add to the constant.
    """
    for start in range(0, some.size, BLOCK):
        yield start, *_part(state, lanes, some[start : start + BLOCK])


def _part(state: Lanes, lanes: slice, some: NDArray[np.int64]) -> tuple[tuple[Any, ...], float]:
    """Return the same of a few coordinates.

    What they add is −h_{0:T} at the present point for FTRL, and what was added lately around it for Mirror Descent.
    """
    settings, layout = state.settings, state.layout
    p = state.parameters.reshape(5, state.lanes, 1)[:, lanes].astype(np.float64)
    parts = state.state[:, :, lanes][some].transpose(1, 2, 0).astype(np.float64)
    x = state.weights_at(some)[:, lanes].T.astype(np.float64)
    units = state.units(some)
    parts[1:] *= units
    parts[1] *= units
    parts[0] *= 1 if layout.primal else units
    z, n = parts[:2]
    gradients = z if layout.parts == 2 else parts[2]
    linear = parts[3] if layout.parts == 4 else gradients - z
    strength = np.broadcast_to(layout.strength(n, _scales(state, some), p, state.rounds), z.shape)
    late = np.zeros(1)
    if layout.keeps_strength:
        # Coordinates that were not seen lately have been told of strength around their weights only until then.
        late = np.where(n > 0, strength - n, 0.0)
        linear = linear + late * x
    penalized = (some < state.features).astype(np.float64)
    total = state.rounds if settings.penalty_weight == "every" else min(state.rounds, 1)
    l1, l2 = total * p[2] * penalized, total * p[3] * penalized
    objective = (gradients - linear) * x + l1 * np.abs(x) + 0.5 * (strength + l2) * x * x
    spent = float(np.sum(0.5 * late * x * x if layout.primal else -objective))
    return (gradients, strength, linear, l1, l2), spent


def clipping(state: Lanes, lanes: slice) -> str:
    """Return what a certificate of some lanes does not know of, or nothing where all gradients were as they are."""
    rows = int(state.clipped[lanes].max())
    if not rows:
        return ""
    remedy = "scale the features and labels" + ("" if state.dtype == np.float64 else ", or use float64")
    remedy += "" if state.settings.rate == "scale_free" else ", or use rate='scale_free'"
    count = f"{rows:,} row{'s' if rows > 1 else ''}"
    return f"gradients of {count} left the range of {state.dtype} and were clipped; {remedy}"


def _void(state: Lanes, lanes: slice) -> str:
    """Return why no theorem bounds the regret, or nothing where one does."""
    if reason := clipping(state, lanes):
        return reason
    if state.settings.rule == "implicit":
        return "the survey proves no bound for implicit updates; use algorithm='mirror'"
    if state.layout.primal and state.settings.rate == "scale_free":
        return (
            "Mirror Descent adds the strength of a growing scale around the present weights, which is not counted; "
            "use algorithm='proximal'"
        )
    if state.layout.catch_up in ("drift", "replay"):
        return (
            "with rate='root' and a penalty every round, strength is added around weights that nobody looked at; "
            "use penalty_weight='once' or rate='adagrad'"
        )
    return ""


def _scales(state: Lanes, some: NDArray[np.int64]) -> Any:
    """Return the scales of coordinates; 1 for rates without."""
    return state.scales[some].astype(np.float64) if state.layout.rate == "scale_free" else 1.0
