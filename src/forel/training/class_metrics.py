r"""Streaming metrics of several classes: loss, accuracy, and the confusion matrix.

Sums are accumulated row by row, so that they do not depend on how rows are divided into blocks.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.data.labels import padded_names
from forel.learner.settings import Settings
from forel.losses.links import Link, Normalized
from forel.losses.sigmoid import log_normalized
from forel.training.metrics import Report, RowScores
from forel.training.running_totals import RunningTotals

__all__ = ["ClassMetrics"]

Floats = NDArray[np.float64]


class ClassMetrics:
    """Accumulated metrics of several classes.

    Parameters
    ----------
    settings : settings of the model, with its loss
    link : from margins to probabilities of classes, or to the class
    count : number of classes
    names : names of the classes; a list may grow to this number

    >>> from forel.losses.links import SoftmaxLink
    >>> metrics = ClassMetrics(Settings("softmax"), SoftmaxLink(), 2, ["cat", "dog"])
    >>> _ = metrics.add([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1, 1])
    >>> found = metrics.report()
    >>> round(found.loss, 3), round(found.accuracy, 3), found.confusion
    (0.584, 0.667, ((1.0, 0.0), (1.0, 1.0)))
    """

    def __init__(self, settings: Settings, link: Link, count: int, names: Sequence[str]) -> None:
        self.settings, self.link, self.count, self.names = settings, link, count, names
        self._sums = np.zeros(4)  # rows, weight, loss, and how far importances are from 1
        self._confusion = np.zeros((count, count))
        self.running = RunningTotals(self._sums)

    def add(self, margins: ArrayLike, labels: ArrayLike, importance: ArrayLike | None = None) -> RowScores:
        """Add rows, a margin for each class and the number of the class, and return what each of them adds."""
        m, y = np.asarray(margins, np.float64), np.asarray(labels).astype(np.int64)
        w = np.ones(y.size) if importance is None else np.asarray(importance, np.float64)
        if m.shape != (y.size, self.count) or w.shape != y.shape:
            raise ValueError(f"margins: got shape {m.shape}, expected {(y.size, self.count)}, a number for each class")
        predicted, losses = m.argmax(axis=1), self._losses(m, y)
        np.add.at(self._confusion, (y, predicted), w)
        for k, parts in enumerate((np.ones(y.size), w, w * losses, np.abs(w - 1))):
            # A cumulative sum adds in order, so that the total does not depend on blocks.
            self._sums[k] = np.cumsum(np.append(self._sums[k], parts))[-1]
        return RowScores(np.zeros(y.size), y, w, losses, (predicted == y).astype(np.float64))

    def summary(self, sums: Floats, bins: Floats) -> Report:
        """Return the report of sums of rows, weight, loss, label and right predictions."""
        rows, weight, loss, _, right = sums.tolist()
        mean: Any = (lambda total: total / weight) if weight > 0 else (lambda total: math.nan)
        return Report(int(rows), weight, mean(loss), None, accuracy=mean(right))

    def _losses(self, margins: Floats, labels: NDArray[np.int64]) -> Floats:
        from scipy.special import log_expit

        if self.link.probabilities:
            logs = log_normalized(log_expit(margins) if isinstance(self.link, Normalized) else margins)
            return np.asarray(-logs[np.arange(labels.size), labels])
        is_class = labels[:, None] == np.arange(self.count)
        targets = np.where(is_class, 1.0, -1.0 if self.settings.signed else 0.0)
        losses: Floats = np.sum(self.settings.loss_function(margins, targets), axis=1)
        return losses

    def pack(self) -> dict[str, Floats]:
        """Return the totals as arrays."""
        return {"sums": self._sums.copy(), "confusion": self._confusion.ravel()}

    def unpack(self, arrays: Mapping[str, Floats]) -> None:
        """Replace the totals by the result of :meth:`pack`."""
        self._sums[:], self._confusion[:] = arrays["sums"], arrays["confusion"].reshape(self._confusion.shape)
        self.running = RunningTotals(self._sums)  # recent rows are those after these

    def report(self) -> Report:
        """Return the metrics of all rows."""
        sums, confusion = self._sums, self._confusion
        rows, weight, loss, weighted = sums.tolist()
        mean: Any = (lambda total: float(total) / weight) if weight > 0 else (lambda total: math.nan)
        shares = confusion.sum(axis=1) / weight if weight > 0 else np.zeros(self.count)
        base = -float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
        return Report(
            rows=int(rows),
            weight=weight,
            loss=mean(loss),
            entropy=mean(loss) / base if base > 0 and self.link.probabilities else None,
            accuracy=mean(np.trace(confusion)),
            baseline_accuracy=mean(weight * shares.max()),
            classes=padded_names(self.names, self.count),
            confusion=tuple(map(tuple, confusion.tolist())),
            weighted=weighted > 0,
        )
