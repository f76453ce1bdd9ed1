"""The sums that loss floors are computed from, and the points of the dual problem that they give.

With filters, sums are kept of a few lanes: any slopes are a point of the dual problem, so that a few are enough. Their
sums of gradients follow the scale at the end of each record, where they need no further cache line. The slice ``lanes``
selects the lanes of one model: one lane, or all classes of a joint loss.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.learner.dual import Concavity, DualPoint, SlopeHistogram
from forel.learner.layout import BINS, CONCAVITY, FACTS, SUMS, Layout
from forel.learner.settings import Settings
from forel.losses.margin import DualShape, MarginLoss
from forel.markup import counted

__all__ = [
    "CertificateSums",
    "Evidence",
    "GradientNorms",
    "Norm",
    "bounded_lanes",
    "certified_lanes",
    "clipping",
    "difference",
    "in_scales",
]

Array = NDArray[np.float64]
Norm = Literal["l2", "l1", "box", "scaled"]
EPS = float(np.finfo(np.float64).eps)
NEGLIGIBLE = 1e-6  # error of labels below which the allowance for rounding errors covers it
DEVIATIONS = 6  # of rounding errors, in units of their largest root mean square
ROUNDED = 0.01  # fraction of the loss above which errors of labels void a floor
COUNT = 3  # with the scale, four numbers for each coordinate


def certified_lanes(settings: Settings) -> tuple[int, ...]:
    """Return the lanes whose sums of gradients are kept; for settings with filters at most three, in order.

    They are the lanes of the middle rate, or of the two middle ones, of the filter with the smallest variance, and
    of the middle filter in the order of the settings; then of others, if these are fewer. Small rates and large
    variances have large losses on short streams, and the extremes are far from the best model on long ones.

    >>> certified_lanes(Settings(alpha=(0.05, 0.3, 1.5, 20), rate="scale_free", filters=[(10, 1), (0.3,), (0.03,)]))
    (1, 2, 6)
    >>> certified_lanes(Settings(alpha=(0.1, 0.5, 2.0, 9.0)))
    (0, 1, 2, 3)
    """
    lanes, rates = range(settings.n_settings), settings.first_filter
    if not settings.filters:
        return tuple(lanes)
    alphas = settings.alpha if isinstance(settings.alpha, tuple) else (settings.alpha,) * rates
    by_rate = sorted(range(rates), key=lambda lane: alphas[lane])
    least = min(range(len(settings.filters)), key=lambda k: settings.filters[k].variance)
    preferred = [by_rate[(rates - 1) // 2], by_rate[rates // 2], rates + least, rates + len(settings.filters) // 2]
    return tuple(sorted(list(dict.fromkeys((*preferred, *lanes)))[:COUNT]))


def bounded_lanes(settings: Settings) -> tuple[int, ...]:
    """Return those of the certified lanes whose regret has a bound, which filters do not have."""
    return tuple(lane for lane in certified_lanes(settings) if lane < settings.first_filter)


@dataclass(frozen=True, eq=False)
class CertificateSums:
    """The sums that loss floors are computed from: of all rows of a learner, or of those since a snapshot.

    Parameters
    ----------
    rounds, weight : the number of rows learned from, and the sum of their importances
    sums : running sums, in the order of :class:`forel.learner.layout.Layout`, a column for each lane; None without a
        certificate
    slots, gradients : the coordinates of the rows, in order, and the sum of gradients there, a column for each lane
        with sums of certificates, in the units of the features
    scales : the largest absolute value of each of these coordinates, for rates that keep it
    all_rounds, all_weight, all_sums : the same for all rows whose rounding errors are in the sums, if there are more
    mixture_loss, mixture_rows : the loss of a mixture, and the number of rows of its first pass

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> model = Learner(2, Settings(alpha=1.0), certified=True)
    >>> _ = model.learn([[1.0, 0.0]] * 30, [1, 0, 0] * 10)
    >>> before = model.snapshot()
    >>> _ = model.learn([[0.0, 3.0]] * 20, [1, 0] * 10)
    >>> difference(model.snapshot(), before).rounds, model.loss_floor(since=before).rows
    (20, 20)
    """

    rounds: int = 0
    weight: float = 0.0
    sums: Array | None = None
    slots: NDArray[np.int64] | None = None
    gradients: Array | None = None
    scales: Array | None = None
    all_rounds: int = 0
    all_weight: float = 0.0
    all_sums: Array | None = None
    mixture_loss: float = 0.0
    mixture_rows: int = 0

    @property
    def rounding_rounds(self) -> int:
        """The number of rounded additions in each sum."""
        return max(self.rounds, self.all_rounds)

    @property
    def rounding_weight(self) -> float:
        """The sum of the importances of the rows of these additions."""
        return max(self.weight, self.all_weight)

    @property
    def rounding_sums(self) -> Array | None:
        """The sums of all rows whose rounding errors are in these sums."""
        return self.sums if self.all_sums is None else self.all_sums


def difference(after: Any, before: Any) -> CertificateSums:
    """Return the sums of the rows between two snapshots of a learner; scales are those of all rows until ``after``."""
    slots, gradients = after.slots, after.gradients
    if after.slots is not None and before.slots is not None:
        slots = np.union1d(after.slots, before.slots)
        gradients = np.zeros((slots.size, after.gradients.shape[1]))
        gradients[np.searchsorted(slots, after.slots)] += after.gradients
        gradients[np.searchsorted(slots, before.slots)] -= before.gradients
    return CertificateSums(
        after.rounds - before.rounds,
        after.weight - before.weight,
        after.sums if after.sums is None or before.sums is None else after.sums - before.sums,
        slots,
        gradients,
        None if slots is None or after.scales is None else _scales(slots, after),
        after.rounding_rounds,
        after.rounding_weight,
        after.rounding_sums,
        after.mixture_loss - before.mixture_loss,
        after.mixture_rows - before.mixture_rows,
    )


def _scales(slots: NDArray[np.int64], known: Any) -> Array:
    """Return the scale of each slot; 0 for slots that have none."""
    scales = np.zeros(slots.size)
    scales[np.searchsorted(slots, known.slots)] = known.scales
    return scales


def clipping(layout: Layout, rows: int) -> str:
    """Return why a certificate is void if gradients of some rows were clipped."""
    remedy = "scale the features and labels" + ("" if layout.double else ", or use float64")
    remedy += "" if layout.rate == "scale_free" else ", or use rate='scale_free'"
    return f"gradients of {counted(rows, 'row')} left the range of {layout.dtype} and were clipped; {remedy}"


def in_scales(gradients: Array, scales: Array) -> Array:
    """Return gradients divided by scales, 0 where the scale is 0: such a feature has no gradient.

    >>> in_scales(np.array([3.0, 0.0]), np.array([2.0, 0.0]))
    array([1.5, 0. ])
    """
    return np.divide(gradients, scales, out=np.zeros_like(gradients), where=scales > 0)


class GradientNorms(NamedTuple):
    """The quantities that dual norms of G are computed from, for each lane.

    Parameters
    ----------
    squares : sums of squares of the gradients of weights
    scaled : sums of squares of these gradients divided by the scales of features
    largest, total : the largest absolute value of these gradients, and the sum of absolute values
    bias : the gradient of the bias; 0 without one
    size : the number of weights
    """

    squares: Array
    scaled: Array
    largest: Array
    total: Array
    bias: Array
    size: int

    @classmethod
    def zero(cls, lanes: int) -> "GradientNorms":
        """Return the norms of no coordinates."""
        zero = np.zeros(lanes)
        return cls(zero, zero, zero, zero, zero, 0)

    def add(self, gradients: Array, scales: Array | None, bias: bool, every: bool) -> "GradientNorms":
        """Return the norms with further coordinates, one per row; if ``bias``, the last one is the bias.

        Unless ``every`` norm is needed, only squares are added, scaled ones if there are scales.
        """
        g, divided = gradients, None
        if scales is not None:
            divided = in_scales(g, np.broadcast_to(scales[:, None], g.shape))
        if bias:
            g, divided = g[:-1], None if divided is None else divided[:-1]
        size = np.abs(g) if every else g[:0]
        # Not vdot, which would start threads for arrays of this length.
        return GradientNorms(
            self.squares + np.sum(np.square(g if every or divided is None else g[:0]), axis=0),
            self.scaled if divided is None else self.scaled + np.sum(np.square(divided), axis=0),
            np.maximum(self.largest, np.max(size, axis=0, initial=0.0)),
            self.total + np.sum(size, axis=0),
            gradients[-1] if bias else self.bias,
            self.size + len(g),
        )

    def of_lanes(self, lanes: list[int], count: int) -> "GradientNorms":
        """Return the norms of these lanes at their places among ``count`` lanes; those of others are 0."""
        placed = np.zeros((5, count))
        placed[:, lanes] = self[:5]
        squares, scaled, largest, total, bias = placed
        return GradientNorms(squares, scaled, largest, total, bias, self.size)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The sums of some rows, with the layout and the loss of the learner that predicted them.

    Parameters
    ----------
    rows : the sums of the rows
    layout, loss : layout and loss of the learner
    """

    rows: CertificateSums
    layout: Layout
    loss: MarginLoss

    @property
    def _sums(self) -> Any:
        return self.rows.sums

    @property
    def _all(self) -> Any:
        return self.rows.rounding_sums

    @property
    def _eps(self) -> float:
        return float(np.finfo(self.layout.dtype).eps)

    def total_loss(self, lanes: slice) -> float:
        """Return the loss of some lanes together."""
        return float(self._sums[0, lanes].sum())

    def linearized_loss(self, lanes: slice) -> float:
        """Return Σ g·x."""
        return float(self._sums[1, lanes].sum())

    def clipped(self, lanes: slice) -> int:
        """Return the number of rows in which a number was clipped."""
        return int(self._all[5, lanes].max())

    def point(self, lanes: slice, norms: GradientNorms, norm: Norm) -> DualPoint:
        """Return the point of the dual problem given by the slopes of some lanes together, for a norm of models."""
        loss, slack = self.total_loss(lanes), self.slack(lanes)
        weights, bias, both = _dual_norms(norms, lanes, norm)
        error = self.rounding(lanes, norm == "scaled") * (math.sqrt(norms.size + 1) if norm == "box" else 1.0)
        return DualPoint(
            loss - self.linearized_loss(lanes) - slack - self.label_error(lanes),
            both + error,
            self._concavity(lanes, loss - slack),
            self._slopes(lanes),
            weights + error,
            bias + error,
        )

    @property
    def counts(self) -> bool:
        """Whether the importances of all rows are 1."""
        return not self._all[-2].any()

    def label_error(self, lanes: slice) -> float:
        r"""Return a bound on the error of E(1) from labels rounded by at most δ: δ Σ v|a| for losses of m − y.

        Σ v|a| is at most Σ v times the largest slope, and, for slopes that grow by at most H, √(2H Σ v Σ vℓ).
        """
        rounding = float(self._all[-1].max())
        if not rounding:
            return 0.0
        constants, weight = self.loss.constants(), self.rows.weight
        smooth = math.sqrt(2 * constants.smoothness * weight * max(self.total_loss(lanes), 0.0))
        least = min(constants.lipschitz * weight, smooth)
        return rounding * least if math.isfinite(least) else 0.0 if rounding < NEGLIGIBLE else math.inf

    def void(self, lanes: Sequence[slice]) -> str:
        """Return why none of some models proves a floor; empty if one does."""
        if reason := self.loss.not_convex():
            return reason
        if all(self.clipped(one) for one in lanes):
            return clipping(self.layout, max(self.clipped(one) for one in lanes))
        if min(self.label_error(one) - ROUNDED * abs(self.total_loss(one)) for one in lanes) <= 0:
            return ""
        digits = f"labels were rounded to {self.layout.dtype}, by up to {float(self._all[-1].max()):.2g}"
        return f"{digits}; subtract a constant from them, or use float64"

    def slack(self, lanes: slice) -> float:
        """Return a bound on the error of Σ ℓ − Σ g·x against exact sums of exact losses and slopes.

        Each loss and slope has an error of a few units in the last place, and each addition of one, in float64.
        """
        size = abs(self.total_loss(lanes)) + abs(self.linearized_loss(lanes)) + self.rows.weight
        if self.layout.concavity:
            size += abs(float(self._sums[1 - CONCAVITY - FACTS, lanes].sum()))
        added = 2 * EPS * self.rows.rounding_rounds * float(np.abs(self._all[:2, lanes]).sum())
        return 8 * self._eps * size + added

    def rounding(self, lanes: slice, scaled: bool = False) -> float:
        """Return a bound on the error of ‖G‖ against exact sums, with gradients divided by scales or not.

        Each addition has an independent random error, of mean 0 and at most a unit in the last place of the sum. By
        Pinelis' inequality, the norm of all errors exceeds k times the root of the sum of the squares of these units
        with a probability of at most 2 exp(−k²/2), here 3e-8. The squares are sampled, one coordinate of each row.
        """
        return DEVIATIONS * self._eps * float(np.sqrt(self._all[SUMS if scaled else 4, lanes].sum()))

    @property
    def _relative_rounding(self) -> float:
        """A bound on the relative error of a sum of positive numbers, against that of exact slopes.

        Slopes times importances have an error of a few units in the last place, and each addition of one, in float64.
        """
        return 32 * self._eps + 4 * EPS * self.rows.rounding_rounds

    def _slopes(self, lanes: slice) -> SlopeHistogram | None:
        """Return the histogram of slopes, that of the label's class for a joint loss; None for losses without one."""
        if not self.layout.histogram:
            return None
        bins, first = slice(SUMS + 1, SUMS + 1 + 2 * BINS), lanes.start or 0
        weights, totals = self._sums[bins, first].reshape(BINS, 2).T
        total_weight = float(self._all[bins, first][::2].sum())
        return SlopeHistogram(np.maximum(weights, 0.0), np.maximum(totals, 0.0), self._relative_rounding * total_weight)

    def _concavity(self, lanes: slice, loss: float) -> Concavity | None:
        """Return the lower bound on E(θ) − θE(1), given a lower bound on the loss; None if there is none."""
        if self.loss.dual_shape is DualShape.QUADRATIC:
            return Concavity(curvature=max(loss, 0.0))
        if not self.layout.concavity:
            return None
        rows, least, curvature, entropy = self._sums[-CONCAVITY - FACTS : -FACTS, lanes.start or 0].tolist()
        if rows < (1 if self.layout.histogram else self.rows.rounds):
            return None  # no rows, or rows of an earlier version without the minima of losses
        all_sums, relative = self._all[-CONCAVITY - FACTS : -FACTS, lanes.start or 0].tolist(), self._relative_rounding
        least -= 8 * EPS * self.rows.rounding_rounds * (abs(all_sums[1]) + 2 * self.rows.rounding_weight)
        least = max(least, 0.0) if self.loss.least >= 0 else least
        return Concavity(
            least, max(curvature - relative * all_sums[2], 0.0), max(entropy - relative * all_sums[3], 0.0)
        )


def _dual_norms(norms: GradientNorms, lanes: slice, norm: Norm) -> tuple[float, float, float]:
    """Return the dual norm of G for the weights, the Euclidean one for the biases, and the dual norm for both."""
    biases = np.abs(norms.bias[lanes])
    bias = float(np.linalg.norm(biases))
    if norm == "l1":
        weights = float(norms.largest[lanes].max())
        return weights, bias, max(weights, float(biases.max()))
    if norm == "box":
        weights = float(norms.total[lanes].sum())
        return weights, bias, weights + float(biases.sum())
    weights = math.sqrt(float((norms.scaled if norm == "scaled" else norms.squares)[lanes].sum()))
    return weights, bias, math.hypot(weights, bias)
