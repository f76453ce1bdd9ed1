"""The folder of a server: its log, checkpoints of its models, and how both are recovered and replayed."""

import json
import math
import os
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forel.log.champion import Change, Contest, Event, Fold
from forel.log.files import Log
from forel.log.index import Index
from forel.log.records import Control, Examples, Outcome, Prediction, Record
from forel.store.atomic import exclusive_lock
from forel.training.model import Model, load, save
from forel.validation import refuse

__all__ = ["Folder", "Replay", "events_of", "first_model", "replay", "with_settings"]

BATCH = 4096  # rows learned at a time in a replay
STATE, METRICS = "contest", "metrics."  # a file of a checkpoint, and the prefix of arrays in those of its models
Frozen = tuple[Model, dict[str, Any]]  # a model and its metrics


class Folder:
    """A folder with a log, an index of its ids, and its models, as they were when its last record was written.

    Parameters
    ----------
    path : created if it does not exist
    model : the model to begin with; None where the folder has one
    segment_bytes, remember : as in :class:`~forel.log.files.Log` and :class:`~forel.log.index.Index`
    keep : whether checkpoints of segment starts are kept, so that older segments may be deleted
    """

    def __init__(
        self, path: str | os.PathLike[str], model: Model | None = None, segment_bytes: int = 1 << 26,
        remember: int = 1_000_000, keep: bool = False,
    ) -> None:  # fmt: skip
        self.path, self.keep = Path(path), keep
        self.path.mkdir(parents=True, exist_ok=True)
        self._locked = ExitStack()
        self._locked.enter_context(exclusive_lock(self.path / "serve"))
        try:
            if not self.checkpoints():
                if model is None:
                    raise refuse("model", None, f"a model or settings to begin with: {self.path} has none yet")
                self.save(*freeze(Contest(model)), needs=0)
            elif model is not None:
                raise refuse("model", "a model", f"none: {self.path} has one, which continues to learn")
            self.log = Log(self.path / "log", segment_bytes)
            self.index = Index(remember)
            self.contest = load_contest(self.checkpoints()[-1])
            self.broken: str | None = None  # why nothing more can be learned
            self.replayed = self._recover()
        except BaseException:
            self._locked.close()
            raise

    def _recover(self) -> int:
        """Learn what the log has beyond the checkpoint, and return the number of rows."""
        position, before = self.contest.position, self.contest.rows
        if position > self.log.end:
            raise ValueError(
                f"{self.path}: the checkpoint is at {position:,} and the log ends at {self.log.end:,}, expected the "
                "log that the models learned from; restore the folder from a copy"
            )
        for batch in batches(events_of(self.log, position, self.index)):
            if self.broken is not None:
                continue
            if isinstance(batch, Change):
                self.contest.apply(batch.control, batch.end, self.load_model)
                continue
            try:
                self.contest.learn(batch)
            except ValueError as error:
                self.broken = str(error)
        return self.contest.rows - before

    def load_model(self, name: str) -> Model:
        """Return the model of a challenger as it was added."""
        return load(self.path / "added" / name)

    def save_added(self, name: str, model: Model) -> str:
        """Keep the model of a challenger, and return the name of its file."""
        (self.path / "added").mkdir(exist_ok=True)
        file = f"{name}-{self.log.end}.forel"
        save(self.path / "added" / file, model)
        return file

    def checkpoints(self) -> list[Path]:
        """Return the folders of complete checkpoints, oldest first."""
        return sorted((self.path / "checkpoints").glob("[0-9]*[0-9]"))

    def save(self, content: dict[str, Any], arrays: dict[str, Any], models: dict[str, Frozen], needs: int) -> None:
        """Write a checkpoint beside the others, and delete those that nobody needs; on any thread.

        ``needs`` is the place of the first record that events after the checkpoint may refer to.
        """
        target = self.path / "checkpoints" / f"{content['position']:020d}"
        if target.exists():
            return
        for left in target.parent.glob("*.new"):  # by a process that was killed
            shutil.rmtree(left)
        work = target.with_suffix(".new")
        work.mkdir(parents=True)
        try:
            for name, (model, metrics) in models.items():
                save(work / f"{name}.forel", model, arrays={f"{METRICS}{key}": value for key, value in metrics.items()})
            content = {**content, "needs": needs}
            with open(work / f"{STATE}.npz", "wb") as file:
                np.savez(file, content=np.frombuffer(json.dumps(content).encode(), np.uint8), **arrays)
                file.flush()
                os.fsync(file.fileno())
        except OSError:  # on a full disk it would take space that the log needs
            shutil.rmtree(work)
            raise
        os.replace(work, target)
        with suppress(OSError):
            handle = os.open(target.parent, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        first, *others = self.checkpoints()
        before = int(first.name)
        for old in others[:-1]:
            if self.keep and any(before < start <= int(old.name) for start in self.log.segments):
                before = int(old.name)  # the first checkpoint in a segment
            else:
                shutil.rmtree(old)

    def retain(self, seconds: float) -> int:
        """Delete segments and checkpoints that are older, but for what the oldest kept checkpoint needs.

        Return the number of segments.
        """
        limit = time.time() - seconds
        old = [one for one in self.checkpoints()[:-1] if one.stat().st_mtime < limit]
        if not old:
            return 0
        for one in old[:-1]:
            shutil.rmtree(one)
        return self.log.drop_before(read_state(old[-1])[0]["needs"])

    def close(self) -> None:
        """Close the log and release the folder."""
        self.log.close()
        self._locked.close()


def freeze(contest: Contest) -> tuple[dict[str, Any], dict[str, Any], dict[str, Frozen]]:
    """Return a copy of the state of a contest, for :meth:`Folder.save`."""
    content, arrays = contest.pack()
    return content, arrays, {name: fold.frozen() for name, fold in contest.folds.items()}


def read_state(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content and the arrays of a checkpoint beside its models."""
    with np.load(folder / f"{STATE}.npz") as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(arrays.pop("content").tobytes()), arrays


def load_contest(folder: Path) -> Contest:
    """Return the state of a checkpoint."""
    content, arrays = read_state(folder)
    folds = {}
    for name in content["models"]:
        model = load(folder / f"{name}.forel")
        packed = {
            key.removeprefix(METRICS): model.arrays.pop(key) for key in list(model.arrays) if key.startswith(METRICS)
        }
        folds[name] = Fold(model)
        folds[name].metrics.unpack(packed)
    return Contest.unpack(content, arrays, folds)


def first_model(folder: str | os.PathLike[str]) -> Model:
    """Return the model that is served at the first checkpoint of a folder."""
    return load_contest(first_checkpoint(folder)).model


def first_checkpoint(folder: str | os.PathLike[str]) -> Path:
    """Return the folder of the first checkpoint."""
    for found in sorted((Path(folder) / "checkpoints").glob("[0-9]*[0-9]")):
        return found
    raise refuse("folder", str(folder), "the folder of a server, with checkpoints")


def events_of(log: Log, position: int = 0, index: Index | None = None) -> Iterator[Event | Change]:
    """Yield labelled rows and changes of models whose records end after a position; an index notes all records."""
    for place, end, record in log.records():
        if index is not None:
            index.note(place, record)
        if end > position and (event := event_of(log, end, record)) is not None:
            yield event


def event_of(log: Log, end: int, record: Record) -> Event | Change | None:
    """Return the labelled rows or the change of a record that ends at a place; None for others."""
    if isinstance(record, Examples):
        return event_of_examples(end, record)
    if isinstance(record, Control):
        return Change(end, record)
    return event_of_outcomes(log, [record])._replace(end=end) if isinstance(record, Outcome) else None


def event_of_examples(end: int, record: Examples) -> Event:
    """Return rows that came with their labels."""
    return Event(end, record.time, [record.rows], *record[2:])


def event_of_outcomes(log: Log, outcomes: Sequence[Outcome]) -> Event:
    """Return the rows of outcomes with their labels; the end is not known yet."""
    found = [log.prediction(one.place) for one in outcomes]
    labels, importance = np.array([one.label for one in outcomes]), np.array([one.importance for one in outcomes])
    margins = np.concatenate([one.margins for one in found]).reshape(len(found), -1)
    return Event(0, outcomes[-1].time, [one.row for one in found], labels, importance.astype(np.float32), margins)


def batches(events: Iterator[Event | Change], most: int = BATCH) -> Iterator[list[Event] | Change]:
    """Yield events in batches, and changes of models between them."""
    batch, rows = list[Event](), 0
    for event in events:
        if isinstance(event, Event):
            batch.append(event)
            rows += event.labels.size
        if batch and (rows >= most or isinstance(event, Change)):
            yield batch
            batch, rows = [], 0
        if isinstance(event, Change):
            yield event
    if batch:
        yield batch


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Parameters
    ----------
    model : learned from the events
    rows : the number of events
    served : metrics of the predictions as they were served
    replayed : metrics of the model's predictions, each before it learned the row
    unknown : ids to leave out that have no outcome among the events
    """

    model: Model
    rows: int
    served: Any
    replayed: Any
    unknown: tuple[str, ...] = ()


def replay(
    folder: str | os.PathLike[str], until: str | float | None = None, model: Model | None = None,
    without: Collection[str] = (), name: str | None = None,
) -> Replay:  # fmt: skip
    """Return the model of a folder's events.

    Parameters
    ----------
    folder : of ``forel serve``, which may be running
    until : the time, in seconds since 1970, after which events are left out, or the id of the last one
    model : another model to learn from the same events; None for the served one, with its challengers and promotions
    without : ids of events to leave out, such as those of a user whose data is deleted
    name : of the model that is returned; None for the one that is served
    """
    path = Path(folder)
    log = Log(path / "log", write=False)
    try:
        contest = load_contest(first_checkpoint(path)) if model is None else Contest(model)
        position = contest.position if model is None else 0
        unknown = dict.fromkeys(without)
        stopped = _selected(log, position, until, {one.encode() for one in without}, unknown)
        for batch in batches(stopped):
            if not isinstance(batch, Change):
                contest.learn(batch)
            elif model is None:
                contest.apply(batch.control, batch.end, lambda file: load(path / "added" / file))
        if name not in (None, *contest.folds):
            raise refuse("name", name, f"one of {', '.join(contest.folds)}")
        fold = contest.folds[name or contest.champion]
        return Replay(fold.model, contest.rows, contest.served.report(), fold.metrics.report(), tuple(unknown))
    finally:
        log.close()


def _selected(
    log: Log, position: int, until: str | float | None, without: set[bytes], unknown: dict[str, None]
) -> Iterator[Event | Change]:
    """Yield the events up to a time or an id, without some ids, which are removed from the unknown ones."""
    last = until.encode() if isinstance(until, str) else None
    limit = math.inf if until is None or last is not None else float(until)
    names = dict[int, bytes]()
    for place, end, record in log.records():
        if isinstance(record, Prediction):
            names[place] = record.name
        if record.time > limit:
            return
        if end <= position:
            continue
        name = names.pop(record.place, b"") if isinstance(record, Outcome) else None
        if name in without:
            unknown.pop(name.decode(), None)
        elif (event := event_of(log, end, record)) is not None:
            yield event
        if name is not None and name == last:
            return
    if last is not None:
        raise refuse("until", until, "a time, or the id of an event that has an outcome")


def with_settings(model: Model, changes: dict[str, Any]) -> Model:
    """Return a new model that reads rows as another one does, with one setting in place of its own.

    >>> from forel.learner.learner import Learner
    >>> from forel.learner.settings import Settings
    >>> with_settings(Model(Learner(4, Settings(alpha=0.1))), {"alpha": 0.5}).settings.alpha
    0.5
    """
    from forel.learner.grid import default_grid
    from forel.learner.learner import Learner

    loss, learner = model.settings.loss, model.learner
    if "loss" in changes:
        raise refuse("loss", changes["loss"], f"none: challengers have the loss of the model that is served, {loss!r}")
    lists: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()
    }
    try:
        settings = default_grid(loss=loss, **lists)
    except TypeError as error:
        raise ValueError(f"settings: {error}") from None
    extra: dict[str, Any] = {name: model.extra[name] for name in ("reading", "schema") if name in model.extra}
    return Model(Learner(learner.features, settings, learner.classes), extra, model.names)
