"""Predictions of a model on a stream, and their metrics."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Problems, read
from forel.data.pipeline import ordered_blocks
from forel.evidence import Coverage
from forel.learner.keyed import KeyedModels
from forel.store.serving import class_link, number_of_classes
from forel.training.labels import LabelEncoder
from forel.training.metrics import metrics_for
from forel.training.result import Evaluation
from forel.training.row_sample import LeakWarning, auc_warning
from forel.training.schema import SchemaCheck
from forel.training.slices import SliceMetrics, naming_key
from forel.training.statements import Statements, coverage_of
from forel.validation import refuse, several

if TYPE_CHECKING:
    from forel.training.model import Model

__all__ = ["evaluate_model", "labelled_blocks", "predict_blocks", "prediction_link"]

MIN_ROWS = 100  # with equal predictions, which are a reason for a warning


def evaluate_model(
    stored: "Model", source: Any, threads: int | None, reading: dict[str, Any], interval: float | None = None
) -> Evaluation:
    """Measure a model on a source, as :meth:`forel.training.model.Model.evaluate` does."""
    settings, problems = stored.settings, Problems(reading.get("on_error") or "raise")
    metrics = metrics_for(settings, stored.learner, stored.classes or ())
    columns = several(reading.get("slices") or ())
    slices = [SliceMetrics(column, metrics) for column in columns]
    if isinstance(stored.learner, KeyedModels):
        reading = {**reading, "slices": (stored.learner.by, *columns)}
    slots = stored.learner.features
    stated = Statements(settings, stored.classes is not None, _coverage(stored, interval), slots=slots)
    for block, margins in labelled_blocks(stored, source, threads, problems, reading):
        scores = metrics.add(margins, block.labels, block.importance)
        stated.add(scores, block)
        for values, by_value in zip(() if block.slices is None else block.slices[-len(slices) :], slices, strict=False):
            by_value.add(values, scores)
    report = metrics.report()
    if (found := auc_warning("these rows", report)) is not None:
        warnings.warn(found, LeakWarning, stacklevel=4)
    return Evaluation(report, problems, tuple(one.table() for one in slices), stated)


def labelled_blocks(
    stored: "Model", source: Any, threads: int | None, problems: Problems, reading: Mapping[str, Any]
) -> Iterator[tuple[Block, NDArray[Any]]]:
    """Yield blocks with margins, encoded labels and numbers of rows; rows without a valid label are left out."""
    encode = LabelEncoder(stored.settings, problems, number_of_classes(stored.learner), stored.classes or ())
    # Rows have equal weight if the column of importances is missing.
    options = {"unlabelled": False, "unweighted": reading.get("importance") is None, **reading}
    return predict_blocks(stored, source, threads, problems, encode, **options)


def _coverage(stored: "Model", level: float | None) -> Coverage | None:
    """Return the intervals of a model, continued, or new ones of another level."""
    known = coverage_of(stored.extra, level)
    return known.segment() if known is not None else None if level is None else Coverage(level)


def prediction_link(stored: "Model", probabilities: bool = False) -> Callable[[Any], Any]:
    """Return the function from the margins of rows to their predictions.

    Parameters
    ----------
    stored : the model
    probabilities : whether predictions are probabilities, with a column for each of several classes

    >>> from forel.learner.learner import Learner
        >>> from forel.learner.settings import Settings
    >>> from forel.training.model import Model
    >>> stored = Model(Learner(4, Settings("softmax"), classes=2))
    >>> prediction_link(stored)(np.array([[0.0, 1.0]])), prediction_link(stored, probabilities=True)(np.zeros((1, 2)))
    (array(['1'], dtype='<U1'), array([[0.5, 0.5]]))
    """
    names, link = stored.classes, class_link(stored.learner)
    if probabilities and not (stored.settings.loss_function.link if link is None else link).probabilities:
        raise refuse("probabilities", probabilities, f"False: the loss {stored.settings.loss_function.name} has none")
    if names is None or link is None:
        return stored.settings.link
    return link if probabilities else lambda margins: np.array(names)[np.argmax(margins, axis=1)]


def predict_blocks(
    stored: "Model",
    source: Any,
    threads: int | None = None,
    problems: Problems | None = None,
    encode: Callable[[Block], Block] | None = None,
    **reading: Any,
) -> Iterator[tuple[Block, NDArray[Any]]]:
    """Yield each block of a source with the margins of its rows, with a column for each of several classes.

    Labels are optional. A warning lists how rows differ from those of training: columns that are missing or new, words
    in place of numbers, and numbers outside of the range seen; with the option ``strict``, these are errors. ``encode``
    returns the rows to predict of a block; None for all.

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> stored = train(clicks, label="click", bits=10)
    >>> ((_, margins),) = predict_blocks(stored, clicks[:2])
    >>> (margins > 0).tolist()
    [True, False]
    """
    several = number_of_classes(stored.learner) is not None
    equal = _EqualMargins(stored.learner)
    for block in _blocks(stored, source, threads, problems, reading):
        block = block if encode is None else encode(block)
        margins = stored.learner.margins(block)
        equal.add(block, margins)
        yield block, margins if several else margins[:, 0]
    if (found := equal.warning()) is not None:
        warnings.warn(found, UserWarning, stacklevel=2)


def _blocks(
    stored: "Model", source: Any, threads: int | None, problems: Problems | None, reading: dict[str, Any]
) -> Iterator[Block]:
    """Yield the blocks of a source, and warn of rows that differ from those of training."""
    given = {name: value for name, value in reading.items() if value is not None}
    options = stored.options(**{"unlabelled": True, "strict": False, **given})
    reader, check = read(source, options=options), SchemaCheck(stored.extra.get("schema"), options)
    if problems is not None:
        reader = replace(reader, problems=problems)
    by, before = stored.learner.by if isinstance(stored.learner, KeyedModels) else "", 0
    with naming_key("column of keys", by):
        for block in ordered_blocks(reader, threads):
            check.add(block, reader.kinds)
            yield replace(block, numbers=before + np.arange(len(block)))
            before += len(block)
    if (warning := check.warning(reader.kinds, reader.problems)) is not None:
        warnings.warn(warning, UserWarning, stacklevel=3)


class _EqualMargins:
    """Whether rows that differ have equal margins, as those with other names than in training."""

    def __init__(self, learner: Any) -> None:
        self._learner, self._first, self._rows = learner, None, 0
        self._stopped = self._rows_differ = False
        self._weighted = isinstance(learner, KeyedModels)  # whether a feature is known to have a weight

    def add(self, block: Block, margins: NDArray[Any]) -> None:
        """Add the rows of a block."""
        if self._stopped or not len(block):
            return
        self._first = margins[0].copy() if self._first is None else self._first
        self._stopped = bool((margins != self._first).any())
        if not self._stopped:
            self._rows += len(block)
            self._rows_differ = self._rows_differ or _rows_differ(block)
            self._weighted = self._weighted or bool(self._learner.row_weights(block.indices, block.values).any())

    def warning(self) -> str | None:
        """Return a warning if a hundred rows that differ have equal margins, and no other row has another one."""
        if self._stopped or not self._rows_differ or self._rows < MIN_ROWS:
            return None
        reason = "because none of their features has a weight in the model; check that they have the names of training"
        reason = "although their features differ" if self._weighted else reason
        return f"all {self._rows:,} rows have the same prediction, {reason}"


def _rows_differ(block: Block) -> bool:
    """Return whether the rows of a block differ in their features."""
    if np.ptp(np.diff(block.indptr)):
        return True
    return any(bool(np.ptp(part.reshape(len(block), -1), axis=0).any()) for part in (block.indices, block.values))
