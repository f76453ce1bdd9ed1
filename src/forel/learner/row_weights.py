"""The weights with which a row is predicted, which may depend on its values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.protocol import Learner
from forel.learner.rows import Rows, rows_of

__all__ = ["row_weights"]


def row_weights(model: Learner, coordinates: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    r"""Return the weights $w_i$ of all linear models for features of values $v_i$: margins are sums of $w_i v_i$.

    With a scale-free rate, a value above the scale of its feature changes the scale before the prediction, and with it
    the weight.

    >>> from forel.learner.linear import Linear, Settings
    >>> model = Linear(1, Settings(alpha=1.0, rate="scale_free"))
    >>> _ = model.learn(np.ones((5, 1)), [1] * 5)
    >>> weight = row_weights(model, np.array([0]), np.array([100.0]))
    >>> np.isclose(weight * 100 + model.bias, model.margins([[100.0]])), np.isclose(weight, model.weights)
    (array([[ True]]), array([[False]]))
    """
    linear, full = model.linear, None if model.pool is None else model.pool.full
    lanes = linear._lanes

    def weights_at(coordinates: NDArray[np.int64]) -> NDArray[np.float64]:
        own = linear.weights_at(coordinates)
        return np.hstack([own] if full is None else [own, full.weights_at(coordinates, linear.features)], dtype=float)

    weights = weights_at(coordinates)
    if lanes.settings.rate != "scale_free":
        return weights
    scales = lanes.scales[coordinates]
    above = np.flatnonzero((np.abs(values) > scales) & (scales > 0))  # without a scale, all weights are 0
    if above.size:
        some = rows_of(
            Rows(np.arange(above.size + 1), coordinates[above], values[above]), linear.features, linear.dtype
        )
        margins = [linear.margins(some)] if full is None else [linear.margins(some), full.margins(some)]
        bias = weights_at(np.array([linear.features]))
        weights[above] = (np.hstack(margins) - bias) / values[above, None]
    return weights
