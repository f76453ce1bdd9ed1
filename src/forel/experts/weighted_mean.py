"""Pools for real-valued predictions: weighted means, Vovk's aggregation for squared loss, and raw losses."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.pool import as_column, mean, mix_loss, reject_labels
from forel.losses import Interval, Labels, Squared
from forel.losses.margin import Array
from forel.validation import non_negative, number, refuse

__all__ = ["Aggregated", "Costs", "WeightedMean", "squared"]

EVERYTHING = Interval()
SQUARED = Squared()


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
        return np.asarray(self.loss_of(predictions, as_column(y)), dtype=np.float64)

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the weighted mean."""
        return mean(log_weights, predictions)

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
        return SQUARED(predictions, as_column(y))

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return p, from the mixture's loss at both ends of the interval."""
        ends = self.low, self.high
        at_low, at_high = (mix_loss(log_weights, self.eta * self.losses(predictions, y)) / self.eta for y in ends)
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
        reject_labels(y)

    def losses(self, predictions: Array, y: Any = None) -> Array:
        """Return the losses."""
        return predictions

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the expected loss."""
        return mean(log_weights, predictions)

    def loss(self, log_weights: Array, predictions: Array, y: Any = None) -> Array:
        """Return the expected loss."""
        return mean(log_weights, predictions)


def _span(low: float, high: float) -> float:
    low, high = number("low", low), number("high", high)
    if not low < high:
        raise refuse("low", low, f"a number below high = {high:g}")
    span = high - low
    if not 0 < span * span < math.inf:
        raise refuse("high", high, "a range whose square is finite and positive; rescale the labels")
    return span
