"""Checkpoints: a model during training, and the state of the run, in one file.

A checkpoint is a model file with additional fields, so it can be inspected and predicted with like any other. It is
replaced atomically: a run that was killed at any moment resumes from the last checkpoint, to the same bits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from forel.data import Position, Problems
from forel.data.features.kinds import Kinds
from forel.data.holdout import Holdout
from forel.data.labels import ClassNames
from forel.learner.locking import reading
from forel.learner.settings import Settings
from forel.store import Content, ModelFileError, read_model, write_model
from forel.store.atomic import Path, remove_leftovers
from forel.store.header import settings_to_json
from forel.training.calibrating import Calibrator
from forel.training.held_out_rows import HeldOutRows
from forel.training.inclusion import Inclusion, InclusionRule
from forel.training.key_totals import KeyTotals
from forel.training.metrics import StreamMetrics
from forel.training.model import Model
from forel.training.passes import Passes
from forel.training.run_certificate import RunCertificate
from forel.training.schema import SchemaTracker
from forel.training.slices import SliceMetrics
from forel.training.state import TrainingState
from forel.validation import refuse

__all__ = ["CheckpointWriter", "read_checkpoint", "run_fingerprint", "write_checkpoint"]

# Attributes of the state that are stored as they are.
FIELDS = ("pass_number", "rows", "entries", "bytes", "negative_label", "seconds", "compiling")


@dataclass
class CheckpointWriter:
    """Writes a checkpoint whenever at least ``every`` rows were read since the last.

    Parameters
    ----------
    path : the file
    every : number of rows between two checkpoints
    fingerprint : options and sources, which must be the same to resume
    extra : content stored with the model
    pass_number, rows : where the run starts or resumes
    """

    path: Path
    every: int
    fingerprint: Mapping[str, Any]
    extra: Mapping[str, Any]
    pass_number: int
    rows: int

    def __call__(self, model: Any, state: TrainingState) -> None:
        """Write a checkpoint if it is due."""
        if self.due(state):
            reading = {**self.extra["reading"], "kinds": state.kinds.known}
            write_checkpoint(self.path, model, state, self.fingerprint, {**self.extra, "reading": reading})
            self.rows = state.rows

    def due(self, state: TrainingState) -> bool:
        """Return whether enough rows were read."""
        if state.pass_number > self.pass_number:
            self.pass_number, self.rows = state.pass_number, 0
        return state.rows - self.rows >= self.every


def write_checkpoint(
    path: Path, model: Any, state: TrainingState, fingerprint: Mapping[str, Any], extra: Mapping[str, Any]
) -> None:
    """Write a checkpoint.

    Parameters
    ----------
    path : the file, which is replaced atomically
    model : a model that :func:`forel.save` accepts
    state : the state of its training
    fingerprint : options and sources, which must be the same to resume
    extra : content stored with the model
    """
    if state.place is None:
        raise ValueError("source: got a block without its position in the source, expected blocks of a Reader")
    proved, tables = state.certificate.pack()
    counted = state.problems.count, len(state.problems.messages), state.rows_read
    problems, messages, rows_read = state.before_block if state.place.rows else counted  # a block is read again
    content = {
        **proved,
        **{name: getattr(state, name) for name in FIELDS},
        "place": list(state.place),
        "first_pass": list(state.first_pass),
        "problems": {"count": problems, "messages": state.problems.messages[:messages]},
        "kinds": state.kinds.pack(),
        "classes": state.classes.names,
        "schema": state.schema.pack(),
        "rows_read": rows_read,
        "certificate": state.certificate.summary,
        "fingerprint": dict(fingerprint),
        "slices": [one.pack()[0] for one in state.slices],
    }
    arrays = {f"{k}.{name}": array for k, one in enumerate(state.metrics) for name, array in one.pack().items()}
    if state.inclusion is not None:
        arrays |= state.inclusion.pack()
        extra = {**extra, "inclusion": state.inclusion.rule.to_json()}
    if state.calibrator is not None:
        content["calibration"], parts = state.calibrator.pack()
        arrays |= {f"calibrated.{name}": array for name, array in parts.items()}
        own = state.calibrator.result(False).extra  # empty for models by key, which have theirs
        extra = {**extra, **({"calibration": own} if own else {})}
    if state.kept is not None:
        arrays |= {f"kept.{name}": array for name, array in state.kept.pack().items()}
    if state.keys is not None:
        content["keys"], totals = state.keys.pack()
        arrays |= totals
    for k, one in enumerate(state.slices):
        arrays |= {f"slice.{k}.{name}": array for name, array in one.pack()[1].items()}
    with reading(model):
        write_model(path, model, {**extra, "checkpoint": content}, state.names, None, {**arrays, **tables})


def read_checkpoint(
    path: Path,
    fingerprint: Mapping[str, Any],
    problems: Problems,
    classes: ClassNames,
    schema: SchemaTracker,
    new_metrics: Callable[[Any], StreamMetrics],
    loss: Any = None,
) -> tuple[Any, TrainingState]:
    """Return the model of a checkpoint and the state of its training.

    Parameters
    ----------
    path : the file
    fingerprint : options and sources; the error names the first that differs from the checkpoint's
    problems : receives the problems found before the checkpoint
    classes, schema : receive the classes and the ranges of columns found before the checkpoint
    new_metrics : creates empty metrics for predictions of a model
    loss : the user-defined loss, if the model has one
    """
    remove_leftovers(path)
    stored = read_model(path, loss)
    content = stored.extra.get("checkpoint")
    if not isinstance(content, dict):
        raise ModelFileError(f"{path}: a model, but not a checkpoint; pass the model as start to continue training")
    try:
        _check_fingerprint(path, content["fingerprint"], fingerprint)
        classes.restore(content.get("classes", []))  # which older checkpoints do not have
        if "schema" in content:
            schema.restore(content["schema"])
        return stored.learner, _state(content, stored, problems, classes, schema, new_metrics)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"not a complete checkpoint ({type(error).__name__}: {error}); remove it to start again"
        raise ModelFileError(f"{path}: {what}") from error


def _state(
    content: Mapping[str, Any], stored: Content, problems: Problems, classes: ClassNames, schema: SchemaTracker,
    new_metrics: Callable[[Any], StreamMetrics],
) -> TrainingState:  # fmt: skip
    problems.count, problems.messages = content["problems"]["count"], list(content["problems"]["messages"])
    metrics = [new_metrics(stored.learner) for _ in range(content["pass_number"] + 1)]
    for k, one in enumerate(metrics):
        arrays = {name: stored.arrays.get(f"{k}.{name}") for name in one.pack()}
        one.unpack({name: array for name, array in arrays.items() if array is not None})
    *finished, progressive, holdout = metrics
    slices = list[SliceMetrics]()
    for k, known in enumerate(content.get("slices", [])):  # which older checkpoints do not have
        slices.append(SliceMetrics(known["column"], metrics[0]))
        own = f"slice.{k}."
        slices[k].unpack(known, {n.removeprefix(own): a for n, a in stored.arrays.items() if n.startswith(own)})
    inclusion, rule = None, InclusionRule.of(stored.extra.get("inclusion", {}))
    if rule.active:
        inclusion = Inclusion(rule, stored.learner.features, stored.learner.settings.seed)
        inclusion.unpack(stored.arrays)
    kept = None
    if "kept.state" in stored.arrays:
        kept = HeldOutRows()
        kept.unpack({name.removeprefix("kept."): array for name, array in stored.arrays.items()})
    calibrator = None
    if "calibration" in content:
        columns = [known["column"] for known in content["calibration"]["slices"]]
        calibrator = Calibrator(partial(new_metrics, stored.learner), columns)
        parts = {name.removeprefix("calibrated."): array for name, array in stored.arrays.items()}
        calibrator.unpack(content["calibration"], parts)
    return TrainingState(
        progressive,
        holdout,
        problems,
        stored.names,
        place=Position(*content["place"]),
        first_pass=(content["first_pass"][0], content["first_pass"][1]),
        finished=finished,
        kinds=Kinds.unpack(content["kinds"]),
        classes=classes,
        schema=schema,
        slices=slices,
        calibrator=calibrator,
        inclusion=inclusion,
        kept=kept,
        keys=KeyTotals.unpack(content["keys"], stored.arrays) if "keys" in content else None,
        rows_read=content.get("rows_read", 0),
        certificate=RunCertificate.unpack(content["certificate"], dict(content), stored.arrays),
        **{name: content[name] for name in FIELDS},
    )


def run_fingerprint(
    passes: Passes,
    holdout: Holdout,
    settings: Settings,
    certified: bool,
    share: float | None,
    start: Model | None,
) -> dict[str, Any]:
    """Return all options and files that the trained model depends on, which must be the same to resume."""
    return {
        **passes.fingerprint,
        "holdout": holdout.every,
        "holdout_after": holdout.after,
        "start": None if start is None else [start.learner.rounds, *np.atleast_1d(start.learner.loss).tolist()],
        "certified": certified,
        "settings": settings_to_json(settings),
        "share": share,
    }


def _check_fingerprint(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error that names the first option or file that has changed; missing settings have their defaults."""
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if name == "settings" and old is not None and new is not None:
            defaults = {"filters": [], **settings_to_json(Settings())}  # empty filters are left out of headers
            old, new = {**defaults, **old}, {**defaults, **new}
        if old == new:
            continue
        if name == "sources":
            changed = next((b for a, b in zip(old or (), new or (), strict=False) if a != b), None)
            got = f"{changed[0]}, which has changed" if changed else f"{len(new or ())} files"
            raise refuse("resume", got, f"the same files as when {path} was written; or start again without resume")
        raise refuse(name, new, f"{old!r}, as when {path} was written; or start again without resume")
