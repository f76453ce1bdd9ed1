"""Predictions of a model on a stream, and their metrics."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Problems, read
from forel.data.pipeline import ordered_blocks
from forel.learner.rows import Merged
from forel.learner.settings import Settings
from forel.store import Stored, load
from forel.training.labels import LabelEncoder, metrics_for
from forel.training.metrics import Report
from forel.training.options import updated_options

__all__ = ["Evaluation", "evaluate", "link_of", "predict", "predict_blocks", "stored_model"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics of a model's predictions on a stream, and the malformed examples that were skipped."""

    report: Report
    problems: Problems


def evaluate(model: Any, source: Any, *, threads: int | None = None, **reading: Any) -> Evaluation:
    """Measure a model on a source, without learning.

    Parameters
    ----------
    model : a path, or the result of :func:`forel.load` or :func:`forel.train`
    source : as in :func:`forel.data.read`
    threads : number of parser threads; None for a default
    reading : options of :class:`forel.data.ReadOptions` that differ from those of training

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> evaluate(train(clicks, label="click", bits=10), clicks).report.auc
    1.0
    """
    stored = stored_model(model)
    settings, problems = stored.settings, Problems(reading.get("on_error") or "raise")
    labels, metrics = LabelEncoder(settings, problems), metrics_for(settings)
    # Rows have equal weight if the column of importances is missing.
    options = {"unlabelled": False, "unweighted": reading.get("importance") is None, **reading}
    for block, margins in predict_blocks(stored, source, threads, problems, **options):
        encoded, valid = labels.encode(block)
        rows = slice(None) if valid is None else np.flatnonzero(valid)
        metrics.add(margins[rows], encoded[rows], block.importance[rows])
    return Evaluation(metrics.report(), problems)


def predict(
    model: Any, source: Any, *, margins: bool = False, threads: int | None = None, **reading: Any
) -> NDArray[np.float32]:
    """Return the prediction of a model for each row of a source, without learning; labels are optional.

    Predictions are probabilities for log-loss, means for regression losses, and margins for hinge losses.

    Parameters
    ----------
    model : a path, or the result of :func:`forel.load` or :func:`forel.train`
    source : as in :func:`forel.data.read`
    margins : return margins w·x instead of predictions
    threads : number of parser threads; None for a default
    reading : options of :class:`forel.data.ReadOptions` that differ from those of training

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> trained = train(clicks, label="click", bits=10)
    >>> (predict(trained, [{"site": "news"}, {"site": "shop"}]) > 0.5).tolist()
    [True, False]
    """
    stored = stored_model(model)
    link = np.asarray if margins else link_of(stored.settings)
    blocks = predict_blocks(stored, source, threads, **reading)
    parts = [link(found).astype(np.float32, copy=False) for _, found in blocks]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def predict_blocks(
    stored: Stored, source: Any, threads: int | None = None, problems: Problems | None = None, **reading: Any
) -> Iterator[tuple[Block, NDArray[Any]]]:
    """Yield each block of a source with the margins of its rows; labels are optional.

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> stored = train(clicks, label="click", bits=10).stored
    >>> ((_, margins),) = predict_blocks(stored, clicks[:2])
    >>> (margins > 0).tolist()
    [True, False]
    """
    lenient = replace(stored.read_options, unlabelled=True, strict=False)
    reader = read(source, options=updated_options(lenient, reading))
    for block in ordered_blocks(reader, threads):
        yield block, stored.model.margins(Merged(*block.rows))[:, 0]
    if problems is not None:
        problems.absorb(reader.problems)


def stored_model(model: Any) -> Stored:
    """Return a model with its stored content, from a path, a result of training, or a bare learner."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    if hasattr(model, "__stored__"):  # estimators and river models
        return cast(Stored, model.__stored__())
    stored = model if isinstance(model, Stored) else getattr(model, "stored", None)
    return stored if isinstance(stored, Stored) else Stored(model)


def link_of(settings: Settings) -> Callable[[Any], Any]:
    """Return the function from margins to predictions; the identity if labels are −1 and 1."""
    return np.asarray if settings.signed else settings.loss_function.link
