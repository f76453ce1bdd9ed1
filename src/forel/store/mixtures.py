r"""Mixtures as functions of the margins of their lanes, for serving models, and their derivatives, for explanations.

Only numpy is needed. The margin F of a mixture is not linear in the margins m of lanes. On the path
$m(s) = (1 - s) a + s b$ from the margins of the bias alone to those of a row,

$$ F(b) - F(a) = \sum_k w_k (b_k - a_k), \qquad w_k = \int_0^1 \frac{\partial F}{\partial m_k}(m(s))\, ds. $$
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.learner.mixture import Mixture
from forel.losses.margin import Mixing
from forel.losses.sigmoid import log_normalized, log_normalized_sigmoid, log_sigmoid, sigmoid

__all__ = ["ClassMixture", "ClippedMean", "LaneMixture", "LogisticMixture", "clipped", "lane_mixture", "path_weights"]

NODES = 64  # of Gauss's quadrature
NEGLIGIBLE = 1e-4  # total weight of experts that are left out, by which probabilities may differ

Array = NDArray[np.float64]


def path_weights(mixture: "LaneMixture", start: Array, stop: Array, output: int = 0) -> Array:
    """Return the weight of each lane on the path between two rows of margins, for an exact sum of contributions.

    Parameters
    ----------
    mixture : the function of margins
    start, stop : the margins of lanes at both ends, such as those of the bias alone and those of a row
    output : the output of the mixture, such as a class

    >>> mixture = ClassMixture(np.log([0.25, 0.75]), joint=True)
    >>> a, b = np.array([0.0, 0.5, 1.0, 1.0]), np.array([2.0, -1.0, 0.0, 3.0])
    >>> found = path_weights(mixture, a, b, output=1) @ (b - a)
    >>> bool(np.isclose(found, np.diff(mixture.margins(np.array([a, b])), axis=0)[0, 1]))
    True
    """
    places, weights = _quadrature()
    found = np.asarray(weights @ mixture.slopes((1 - places) * start + places * stop, output))
    step = stop - start
    # The error of quadrature, of which the smallest change of weights makes up for.
    missing = float(np.diff(mixture.margins(np.stack([start, stop])), axis=0)[0, output] - found @ step)
    size = float(step @ step)
    return found + missing * step / size if size > 0 else found


@cache
def _quadrature() -> tuple[Array, Array]:
    """Return nodes in [0, 1], as a column, and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes[:, None] + 1) / 2, weights / 2


