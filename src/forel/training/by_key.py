"""Training of one model for each key of the rows, each as if it were trained on its rows alone."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Names, Problems, ReadOptions
from forel.data.features.kinds import Kinds
from forel.data.holdout import Holdout
from forel.data.labels import ClassNames, padded_names
from forel.data.regroup import regroup
from forel.learner.grid import without_filters
from forel.learner.keyed import ALL, CompactLearner, KeyedLearner, KeyedModels, KeyedRows, LearnerOptions, key_text
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.store.atomic import Path
from forel.store.header import user_defined_loss
from forel.store.locks import exclusive_lock
from forel.training.calibrating import Calibrator, check_calibration
from forel.training.checkpoint import CheckpointWriter, read_checkpoint, run_fingerprint
from forel.training.classes import count_classes, metrics_for
from forel.training.key_totals import KeyTotals
from forel.training.labels import label_encoder
from forel.training.learning import counted_blocks, marked_blocks, with_labels
from forel.training.metrics import StreamMetrics
from forel.training.model import Model
from forel.training.passes import Passes
from forel.training.result import Training
from forel.training.row_cache import is_one_shot
from forel.training.schema import SchemaTracker
from forel.training.slices import SliceMetrics, slice_tables
from forel.training.state import Progress, TrainingState
from forel.validation import refuse

__all__ = ["KeyLearners", "LocalKeys", "train_by_key"]

FEWEST, MOST, ROWS_PER_KEY = 1 << 14, 1 << 19, 256  # rows that are learned at a time
PENDING = 2  # groups of rows that are learned while others are read


class KeyLearners(Protocol):
    """Anything that learns the models of keys."""

    def start(self, options: LearnerOptions, models: Mapping[int, CompactLearner]) -> None:
        """Begin with models of some keys, by their codes; others are untrained."""
        ...

    def learn(self, given: KeyedRows) -> Callable[[], NDArray[Any]]:
        """Start to learn rows; return a function that waits for their margins."""
        ...

    def collect(self) -> KeyedLearner:
        """Return all models, after the rows that were learned so far."""
        ...


class LocalKeys:
    """Learns the models of all keys in this process."""

    def __init__(self) -> None:
        self._learner: KeyedLearner | None = None

    def start(self, options: LearnerOptions, models: Mapping[int, CompactLearner]) -> None:
        """Begin with models of some keys."""
        self._learner = KeyedLearner(options, dict(models))

    def learn(self, given: KeyedRows) -> Callable[[], NDArray[Any]]:
        """Learn rows, and return a function that returns their margins."""
        margins = self.collect().learn(given)
        return lambda: margins

    def collect(self) -> KeyedLearner:
        """Return all models."""
        assert self._learner is not None
        return self._learner


def train_by_key(
    source: Any,
    settings: Settings,
    options: ReadOptions,
    by: str,
    *,
    fallback: bool = False,
    holdout: Holdout,
    passes: int = 1,
    certified: bool = False,
    share: float | None = None,
    threads: int | None = None,
    cluster: Any = None,
    learners: KeyLearners | None = None,
    names: Names | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 1_000_000,
    resume: bool = False,
    calibrate: bool = False,
) -> Model:
    """Train a model for each value of a column; arguments are those of :func:`forel.training.train.train`.

    >>> rows = [{"country": "NO", "x": 1, "y": 1}, {"country": "IT", "x": 1, "y": 0}] * 20
    >>> found = train_by_key(rows, Settings(alpha=1.0), ReadOptions(label="y", bits=10), "country", holdout=Holdout())
    >>> [(one.key, one.rows, round(one.loss, 2)) for one in found.keys]
    [('NO', 20, 0.11), ('IT', 20, 0.11)]
    """
    if by in options.slices:
        raise refuse("slices", by, "other columns than that of by, whose metrics are in keys")
    if passes > 1 and certified:
        raise refuse("passes", passes, "1 with by (--by) and a certificate, which is about the rows of one pass")
    if passes > 1 and is_one_shot(source):
        raise refuse("passes", passes, "1 with by (--by) and a stream, which can be read only once; give a file")
    options = options.updated({"slices": (by, *options.slices)})
    problems, classes, schema = Problems(options.on_error), ClassNames(options.classes), SchemaTracker(options)
    stored, learners = options.updated({"slices": ()}).stored, learners or LocalKeys()

    def new_metrics(chosen: LearnerOptions) -> StreamMetrics:
        return metrics_for(chosen.settings, chosen.learner(1), classes.names)

    with Passes(source, options, 1, None, threads, cluster) as source_blocks, ExitStack() as stack:
        chosen, models, state, begun, save = None, dict[int, CompactLearner](), None, None, None
        if checkpoint is not None:
            fingerprint = run_fingerprint(source_blocks, holdout, settings, certified, share, None)
            fingerprint |= {"passes": passes, "by": by, "fallback": fallback}
            fingerprint |= {"calibrate": True} if calibrate else {}
            stack.enter_context(exclusive_lock(checkpoint))
            if resume and os.path.exists(checkpoint):
                found, state = read_checkpoint(
                    checkpoint, fingerprint, problems, classes, schema,
                    lambda model: new_metrics(model.learner.options), user_defined_loss(settings),
                )  # fmt: skip
                chosen, models = found.learner.options, found.learner.models
            where = (1, 0) if state is None else (state.pass_number, state.rows)
            save = CheckpointWriter(checkpoint, checkpoint_every, fingerprint, {"reading": stored}, *where)
        if chosen is None or state is None:
            kinds, counts = Kinds(options.kinds), deque[tuple[int, int]]()
            first = source_blocks.blocks(1, problems, names, kinds=kinds, classes=classes)
            count, begun = count_classes(options, settings, classes, counted_blocks(first, problems, counts))
            if certified and count is not None and not settings.loss_function.joint:
                raise refuse("certified", certified, "False for classes one against the rest; use loss='softmax'")
            settings = settings if count is None else without_filters(settings)
            chosen = LearnerOptions(1 << options.bits, settings, count, np.float32, certified, share)
            metrics = new_metrics(chosen), new_metrics(chosen)
            slices = [SliceMetrics(column, metrics[0]) for column in options.slices[1:]]
            state = TrainingState(
                *metrics, problems, names, counts=counts, kinds=kinds, classes=classes, schema=schema, slices=slices,
                keys=KeyTotals(),
            )  # fmt: skip
            if calibrate:
                check_calibration(settings, count)
                state.calibrator = Calibrator(partial(new_metrics, chosen), options.slices[1:])
        learners.start(chosen, models)
        run = _Run(by, learners, holdout, fallback, chosen, state)
        started = time.perf_counter() - state.seconds
        while state.pass_number <= passes:
            for update in run.learn_pass(source_blocks, begun, save):
                state.seconds = time.perf_counter() - started
                if progress is not None:
                    progress(update)
            holdout_report = state.holdout.report() if any(holdout) else None
            calibrated = None if state.calibrator is None else state.calibrator.result(any(holdout))
            run.next_pass(new_metrics, state.pass_number < passes)
            begun = None
    if not state.first_pass[0]:
        hint = f"; {problems.count} were malformed, the first: {problems.messages[0]}" if problems.messages else ""
        raise refuse("source", "no examples", "at least one" + hint)
    stored |= ({"kinds": state.kinds.known} if state.kinds.known else {}) | (
        {} if chosen.classes is None else {"classes": list(padded_names(classes.names, chosen.classes))}
    )
    trained, reports = run.models(), tuple(one.report() for one in state.finished)
    rows, entries = state.first_pass
    training = Training(
        report=reports[0], holdout=holdout_report, passes=reports, rows=rows, entries=entries,
        seconds=time.perf_counter() - started, problems=problems, slices=slice_tables(state.slices, warn=True),
        calibrated=calibrated, keys=tuple(run.keys.summaries(trained, any(holdout))), checkpoint=checkpoint,
    )  # fmt: skip
    return Model.trained(trained, training, state.names, stored, schema.schema(state.kinds))


@dataclass
class _Run:
    """A run: learners, the state of training, and rows whose margins are not known yet."""

    by: str
    learners: KeyLearners
    holdout: Holdout
    fallback: bool
    options: LearnerOptions
    state: TrainingState
    pending: deque[Any] = field(default_factory=deque)
    negative: float | None = None  # label of the negative class, which the first pass has found

    @property
    def keys(self) -> KeyTotals:
        """The totals of keys."""
        assert self.state.keys is not None
        return self.state.keys

    def models(self) -> KeyedModels:
        """Return the models of all keys."""
        calibrations = None if self.state.calibrator is None else self.state.calibrator.states
        return KeyedModels(self.by, [key_text(key) for key in self.keys.codes], self.learners.collect(), calibrations)

    def rows_at_a_time(self) -> int:
        """Return the number of rows to learn next."""
        return min(max(FEWEST, ROWS_PER_KEY * len(self.keys.codes)), MOST)

    def next_pass(self, new_metrics: Callable[[LearnerOptions], StreamMetrics], more: bool) -> None:
        """End this pass, and begin the next one if there are more."""
        self.negative = self.state.negative_label
        self.state.next_pass(lambda: new_metrics(self.options))
        if more:
            self.keys.next_pass()

    def learn_pass(
        self, passes: Passes, begun: Iterator[Block] | None, save: CheckpointWriter | None
    ) -> Iterator[Progress]:
        """Learn from the remaining blocks of the current pass, which may have begun; write checkpoints."""
        state, first = self.state, self.state.pass_number == 1
        problems, names = (state.problems, state.names) if first else (Problems(state.problems.on_error), None)
        negative = self.negative if state.negative_label is None else state.negative_label
        seen, options = state.kinds.seen if passes.options.label is None else None, self.options
        labels = label_encoder(options.settings, problems, options.classes, state.classes.names, negative, seen)
        if begun is None:  # rows have the values of columns, which a cache has not: each pass reads the source
            place = None if state.place is None else state.place._replace(rows=0)
            begun = passes.blocks(1, problems, names, place, state.kinds, state.classes)
            begun = counted_blocks(begun, state.problems, state.counts)
        encoded = (with_labels(block, labels) for block in marked_blocks(begun, state))
        for block in regroup(encoded, self.rows_at_a_time, state.place):
            if first:
                state.schema.add(block, state.kinds)
            self._start(block)
            state.negative_label = labels.negative
            while len(self.pending) > PENDING:
                yield self._measure()
            if save is not None and save.due(state):
                yield from self._save(save)
        yield from self._save(save)

    def _save(self, save: CheckpointWriter | None) -> Iterator[Progress]:
        """Measure all rows that were learned, and write a checkpoint if it is due."""
        while self.pending:
            yield self._measure()
        if save is not None and save.due(self.state):
            save(self.models(), self.state)

    def _start(self, block: Block) -> None:
        """Start to learn a block."""
        assert block.slices is not None
        if not self.state.rows and not self.pending and not any(block.slices[0]):
            raise ValueError(f"by: got {self.by!r}, which no row has, expected a column, or a namespace of VW text")
        codes, numbers = self.keys.number(block.slices[0])
        again = self.state.pass_number > 1
        held_out = self.holdout.mask(numbers)
        given = KeyedRows(codes, CoalescedRows(*block.rows), block.labels, block.importance, held_out, again)
        waits = [self.learners.learn(given)]
        if self.fallback:
            everything = replace(given, codes=np.full(codes.size, ALL))
            waits.append(self.learners.learn(everything))
        self.pending.append((block, given, waits))

    def _measure(self) -> Progress:
        """Update the metrics by the margins of the oldest block."""
        state, count = self.state, self.options.classes
        classes = () if count is None else padded_names(state.classes.names, count)
        block, given, waits = self.pending.popleft()
        margins, *others = (wait() for wait in waits)
        margins = margins if classes else margins[:, 0]
        learned = np.ones(len(block), bool) if given.held_out is None else ~given.held_out
        for held_out, some in ((False, learned), (True, ~learned)):
            metrics = state.holdout if held_out else state.progressive
            scores = metrics.add(margins[some], given.labels[some], given.importance[some])
            if held_out or state.pass_number == 1:
                self.keys.add(held_out, given.codes[some], scores)
            if not held_out and state.pass_number == 1:
                for values, by_value in zip(block.slices[1:], state.slices, strict=True):
                    by_value.add(values[some], scores)
        calibrated = None
        if state.calibrator is not None:
            own, first = replace(block, slices=block.slices[1:]), state.pass_number == 1
            calibrated = state.calibrator.add(own, margins, given.held_out, first, given.codes)
            for each in others:  # the model of all rows
                state.calibrator.fit(own, each[:, 0], given.held_out, first)
        state.rows += len(block)
        state.entries += block.indices.size
        state.bytes += block.size
        state.place = block.after
        counts = state.pass_number, state.rows, state.entries, state.bytes
        no_model = cast(Learner, None)  # models may be elsewhere
        return Progress(*counts, state.progressive, state.holdout, block, margins, no_model, classes, calibrated)
