r"""How sure margins are: variances of lanes, and the standard error of a mixture.

The weights of a Gaussian filter have variances V, so that the margin $\sum_i w_i v_i$ of a row has the variance
$S = \sum_i V_i v_i^2$. For squared loss V is in units of the variance of labels around their means, which the mean
squared progressive error estimates. FTRL has no variances. Its score is $\sum_i \eta_i v_i^2$, the most that the margin
of the row changes in a gradient step along a slope of at most 1; for features of 0 and 1 it is the uncertainty score of
McMahan et al., Ad Click Prediction: a View from the Trenches (2013).

A mixture draws expert k with its weight $w_k$ in the next prediction. By the law of total variance, the margin of the
expert drawn has the variance

$$\sum_k w_k S_k + \sum_k w_k (m_k - \bar m)^2, \qquad \bar m = \sum_k w_k m_k.$$

Full-covariance filters have $S = v^\top C v$. Settings and mixers have the variance of the filter of least loss, mixers
also $x^\top C x$, the variance due to the weights of their inputs x. Without filters, $S_k$ is the square of the score.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.learner.expert_pool import ExpertPool
from forel.learner.lanes import Lanes
from forel.learner.linear import Linear
from forel.learner.protocol import Learner
from forel.learner.rows import Rows, rows_of
from forel.losses.margin import Mixing
from forel.validation import number, refuse

__all__ = ["Intervals", "intervals", "lane_variances", "standard_errors"]

Array = NDArray[np.float64]
BLOCK = 1 << 16  # entries of rows at a time


class Intervals(NamedTuple):
    """Predictions with intervals.

    Parameters
    ----------
    prediction : the expected label of each row, such as a probability
    low, high : the interval of the expected label
    error : standard error of the margin
    """

    prediction: Array
    low: Array
    high: Array
    error: Array


def intervals(
    learner: Learner, X: Any, level: float = 0.9, scale: float = 1.0, link: Callable[[Array], Any] | None = None
) -> Intervals:
    """Return predictions with intervals: the link of margins that are ``scale`` times z standard errors apart.

    Parameters
    ----------
    learner, X : as in :func:`standard_errors`
    level : the probability that an interval shall contain the expected label
    scale : factor of standard errors, such as one of :func:`forel.training.coverage.coverage`
    link : the function from margins to predictions; None for that of the settings

    >>> from forel.learner.linear import Settings
    >>> model = Linear(1, Settings(algorithm="filter", alpha=1.0))
    >>> _ = model.learn(np.ones((80, 1)), [1, 0, 1, 1] * 20)
    >>> found = intervals(model, [[1.0]])
    >>> bool(found.low[0] < 0.75 < found.high[0])
    True
    """
    number("level", level, "a number above 0 and below 1", low=1e-9, high=1 - 1e-9)
    number("scale", scale, "a number of at least 0", low=0.0)
    apply, errors = link or learner.settings.link, standard_errors(learner, X)
    margins = learner.margins(X)[:, 0].astype(np.float64)
    half = NormalDist().inv_cdf((1 + level) / 2) * scale * errors
    middle, low, high = (np.asarray(apply(m), np.float64) for m in (margins, margins - half, margins + half))
    return Intervals(middle, low, high, errors)


def standard_errors(learner: Learner, X: Any) -> Array:
    """Return the standard error of the margin of every row; for one FTRL setting its score.

    Parameters
    ----------
    learner : a model of one margin, or a mixture
    X : rows, as in :meth:`forel.learner.linear.Linear.margins`

    >>> from forel.learner.linear import Settings
    >>> model = Linear(2, Settings("squared", "filter", alpha=3.0, bias=False))
    >>> _ = model.learn([[1.0, 0.0]] * 50, [1.0, 3.0] * 25)
    >>> often, never = standard_errors(model, np.eye(2))
    >>> bool(often < 0.2 < 1 < never)
    True
    """
    if learner.classes is not None:
        raise refuse("classes", learner.classes, "None: standard errors are of one margin")
    rows = rows_of(X, learner.features, learner.dtype)
    pool = learner.pool
    return learner._guard.read(
        lambda: _single(learner.linear, rows) if pool is None else _mixed(learner.linear, pool, rows)
    )


def _single(model: Linear, rows: Rows) -> Array:
    """Return the standard errors of one model."""
    if model.lanes > 1:
        raise refuse("lanes", model.lanes, "one model, or a mixture")
    spread = lane_variances(model._lanes, rows)[:, 0]
    noise = _noise(model, model.loss, model.weight)[0]
    return np.asarray(np.sqrt(spread * noise) if model.settings.algorithm == "filter" else spread)


def _mixed(linear: Linear, pool: ExpertPool, rows: Rows) -> Array:
    """Return the standard errors of a mixture, by the law of total variance."""
    settings, ledger, full = linear.settings, pool.ledger, pool.full
    count, first = ledger.settings, settings.first_filter
    margins = linear.margins(rows).astype(np.float64)
    spreads = lane_variances(linear._lanes, rows)
    if full is not None:
        margins = np.column_stack([margins, full.margins(rows)])
        spreads = np.column_stack([spreads, full.variances(rows)])
    if settings.filters:
        spreads *= _noise(linear, ledger.losses[:count], ledger.weight)
        best = spreads[:, first + int(np.argmin(ledger.losses[first:count]))]
        spreads[:, :first] = best[:, None]
    else:
        spreads **= 2
    if pool.pooling.clips:
        below = settings.loss_function.link.clipping.below
        low, high = ledger.label_range
        margins = np.clip(margins, low if below else -np.inf, high)
    for state in ledger.mixer_states:
        inputs, middle, unit = _inputs(pool, margins[:, :count])
        own = np.einsum("ri,ij,rj->r", inputs, state[1:], inputs) * unit * unit
        margins = np.column_stack([margins, middle + inputs @ state[0] * unit])
        spreads = np.column_stack([spreads, best + np.maximum(own, 0.0)])
    weights = pool.pooling.flat_weights(ledger)
    apart = (margins - (margins @ weights)[:, None]) ** 2
    return np.asarray(np.sqrt((spreads + apart) @ weights))


def _inputs(pool: ExpertPool, margins: Array) -> tuple[Array, float, float]:
    """Return the inputs of mixers, the constant last, and the middle and unit of their margins."""
    from forel.learner.kernels import geometric, ridge  # which import numba

    if pool.pooling.mixing is Mixing.BAYES:
        middle, unit = 0.0, 1.0
        clipped, constant = np.clip(margins, -geometric.CLIP, geometric.CLIP), geometric.CONSTANT
    else:
        low, high = pool.ledger.label_range
        middle, unit = (low + high) / 2, high - low
        clipped, constant = (margins - middle) / (unit or 1.0), ridge.CONSTANT
    return np.column_stack([clipped, np.full(len(margins), constant)]), middle, unit


def _noise(model: Any, losses: Array, weight: float) -> Array:
    """Return the variance of labels that variances of filters are relative to: 1 but for squared loss."""
    squared = model.settings.loss_function.mixing is Mixing.EXP_CONCAVE
    return 2 * losses / max(weight, np.finfo(float).tiny) if squared else np.ones(losses.size)


def lane_variances(lanes: Lanes, rows: Rows) -> Array:
    r"""Return $\sum_i V_i v_i^2$ of every row and filter, and $\sum_i \eta_i v_i^2$ of other lanes.

    >>> from forel.learner.linear import Settings
    >>> model = Linear(2, Settings("squared", "filter", alpha=3.0, bias=False))
    >>> _ = model.learn([[1.0, 0.0]] * 2, [1.0, 1.0])
    >>> lane_variances(model.copied_lanes(), rows_of([[1.0, 0.0], [0.0, 2.0]], 2, np.float32)).round(2).ravel()
    array([0.43, 3.  ])
    """
    out = np.zeros((rows.number, lanes.lanes))
    for first in range(0, rows.number, BLOCK):
        last = min(first + BLOCK, rows.number)
        part = slice(rows.indptr[first], rows.indptr[last])
        owners = np.repeat(np.arange(first, last), np.diff(rows.indptr[first : last + 1]))
        terms = _spreads(lanes, rows.indices[part].astype(np.int64), rows.values[part].astype(np.float64))
        for lane in range(lanes.lanes):
            out[first:last, lane] = np.bincount(owners - first, terms[:, lane], last - first)
    if lanes.settings.bias:
        out += _spreads(lanes, np.array([lanes.features]), np.ones(1))
    return out


def _spreads(lanes: Lanes, coordinates: NDArray[np.int64], values: Array) -> Array:
    """Return V v² or η v² of coordinates with values, a column for each lane."""
    layout, parameters = lanes.layout, lanes.parameters.reshape(5, -1).astype(np.float64)
    units = np.broadcast_to(lanes.units(coordinates), coordinates.shape)[:, None]
    n = lanes.state[coordinates, 1].astype(np.float64) * units * units
    size, scales = np.abs(values)[:, None], np.ones((1, 1))
    if layout.rate == "scale_free":
        scales = np.maximum(lanes.scales[coordinates].astype(np.float64)[:, None], size)
    strength = np.array(np.broadcast_to(layout.strength(n, scales, parameters, lanes.rounds), n.shape))
    filters = slice(lanes.lanes - layout.filters, None)
    strength[:, filters] = (scales * scales * parameters[0] + n)[:, filters]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = size / strength * size
    return np.where(size > 0, spread, 0.0)
