"""A model on a stream: predictions, and how good they are."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Problems, ReadOptions, read
from forel.data.pipeline import ordered_blocks
from forel.learner.rows import Merged
from forel.learner.settings import Settings
from forel.store import Stored, load
from forel.store.header import unpack_settings
from forel.training.progressive import Report
from forel.training.targets import Targets, measure_of

__all__ = [
    "Evaluated", "evaluate", "link_of", "options_of", "predict", "predictions", "settings_of", "stored_of",
    "updated_options",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Evaluated:
    """How good a model's predictions are on a stream, and what could not be read."""

    report: Report
    problems: Problems


def settings_of(stored: Stored) -> Settings:
    """Return how a stored model learned, or was learned."""
    held = stored.model.settings
    return unpack_settings(held) if isinstance(held, Mapping) else held


def options_of(stored: Stored) -> ReadOptions:
    """Return the options of reading that a stored model was trained with."""
    kept = stored.extra.get("reading", {})
    bits = {"bits": max(1, (stored.model.features - 1).bit_length())}
    return ReadOptions.from_json({**bits, **kept} if isinstance(kept, dict) else kept, owner="model")


def updated_options(options: ReadOptions, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return a model's options with some changed, or refuse another number of bits."""
    if keywords.get("bits") not in (None, options.bits):
        raise ValueError(f"bits: got {keywords['bits']}, expected {options.bits}, as the model was trained with")
    return options.updated(keywords)


def stored_of(model: Any) -> Stored:
    """Return a model with what is stored beside it: from a path, a result of training, or a bare learner."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    stored = model if isinstance(model, Stored) else getattr(model, "stored", None)
    return stored if isinstance(stored, Stored) else Stored(model)


def link_of(settings: Settings) -> Callable[[Any], Any]:
    """Return the function from margins to predictions; the identity where labels are −1 and 1."""
    return np.asarray if settings.signed else settings.loss_function.link


def predict(
    model: Any, source: Any, *, margins: bool = False, threads: int | None = None, **reading: Any
) -> NDArray[np.float32]:
    """Return a model's prediction for each row of a source, without learning from it; labels are optional.

    Predictions are probabilities for log-loss, means for regression losses, and margins for hinge losses.

    Parameters
    ----------
    model : a path, or what :func:`forel.load` or :func:`forel.train` return
    source : as :func:`forel.data.read` takes it
    margins : whether to return margins w·x instead of predictions
    threads : number of threads that parse; None chooses it
    reading : options of :class:`forel.data.ReadOptions` that differ from those of training

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> trained = train(clicks, label="click", bits=10)
    >>> (predict(trained, [{"site": "news"}, {"site": "shop"}]) > 0.5).tolist()
    [True, False]
    """
    stored = stored_of(model)
    link = np.asarray if margins else link_of(settings_of(stored))
    parts = [link(found).astype(np.float32, copy=False) for _, found in predictions(stored, source, threads, **reading)]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def predictions(
    stored: Stored, source: Any, threads: int | None = None, problems: Problems | None = None, **reading: Any
) -> Iterator[tuple[Block, NDArray[Any]]]:
    """Yield each block of a source with the margins of its rows; labels need not be there.

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> stored = train(clicks, label="click", bits=10).stored
    >>> ((_, margins),) = predictions(stored, clicks[:2])
    >>> (margins > 0).tolist()
    [True, False]
    """
    reader = read(source, options=updated_options(replace(options_of(stored), unlabelled=True, strict=False), reading))
    for block in ordered_blocks(reader, threads):
        yield block, stored.model.margins(Merged(*block.rows))[:, 0]
    if problems is not None:
        problems.take(reader.problems)


def evaluate(model: Any, source: Any, *, threads: int | None = None, **reading: Any) -> Evaluated:
    """Measure a model on a source, without learning from it.

    Parameters
    ----------
    model : a path, or what :func:`forel.load` or :func:`forel.train` return
    source : as :func:`forel.data.read` takes it
    threads : number of threads that parse; None chooses it
    reading : options of :class:`forel.data.ReadOptions` that differ from those of training

    >>> from forel.training.train import train
    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> evaluate(train(clicks, label="click", bits=10), clicks).report.auc
    1.0
    """
    stored = stored_of(model)
    settings = settings_of(stored)
    problems = Problems(reading.get("on_error") or "raise")
    targets, measure = Targets(settings, problems), measure_of(settings)
    # Rows that a model is measured on count alike where they do not say how much.
    asked = {"unlabelled": False, "unweighted": reading.get("importance") is None, **reading}
    for block, margins in predictions(stored, source, threads, problems, **asked):
        labels, good = targets.of(block)
        rows = slice(None) if good is None else np.flatnonzero(good)
        measure.add(margins[rows], labels[rows], block.importance[rows])
    return Evaluated(measure.report(), problems)
