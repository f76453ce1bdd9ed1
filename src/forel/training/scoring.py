"""A model on a stream: predictions, and how good they are."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Problems, open_blocks
from forel.data.pipeline import ordered_blocks
from forel.learner.rows import Merged
from forel.learner.settings import LOSSES, Settings
from forel.store import Stored, load
from forel.store.header import unpack_settings
from forel.training.progressive import Report
from forel.training.targets import Targets, measure_of
from forel.validation import refuse

__all__ = ["Evaluated", "evaluate", "link_of", "predict", "predictions", "reading_of", "settings_of", "stored_of"]

# The options of reading that are stored with a model, and what they are in JSON.
STORED: dict[str, Any] = {
    "bits": int, "zero_based": (bool, str), "constant": bool, "kinds": dict,
    **dict.fromkeys(("label", "importance"), str),
    **dict.fromkeys(("keep", "ignore", "categories", "log", "bucket", "interactions"), list),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Evaluated:
    """How good a model's predictions are on a stream, and what could not be read."""

    report: Report
    problems: Problems


def settings_of(stored: Stored) -> Settings:
    """Return how a stored model learned, or was learned."""
    held = stored.model.settings
    return unpack_settings(held) if isinstance(held, Mapping) else held


def reading_of(stored: Stored, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return how to read for a stored model: as it was trained, unless told otherwise."""
    told = stored.extra.get("reading", {})
    if not isinstance(told, dict):
        raise refuse("model", f"one to be read for with {told!r}", "options of reading by name")
    for name, value in told.items():
        if not isinstance(value, STORED.get(name, ())):
            expected = "what is known here" if name in STORED else "options that are known here; update forel"
            raise refuse("model", f"one to be read for with {name}={value!r}", expected)
    kept = {"bits": max(1, (stored.model.features - 1).bit_length()), **told}
    given = {name: value for name, value in reading.items() if value is not None}
    if given.get("bits", kept["bits"]) != kept["bits"]:
        raise ValueError(f"bits: got {given['bits']}, expected {kept['bits']}, as the model was trained with")
    return {**kept, **given}


def stored_of(model: Any) -> Stored:
    """Return a model with what is stored beside it: from a path, a result of training, or a bare learner."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    stored = model if isinstance(model, Stored) else getattr(model, "stored", None)
    return stored if isinstance(stored, Stored) else Stored(model)


def link_of(settings: Settings) -> Callable[[Any], Any]:
    """Return the function from margins to predictions; the identity where labels are −1 and 1."""
    link: Callable[[Any], Any] = np.asarray
    return link if settings.signed else getattr(LOSSES.get(settings.piece), "link", link)


def predict(
    model: Any, source: Any, *, margins: bool = False, threads: int | None = None, **reading: Any
) -> NDArray[np.float32]:
    """Return a model's prediction for each row of a source, without learning from it; labels are optional.

    Predictions are probabilities for log-loss, means for regression losses, and margins for hinge losses.

    Parameters
    ----------
    model : a path, or what :func:`forel.load` or :func:`forel.train` return
    source : as :func:`forel.data.open_blocks` takes it
    margins : whether to return margins w·x instead of predictions
    threads : number of threads that parse; None chooses it
    reading : arguments of ``open_blocks`` that differ from those of training

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
    reader = open_blocks(source, **{"unlabelled": True, "strict": False, **reading_of(stored, reading)})
    for block in ordered_blocks(reader, threads):
        yield block, stored.model.margins(Merged(*block.rows))[:, 0]
    if problems is not None:
        problems.take(reader.problems)


def evaluate(model: Any, source: Any, *, threads: int | None = None, **reading: Any) -> Evaluated:
    """Measure a model on a source, without learning from it.

    Parameters
    ----------
    model : a path, or what :func:`forel.load` or :func:`forel.train` return
    source : as :func:`forel.data.open_blocks` takes it
    threads : number of threads that parse; None chooses it
    reading : arguments of ``open_blocks`` that differ from those of training

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
