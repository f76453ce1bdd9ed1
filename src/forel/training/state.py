"""The state of a training run apart from the model, and the progress that callbacks receive."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Names, Position, Problems, ReadOptions
from forel.data.features.kinds import Kinds
from forel.data.labels import ClassNames
from forel.data.position import BEGINNING
from forel.learner.learner import Learner
from forel.training.calibrating import Calibrator
from forel.training.held_out_rows import HeldOutRows
from forel.training.inclusion import Inclusion
from forel.training.key_totals import KeyTotals
from forel.training.metrics import StreamMetrics
from forel.training.run_certificate import RunCertificate
from forel.training.schema import SchemaTracker
from forel.training.slices import SliceMetrics

__all__ = ["Progress", "TrainingState", "reads_model"]


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
    calibrated : the same margins after calibration; None without it
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
    calibrated: NDArray[Any] | None = field(default=None, repr=False)

    def predicted(self, link: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        """Return the predictions for the rows of the block, calibrated if the model is, or the names of classes."""
        if self.classes:
            return np.asarray(np.array(self.classes)[self.margins.argmax(axis=1)])
        return link(self.margins if self.calibrated is None else self.calibrated)


def reads_model(callback: Callable[[Progress], None] | None) -> bool:
    """Return whether a callback may read the model, so that it has to be called before the next block is learned.

    True unless its attribute ``reads_model`` is False; metrics are those after the block either way.

    >>> reads_model(print), reads_model(None)
    (True, False)
    """
    return callback is not None and bool(getattr(callback, "reads_model", True))


@dataclass
class TrainingState:
    """Everything but the model that changes during training; a checkpoint holds both.

    Parameters
    ----------
    progressive, holdout : metrics of the rows learned from, and of the rows held out, in this pass
    problems, names : malformed examples, and names of features, found in the first pass
    pass_number : the current pass, from 1
    rows, entries, bytes : rows, features and bytes of text read in this pass
    rows_read : rows of the source read in this pass, including those that were left out
    negative_label : label of the negative class in this pass, −1 or 0; None before the first one
    place : place in the source after the last block
    before_block : problems, their messages, and rows of the source, before the block that ``place`` is in
    counts : problems and their messages before each block that was read and not learned from
    first_pass : rows and entries of the first pass, once it has ended
    finished : metrics of the rows learned from in each earlier pass
    seconds, compiling : time spent so far, and how much of it on compiling
    certificate : that of the rows of the first pass
    kinds, classes, schema : kinds of columns, classes of labels, and ranges of columns, found so far
    slices : metrics of the rows learned from in the first pass, by the values of columns
    calibrator : calibrates predictions; None if they are not
    inclusion : leaves out rare features; None if all are used
    kept : held-out rows, to measure the final model on; None where they are not needed
    keys : totals of each key, of models by key; None for one model
    """

    progressive: StreamMetrics
    holdout: StreamMetrics
    problems: Problems
    names: Names | None = None
    pass_number: int = 1
    rows: int = 0
    entries: int = 0
    bytes: int = 0
    rows_read: int = 0
    negative_label: float | None = None
    place: Position | None = BEGINNING
    before_block: tuple[int, int, int] = (0, 0, 0)
    counts: deque[tuple[int, int]] = field(default_factory=deque)
    first_pass: tuple[int, int] = (0, 0)
    finished: list[StreamMetrics] = field(default_factory=list)
    seconds: float = 0.0
    compiling: float = 0.0
    certificate: RunCertificate = field(default_factory=RunCertificate)
    kinds: Kinds = field(default_factory=Kinds)
    classes: ClassNames = field(default_factory=ClassNames)
    schema: SchemaTracker = field(default_factory=lambda: SchemaTracker(ReadOptions()))
    slices: list[SliceMetrics] = field(default_factory=list)
    calibrator: Calibrator | None = None
    inclusion: Inclusion | None = None
    kept: HeldOutRows | None = None
    keys: KeyTotals | None = None

    @property
    def metrics(self) -> list[StreamMetrics]:
        """The metrics of all passes: finished ones, then the current rows learned from and held out."""
        return [*self.finished, self.progressive, self.holdout]

    def next_pass(self, new_metrics: Callable[[], StreamMetrics]) -> None:
        """End this pass and start the next one."""
        if self.pass_number == 1:
            self.first_pass = self.rows, self.entries
        self.finished.append(self.progressive)
        self.progressive, self.holdout = new_metrics(), new_metrics()
        if self.kept is not None:
            self.kept.next_pass()
        if self.calibrator is not None:
            self.calibrator.next_pass()
        self.pass_number, self.rows, self.entries, self.bytes = self.pass_number + 1, 0, 0, 0
        self.rows_read, self.negative_label, self.place = 0, None, BEGINNING
