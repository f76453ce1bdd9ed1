"""Several classes: how many a source has, and the metrics of their predictions."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from forel.data import Block, ReadOptions
from forel.learner.settings import Settings
from forel.losses.links import Probability, Sign, SoftmaxLink
from forel.store.classes import class_link, number_of_classes
from forel.training.class_metrics import ClassMetrics
from forel.training.labels import label_kind
from forel.training.metrics import Metrics, StreamMetrics
from forel.training.passes import Passes
from forel.validation import refuse

__all__ = ["count_classes", "metrics_for"]

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
