r"""Pools: what experts predict, its loss, and how predictions are combined.

A pool has an $\eta$ for which the loss of its prediction is at most $-\frac1\eta \log \sum_k w_k e^{-\eta\ell_k}$ for
all weights, or $\eta = 0$ if it is only known to be at most $\sum_k w_k \ell_k$, as for every convex loss. Experts are
the last axis of predictions, labels have one axis less, and all methods broadcast over rounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.losses import Choice, Interval, Labels, Logistic, Squared
from forel.losses.margin import Array
from forel.validation import floats, non_negative, number, refuse

__all__ = ["Aggregated", "Costs", "Likelihoods", "LogOdds", "Pool", "Probabilities", "WeightedMean", "squared"]

BINARY = Choice((0, 1))
EVERYTHING = Interval()
LOGISTIC, SQUARED = Logistic(), Squared()


class Pool(Protocol):
    """How predictions are validated, evaluated and combined."""

    @property
    def eta(self) -> float:
        """The largest known η, 0 if there is none."""
        ...

    def check_predictions(self, predictions: ArrayLike) -> Array:
        """Return predictions as an array; raise ValueError for the first invalid one."""
        ...

    def check_labels(self, y: Any) -> Any:
        """Return labels as an array; raise ValueError for the first invalid one."""
        ...

    def losses(self, predictions: Array, y: Any) -> Array:
        """Return the losses of the experts."""
        ...

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the mixture's prediction."""
        ...

    def loss(self, log_weights: Array, predictions: Array, y: Any) -> Array:
        """Return the loss of the mixture."""
        ...


