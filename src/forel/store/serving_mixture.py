r"""The mixture of a serving model: fixed weights of experts, and mixers with fixed weights of the lanes' margins.

The probability is $\sum_k w_k \sigma(m_k)$ over the margins of lanes and of mixers, whose own are $v \cdot m$ with each
margin of m clipped. Only numpy and scipy are needed.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.losses.margin import Mixing
from forel.losses.sigmoid import log_sigmoid

__all__ = ["ServingMixture", "is_servable", "serving_mixture"]

NEGLIGIBLE = 1e-4  # total weight of experts that are left out, by which probabilities may differ

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ServingMixture:
    """How the margins of lanes are mixed.

    Parameters
    ----------
    weights : of lanes, then of mixers; they sum to 1
    mixers : for each, the weights of lanes, and a constant
    clip, limit : the limits of margins, as inputs of mixers and of mixers themselves

    >>> mixture = ServingMixture(np.array([0.25, 0.75]), np.zeros((0, 3)))
    >>> mixture.margins(np.array([[0.0, 0.0]]))
    array([[0.]])
    """

    weights: Array
    mixers: Array
    clip: float = math.inf
    limit: float = math.inf

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


def is_servable(model: Any) -> bool:
    """Tell whether a learner is a mixture of log-loss of two classes, which a serving model can hold."""
    mixed = isinstance(model, Learner) and model.mixture is not None and model.classes is None
    return mixed and model.settings.loss_function.mixing is Mixing.BAYES


def serving_mixture(model: Learner, negligible: float = NEGLIGIBLE) -> tuple[NDArray[np.intp], ServingMixture]:
    """Return the lanes that a mixture needs, the best one first, and how they are mixed.

    Experts of the smallest weights are left out, up to a total of ``negligible``. A mixer needs all lanes.
    """
    from forel.learner.kernels.geometric import CLIP, CONSTANT, MARGIN_LIMIT

    mixture = model.mixture
    assert mixture is not None
    weights, count = mixture.flat_weights(), mixture.ledger.inputs
    order = np.argsort(weights, kind="stable")
    kept = np.ones(weights.size, bool)
    kept[order[np.cumsum(weights[order]) <= negligible]] = False
    lanes = np.arange(count) if kept[count:].any() else np.flatnonzero(kept[:count])
    best = model.best  # as in explanations of the learner
    lanes = np.array([best, *(lane for lane in lanes if lane != best)], np.intp)
    mixers = (
        mixture.mixers.states[kept[count:], 0]
        if mixture.mixers is not None and kept[count:].any()
        else np.zeros((0, count + 1))
    )
    chosen = np.concatenate([np.where(kept[lanes], weights[lanes], 0.0), weights[count:][kept[count:]]])
    affine = np.column_stack([mixers[:, lanes], CONSTANT * mixers[:, -1]])
    return lanes, ServingMixture(chosen / chosen.sum(), affine, CLIP, MARGIN_LIMIT)
