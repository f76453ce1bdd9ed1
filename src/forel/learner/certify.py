"""Certificates and loss floors of lanes, from the sums and records of a state.

With filters, sums are kept of a few lanes: any slopes are a point of the dual problem, so that a few are enough. The
slice ``lanes`` selects the lanes of one model: one lane, or all classes of a joint loss.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forel.learner.certificate import Certificate, Norm, in_scales
from forel.learner.dual import Concavity, DualPoint, SlopeHistogram
from forel.learner.layout import BINS, CONCAVITY, FACTS, SUMS, Lane, Layout
from forel.learner.loss_floor import LossFloor
from forel.learner.polish import SampledRows, polished_points
from forel.learner.state import BLOCK, State
from forel.losses.margin import DualShape
from forel.markup import counted

__all__ = ["CertificateSums", "certificate", "loss_floor", "snapshot"]

Array = NDArray[np.float64]
Slots = NDArray[np.int64]
EPS = float(np.finfo(np.float64).eps)
NEGLIGIBLE = 1e-6  # error of labels below which the allowance for rounding errors covers it
DEVIATIONS = 6  # of rounding errors, in units of their largest root mean square
SUMMED = 1e-11  # relative error of a sum of squares of at most 2^26 numbers, in float64
ROUNDED = 0.01  # fraction of the loss above which errors of labels void a floor


@dataclass(frozen=True, eq=False)
class CertificateSums:
    """The sums that loss floors are computed from, at some moment: those of the rows since then are differences.

    Parameters
    ----------
    rounds, weight : the number of rows learned from, and the sum of their importances
    sums : running sums, in the order of :class:`forel.learner.layout.Layout`, a column for each lane; None without a
        certificate
    slots, gradients : the coordinates of the rows, in order, and the sum of gradients there, a column for each lane
        with sums of certificates, in the units of the features
    mixture_loss, mixture_rows : the loss of a mixture, and the number of rows of its first pass

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(2, Settings(alpha=1.0), certified=True)
    >>> _ = model.learn([[1.0, 0.0]] * 30, [1, 0, 0] * 10)
    >>> before = model.snapshot()
    >>> _ = model.learn([[0.0, 3.0]] * 20, [1, 0] * 10)
    >>> model.loss_floor(since=before).rows
    20
    """

    rounds: int = 0
    weight: float = 0.0
    sums: Array | None = None
    slots: Slots | None = None
    gradients: Array | None = None
    mixture_loss: float = 0.0
    mixture_rows: int = 0


START = CertificateSums()


def snapshot(state: State) -> CertificateSums:
    """Return the current sums of certificates."""
    if not state.certified:
        return CertificateSums(state.rounds, state.total_importance)
    slots = state.active_coordinates
    return CertificateSums(
        state.rounds, state.total_importance, state.all_sums.copy(), slots, _gradients(state, slots, START)
    )


def certificate(
    state: State, lanes: slice, among: Slots | None = None, candidates: Sequence[slice] = ()
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
    coefficients, added = _regularizer(state, lanes, some)
    gradients, strength, linear, l1, l2 = (each.ravel() for each in coefficients)
    if among is not None:
        # Comparators are 0 in the other coordinates, but the learner is not.
        others = np.setdiff1d(state.active_coordinates, among, assume_unique=True)
        added += _regularizer(state, lanes, others)[1]
    rows, scaled = _Rows(state, START), settings.rate == "scale_free"
    all_models = [lanes, *(each for each in candidates if each != lanes)]
    norms: tuple[Norm, ...] = ("l2", "scaled") if scaled else ("l2",)
    return Certificate(
        rounds=state.rounds,
        weight=state.total_importance,
        loss=float(totals[0]),
        # Clipped gradients are not in the sums: the regret may be any number.
        lower=float(totals[0]) - float(totals[1]) if not rows.clipped(lanes) else -np.inf,
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
        floors={norm: rows.floor(lanes, all_models, some, norm == "scaled") for norm in norms},
        void=_void(state, lanes),
        rounding=rows.rounding(lanes),
        slack=rows.slack(lanes),
        scales=np.tile(state.scales[some].astype(np.float64), models) if scaled else None,
    )


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
    rows, used, scaled = _Rows(state, since or START), state.active_coordinates, state.settings.rate == "scale_free"
    if since is not None and since.slots is not None:
        used = np.union1d(used, since.slots)
    floor = rows.floor(lanes, candidates, used, scaled, total_loss)
    if sample is None or floor.void or state.n_lanes != state.settings.n_settings:
        return floor
    valid = [one for one in candidates if not rows.clipped(one)]
    best = max(range(len(valid)), key=lambda k: floor.points[k].floor(floor.norm))
    column, error = state.layout.certified_lanes.index(valid[best].start or 0), rows.rounding(valid[best], scaled)
    slots = np.unique(np.append(sample.slots, np.full(int(floor.bias), state.features)))
    scales = _scales(state, slots, scaled)
    gradients = in_scales(_gradients(state, slots, rows.since)[:, column], scales)
    squares = (floor.points[best].gradient_norm - error) ** 2 * (1 + SUMMED)
    others = math.sqrt(max(squares - float(gradients @ gradients), 0.0))
    more = polished_points(
        rows.loss, sample, column, floor.points[best], slots, np.append(gradients, others), scales, floor.bias,
        floor.norm, error,
    )  # fmt: skip
    return floor.with_points(more)


class _Rows:
    """The sums of the rows of a state since a snapshot; the rounding errors in them are those of all rows."""

    def __init__(self, state: State, since: CertificateSums) -> None:
        self.state, self.since, self.layout, self.loss = state, since, state.layout, state.settings.loss_function
        self.eps, self.every = float(np.finfo(state.dtype).eps), state.all_sums
        self.sums = self.every if since.sums is None else self.every - since.sums
        self.rounds, self.weight = state.rounds - since.rounds, state.total_importance - since.weight

    def floor(
        self, lanes: slice, candidates: Sequence[slice], used: Slots, scaled: bool, total_loss: float | None = None
    ) -> LossFloor:
        """Return the lower bounds for models of these coordinates, in a norm."""
        gradients, norm = self._norms(used, scaled, lanes)
        return LossFloor(
            rows=self.rounds,
            weight=self.weight,
            loss=self.total_loss(lanes) if total_loss is None else total_loss,
            norm=norm,
            points=tuple(self._point(one, gradients, scaled) for one in candidates if not self.clipped(one)),
            least=self.state.settings.least,
            bias=self.state.settings.bias,
            scaled=scaled,
            void=self._void(candidates),
            counts=not self.every[-2].any(),
        )

    def total_loss(self, lanes: slice) -> float:
        """Return the loss of some lanes together."""
        return float(self.sums[0, lanes].sum())

    def linearized_loss(self, lanes: slice) -> float:
        """Return Σ g·x."""
        return float(self.sums[1, lanes].sum())

    def clipped(self, lanes: slice) -> int:
        """Return the number of rows in which a number was clipped."""
        return int(self.every[4, lanes].max())

    def slack(self, lanes: slice) -> float:
        """Return a bound on the error of Σ ℓ − Σ g·x against exact sums of exact losses and slopes.

        Each loss and slope has an error of a few units in the last place, and each addition of one, in float64.
        """
        size = abs(self.total_loss(lanes)) + abs(self.linearized_loss(lanes)) + self.weight
        if self.layout.concavity:
            size += abs(float(self.sums[-CONCAVITY - FACTS, lanes].sum()))
        return 8 * self.eps * size + 2 * EPS * self.state.rounds * float(np.abs(self.every[:2, lanes]).sum())

    def rounding(self, lanes: slice, scaled: bool = False) -> float:
        """Return a bound on the error of ‖G‖ against exact sums, with gradients divided by scales or not.

        Each addition has an independent random error, of mean 0 and at most a unit in the last place of the sum. By
        Pinelis' inequality, the norm of all errors exceeds k times the root of the sum of the squares of these units
        with a probability of at most 2 exp(−k²/2), here 3e-8. The squares are sampled, one coordinate of each row.
        """
        return DEVIATIONS * self.eps * float(np.sqrt(self.every[SUMS if scaled else 3, lanes].sum()))

    def _norms(self, used: Slots, scaled: bool, lanes: slice) -> tuple[Array, float]:
        """Return ‖G‖² of each lane, and ‖x‖ of the learned model, without tables of either."""
        certified, norm = list(self.layout.certified_lanes), 0.0
        squares = np.zeros(self.state.n_lanes)
        for start in range(0, used.size, BLOCK):
            some = used[start : start + BLOCK]
            scales = _scales(self.state, some, scaled)[:, None]
            x = self.state.weights_at(some)[:, lanes].astype(np.float64) * scales
            g = _gradients(self.state, some, self.since)
            squares[certified] += np.sum(np.square(in_scales(g, scales) if scaled else g), axis=0)
            norm += float(np.sum(np.square(x)))
        return squares, math.sqrt(norm)

    def _point(self, lanes: slice, gradients: Array, scaled: bool) -> DualPoint:
        """Return the point of the dual problem given by the slopes of some lanes together."""
        loss, slack = self.total_loss(lanes), self.slack(lanes)
        return DualPoint(
            loss - self.linearized_loss(lanes) - slack - self._label_error(lanes),
            math.sqrt(float(gradients[lanes].sum())) + self.rounding(lanes, scaled),
            self._concavity(lanes, loss - slack),
            self._slopes(lanes),
        )

    def _label_error(self, lanes: slice) -> float:
        r"""Return a bound on the error of E(1) from labels rounded by at most δ: δ Σ v|a| for losses of m − y.

        Σ v|a| is at most Σ v times the largest slope, and, for slopes that grow by at most H, √(2H Σ v Σ vℓ).
        """
        rounding = float(self.every[-1].max())
        if not rounding:
            return 0.0
        constants = self.loss.constants()
        smooth = math.sqrt(2 * constants.smoothness * self.weight * max(self.total_loss(lanes), 0.0))
        least = min(constants.lipschitz * self.weight, smooth)
        return rounding * least if math.isfinite(least) else 0.0 if rounding < NEGLIGIBLE else math.inf

    def _void(self, lanes: Sequence[slice]) -> str:
        """Return why none of some models proves a floor; empty if one does."""
        if reason := self.loss.not_convex():
            return reason
        if all(self.clipped(one) for one in lanes):
            return _clipping(self.layout, max(self.clipped(one) for one in lanes))
        if min(self._label_error(one) - ROUNDED * abs(self.total_loss(one)) for one in lanes) <= 0:
            return ""
        digits = f"labels were rounded to {self.layout.dtype}, by up to {float(self.every[-1].max()):.2g}"
        return f"{digits}; subtract a constant from them, or use float64"

    @property
    def _relative_rounding(self) -> float:
        """A bound on the relative error of a sum of positive numbers, against that of exact slopes.

        Slopes times importances have an error of a few units in the last place, and each addition of one, in float64.
        """
        return 32 * self.eps + 4 * EPS * self.state.rounds

    def _slopes(self, lanes: slice) -> SlopeHistogram | None:
        """Return the histogram of slopes, that of the label's class for a joint loss; None for losses without one."""
        if not self.layout.histogram:
            return None
        bins, first = slice(SUMS + 1, SUMS + 1 + 2 * BINS), lanes.start or 0
        weights, totals = self.sums[bins, first].reshape(BINS, 2).T
        total_weight = float(self.every[bins, first][::2].sum())
        return SlopeHistogram(np.maximum(weights, 0.0), np.maximum(totals, 0.0), self._relative_rounding * total_weight)

    def _concavity(self, lanes: slice, loss: float) -> Concavity | None:
        """Return the lower bound on E(θ) − θE(1), given a lower bound on the loss; None if there is none."""
        if self.loss.dual_shape is DualShape.QUADRATIC:
            return Concavity(curvature=max(loss, 0.0))
        if not self.layout.concavity:
            return None
        part, first = slice(-CONCAVITY - FACTS, -FACTS), lanes.start or 0
        least, curvature, entropy = self.sums[part, first].tolist()
        every, relative = self.every[part, first].tolist(), self._relative_rounding
        least -= 8 * EPS * self.state.rounds * (abs(every[0]) + 2 * self.state.total_importance)
        least = max(least, 0.0) if self.loss.least >= 0 else least
        return Concavity(least, max(curvature - relative * every[1], 0.0), max(entropy - relative * every[2], 0.0))


