r"""Mixtures as functions of the margins of their lanes, with derivatives, for the contributions of features.

The margin F of a mixture is not linear in the margins m of lanes. On the path $m(s) = (1 - s) a + s b$ from the margins
of the bias alone to those of a row,

$$ F(b) - F(a) = \sum_k w_k (b_k - a_k), \qquad w_k = \int_0^1 \frac{\partial F}{\partial m_k}(m(s))\, ds. $$
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.losses.margin import Mixing
from forel.losses.sigmoid import log_normalized, log_normalized_sigmoid, sigmoid

__all__ = ["ClassMixture", "ClippedMean", "LaneMixture", "lane_mixture", "path_weights"]

NODES = 64  # of Gauss's quadrature

Array = NDArray[np.float64]


class LaneMixture(Protocol):
    """The margins of a mixture as a function of those of its lanes."""

    def margins(self, lanes: NDArray[Any]) -> Array:
        """Return the margins of the mixture, a column for each output, from those of lanes."""
        ...

    def slopes(self, lanes: Array, output: int) -> Array:
        """Return the derivatives of one output by the margins of lanes."""
        ...


def path_weights(mixture: LaneMixture, start: Array, stop: Array, output: int = 0) -> Array:
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


def lane_mixture(model: Learner) -> LaneMixture:
    """Return a mixture, but one of log-loss of two classes, as a function of the margins of all its linear models."""
    mixture, classes = model.mixture, model.classes or 1
    assert mixture is not None
    ledger = mixture.ledger
    if mixture.rule is Mixing.BAYES:
        logs = (ledger.losses.min() - ledger.losses) * mixture.rate()
        return ClassMixture(logs - np.logaddexp.reduce(logs), model.joint)
    from forel.learner.kernels.ridge import CONSTANT

    clipping = model.settings.loss_function.link.clipping
    low, high = ledger.label_range if clipping.below else (-math.inf, ledger.highest)
    states = np.zeros((0, 1, ledger.inputs + 1)) if mixture.mixers is None else mixture.mixers.states
    mixers = states[:, 0] * np.append(np.ones(ledger.inputs), CONSTANT)
    limits = (low, high) if mixture.clips else (-math.inf, math.inf)
    return ClippedMean(mixture.weights(), mixers, *limits, classes)
