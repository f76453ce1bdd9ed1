"""Predictions of a model on a stream, and their metrics."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Problems, read
from forel.data.pipeline import ordered_blocks
from forel.evidence import Coverage
from forel.learner.keyed import KeyedModels
from forel.store.serving import class_link, number_of_classes
from forel.training.classes import metrics_for
from forel.training.labels import LabelEncoder
from forel.training.options import model_options, updated_options
from forel.training.result import Evaluation
from forel.training.row_sample import LeakWarning, auc_warning
from forel.training.schema import SchemaCheck
from forel.training.slices import SliceMetrics, naming_key, slice_tables
from forel.training.statements import Statements, coverage_of
from forel.validation import refuse, several

if TYPE_CHECKING:
    from forel.training.model import Model

__all__ = ["evaluate_model", "predict_blocks", "predict_rows", "prediction_link"]

MIN_ROWS = 100  # with equal predictions, which are a reason for a warning


def evaluate_model(
    stored: "Model", source: Any, threads: int | None, reading: dict[str, Any], interval: float | None = None
) -> Evaluation:
    """Measure a model on a source, as :meth:`forel.training.model.Model.evaluate` does."""
    settings, problems = stored.settings, Problems(reading.get("on_error") or "raise")
    names = stored.classes or ()
    labels = LabelEncoder(settings, problems, number_of_classes(stored.learner), names)
    metrics = metrics_for(settings, stored.learner, names)
    # Rows have equal weight if the column of importances is missing.
    options = {"unlabelled": False, "unweighted": reading.get("importance") is None, **reading}
    columns = several(reading.get("slices") or ())
    slices = [SliceMetrics(column, metrics) for column in columns]
    if isinstance(stored.learner, KeyedModels):
        options["slices"] = stored.learner.by, *columns
    stated = Statements(settings, stored.classes is not None, _coverage(stored, interval))
    for block, margins in predict_blocks(stored, source, threads, problems, **options):
        encoded, valid = labels.encode(block)
        rows = slice(None) if valid is None else np.flatnonzero(valid)
        scores = metrics.add(margins[rows], encoded[rows], block.importance[rows])
        stated.add(scores)
        for values, by_value in zip(() if block.slices is None else block.slices[-len(slices) :], slices, strict=False):
            by_value.add(values[rows], scores)
    report = metrics.report()
    if (found := auc_warning("these rows", report)) is not None:
        warnings.warn(found, LeakWarning, stacklevel=4)
    return Evaluation(report, problems, slice_tables(slices), stated)


def _coverage(stored: "Model", level: float | None) -> Coverage | None:
    """Return the intervals of a model, continued, or new ones of another level."""
    known = coverage_of(stored.extra, level)
    return known.segment() if known is not None else None if level is None else Coverage(level)


def predict_rows(
    stored: "Model", source: Any, margins: bool, probabilities: bool, threads: int | None, reading: dict[str, Any]
) -> NDArray[Any]:
    """Return the prediction for each row, as :meth:`forel.training.model.Model.predict` does."""
    names = stored.classes
    link = np.asarray if margins else prediction_link(stored, probabilities)
    if stored.named_rows is not None:
        parts = [np.asarray(link(stored.margins(source)))]
    else:
        blocks = predict_blocks(stored, source, threads, **reading)
        parts = [np.asarray(link(block_margins)) for _, block_margins in blocks]
    kind: Any = np.float32 if names is None or margins or probabilities else np.array(names).dtype
    empty: Any = np.zeros((0, len(names)) if names is not None and (margins or probabilities) else 0, kind)
    return np.concatenate(parts).astype(kind, copy=False) if parts else empty


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
    stored: "Model", source: Any, threads: int | None = None, problems: Problems | None = None, **reading: Any
) -> Iterator[tuple[Block, NDArray[Any]]]:
    """Yield each block of a source with the margins of its rows, with a column for each of several classes.

    Labels are optional. A warning lists how rows differ from those of training: columns that are missing or new, words
    in place of numbers, and numbers outside of the range seen; with the option ``strict``, these are errors.

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
        margins = stored.learner.margins(block)
        equal.add(block, margins)
        yield block, margins if several else margins[:, 0]
    if equal.rows_differ and equal.rows >= MIN_ROWS:
        warnings.warn(f"all {equal.rows:,} rows have the same prediction, {equal.reason}", UserWarning, stacklevel=2)


def _blocks(
    stored: "Model", source: Any, threads: int | None, problems: Problems | None, reading: dict[str, Any]
) -> Iterator[Block]:
    """Yield the blocks of a source, and warn of rows that differ from those of training."""
    lenient = replace(model_options(stored), unlabelled=True, strict=False)
    options = updated_options(lenient, reading)
    reader, check = read(source, options=options), SchemaCheck(stored.extra.get("schema"), options)
    by = stored.learner.by if isinstance(stored.learner, KeyedModels) else ""
    with naming_key("column of keys", by):
        for block in ordered_blocks(reader, threads):
            check.add(block, reader.kinds)
            yield block
    if (warning := check.warning(reader.kinds, reader.problems)) is not None:
        warnings.warn(warning, UserWarning, stacklevel=3)
    if problems is not None:
        problems.absorb(reader.problems)


class _EqualMargins:
    """Whether all rows so far have equal margins, ``rows`` of them; 0 if they do not.

    ``rows_differ`` is whether rows differ in their features. Rows whose features never occurred have equal margins.
    """

    def __init__(self, learner: Any) -> None:
        self.rows, self.rows_differ = 0, False
        self._learner, self._weighted = learner, isinstance(learner, KeyedModels)
        self._first: NDArray[Any] | None = None
        self._stopped = False

    def add(self, block: Block, margins: NDArray[Any]) -> None:
        """Add the rows of a block."""
        if self._stopped or not len(block):
            return
        if self._first is None:
            self._first = margins[0].copy()
        if (margins != self._first).any():
            self.rows, self._stopped = 0, True
            return
        self.rows += len(block)
        self.rows_differ = self.rows_differ or _rows_differ(block)
        self._weighted = self._weighted or bool(self._learner.row_weights(block.indices, block.values).any())

    @property
    def reason(self) -> str:
        """Why margins are equal, as far as it is known."""
        if self._weighted:
            return "although their features differ"
        if getattr(self._learner, "mixture", None) is None and not getattr(self._learner, "nonzeros", 1):
            return "because no feature has a weight in the model"
        return "because none of their features has a weight in the model; check that they have the names of training"


def _rows_differ(block: Block) -> bool:
    """Return whether the rows of a block differ in their features."""
    widths = np.diff(block.indptr)
    if (widths != widths[0]).any():
        return True
    rows = (part.reshape(widths.size, -1) for part in (block.indices, block.values))
    return bool(widths[0]) and any((part != part[0]).any() for part in rows)
