r"""How often intervals contain the expected label, which buckets of rows estimate.

The expected label of one row is not observed. A bucket is the rows that have one feature in common, or a tenth of them
by its value where nearly all rows have it, if these are at least 50. With n rows of average prediction p, average label
y, average half-width w of their intervals and average variance v of labels given predictions, intervals with a factor s
of standard errors cover the bucket if

$$(y - p)^2 \le (s w)^2 + z^2 v / n$$

with z the normal quantile of the level. Errors of predictions are taken to be shared by the rows of a bucket, and
labels to be independent. A bucket needs the smallest s that covers it, and the calibrated scale covers the level's
share of buckets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forel.data import Problems, concatenate
from forel.learner.uncertainty import Intervals
from forel.losses.margin import Mixing
from forel.store import Stored
from forel.training.labels import label_encoder
from forel.training.scoring import interval_blocks, stored_model
from forel.validation import refuse

__all__ = ["Coverage", "coverage", "needed_scales"]

Array = NDArray[np.float64]
LEAST = 50  # rows of a bucket
COMMON = 0.95  # share of rows from which on a feature's values make buckets


@dataclass(frozen=True, eq=False)
class Coverage:
    """The factor of standard errors that each bucket needs to be covered.

    >>> Coverage(np.array([0.0, 0.5, 2.0, 0.5]), 0.75).scale, Coverage(np.array([0.0, 0.5, 2.0, 0.5]), 0.75).covered()
    (0.5, 0.75)
    """

    needed: Array
    level: float

    @property
    def scale(self) -> float:
        """The smallest factor that covers the level's share of buckets."""
        return float(np.quantile(self.needed, self.level, method="inverted_cdf"))

    def covered(self, scale: float = 1.0) -> float:
        """Return the share of buckets that intervals with a factor cover."""
        return float(np.mean(self.needed <= scale))


def coverage(model: Any, source: Any, *, level: float = 0.9, scale: float = 1.0, **reading: Any) -> Coverage:
    """Measure intervals on labelled rows that the model has not learned from; all rows are kept in memory.

    Parameters
    ----------
    model, source, reading : as in :func:`forel.training.scoring.predict`; the loss is squared or log-loss
    level, scale : of the intervals; factors that buckets need are relative to the scale

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}, {"site": "news", "click": 0}] * 80
    >>> coverage(train(clicks, label="click", bits=10), clicks, label="click").needed.size
    2
    """
    stored = stored_model(model)
    labels, found, blocks = label_encoder(stored.settings, Problems(), None), [], []
    for block, each in interval_blocks(stored, source, level, scale, unlabelled=False, **reading):
        encoded, valid = labels.encode(block)
        if valid is not None and not valid.all():
            raise ValueError("label: got rows without a valid one, expected a label in every row")
        found.append((*each, encoded))
        blocks.append(block)
    if not blocks:
        raise refuse("source", "no rows", "labelled rows")
    *columns, y = (np.concatenate(column) for column in zip(*found, strict=True))
    whole = concatenate(blocks)
    variances = _variances(stored, columns[0])
    needed = needed_scales(whole.matrix(stored.model.features), Intervals(*columns), y, variances, level)
    if not needed.size:
        raise refuse("source", f"{len(y)} rows", f"a feature with at least {LEAST} rows")
    return Coverage(needed, level)


def needed_scales(X: Any, found: Intervals, labels: Array, variances: Array, level: float = 0.9) -> Array:
    """Return the factor of standard errors that each bucket of rows needs to be covered.

    Parameters
    ----------
    X : sparse matrix of the rows
    found : predictions and intervals of factor 1
    labels, variances : labels, and their variances given the predictions
    """
    z, half = NormalDist().inv_cdf((1 + level) / 2), (found.high - found.low) / 2
    needed = []
    for rows in _buckets(sparse.csc_array(X)):
        gap = (labels[rows].mean() - found.prediction[rows].mean()) ** 2
        rest = max(gap - z * z * variances[rows].mean() / rows.size, 0.0)
        width = half[rows].mean()
        needed.append(np.sqrt(rest) / width if rest > 0 else 0.0)
    return np.array(needed)


def _buckets(columns: Any) -> Iterator[NDArray[np.intp]]:
    """Yield the rows of each bucket."""
    for column in np.flatnonzero(np.diff(columns.indptr) >= LEAST):
        part = slice(columns.indptr[column], columns.indptr[column + 1])
        rows, values = columns.indices[part], columns.data[part]
        common = rows.size >= COMMON * columns.shape[0]
        for group in np.array_split(np.argsort(values, kind="stable"), 10) if common else [slice(None)]:
            if rows[group].size >= LEAST:
                yield rows[group]


def _variances(stored: Stored, predictions: Array) -> Array:
    """Return the variance of labels given predictions: p(1 − p), or the mean squared progressive error."""
    loss, model = stored.settings.loss_function, stored.model
    if loss.mixing is Mixing.BAYES:
        return predictions * (1 - predictions)
    if loss.mixing is not Mixing.EXP_CONCAVE:
        raise refuse("loss", loss.name, "log-loss or squared loss, for which labels have a known variance")
    ledger = getattr(model, "ledger", None)
    weight = model.weight if ledger is None else ledger.weight
    return np.full(predictions.shape, 2 * float(np.sum(model.loss)) / max(weight, 1.0))
