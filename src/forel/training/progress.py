"""What callbacks receive after each block of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.learner.learner import Learner
from forel.training.metrics import StreamMetrics
from forel.training.run import Observer, Place, Step

__all__ = ["Callback", "Progress", "reads_model"]


@dataclass(frozen=True)
class Progress:
    """Progress of a training run, passed to the ``progress`` callback after each block.

    Parameters
    ----------
    pass_number : the current pass, from 1
    rows, entries, bytes : rows, features and bytes of text read in this pass
    progressive, holdout : metrics of the rows learned from, and of the rows held out, in this pass
    block, margins : the last block, and the margins of its rows before they were learned from
    model : the model after the block; callbacks that do not read it may say so, see :func:`reads_model`
    classes : names of several classes; empty for one margin
    """

    pass_number: int
    rows: int
    entries: int
    bytes: int
    progressive: StreamMetrics
    holdout: StreamMetrics
    block: Block = field(repr=False)
    margins: NDArray[Any] = field(repr=False)
    model: Learner = field(repr=False)
    classes: Sequence[str] = ()

    def predicted(self, link: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        """Return the predictions for the rows of the block, or the names of classes."""
        if self.classes:
            return np.asarray(np.array(self.classes)[self.margins.argmax(axis=1)])
        return link(self.margins)


def reads_model(callback: Callable[[Progress], None] | None) -> bool:
    """Return whether a callback may read the model, so that it has to be called before the next block is learned.

    True unless its attribute ``reads_model`` is False; metrics are those after the block either way.

    >>> reads_model(print), reads_model(None)
    (True, False)
    """
    return callback is not None and bool(getattr(callback, "reads_model", True))


@dataclass(eq=False)
class Callback(Observer):
    """Calls a function after each block.

    Parameters
    ----------
    function : the function
    progress : returns what it receives, from a step
    """

    function: Callable[[Progress], None]
    progress: Callable[[Step], Progress]
    beside = False

    def reads_model(self, place: Place) -> bool:
        """Return whether the function may read the model."""
        return reads_model(self.function)

    def after_block(self, step: Step) -> None:
        """Call the function."""
        self.function(self.progress(step))
