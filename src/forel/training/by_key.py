"""Training of one model for each key of the rows, each as if it were trained on its rows alone."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Names, Position, ReadOptions, concatenate
from forel.data.block import BEGINNING
from forel.data.labels import padded_names
from forel.data.sources.files import is_one_shot
from forel.learner.grid import without_filters
from forel.learner.keyed import ALL, CompactLearner, KeyedLearner, KeyedModels, KeyedRows, LearnerOptions, key_text
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.store.atomic import Path, exclusive_lock
from forel.store.header import settings_to_json, user_defined_loss
from forel.training.checkpoint import Checkpoints, open_checkpoint, restore
from forel.training.classes import count_classes, metrics_for
from forel.training.holdout import Holdout
from forel.training.labels import EncodeLabels
from forel.training.measures import Measures
from forel.training.model import Model
from forel.training.passes import Passes
from forel.training.progress import Callback, Progress
from forel.training.result import KeySummary, Training
from forel.training.run import Observer, Run, Step, Transform
from forel.training.schema import SchemaOfRun
from forel.training.slices import Slices, naming_key
from forel.validation import refuse

__all__ = ["KeyLearners", "LocalKeys", "train_by_key"]

FEWEST, MOST, ROWS_PER_KEY = 1 << 14, 1 << 19, 256  # rows that are learned at a time


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


class Keys(Transform):
    """Numbers keys in the order of their first rows, and holds rows out by their numbers among those of their key.

    >>> keys = Keys("country", Holdout())
    >>> [numbers.tolist() for numbers in keys.number([b"NO", b"IT", b"NO"])]
    [[0, 1, 0], [0, 0, 1]]
    """

    name = "keys"

    def __init__(self, by: str, rule: Holdout) -> None:
        self.by, self._rule = by, rule
        self.codes: dict[bytes, int] = {}
        self.rows = np.zeros(0, np.int64)  # of each key, in this pass
        self.waiting: deque[NDArray[np.int64]] = deque()  # codes of blocks that are not learned yet

    def __call__(self, block: Block) -> Block:
        """Return a block with the rows of keys that are held out."""
        assert block.slices is not None
        if not self.codes and not any(block.slices[0]):
            raise ValueError(f"by: got {self.by!r}, which no row has, expected a column, or a namespace of VW text")
        codes, numbers = self.number(block.slices[0])
        self.waiting.append(codes)
        return replace(block, held_out=self._rule.mask(numbers))

    def number(self, values: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the codes of keys, and the number of each row among those of its key, from 0."""
        known = self.codes
        codes = np.array([known.setdefault(value, len(known)) for value in values], np.int64)
        self.rows = np.pad(self.rows, (0, len(known) - self.rows.size))
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(known)))
        numbers = np.empty(codes.size, np.int64)
        numbers[order] = np.arange(codes.size) - starts[codes[order]] + self.rows[codes[order]]
        self.rows += np.bincount(codes, minlength=len(known))
        return codes, numbers

    def end(self, pass_number: int, last: bool) -> None:
        """Count rows anew."""
        self.rows = np.zeros_like(self.rows)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the keys, a character for each byte, and their rows."""
        return [key.decode("latin-1") for key in self.codes], {"rows": self.rows}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        self.codes = {key.encode("latin-1"): code for code, key in enumerate(known)}
        self.rows = arrays["rows"].astype(np.int64)


class KeyedModelsInTraining(Observer):
    """Learns blocks with the model of the key of each row, and sums the losses of each key.

    Parameters
    ----------
    keys : numbers them, before a block is learned
    learners : learn the models
    fallback : whether a model learns all rows
    metrics : returns empty metrics, for the losses of rows
    """

    name = "losses of keys"

    def __init__(self, keys: Keys, learners: KeyLearners, fallback: bool, measures: Measures) -> None:
        self._keys, self._learners, self._fallback, self._measures = keys, learners, fallback, measures
        self.sums = np.zeros((2, 3, 0))  # of rows learned from and held out: rows, importance and loss by key
        self.codes = np.zeros(0, np.int64)  # of the last block that was predicted

    def learn(self, block: Block, again: bool) -> Callable[[], NDArray[Any]]:
        """Start to learn a block; return a function that waits for its margins."""
        codes = self._keys.waiting.popleft()
        rows = CoalescedRows(*block.rows)
        given = KeyedRows(codes, rows, block.labels, block.importance, block.held_out, again)
        waits = [self._learners.learn(given)]
        if self._fallback:
            waits.append(self._learners.learn(replace(given, codes=np.full(codes.size, ALL))))

        def finish() -> NDArray[Any]:
            margins, *_ = [wait() for wait in waits]
            self.codes = codes
            return margins[:, 0] if margins.shape[1] == 1 else margins

        return finish

    def after_block(self, step: Step) -> None:
        """Add the losses of rows, one at a time, so that sums do not depend on how rows are grouped."""
        out, first = step.block.held_out, step.place.pass_number == 1
        more = int(self.codes.max(initial=-1)) + 1 - self.sums.shape[2]
        self.sums = np.pad(self.sums, ((0, 0), (0, 0), (0, max(more, 0))))
        if first:
            self._add(0, self.codes[step.learned], self._measures.scores)
        if out is not None:
            self._add(1, self.codes[out], self._measures.held_out_scores)

    def _add(self, place: int, codes: NDArray[np.int64], scores: Any) -> None:
        for k, column in enumerate((scores.weights > 0, scores.weights, scores.weights * scores.losses)):
            np.add.at(self.sums[place, k], codes, column)

    def end(self, pass_number: int, last: bool) -> None:
        """Forget the losses of held-out rows, if the next pass has them too."""
        if not last:
            self.sums[1] = 0.0

    def summaries(self, models: KeyedModels, held_out: bool) -> Iterator[KeySummary]:
        """Yield the summary of each key."""
        for key, code in zip(models, range(len(models)), strict=True):
            (rows, weight, loss), (other_rows, other_weight, other_loss) = self.sums[:, :, code].tolist()
            mean = loss / weight if weight else None
            own: dict[str, Any] = {}
            if models.certified and rows:
                learner = models.learner.models[code].sorted().learner
                floor = learner.loss_floor(loss=(mean or 0.0) * weight)
                floor = floor.of_hashed_features(models.features, learner.used_slots).tightest()
                own = {"floor": floor.proved, "certificate": floor.summary()}
            if held_out:
                own |= {"holdout_rows": int(other_rows)}
                own |= {"holdout_loss": other_loss / other_weight} if other_weight else {}
            yield KeySummary(key, int(rows), weight, mean, **own)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the sums."""
        return None, {"sums": self.sums.reshape(6, -1)}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the sums by those that :meth:`pack` returned."""
        self.sums = np.array(arrays["sums"]).reshape(2, 3, -1)


@dataclass(eq=False)
class GroupedPasses(Passes):
    """Passes over large groups of blocks, so that each key has several rows in one; every pass reads the source."""

    keys: Keys | None = None

    def blocks(self, pass_number: int, start: Position | None = BEGINNING, before: int = 0) -> Iterator[Block]:
        """Yield groups of blocks."""
        waiting, rows = list[Block](), 0
        for block in super().blocks(pass_number, start, before):
            waiting.append(block)
            rows += len(block)
            if rows >= min(max(FEWEST, ROWS_PER_KEY * (len(self.keys.codes) if self.keys else 0)), MOST):
                yield concatenate(waiting)
                waiting, rows = [], 0
        if waiting:
            yield concatenate(waiting)

    def _blocks(self, pass_number: int, reader: Any) -> Iterator[Block]:
        return self._ordered(reader)  # a cache has no values of columns


def train_by_key(
    source: Any,
    settings: Settings,
    options: ReadOptions,
    by: str,
    *,
    rule: Holdout,
    fallback: bool = False,
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
) -> Model:
    """Train a model for each value of a column; arguments are those of :func:`forel.training.train.train`.

    >>> rows = [{"country": "NO", "x": 1, "y": 1}, {"country": "IT", "x": 1, "y": 0}] * 20
    >>> found = train_by_key(rows, Settings(alpha=1.0), ReadOptions(label="y", bits=10), "country", rule=Holdout())
    >>> [(one.key, one.rows, round(one.loss, 2)) for one in found.training.keys]
    [('NO', 20, 0.11), ('IT', 20, 0.11)]
    """
    if by in options.slices:
        raise refuse("slices", by, "other columns than that of by, whose metrics are in keys")
    if passes > 1 and certified:
        raise refuse("passes", passes, "1 with by (--by) and a certificate, which is about the rows of one pass")
    if passes > 1 and is_one_shot(source):
        raise refuse("passes", passes, "1 with by (--by) and a stream, which can be read only once; give a file")
    sliced, options = options.slices, options.updated({"slices": (by, *options.slices)})
    reading, elsewhere, learners = options.updated({"slices": ()}).stored, learners, learners or LocalKeys()
    with ExitStack() as stack:
        stack.enter_context(naming_key("by", by))
        blocks = GroupedPasses(source, options, passes, None, threads, cluster, names=names)
        stack.enter_context(blocks)
        keys = blocks.keys = Keys(by, rule)
        found = begun = None
        fingerprint: dict[str, Any] = {}
        if checkpoint is not None:
            stack.enter_context(exclusive_lock(checkpoint))
            fingerprint = {
                **blocks.fingerprint, "holdout": rule.every, "holdout_after": rule.after, "certificate": certified,
                "settings": settings_to_json(settings), "fixed_share": share, "by": by, "fallback": fallback,
            }  # fmt: skip
            if resume and os.path.exists(checkpoint):
                found = open_checkpoint(checkpoint, fingerprint, user_defined_loss(settings))
        if found is None:
            count, begun = count_classes(blocks, settings, blocks.blocks(1))
            if certified and count is not None and not settings.loss_function.joint:
                raise refuse("certificate", True, "False for classes one against the rest; use loss='softmax'")
            chosen = LearnerOptions(
                1 << options.bits, settings if count is None else without_filters(settings), count, np.float32,
                certified, share,
            )  # fmt: skip
            learners.start(chosen, {})
        else:
            chosen, blocks.names = found.learner.learner.options, found.names
            learners.start(chosen, found.learner.learner.models)
            restore(found, [blocks], checkpoint or "")
        new_metrics = partial(metrics_for, chosen.settings, chosen.learner(1), blocks.classes.names)
        measures = Measures(new_metrics)
        losses = KeyedModelsInTraining(keys, learners, fallback, measures)
        schema = SchemaOfRun(blocks)
        slices = Slices(sliced, measures)
        observers: list[Observer] = [measures, losses, slices]

        def classes() -> tuple[str, ...]:
            return () if chosen.classes is None else tuple(padded_names(blocks.classes.names, chosen.classes))

        def stored() -> dict[str, Any]:
            known = blocks.kinds.known
            named = {"classes": list(classes())} if classes() else {}
            return {**reading, **({"kinds": known} if known else {}), **named}

        def models() -> KeyedModels:
            return KeyedModels(by, [key_text(key) for key in keys.codes], learners.collect())

        def report(step: Step) -> Progress:
            place, no_model = step.place, cast(Learner, None)  # models may be elsewhere
            return Progress(
                place.pass_number, place.rows, place.entries, place.bytes, measures.progressive, measures.holdout,
                step.block, step.margins, no_model, classes(),
            )  # fmt: skip

        if progress is not None:
            observers.append(Callback(progress, report))
        labels = EncodeLabels(chosen.settings, chosen.classes, blocks)
        run = Run(blocks, losses.learn, [labels, schema, keys], observers, elsewhere is not None, begun=begun)
        if checkpoint is not None:
            extra = lambda: {"reading": stored(), **schema.extra()}  # noqa: E731
            observers.append(Checkpoints(checkpoint, checkpoint_every, fingerprint, models, extra, blocks, run))
        if found is not None:
            run.place = restore(found, run.parts, checkpoint or "")
        place = run.finish()
        trained, held_out = models(), bool(rule)
        training = Training(
            report=measures.reports()[0], holdout=measures.last_holdout.report() if held_out else None,
            passes=measures.reports(), rows=place.first_pass[0], entries=place.first_pass[1], seconds=place.seconds,
            compiling=place.compiling, problems=blocks.problems, slices=slices.tables(),
            keys=tuple(losses.summaries(trained, held_out)), checkpoint=checkpoint,
        )  # fmt: skip
        return Model.trained(trained, training, blocks.names, stored(), schema.extra().get("schema", {}))
