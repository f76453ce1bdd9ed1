"""Training of one model for each key of the rows, each as if it were trained on its rows alone."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from numpy.typing import NDArray

from forel.data import Block, Names, Position, ReadOptions, concatenate
from forel.data.block import BEGINNING
from forel.data.labels import padded_names
from forel.data.sources.files import is_one_shot
from forel.learner.keyed import KeyedModels
from forel.learner.learner import Learner
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
from forel.training.result import Training
from forel.training.run import Observer, Run, Step
from forel.training.schema import SchemaOfRun
from forel.training.slices import Slices, naming_key
from forel.training.start import initial_model
from forel.validation import refuse

__all__ = ["train_by_key"]

FEWEST, MOST, ROWS_PER_KEY = 1 << 14, 1 << 19, 256  # rows that are learned at a time


@dataclass(eq=False)
class GroupedPasses(Passes):
    """Passes over large groups of blocks, so that each key has several rows in one; every pass reads the source."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keys = set[bytes]()

    def blocks(self, pass_number: int, start: Position | None = BEGINNING, before: int = 0) -> Iterator[Block]:
        """Yield groups of blocks."""
        waiting = list[Block]()
        for block in super().blocks(pass_number, start, before):
            assert block.slices is not None
            self._keys.update(block.slices[0])
            if start == BEGINNING and self._keys == {b""}:
                column = self.options.slices[0]
                raise ValueError(f"by: got {column!r}, which no row has, expected a column, or a namespace of VW text")
            waiting.append(block)
            if sum(map(len, waiting)) >= min(max(FEWEST, ROWS_PER_KEY * len(self._keys)), MOST):
                yield concatenate(waiting)
                waiting = []
        if waiting:
            yield concatenate(waiting)

    def _needs_cache(self, pass_number: int) -> bool:
        return False  # a cache has no values of columns


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
    names: Names | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 1_000_000,
    resume: bool = False,
) -> Model:
    """Train a model for each value of a column; arguments are those of :func:`forel.training.train.train`.

    >>> rows = [{"country": "NO", "x": 1, "y": 1}, {"country": "IT", "x": 1, "y": 0}] * 20
    >>> found = train_by_key(rows, Settings(alpha=1.0), ReadOptions(label="y", bits=10), "country", rule=Holdout())
    >>> [(one.value, one.report.rows, round(one.report.loss, 2)) for one in found.training.slices[0].slices]
    [('NO', 20, 0.11), ('IT', 20, 0.11)]
    """
    if passes > 1 and is_one_shot(source):
        raise refuse("passes", passes, "1 with by (--by) and a stream, which can be read only once; give a file")
    options = options.updated({"slices": tuple(dict.fromkeys((by, *options.slices)))})
    with ExitStack() as stack:
        stack.enter_context(naming_key("by", by))
        blocks = stack.enter_context(GroupedPasses(source, options, passes, None, threads, cluster, names=names))
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
            untrained = initial_model(1, settings, certified=certified, share=share, classes=count)
            models = KeyedModels(by, 1 << options.bits, untrained, fallback)
        else:
            models, blocks.names = found.learner, found.names
            restore(found, [blocks], checkpoint or "")
        learners = models if cluster is None else cluster.learners(models)
        measures = Measures(partial(metrics_for, models.settings, models, blocks.classes.names))
        schema, slices = SchemaOfRun(blocks), Slices(options.slices, measures)
        observers: list[Observer] = [measures, slices]

        def classes() -> tuple[str, ...]:
            return () if models.classes is None else tuple(padded_names(blocks.classes.names, models.classes))

        def stored() -> dict[str, Any]:
            known = blocks.kinds.known
            named = {"classes": list(classes())} if classes() else {}
            return {**options.stored, **({"kinds": known} if known else {}), **named}

        def learn(block: Block, again: bool) -> Callable[[], NDArray[Any]]:
            finish = learners.begin(block, again)
            return finish if models.untrained.n_outputs > 1 else lambda: finish()[:, 0]

        def report(step: Step) -> Progress:
            place, model = step.place, cast(Learner, models)
            return Progress(
                place.pass_number, place.rows, place.entries, place.bytes, measures.progressive, measures.holdout,
                step.block, step.margins, model, classes(),
            )  # fmt: skip

        if progress is not None:
            observers.append(Callback(progress, report))
        labels = EncodeLabels(models.settings, models.classes, blocks)
        run = Run(blocks, learn, [labels, schema, rule], observers, cluster is not None, begun=begun)
        if checkpoint is not None:
            extra = lambda: {"reading": stored(), **schema.extra()}  # noqa: E731
            every = checkpoint_every
            observers.append(Checkpoints(checkpoint, every, fingerprint, learners.collect, extra, blocks, run))
        if found is not None:
            run.place = restore(found, run.parts, checkpoint or "")
        place = run.finish()
        training = Training(
            report=measures.reports()[0], holdout=measures.last_holdout.report() if rule else None,
            passes=measures.reports(), rows=place.first_pass[0], entries=place.first_pass[1], seconds=place.seconds,
            compiling=place.compiling, problems=blocks.problems, slices=slices.tables(), checkpoint=checkpoint,
        )  # fmt: skip
        return Model.trained(learners.collect(), training, blocks.names, stored(), schema.extra().get("schema", {}))
