"""Checkpoints: a model in the middle of its training, and how far that is, in one file.

Such a file is a model file with a little more in it, so that it can be looked at and predicted with like any other. It
is replaced only by a whole one: whenever a run ends, it goes on from the last checkpoint to the same bits.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from forel.data import Names, Place, Problems
from forel.data.kinds import Kinds
from forel.data.place import BEGINNING
from forel.store import Stored, Unreadable, load, save
from forel.store.files import Path, sweep
from forel.training.progressive import Progressive
from forel.validation import refuse

__all__ = ["Saving", "Standing", "read_checkpoint", "remove_checkpoint", "write_checkpoint"]

NUMBERS = ("turn", "rows", "entries", "bytes", "negative", "seconds", "certificate")


@dataclass
class Standing:
    """How far training is, beside the model: what passes and blocks change.

    Parameters
    ----------
    seen, held : what measures rows learned from and rows held out, in this pass
    problems, names : of the first pass
    kinds : what columns turned out to hold
    turn : the present pass, from 1 on
    rows, entries, bytes : read in this pass
    negative : how the labels of this pass write the negative class, once that is known
    place : in the source, after the last block
    first : rows and entries of the first pass, once it is over
    finished : what measured the rows that passes before this learned from
    seconds : spent so far
    certificate : what is proved of the rows of the first pass, once it is over
    """

    seen: Progressive
    held: Progressive
    problems: Problems
    names: Names | None = None
    turn: int = 1
    rows: int = 0
    entries: int = 0
    bytes: int = 0
    negative: float | None = None
    place: Place | None = BEGINNING
    first: tuple[int, int] = (0, 0)
    finished: list[Progressive] = field(default_factory=list)
    seconds: float = 0.0
    certificate: str | None = None
    kinds: Kinds = field(default_factory=Kinds)

    @property
    def measures(self) -> list[Progressive]:
        """All that is measured, those of finished passes first."""
        return [*self.finished, self.seen, self.held]

    def next_pass(self, measure: Callable[[], Progressive]) -> None:
        """End the pass, and begin another."""
        self.first = (self.rows, self.entries) if self.turn == 1 else self.first
        self.finished.append(self.seen)
        self.seen, self.held = measure(), measure()
        self.turn, self.rows, self.entries, self.bytes = self.turn + 1, 0, 0, 0
        self.negative, self.place = None, BEGINNING


def write_checkpoint(path: Path, model: Any, standing: Standing, told: Mapping[str, Any], extra: Any) -> None:
    """Write a checkpoint.

    Parameters
    ----------
    path : of the file, which is replaced by a whole one
    model : anything that :func:`forel.store.save` takes
    standing : how far its training is
    told : options and sources, which have to be the same when it goes on
    extra : what is kept with the model
    """
    place = standing.place
    if place is None:
        raise ValueError("source: got a block that does not say where reading goes on, expected one of a Reader")
    kept = {
        **{name: getattr(standing, name) for name in NUMBERS},
        "place": list(place),
        "first": list(standing.first),
        "problems": {"count": standing.problems.count, "messages": standing.problems.messages},
        "kinds": standing.kinds.packed(),
        "told": dict(told),
    }
    packed = {
        f"{k}.{name}": array
        for k, measure in enumerate(standing.measures)
        for name, array in measure.packed().items()
    }  # fmt: skip
    save(path, model, {**extra, "checkpoint": kept}, standing.names, packed)


@dataclass
class Saving:
    """Writes a checkpoint whenever so many rows were read since the last."""

    path: Path
    every: int
    told: dict[str, Any]
    extra: dict[str, Any]
    turn: int
    rows: int

    def __call__(self, model: Any, standing: Standing) -> None:
        """Write one, if it is time."""
        if standing.turn > self.turn:
            self.turn, self.rows = standing.turn, 0
        if standing.rows - self.rows >= self.every:
            reading = {**self.extra["reading"], "kinds": standing.kinds.known}
            write_checkpoint(self.path, model, standing, self.told, {**self.extra, "reading": reading})
            self.rows = standing.rows


def read_checkpoint(
    path: Path,
    told: Mapping[str, Any],
    problems: Problems,
    measure: Callable[[], Progressive],
    loss: Any = None,
) -> tuple[Any, Standing]:
    """Return the model of a checkpoint and how far its training is.

    Parameters
    ----------
    path : of the file
    told : options and sources; where they are not those of the checkpoint, the error says which
    problems : what to do about malformed examples
    measure : makes what measures
    loss : of the user's own, if that was used
    """
    sweep(path)
    stored = load(path, loss)
    kept = stored.extra.get("checkpoint")
    if not isinstance(kept, dict):
        raise Unreadable(f"{path}: a model, but not a checkpoint of one; go on from it as a start")
    try:
        _same(path, kept["told"], told)
        return stored.model, _standing(kept, stored, problems, measure)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"not a whole checkpoint ({type(error).__name__}: {error}); take it away to begin again"
        raise Unreadable(f"{path}: {what}") from error


def _standing(kept: dict[str, Any], stored: Stored, problems: Problems, measure: Callable[[], Progressive]) -> Standing:
    problems.count, problems.messages = kept["problems"]["count"], list(kept["problems"]["messages"])
    measures = [measure() for _ in range(kept["turn"] + 1)]
    for k, one in enumerate(measures):
        one.unpack({name: stored.arrays[f"{k}.{name}"] for name in one.packed()})
    *finished, seen, held = measures
    numbers = {name: kept[name] for name in NUMBERS}
    place, first = Place(*kept["place"]), (kept["first"][0], kept["first"][1])
    kinds = Kinds.unpacked(kept["kinds"])
    return Standing(
        seen, held, problems, stored.names, place=place, first=first, finished=finished, kinds=kinds, **numbers
    )


def _same(path: Path, before: dict[str, Any], now: Mapping[str, Any]) -> None:
    for name in sorted({*before, *now}):
        was, is_ = before.get(name), now.get(name)
        if was == is_:
            continue
        if name == "sources":
            changed = next((b for a, b in zip(was or (), is_ or (), strict=False) if a != b), None)
            got = f"{changed[0]} as it is now" if changed else f"{len(is_ or ())} files"
            raise refuse("resume", got, f"the files as they were when {path} was written; or begin again without")
        raise refuse(name, is_, f"{was!r}, as when {path} was written; or begin again without resume")


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint that has done its service; one that is not there is no error."""
    with suppress(FileNotFoundError):
        os.unlink(path)