@dataclass(frozen=True, eq=False)
class LogisticMixture:
    r"""The margin of the probability $\sum_k w_k \sigma(m_k)$ of the second of two classes.

    Mixers are experts whose margins are $v \cdot m$, with each margin of m clipped.

    Parameters
    ----------
    weights : of lanes, then of mixers; they sum to 1
    mixers : for each, the weights of lanes, and a constant
    clip, limit : the limits of margins, as inputs of mixers and of mixers themselves

    >>> mixture = LogisticMixture(np.array([0.25, 0.75]), np.zeros((0, 3)))
    >>> mixture.margins(np.array([[0.0, 0.0]]))
    array([[0.]])
    """

    weights: Array
    mixers: Array
    clip: float = math.inf
    limit: float = math.inf
    classes: ClassVar[int] = 1

    def margins(self, lanes: NDArray[Any]) -> Array:
        """Return the margin of the mixture from those of the lanes, one column."""
        experts, _ = self._experts(lanes)
        positive, negative = self._logs(experts)
        return np.asarray(positive - negative)[:, None]

    def slopes(self, lanes: Array, output: int = 0) -> Array:
        """Return the derivatives of the margin of the mixture, its only output, by those of the lanes."""
        experts, mixed = self._experts(lanes)
        each = log_sigmoid(experts) + log_sigmoid(-experts)
        slopes = self.weights * sum(np.exp(each - total[:, None]) for total in self._logs(experts))
        count = lanes.shape[1]
        by_mixer = slopes[:, count:] * (np.abs(mixed) < self.limit)
        through = by_mixer @ self.mixers[:, :-1] * (np.abs(lanes) < self.clip)
        return np.asarray(slopes[:, :count] + through)

    def _experts(self, lanes: NDArray[Any]) -> tuple[Array, Array]:
        """Return the margins of all experts, and those of mixers before they are clipped."""
        clipped = np.clip(lanes.astype(np.float64), -self.clip, self.clip)
        mixed = clipped @ self.mixers[:, :-1].T + self.mixers[:, -1]
        return np.hstack([lanes.astype(np.float64), np.clip(mixed, -self.limit, self.limit)]), mixed

    def _logs(self, experts: Array) -> tuple[Array, Array]:
        """Return the logarithms of the probabilities of the positive and of the negative class."""
        positive, negative = (
            np.logaddexp.reduce(log_sigmoid(m) + self._logarithms, axis=1) for m in (experts, -experts)
        )
        return positive, negative

    @cached_property
    def _logarithms(self) -> Array:
        """The logarithms of the weights."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights)


@dataclass(frozen=True, eq=False)
class ClippedMean:
    """A mean of margins that are clipped to the range of labels, with ridge mixers of them among the experts.

    Parameters
    ----------
    weights : of the settings, then of mixers; they sum to 1
    mixers : for each, the weights of settings, and a constant, of predictions relative to the range
    low, high : the range
    classes : the number of outputs; lanes are by class, then by setting

    >>> mean = ClippedMean(np.array([0.25, 0.75]), np.zeros((0, 3)), 0.0, 10.0)
    >>> mean.margins(np.array([[4.0, 8.0], [4.0, 80.0]]))[:, 0]
    array([7. , 8.5])
    """

    weights: Array
    mixers: Array
    low: float = -math.inf
    high: float = math.inf
    classes: int = 1

    def margins(self, lanes: NDArray[Any]) -> Array:
        """Return the margins of the mixture, a column for each class."""
        each = np.clip(self._by_class(lanes), self.low, self.high)
        if len(self.mixers):
            middle, span = self.low + (self.high - self.low) / 2, self.high - self.low
            each = np.concatenate((each, middle + np.clip(self._mixed(each), -0.5, 0.5) * span), axis=2)
        return np.asarray(each @ self.weights)

    def slopes(self, lanes: Array, output: int) -> Array:
        """Return the derivatives of one output by the margins of lanes."""
        given = self._by_class(lanes)
        inside = (given > self.low) & (given < self.high)
        count = given.shape[2]
        found = np.zeros_like(given)
        found[:, output] = self.weights[:count]
        if len(self.mixers) and self.high > self.low:
            free = np.abs(self._mixed(np.clip(given, self.low, self.high))[:, output]) < 0.5
            found[:, output] += (self.weights[count:] * free) @ self.mixers[:, :-1]
        return np.asarray((found * inside).reshape(lanes.shape))

    def _by_class(self, lanes: NDArray[Any]) -> Array:
        return np.asarray(lanes, np.float64).reshape(len(lanes), self.classes, lanes.shape[1] // self.classes)

    def _mixed(self, clipped: Array) -> Array:
        """Return the predictions of mixers relative to the middle and the length of the range, before clipping."""
        span = self.high - self.low
        scaled = (clipped - self.low - span / 2) / span if span > 0 else np.zeros_like(clipped)
        return np.asarray(scaled @ self.mixers[:, :-1].T + self.mixers[:, -1])


@dataclass(frozen=True, eq=False)
class ClassMixture:
    r"""The log-probabilities $\log\sum_k w_k p_{k,c}$ of several classes.

    Parameters
    ----------
    logs : the logarithms of the weights of settings
    joint : whether probabilities are the softmax of margins; if not, they are normalized sigmoids

    >>> np.exp(ClassMixture(np.log([0.5, 0.5]), joint=True).margins(np.zeros((1, 6)))).round(3)
    array([[0.333, 0.333, 0.333]])
    """

    logs: Array
    joint: bool

    def margins(self, lanes: NDArray[Any]) -> Array:
        """Return the log-probabilities of classes."""
        each = self._log_probabilities(self._by_setting(lanes))
        return np.asarray(np.logaddexp.reduce(each + self.logs[:, None], axis=1))

    def slopes(self, lanes: Array, output: int) -> Array:
        """Return the derivatives of the log-probability of a class by the margins of lanes."""
        given = self._by_setting(lanes)
        logs = self._log_probabilities(given)
        own = logs[:, :, output] + self.logs
        share = np.exp(own - np.logaddexp.reduce(own, axis=1)[:, None])[:, :, None]
        inner = 1.0 if self.joint else sigmoid(-given)
        found = share * inner * ((np.arange(given.shape[2]) == output) - np.exp(logs))
        return np.asarray(found.transpose(0, 2, 1).reshape(lanes.shape))

    def _by_setting(self, lanes: NDArray[Any]) -> Array:
        """Return margins by row, setting and class."""
        each = np.asarray(lanes, np.float64).reshape(len(lanes), -1, self.logs.size)
        return np.ascontiguousarray(each.transpose(0, 2, 1))

    def _log_probabilities(self, given: Array) -> Array:
        return log_normalized(given) if self.joint else log_normalized_sigmoid(given)


@dataclass(frozen=True, eq=False)
class NestedMixture:
    """A mixture of several classes of whose experts the last one has a mixture for each class.

    Lanes are those of the other experts, by class, then those of the mixture of each class.

    Parameters
    ----------
    outer : of all experts
    inner : of each class
    sizes : their numbers of lanes
    """

    outer: ClassMixture
    inner: tuple[LogisticMixture, ...]
    sizes: tuple[int, ...]

    def margins(self, lanes: NDArray[Any]) -> Array:
        """Return the log-probabilities of classes."""
        return self.outer.margins(self._experts(lanes)[0])

    def slopes(self, lanes: Array, output: int) -> Array:
        """Return the derivatives of the log-probability of a class by the margins of lanes."""
        experts, parts = self._experts(lanes)
        found = self.outer.slopes(experts, output).reshape(len(lanes), len(self.inner), -1)
        inner = (found[:, k, -1:] * self.inner[k].slopes(part) for k, part in enumerate(parts))
        return np.hstack([found[:, :, :-1].reshape(len(lanes), -1), *inner])

    def _experts(self, lanes: NDArray[Any]) -> tuple[Array, list[Array]]:
        """Return the margins of all experts by class, and those of the lanes of the mixture of each class."""
        first = lanes.shape[1] - sum(self.sizes)
        own, *parts = np.split(np.asarray(lanes, np.float64), first + np.cumsum((0, *self.sizes[:-1])), axis=1)
        mixed = np.hstack([one.margins(part) for one, part in zip(self.inner, parts, strict=True)])
        by_class = own.reshape(len(lanes), len(self.inner), -1)
        return np.concatenate((by_class, mixed[:, :, None]), axis=2).reshape(len(lanes), -1), parts


LaneMixture = LogisticMixture | ClippedMean | ClassMixture | NestedMixture


def lane_mixture(model: Learner, negligible: float = 0.0) -> tuple[NDArray[np.intp], LaneMixture]:
    """Return the lanes that a mixture needs, of one margin the best one first, and how they are mixed.

    Experts of the smallest weights are left out, up to a total of ``negligible`` where predictions have a range. A
    mixer needs all lanes.
    """
    from forel.learner.kernels import geometric, ridge

    mixture, classes = model.mixture, model.classes or 1
    assert mixture is not None
    ledger, logistic = mixture.ledger, mixture.rule is Mixing.BAYES
    count = ledger.inputs
    if logistic and model.classes is not None:
        logs = (ledger.losses.min() - ledger.losses) * mixture.rate()
        outer = ClassMixture(logs - np.logaddexp.reduce(logs), model.joint)
        if not model.of_classes:
            return np.arange(count * classes), outer
        first, inner = (count - 1) * classes, list[LogisticMixture]()
        nested = [np.arange(first)]
        for one in model.of_classes:
            own, mixed = lane_mixture(one)
            assert isinstance(mixed, LogisticMixture)
            assert one.mixture is not None
            nested.append(first + own)
            inner.append(mixed)
            first += one.mixture.ledger.inputs
        return np.concatenate(nested), NestedMixture(outer, tuple(inner), tuple(part.size for part in nested[1:]))
    limits = (geometric.CLIP, geometric.MARGIN_LIMIT) if logistic else _label_range(mixture)
    weights = mixture.flat_weights()
    states = np.zeros((0, 1, count + 1)) if mixture.mixers is None else mixture.mixers.states
    mixers = states[:, 0] * np.append(np.ones(count), geometric.CONSTANT if logistic else ridge.CONSTANT)
    if classes > 1:
        return np.arange(count * classes), ClippedMean(weights, mixers, *limits, classes)
    order = np.argsort(weights, kind="stable")
    kept = np.ones(weights.size, bool)
    kept[order[np.cumsum(weights[order]) <= (negligible if logistic or np.isfinite(limits).all() else 0.0)]] = False
    best, used = model.best, kept[:count] | kept[count:].any()
    lanes = np.array([best, *(lane for lane in np.flatnonzero(used) if lane != best)], np.intp)
    chosen = np.append(np.where(kept[lanes], weights[lanes], 0.0), weights[count:][kept[count:]])
    kind = LogisticMixture if logistic else ClippedMean
    return lanes, kind(chosen / chosen.sum(), mixers[kept[count:]][:, [*lanes, count]], *limits)


def clipped(model: Learner) -> ClippedMean | None:
    """Return the margins of one setting of a mixture that clips them to the range of labels; None if it does not."""
    mixture = model.mixture
    if mixture is None or not mixture.clips:
        return None
    return ClippedMean(np.ones(1), np.zeros((0, 2)), *_label_range(mixture), model.classes or 1)


def _label_range(mixture: Mixture) -> tuple[float, float]:
    """Return the margins to which predictions are clipped, which are those of the labels seen."""
    below, above = mixture.settings.loss_function.link.clipping
    low, high = mixture.ledger.label_range if below else (-math.inf, mixture.ledger.highest)
    return low, high if above else math.inf
