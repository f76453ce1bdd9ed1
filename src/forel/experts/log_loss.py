"""Pools for log-loss, where the mixture of experts is a mixture of distributions."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from forel.experts.pool import as_column, mean, mix_loss, reject_labels
from forel.losses import Choice, Interval
from forel.losses.margin import Array
from forel.validation import floats

__all__ = ["Likelihoods", "LogOdds", "Probabilities"]

BINARY = Choice((0, 1))
EVERYTHING = Interval()


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
            return 0.0 - np.where(as_column(y) == 1, np.log(p), np.log1p(-p))

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the weighted mean."""
        return mean(log_weights, predictions)

    def loss(self, log_weights: Array, predictions: Array, y: Array) -> Array:
        """Return −log Σ w e^{−ℓ}, exact also where the mean rounds to 0 or 1."""
        return mix_loss(log_weights, self.losses(predictions, y))


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
        m = np.asarray(predictions, dtype=np.float64)
        return np.asarray(np.logaddexp(0.0, np.where(as_column(y) == 1, -m, m)))

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the margin of the weighted mean of probabilities."""
        return mix_loss(log_weights, self.losses(predictions, 0)) - mix_loss(log_weights, self.losses(predictions, 1))

    def loss(self, log_weights: Array, predictions: Array, y: Array) -> Array:
        """Return −log Σ w e^{−ℓ}."""
        return mix_loss(log_weights, self.losses(predictions, y))


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
        reject_labels(y)

    def losses(self, predictions: Array, y: Any = None) -> Array:
        """Return −log p."""
        if self.log:
            return -predictions
        with np.errstate(divide="ignore"):
            return -np.log(predictions)

    def predict(self, log_weights: Array, predictions: Array) -> Array:
        """Return the weighted mean of p, as a logarithm if predictions are logarithms."""
        return -mix_loss(log_weights, -predictions) if self.log else mean(log_weights, predictions)

    def loss(self, log_weights: Array, predictions: Array, y: Any = None) -> Array:
        """Return −log Σ w p."""
        return mix_loss(log_weights, self.losses(predictions))
