"""Checkpoints: a model during training, and the state of the run, in one file.

A checkpoint is a model file with additional fields, so it can be inspected and predicted with like any other. It is
replaced atomically: a run that was killed at any moment resumes from the last checkpoint, to the same bits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from forel.data import Position
from forel.learner.locking import reading
from forel.store import Content, ModelFileError, read_model, write_model
from forel.store.atomic import Path, remove_leftovers
from forel.training.model import Model
from forel.training.passes import Passes
from forel.training.run import Observer, Part, Place, Run, Step
from forel.validation import refuse

__all__ = ["Checkpoints", "open_checkpoint", "restore", "start_fingerprint"]


@dataclass(eq=False)
class Checkpoints(Observer):
    """Writes a checkpoint whenever at least ``every`` rows were read since the last.

    Parameters
    ----------
    path : the file
    every : number of rows between two checkpoints
    fingerprint : options and sources, which must be the same to resume
    model : returns the model, which :func:`forel.save` accepts
    content : returns content to store with it
    passes : the source
    """

    path: Path
    every: int
    fingerprint: Mapping[str, Any]
    model: Callable[[], Any]
    content: Callable[[], Mapping[str, Any]]
    passes: Passes
    run: Run | None = None
    beside = False
    _last: int = field(default=0, init=False)  # rows of the pass at the last checkpoint

    def begin(self, pass_number: int) -> None:
        """Count rows from the place where a run starts or resumes."""
        assert self.run is not None
        self._last = self.run.place.rows

    def reads_model(self, place: Place) -> bool:
        """Return whether enough rows were read, up to a position in the source."""
        return place.position is not None and place.rows - self._last >= self.every

    def after_block(self, step: Step) -> None:
        """Write a checkpoint if it is due, and the model has not begun with the next block."""
        assert self.run is not None
        place = self.run.place
        if place.rows == step.place.rows and self.reads_model(place):
            write_checkpoint(self, place, (self.passes, *self.run.parts))
            self._last = place.rows


def write_checkpoint(to: Checkpoints, place: Place, parts: Sequence[Part]) -> None:
    """Write a checkpoint of a run at a place, with the state of its parts."""
    assert place.position is not None
    states: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for part in parts:
        known, own = part.pack()
        if known is not None or own:
            states[part.name] = known
            arrays |= {f"{part.name}.{name}": array for name, array in own.items()}
    at = {**asdict(place), "position": list(place.position), "first_pass": list(place.first_pass)}
    content = {"place": at, "parts": states, "fingerprint": dict(to.fingerprint)}
    model = to.model()
    with reading(model):
        write_model(to.path, model, {**to.content(), "checkpoint": content}, to.passes.names, None, arrays)


def open_checkpoint(path: Path, fingerprint: Mapping[str, Any], loss: Any = None) -> Content:
    """Return the model of a checkpoint, whose options and sources must be these; the error names one that differs.

    ``loss`` is the user-defined loss, if the model has one.
    """
    remove_leftovers(path)
    stored = read_model(path, loss)
    content = stored.extra.get("checkpoint")
    if not isinstance(content, dict):
        raise ModelFileError(f"{path}: a model, but not a checkpoint; pass it as the model to continue training")
    if "fingerprint" not in content or "place" not in content or "parts" not in content:
        raise ModelFileError(f"{path}: not a complete checkpoint; remove it to start again")
    _check_fingerprint(path, content["fingerprint"], fingerprint)
    return stored


def restore(stored: Content, parts: Sequence[Part], path: Path) -> Place:
    """Give the parts of a run the state of a checkpoint, and return the place where it continues."""
    content = stored.extra["checkpoint"]
    try:
        for part in parts:
            if part.name in content["parts"]:
                start = f"{part.name}."
                own = {name.removeprefix(start): a for name, a in stored.arrays.items() if name.startswith(start)}
                part.unpack(content["parts"][part.name], own)
        at = content["place"]
        return Place(**{**at, "position": Position(*at["position"]), "first_pass": tuple(at["first_pass"])})
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        what = f"not a complete checkpoint ({type(error).__name__}: {error}); remove it to start again"
        raise ModelFileError(f"{path}: {what}") from error


def start_fingerprint(start: Model | None) -> Any:
    """Return what identifies the model that a run starts from, as JSON."""
    return None if start is None else [start.learner.rounds, *np.atleast_1d(start.learner.loss).tolist()]


def _check_fingerprint(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error that names the first option or file that has changed."""
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if name == "sources":
            changed = next((b for a, b in zip(old or (), new or (), strict=False) if a != b), None)
            got = f"{changed[0]}, which has changed" if changed else f"{len(new or ())} files"
            raise refuse("resume", got, f"the same files as when {path} was written; or start again without resume")
        raise refuse(name, new, f"{old!r}, as when {path} was written; or start again without resume")