def _gradients(state: State, some: Slots, since: CertificateSums) -> Array:
    """Return Σ v a f of the rows since a snapshot at some coordinates, in order: a column for each certified lane."""
    found: Array = state.gradients[some] * state.units(some)[:, None]
    if since.slots is not None and since.gradients is not None and some.size:
        low, high = np.searchsorted(since.slots, (some[0], some[-1] + 1))
        found[np.searchsorted(some, since.slots[low:high])] -= since.gradients[low:high]
    return found


def _scales(state: State, some: Slots, scaled: bool) -> Array:
    """Return the scales of coordinates, 1 for the bias; 1 everywhere for norms without scales."""
    return state.scales[some].astype(np.float64) if scaled else np.ones(some.size)


def _regularizer(state: State, lanes: slice, some: Slots) -> tuple[tuple[Array, ...], float]:
    """Return g_{1:T}, strength, Σσx and penalties of coordinates, and the term that they add to the constant.

    The term is −h_{0:T} at the current point for FTRL, and 0 for Mirror Descent.
    """
    settings, layout = state.settings, state.layout
    p = Lane(*state.parameters.reshape(-1, state.n_lanes, 1)[:, lanes].astype(np.float64))
    parts = state.numbers[:, :, lanes][some].transpose(1, 2, 0).astype(np.float64)
    x = state.weights_at(some)[:, lanes].T.astype(np.float64)
    units = state.units(some)
    parts[1:] *= units
    parts[1] *= units
    parts[0] *= 1 if layout.primal else units
    z, n = parts[:2]
    gradients = z if layout.parts == 2 else parts[2]
    if layout.gradient_lanes:
        columns = [layout.gradient_lanes.index(lane) for lane in range(state.n_lanes)[lanes]]
        gradients = _gradients(state, some, START)[:, columns].T
    linear = parts[3] if layout.parts == 4 else gradients - z
    strength = layout.strength(n, _scales(state, some, layout.rate == "scale_free"), p)
    penalized = (some < state.features).astype(np.float64)
    total = state.rounds if settings.penalty_weight == "every" else min(state.rounds, 1)
    l1, l2 = total * p.l1 * penalized, total * p.l2 * penalized
    objective = (gradients - linear) * x + l1 * np.abs(x) + 0.5 * (strength + l2) * x * x
    term = 0.0 if layout.primal else float(np.sum(-objective))
    return tuple(np.broadcast_to(each, z.shape) for each in (gradients, strength, linear, l1, l2)), term


def _void(state: State, lanes: slice) -> str:
    """Return why no theorem bounds the regret; empty if one does."""
    if rows := int(state.clipped[lanes].max()):
        return _clipping(state.layout, rows)
    if state.layout.primal and state.settings.rate == "scale_free":
        return (
            "Mirror Descent adds the strength of a growing scale around the current weights, which is not counted; "
            "use algorithm='proximal'"
        )
    return ""


def _clipping(layout: Layout, rows: int) -> str:
    """Return why a certificate is void if gradients of some rows were clipped."""
    remedy = "scale the features and labels" + ("" if layout.double else ", or use float64")
    remedy += "" if layout.rate == "scale_free" else ", or use rate='scale_free'"
    return f"gradients of {counted(rows, 'row')} left the range of {layout.dtype} and were clipped; {remedy}"