@dataclass(frozen=True)
class Probabilities:
    r"""Probabilities of a 1 with log-loss, mixed as $p = \sum_k w_k p_k$; η = 1.

    The loss of the mixture is $-\log\sum_k w_k e^{-\ell_k}$. It is infinite if the outcome has probability 0.

    >>> pool = Probabilities()
    >>> float(pool.predict(np.log([0.5, 0.5]), np.array([0.2, 0.6]))), pool.losses([0.0, 1.0], 1)
    (0.4, array([inf,  0.]))

    Survey: section 3.6, for log-loss
    """

    eta: ClassVar[float] = 1.0

    def check_predictions(self, predictions: ArrayLike) -> Array:
        """Return probabilities."""
        return Interval(0, 1).check("predictions", predictions)

    def check_labels(self, y: Any) -> Array:
        """Return labels 0 or 1."""
        return BINARY.check("labels", y)

    def losses(self, predictions: ArrayLike, y: ArrayLike) -> Array:
        """Return −log p or −log(1 − p)."""
        p = np.asarray(predictions, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return 0.0 - np.where(_as_column(y) == 1, np.log(p), np.log1p(-p))

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the weighted mean."""
        return _mean(log_weights, predictions)

    def loss(self, log_weights: Array, predictions: Array, y: Array) -> Array:
        """Return −log Σ w e^{−ℓ}, exact also where the mean rounds to 0 or 1."""
        return _mix_loss(log_weights, self.losses(predictions, y))


@dataclass(frozen=True)
class LogOdds:
    r"""Margins $m = \log\frac{p}{1-p}$ of probabilities of a 1 with log-loss, mixed as probabilities are; η = 1.

    Losses stay finite also where probabilities would round to 0 or 1.

    >>> pool = LogOdds()
    >>> float(pool.predict(np.log([0.5, 0.5]), np.array([-1000.0, 1000.0]))), pool.losses([-1000.0], 1)
    (0.0, array([1000.]))

    Survey: section 3.6, for log-loss
    """

    eta: ClassVar[float] = 1.0

    def check_predictions(self, predictions: ArrayLike) -> Array:
        """Return margins."""
        return EVERYTHING.check("predictions", predictions)

    def check_labels(self, y: Any) -> Array:
        """Return labels 0 or 1."""
        return BINARY.check("labels", y)

    def losses(self, predictions: ArrayLike, y: ArrayLike) -> Array:
        """Return log(1 + e^{−m}) or log(1 + e^m)."""
        return LOGISTIC(predictions, _as_column(y))

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the margin of the weighted mean of probabilities."""
        return _mix_loss(log_weights, self.losses(predictions, 0)) - _mix_loss(log_weights, self.losses(predictions, 1))

    def loss(self, log_weights: Array, predictions: Array, y: Array) -> Array:
        """Return −log Σ w e^{−ℓ}."""
        return _mix_loss(log_weights, self.losses(predictions, y))


@dataclass(frozen=True)
class Likelihoods:
    r"""The likelihood each expert assigned to the outcome, with loss $-\log p$, mixed as $p = \sum_k w_k p_k$; η = 1.

    For outcomes of any kind: probabilities of classes, densities, price relatives of stocks. There are no labels.

    Parameters
    ----------
    log : whether predictions are log p, which does not underflow

    >>> float(Likelihoods().loss(np.log([0.5, 0.5]), np.array([0.25, 0.75]), None).round(6))
    0.693147

    Survey: section 3.6, for log-loss
    """

    log: bool = False
    eta: ClassVar[float] = 1.0

    def check_predictions(self, predictions: ArrayLike) -> Array:
        """Return numbers of at least 0, or logarithms of such, −∞ included."""
        array = floats("predictions", predictions, "numbers")
        if not self.log:
            return Interval(0).check("predictions", array)
        EVERYTHING.check("predictions", np.where(array == -np.inf, 0.0, array))
        return array

    def check_labels(self, y: Any) -> None:
        """Raise ValueError if there are labels."""
        _reject_labels(y)

    def losses(self, predictions: Array, y: Any = None) -> Array:
        """Return −log p."""
        if self.log:
            return -predictions
        with np.errstate(divide="ignore"):
            return -np.log(predictions)

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the weighted mean of p, as a logarithm if predictions are logarithms."""
        return -_mix_loss(log_weights, -predictions) if self.log else _mean(log_weights, predictions)

    def loss(self, log_weights: Array, predictions: Array, y: Any = None) -> Array:
        """Return −log Σ w p."""
        return _mix_loss(log_weights, self.losses(predictions))


@dataclass(frozen=True)
class WeightedMean:
    r"""Numbers with any loss that is convex in the prediction, mixed as $p = \sum_k w_k p_k$.

    Parameters
    ----------
    loss_of : ℓ(p, y) over arrays: a margin loss of forel, or any function
    eta : an α for which $e^{-\alpha\ell}$ is concave in p over the range, 0 if there is none (``loss.constants``)
    range : the domain of predictions
    labels : the domain of labels; None for that of the loss

    >>> from forel.losses import Absolute
    >>> pool = WeightedMean(Absolute())
    >>> float(pool.predict(np.log([0.25, 0.75]), np.array([0.0, 4.0]))), pool.losses(np.array([0.0, 4.0]), 1.0)
    (3.0, array([1., 3.]))

    Survey: section 3.6, for convex losses of a prediction
    """

    loss_of: Callable[[Any, Any], Any]
    eta: float = 0.0
    range: Interval = EVERYTHING
    labels: Labels | None = None

    def __post_init__(self) -> None:
        non_negative("eta", self.eta)

    def check_predictions(self, predictions: ArrayLike) -> Array:
        """Return predictions in the range."""
        return self.range.check("predictions", predictions)

    def check_labels(self, y: Any) -> Array:
        """Return labels in their range, or in the domain of the loss."""
        labels: Labels = getattr(self.loss_of, "labels", EVERYTHING) if self.labels is None else self.labels
        return labels.check("labels", y)

    def losses(self, predictions: Array, y: ArrayLike) -> Array:
        """Return ℓ(p, y)."""
        return np.asarray(self.loss_of(predictions, _as_column(y)), dtype=np.float64)

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the weighted mean."""
        return _mean(log_weights, predictions)

    def loss(self, log_weights: Array, predictions: Array, y: Array) -> Array:
        """Return the loss of the weighted mean."""
        return np.asarray(self.loss_of(self.predict(log_weights, predictions), y), dtype=np.float64)


def squared(low: float, high: float) -> WeightedMean:
    r"""Return weighted means under $\frac12(p - y)^2$ with both in [a, b], for which $\eta = 1/(b - a)^2$.

    $e^{-\alpha\ell}$ is concave where $\alpha\ell'^2 \le \ell''$, that is $\alpha (p - y)^2 \le 1$. (Without the half,
    α would be $1/(2(b - a)^2)$.) :class:`Aggregated` has four times as large an η.

    >>> squared(0, 10).eta
    0.01

    Survey: section 3.6, for squared loss; J. Kivinen and M. Warmuth, "Averaging expert predictions" (1999)
    """
    span = _span(low, high)
    return WeightedMean(SQUARED, 1 / span**2, Interval(low, high), Interval(low, high))


@dataclass(frozen=True)
class Aggregated:
    r"""Numbers with the loss $\frac12(p - y)^2$, both in [a, b], mixed by Vovk's aggregation; $\eta = 4/(b - a)^2$.

    With $g(y) = -\frac1\eta\log\sum_k w_k e^{-\eta\ell(p_k, y)}$, the prediction is
    $p = \frac{a + b}2 + \frac{g(a) - g(b)}{b - a}$, for which $\ell(p, y) \le g(y)$ at a and at b, and so between:
    $\sum_k w_k e^{\eta(\ell(p, y) - \ell(p_k, y))}$ is convex in y.

    Parameters
    ----------
    low, high : a and b

    >>> pool = Aggregated(0.0, 1.0)
    >>> pool.eta, float(pool.predict(np.log([0.25, 0.75]), np.array([0.0, 1.0])).round(4))
    (4.0, 0.7005)

    Survey: section 3.6, for squared loss; V. Vovk, "A game of prediction with expert advice" (1998)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _span(self.low, self.high)

    @property
    def eta(self) -> float:
        """4/(b − a)²."""
        return 4 / (self.high - self.low) ** 2

    def check_predictions(self, predictions: ArrayLike) -> Array:
        """Return predictions in [a, b]."""
        return Interval(self.low, self.high).check("predictions", predictions)

    def check_labels(self, y: Any) -> Array:
        """Return labels in [a, b]."""
        return Interval(self.low, self.high).check("labels", y)

    def losses(self, predictions: Array, y: ArrayLike) -> Array:
        """Return ½(p − y)²."""
        return SQUARED(predictions, _as_column(y))

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return p, from the mixture's loss at both ends of the interval."""
        ends = self.low, self.high
        at_low, at_high = (_mix_loss(log_weights, self.eta * self.losses(predictions, y)) / self.eta for y in ends)
        p = (self.low + self.high) / 2 + (at_low - at_high) / (self.high - self.low)
        return np.clip(p, self.low, self.high)

    def loss(self, log_weights: Array, predictions: Array, y: Array) -> Array:
        """Return ½(p − y)²."""
        return SQUARED(self.predict(log_weights, predictions), y)


@dataclass(frozen=True)
class Costs:
    r"""The experts' losses in place of predictions; the mixture's loss is $\sum_k w_k \ell_k$.

    That is the expected loss of an expert drawn at random by the weights. There are no labels, and η is 0.

    >>> float(Costs().loss(np.log([0.5, 0.5]), np.array([1.0, 0.0]), None))
    0.5

    Survey: section 3.6
    """

    eta: ClassVar[float] = 0.0

    def check_predictions(self, predictions: ArrayLike) -> Array:
        """Return finite losses."""
        return EVERYTHING.check("predictions", predictions)

    def check_labels(self, y: Any) -> None:
        """Raise ValueError if there are labels."""
        _reject_labels(y)

    def losses(self, predictions: Array, y: Any = None) -> Array:
        """Return the losses."""
        return predictions

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the expected loss."""
        return _mean(log_weights, predictions)

    def loss(self, log_weights: Array, predictions: Array, y: Any = None) -> Array:
        """Return the expected loss."""
        return _mean(log_weights, predictions)


def _mean(log_weights: Array, predictions: Array) -> Array:
    """Return Σ w_k p_k."""
    weights = np.exp(log_weights)
    means: Array = np.einsum("...k,...k->...", weights, predictions) / weights.sum(axis=-1)
    # Rounding must not leave the range of the predictions: 1 + 1e-16 is not a probability.
    return np.clip(means, np.min(predictions, axis=-1), np.max(predictions, axis=-1))


def _mix_loss(log_weights: Array, losses: Array) -> Array:
    """Return −log Σ w_k e^{−ℓ_k}."""
    return 0.0 - np.asarray(np.logaddexp.reduce(log_weights - losses, axis=-1))


def _as_column(y: ArrayLike) -> Array:
    """Return labels as a column that broadcasts over the experts."""
    return np.asarray(y, dtype=np.float64)[..., None]


def _reject_labels(y: Any) -> None:
    """Raise ValueError if there are labels."""
    if y is not None:
        raise refuse("labels", y, "None: this pool has no labels")


def _span(low: float, high: float) -> float:
    low, high = number("low", low), number("high", high)
    if not low < high:
        raise refuse("low", low, f"a number below high = {high:g}")
    span = high - low
    if not 0 < span * span < math.inf:
        raise refuse("high", high, "a range whose square is finite and positive; rescale the labels")
    return span
