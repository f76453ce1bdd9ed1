"""The weights with which a row is predicted, which may depend on its values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.linear import Linear
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
    weights = _linear_weights(linear, coordinates, values)
    if full is None:
        return weights
    # Values of full-covariance filters are clipped to their scales.
    own, sizes = full.weights_at(coordinates, linear.features), np.abs(values).astype(np.float64)
    scales = full.scales_at(np.where(coordinates == linear.features, -1, coordinates))
    clipped = np.divide(scales, sizes, out=np.ones(sizes.size), where=sizes > scales)
    return np.hstack([weights, own * clipped[:, None]])


def _linear_weights(model: Linear, coordinates: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weights of the lanes of a linear model."""
    lanes, weights = model._lanes, model.weights_at(coordinates).astype(np.float64)
    if lanes.settings.rate != "scale_free":
        return weights
    scales = lanes.scales[coordinates]
    above = np.flatnonzero((np.abs(values) > scales) & (scales > 0))  # without a scale, all weights are 0
    if above.size:
        some = rows_of(Rows(np.arange(above.size + 1), coordinates[above], values[above]), model.features, model.dtype)
        weights[above] = (model.margins(some) - model.weights_at(np.array([model.features]))) / values[above, None]
    return weights
