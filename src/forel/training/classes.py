"""Several classes: how many a source has, and the metrics of their predictions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.data import Block, ReadOptions
from forel.data.labels import padded_names
from forel.learner.settings import Settings
from forel.losses.links import Link, Normalized, Probability, Sign, SoftmaxLink
from forel.losses.sigmoid import log_normalized
from forel.store.serving import class_link, number_of_classes
from forel.training.labels import label_kind
from forel.training.metrics import Metrics, Report, RowScores, RunningTotals, StreamMetrics
from forel.training.passes import Passes
from forel.validation import refuse

__all__ = [
    "ClassMetrics",
    "count_classes",
    "metrics_for",
]

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
        for k, parts in enumerate((w > 0, w, w * losses, np.abs(w - 1) * (w > 0))):
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


FIRST = 10_000  # rows whose classes are counted, if their number is not given


def metrics_for(settings: Settings, model: Any, names: Sequence[str] = ()) -> StreamMetrics:
    """Return empty metrics for predictions of a model.

    >>> from forel.learner.learner import Learner
    >>> metrics_for(Settings("hinge"), Learner(4, Settings("hinge"))).kind
    'sign'
    """
    link, count = class_link(model), number_of_classes(model)
    if link is None or count is None:
        return Metrics(settings.loss_function, label_kind(settings))
    return ClassMetrics(settings, link, count, names)


def count_classes(passes: Passes, settings: Settings, blocks: Iterator[Block]) -> tuple[int | None, Iterator[Block]]:
    """Return the number of classes to learn, None for one margin; and all blocks, of which the first may be read.

    Parameters
    ----------
    passes : the source, with the option ``classes`` and those that reading has found
    settings : with the loss
    blocks : of the first pass
    """
    classes = passes.classes
    count, first_blocks = _given(passes.options), list[Block]()
    if count is None:
        first_blocks += _first(blocks)
        if classes.names:
            rows = sum(map(len, first_blocks))
            while rows < FIRST and (more := next(blocks, None)) is not None:
                first_blocks.append(more)
                rows += len(more)
            # Numbers are in the order of first appearance, so that the largest one counts the classes before it.
            labels = np.concatenate([block.labels for block in first_blocks])[:FIRST]
            count = 1 + int(np.nanmax(labels, initial=0))
    if count is not None:
        _check(settings, count)
    return count, chain(first_blocks, blocks)


def _given(options: ReadOptions) -> int | None:
    given = options.classes
    return given if isinstance(given, int) else len(given) if isinstance(given, tuple) else None


def _first(blocks: Iterator[Block]) -> list[Block]:
    block = next(blocks, None)
    return [] if block is None else [block]


def _check(settings: Settings, count: int) -> None:
    if not isinstance(settings.loss_function.link, Probability | Sign | SoftmaxLink):
        expected = "logistic, hinge, squared_hinge or softmax, because labels are classes"
        raise refuse("loss", settings.loss_function.name, expected)
    if count < 2:
        expected = "at least two; classes (--classes) has their number, or all names"
        raise refuse("label", f"one class in the first {FIRST:,} rows", expected)
