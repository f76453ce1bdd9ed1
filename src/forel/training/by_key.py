"""Training of one model for each key of the rows, each as if it were trained on its rows alone."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Names, Problems, ReadOptions
from forel.data.features.class_names import ClassNames
from forel.data.features.kinds import Kinds
from forel.data.holdout import Holdout
from forel.data.regroup import regroup
from forel.learner.grid import without_filters
from forel.learner.keyed import ALL, KeyedLearner, KeyedModels, KeyedRows, LearnerOptions, key_text
from forel.learner.protocol import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.training.classes import count_classes, metrics_for
from forel.training.key_summary import KeySummary
from forel.training.labels import label_encoder
from forel.training.learning import with_labels
from forel.training.metrics import RowScores, StreamMetrics
from forel.training.passes import Passes
from forel.training.row_cache import is_one_shot
from forel.training.schema import SchemaTracker
from forel.training.slices import SliceMetrics, slice_tables
from forel.training.state import Progress
from forel.training.trained import Trained
from forel.validation import refuse

__all__ = ["KeyLearners", "LocalKeys", "train_by_key"]

FEWEST, MOST, ROWS_PER_KEY = 1 << 14, 1 << 19, 256  # rows that are learned at a time
PENDING = 2  # groups of rows that are learned while others are read


class KeyLearners(Protocol):
    """Anything that learns the models of keys."""

    def start(self, options: LearnerOptions) -> None:
        """Begin with untrained models."""
        ...

    def learn(self, given: KeyedRows) -> Callable[[], NDArray[Any]]:
        """Start to learn rows; return a function that waits for their margins."""
        ...

    def finish(self) -> KeyedLearner:
        """Return all models."""
        ...


class LocalKeys:
    """Learns the models of all keys in this process."""

    def __init__(self) -> None:
        self._learner: KeyedLearner | None = None

    def start(self, options: LearnerOptions) -> None:
        """Begin with untrained models."""
        self._learner = KeyedLearner(options)

    def learn(self, given: KeyedRows) -> Callable[[], NDArray[Any]]:
        """Learn rows, and return a function that returns their margins."""
        margins = self.finish().learn(given)
        return lambda: margins

    def finish(self) -> KeyedLearner:
        """Return all models."""
        assert self._learner is not None
        return self._learner


@dataclass
class _Keys:
    """Keys in the order of their first rows, their rows so far, and sums of rows, weights and losses."""

    codes: dict[bytes, int] = field(default_factory=dict)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 3, 0)))  # of rows learned from and held out

    def number(self, values: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the codes of keys, and the number of each row among those of its key, from 0."""
        known = self.codes
        codes = np.array([known.setdefault(value, len(known)) for value in values], np.int64)
        more = len(known) - self.rows.size
        self.rows, self.sums = np.pad(self.rows, (0, more)), np.pad(self.sums, ((0, 0), (0, 0), (0, more)))
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(known)))
        numbers = np.empty(codes.size, np.int64)
        numbers[order] = np.arange(codes.size) - starts[codes[order]] + self.rows[codes[order]]
        self.rows += np.bincount(codes, minlength=len(known))
        return codes, numbers

    def add(self, held_out: bool, codes: NDArray[np.int64], scores: RowScores) -> None:
        """Add the losses of rows, one at a time, so that sums do not depend on how rows are grouped."""
        for k, column in enumerate((np.ones(codes.size), scores.weights, scores.weights * scores.losses)):
            np.add.at(self.sums[int(held_out), k], codes, column)

    def summaries(self, models: KeyedModels, held_out: bool) -> Iterator[KeySummary]:
        """Yield the summary of each key."""
        for key, code in zip(models, range(len(models)), strict=True):
            (rows, weight, loss), (other_rows, other_weight, other_loss) = self.sums[:, :, code].tolist()
            mean = loss / weight if weight else None
            own: dict[str, Any] = {}
            if models.certified and rows:
                learner = models.learner.models[code].sorted().learner
                floor = learner.loss_floor(loss=(mean or 0.0) * weight).tightest()
                own = {"floor": floor.proved, "certificate": floor.summary()}
            if held_out:
                own |= {"holdout_rows": int(other_rows)}
                own |= {"holdout_loss": other_loss / other_weight} if other_weight else {}
            yield KeySummary(key, int(rows), weight, mean, **own)


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
) -> Trained:
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
    started = time.perf_counter()
    options = options.updated({"slices": (by, *options.slices)})
    problems, classes, schema = Problems(options.on_error), ClassNames(options.classes), SchemaTracker(options)
    kinds, learners = Kinds(options.kinds), learners or LocalKeys()
    with Passes(source, options, 1, None, threads, cluster) as source_blocks:
        first = source_blocks.blocks(1, problems, names, kinds=kinds, classes=classes)
        count, blocks = count_classes(options, settings, classes, first)
        if certified and count is not None and not settings.loss_function.joint:
            raise refuse("certified", certified, "False for classes one against the rest; loss softmax has one")
        settings = settings if count is None else without_filters(settings)
        chosen = LearnerOptions(1 << options.bits, settings, count, np.float32, certified, share)
        learners.start(chosen)

        def new_metrics() -> tuple[StreamMetrics, StreamMetrics]:
            one, other = (metrics_for(settings, chosen.learner(1), classes.names) for _ in range(2))
            return one, other

        metrics, names_of_classes = new_metrics(), classes.names if count is not None else ()
        run = _Run(by, learners, holdout, fallback, metrics, [SliceMetrics(c, metrics[0]) for c in options.slices[1:]])
        labels = label_encoder(settings, problems, count, classes.names)
        reports = []
        for number in range(1, passes + 1):
            if number > 1:  # rows have the values of columns, which a cache has not
                again = Problems(options.on_error)
                blocks = source_blocks.blocks(1, again, None, kinds=kinds, classes=classes)
                labels = label_encoder(settings, again, count, classes.names, labels.negative)
                run.next_pass(new_metrics())
            encoded = (with_labels(block, labels) for block in blocks)
            for block in regroup(encoded, run.rows_at_a_time):
                if number == 1:
                    schema.add(block, kinds)
                for update in run.learn(block, names_of_classes):
                    if progress is not None:
                        progress(update)
            for update in run.end(names_of_classes):
                if progress is not None:
                    progress(update)
            reports.append(run.metrics[0].report())
    if not run.rows:
        hint = f"; {problems.count} were malformed, the first: {problems.messages[0]}" if problems.messages else ""
        raise refuse("source", "no examples", "at least one" + hint)
    models = KeyedModels(by, [key_text(key) for key in run.keys.codes], learners.finish())
    stored = options.updated({"slices": ()}).stored
    stored |= ({"kinds": kinds.known} if kinds.known else {}) | (
        {} if count is None else {"classes": classes.names[:count]}
    )
    summaries = tuple(run.keys.summaries(models, any(holdout)))
    return Trained(
        cast(Learner, models), reports[0], run.metrics[1].report() if any(holdout) else None, tuple(reports), run.rows,
        run.entries,
        time.perf_counter() - started, problems, names=names, reading=stored, schema=schema.schema(kinds),
        slices=slice_tables(run.slices), keys=summaries,
    )  # fmt: skip


