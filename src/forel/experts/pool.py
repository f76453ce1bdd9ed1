r"""The pool protocol: what experts predict, its loss, and how predictions are combined.

A pool has an $\eta$ for which the loss of its prediction is at most $-\frac1\eta \log \sum_k w_k e^{-\eta\ell_k}$ for
all weights, or $\eta = 0$ if it is only known to be at most $\sum_k w_k \ell_k$, as for every convex loss. Experts are
the last axis of predictions, labels have one axis less, and all methods broadcast over rounds.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.losses.margin import Array
from forel.validation import refuse

__all__ = ["Pool", "as_column", "mean", "mix_loss", "reject_labels"]


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


def mean(log_weights: Array, predictions: Array) -> Array:
    """Return Σ w_k p_k."""
    weights = np.exp(log_weights)
    means: Array = np.einsum("...k,...k->...", weights, predictions) / weights.sum(axis=-1)
    # Rounding must not leave the range of the predictions: 1 + 1e-16 is not a probability.
    return np.clip(means, np.min(predictions, axis=-1), np.max(predictions, axis=-1))


def mix_loss(log_weights: Array, losses: Array) -> Array:
    """Return −log Σ w_k e^{−ℓ_k}."""
    return 0.0 - np.asarray(np.logaddexp.reduce(log_weights - losses, axis=-1))


def as_column(y: ArrayLike) -> Array:
    """Return labels as a column that broadcasts over the experts."""
    return np.asarray(y, dtype=np.float64)[..., None]


def reject_labels(y: Any) -> None:
    """Raise ValueError if there are labels."""
    if y is not None:
        raise refuse("labels", y, "None: this pool has no labels")
