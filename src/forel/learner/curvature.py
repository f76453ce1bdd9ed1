r"""The curvature of losses in the weights, from their squared gradients.

The loss of a margin $m = v \cdot x$ with importance w has the gradient $g = w\ell'v$ and the Hessian
$w\ell'' v v^\top$, which is at most $d\,w\ell''\,\mathrm{diag}(v^2)$ for a row of d features, by the inequality of
Cauchy and Schwarz. The diagonal is estimated from the sums of squared gradients: log-losses have
$E[\ell''] = E[\ell'^2]$ if labels have the predicted distribution, and other smooth losses have $\ell'' \le \beta$.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.protocol import Learner
from forel.learner.rows import CoalescedRows
from forel.losses.margin import Mixing

__all__ = ["curvature_of"]


def curvature_of(
    model: Learner,
    rows: CoalescedRows,
    margins: NDArray[Any],
    labels: NDArray[Any],
    importance: NDArray[Any],
    held_out: NDArray[np.bool_] | None = None,
) -> float:
    r"""Return c for which $c \sum g^2$ bounds the curvature of the losses of rows in each weight; infinity for none.

    Parameters
    ----------
    model : that predicted the rows
    rows, labels, importance : as it learned them
    margins : of its predictions
    held_out : rows from which it did not learn

    >>> from forel.learner.linear import Linear, Settings
    >>> rows = CoalescedRows(np.array([0, 2]), np.int32([0, 1]), np.ones(2))
    >>> def curvature(loss):
    ...     model = Linear(2, Settings(loss, bias=False))
    ...     return curvature_of(model, rows, np.zeros((1, 1)), np.array([2.0]), np.ones(1))
    >>> curvature("logistic"), curvature("squared"), curvature("absolute")  # two features; a residual of 2
    (2.0, 0.5, inf)
    """
    weights = np.asarray(importance, np.float64)
    if held_out is not None:
        weights = np.where(held_out, 0.0, weights)
    loss = model.settings.loss_function
    if loss.mixing is Mixing.BAYES:
        smoothness, slopes = 1.0, np.ones(weights.size)
    elif model.classes is None and margins.shape[1] == 1:
        smoothness, slopes = loss.constants().smoothness, loss.slope(margins[:, 0], labels)
    else:
        return math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.sum(np.square(weights * slopes)))
    if not 0 < squares < math.inf:
        return math.inf
    features = rows.indices.size / max(rows.number, 1) + model.settings.bias
    return float(smoothness * features * np.sum(weights) / squares)