@dataclass
class _Run:
    """The state of a run: learners, metrics, and rows whose margins are not known yet."""

    by: str
    learners: KeyLearners
    holdout: Holdout
    fallback: bool
    metrics: tuple[Any, ...]
    slices: list[SliceMetrics]
    keys: _Keys = field(default_factory=_Keys)
    rows: int = 0
    entries: int = 0
    bytes: int = 0
    pending: deque[Any] = field(default_factory=deque)
    pass_number: int = 1

    def rows_at_a_time(self) -> int:
        """Return the number of rows to learn next."""
        return min(max(FEWEST, ROWS_PER_KEY * len(self.keys.codes)), MOST)

    def next_pass(self, metrics: tuple[Any, ...]) -> None:
        """Begin another pass: losses of keys are those of the first pass, and of held-out rows those of the last."""
        self.pass_number, self.metrics = self.pass_number + 1, metrics
        self.rows = self.entries = self.bytes = 0
        self.keys.rows[:], self.keys.sums[1] = 0, 0.0

    def learn(self, block: Block, classes: Sequence[str]) -> Iterator[Progress]:
        """Start to learn a block, and yield the progress of those whose margins are known."""
        assert block.slices is not None
        if not self.rows and not self.pending and not any(block.slices[0]):
            raise ValueError(f"by: got {self.by!r}, which no row has, expected a column, or a namespace of VW text")
        codes, numbers = self.keys.number(block.slices[0])
        again = self.pass_number > 1
        held_out = self.holdout.mask(numbers)
        given = KeyedRows(codes, CoalescedRows(*block.rows), block.labels, block.importance, held_out, again)
        waits = [self.learners.learn(given)]
        if self.fallback:
            everything = replace(given, codes=np.full(codes.size, ALL))
            waits.append(self.learners.learn(everything))
        self.pending.append((block, given, waits))
        while len(self.pending) > PENDING:
            yield self._measure(classes)

    def end(self, classes: Sequence[str]) -> Iterator[Progress]:
        """Yield the progress of all other blocks."""
        while self.pending:
            yield self._measure(classes)

    def _measure(self, classes: Sequence[str]) -> Progress:
        """Update the metrics by the margins of the oldest block."""
        block, given, waits = self.pending.popleft()
        margins, *_ = (wait() for wait in waits)
        margins = margins if classes else margins[:, 0]
        learned = np.ones(len(block), bool) if given.held_out is None else ~given.held_out
        for held_out, some in ((False, learned), (True, ~learned)):
            scores = self.metrics[held_out].add(margins[some], given.labels[some], given.importance[some])
            if held_out or self.pass_number == 1:
                self.keys.add(held_out, given.codes[some], scores)
            if not held_out and self.pass_number == 1:
                for values, by_value in zip(block.slices[1:], self.slices, strict=True):
                    by_value.add(values[some], scores)
        self.rows += len(block)
        self.entries += block.indices.size
        self.bytes += block.size
        counts = self.pass_number, self.rows, self.entries, self.bytes
        no_model = cast(Learner, None)  # models may be elsewhere
        return Progress(*counts, self.metrics[0], self.metrics[1], block, margins, no_model, classes)
