"""From bytes to a model: passes over a source, each row predicted before it is learned from."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.checks import refuse, whole
from forel.formats import Block, Names, Problems, open_blocks
from forel.formats.assemble import without
from forel.linear import Linear, Rows
from forel.pipeline import ordered_blocks
from forel.progressive import Progressive, Report
from forel.settings import Settings
from forel.store import Stored
from forel.targets import Targets, measure_of

__all__ = ["Moment", "Trained", "train"]

# What a model has to be told again when it predicts; all else is about one file or one run.
KEPT = ("bits", "label", "importance", "keep", "ignore", "categories", "log", "bucket", "interactions", "zero_based")


@dataclass(frozen=True)
class Moment:
    """How far training is: given to ``progress`` after each block.

    Parameters
    ----------
    turn : the present pass, from 1 on
    rows, entries, bytes : read so far in this pass; bytes are those of text
    seen, held : what measures rows learned from and rows held out, in this pass
    block, margins : the last block, and its rows' margins before they were learned from
    """

    turn: int
    rows: int
    entries: int
    bytes: int
    seen: Progressive
    held: Progressive
    block: Block = field(repr=False)
    margins: NDArray[Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Trained:
    """A model, and what is known of its training.

    Parameters
    ----------
    model : the learner, which can go on
    report : of the first pass, each row predicted before it was learned from
    holdout : of the last pass, rows that are never learned from; None without
    passes : reports of rows learned from in each pass; from the second on these have been seen before
    rows, entries : of the first pass, rows held out included
    seconds : from the first byte to the last row
    """

    model: Linear
    report: Report
    holdout: Report | None
    passes: tuple[Report, ...]
    rows: int
    entries: int
    seconds: float
    problems: Problems
    names: Names | None = field(default=None, repr=False)
    reading: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def stored(self) -> Stored:
        """The model as :func:`forel.load` would return it."""
        return Stored(self.model, self.extra, self.names)

    @property
    def extra(self) -> dict[str, Any]:
        """What is kept with the model: how to read, and how good predictions were."""
        reports = {"report": self.report, "holdout": self.holdout}
        return {"reading": self.reading, **{k: None if r is None else _plain(r) for k, r in reports.items()}}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, with how to read for it and the names of slots, if these were kept."""
        from forel.store import save

        save(path, self.model, self.extra, self.names)


def train(
    source: Any,
    settings: Settings | None = None,
    *,
    passes: int = 1,
    holdout: int = 0,
    threads: int | None = None,
    certified: bool = False,
    start: Stored | None = None,
    progress: Callable[[Moment], None] | None = None,
    **reading: Any,
) -> Trained:
    """Learn a model from a source, in constant memory.

    Parameters
    ----------
    source : as :func:`forel.formats.open_blocks` takes it: paths, patterns, "-", file objects, tables, dicts
    settings : what is learned, and how; one model
    passes : over the source
    holdout : every so many rows one is predicted and not learned from; 0 for none
    threads : that parse, which changes nothing but the time; None for what suits the machine
    certified : whether to keep what a certificate needs
    start : a stored model to go on from, with its settings
    progress : called after each block
    reading : arguments of ``open_blocks`` such as ``bits``, ``format``, ``label``, ``names`` and ``on_error``

    Labels of −1 and 1, or 0 and 1, suit both log-loss and hinges.

    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> trained = train(clicks, Settings(alpha=1.0), label="click", bits=10, holdout=10)
    >>> trained.model.rounds, trained.holdout.rows, round(trained.report.loss, 2)
    (90, 10, 0.15)
    """
    turns, every = whole("passes", passes, low=1), whole("holdout", holdout)
    if every == 1:
        raise refuse("holdout", holdout, "0 for none, or at least 2: of so many rows, one is held out")
    again = [s for s in (source if isinstance(source, list | tuple) else [source]) if s == "-" or hasattr(s, "read")]
    if turns > 1 and (again or isinstance(source, Iterator)):
        raise refuse("passes", passes, "1 for a stream, which can be read only once; give a file")
    model, reading = _begin(settings, certified, start, reading)
    problems = Problems(reading.get("on_error", "raise"))
    reports: list[Report] = []
    begun, counts, names, held = time.perf_counter(), (0, 0), None, None
    for turn in range(1, turns + 1):
        # Names are known, and problems counted, after the first pass.
        options = reading if turn == 1 else {**reading, "names": False}
        met = problems if turn == 1 else Problems(problems.on_error)
        reader = open_blocks(source, **options)
        names = reader.names if turn == 1 else names
        last = _Pass(turn, model, Targets(model.settings, met), measure_of(model.settings), measure_of(model.settings))
        for block in ordered_blocks(reader, threads):
            moment = last.learn(block, every)
            if progress is not None:
                progress(moment)
        met.take(reader.problems)
        if turn == 1 and not last.rows:
            raise refuse("source", "no examples", "at least one" + _hint(met))
        counts = (last.rows, last.entries) if turn == 1 else counts
        reports.append(last.seen.report())
        held = last.held.report() if every else None
    kept = {name: _json(reading[name]) for name in KEPT if reading.get(name) is not None}
    return Trained(model, reports[0], held, tuple(reports), *counts, time.perf_counter() - begun, problems, names, kept)


def _begin(
    settings: Settings | None, certified: bool, start: Stored | None, reading: dict[str, Any]
) -> tuple[Linear, dict[str, Any]]:
    """Return the model to train, and how to read for it."""
    if start is None:
        reading = {"bits": 22, **reading}
        chosen = Settings() if settings is None else settings
        measure_of(chosen)  # refuses what is not one model, before memory is asked for
        open_blocks((), **reading)  # likewise
        return Linear(1 << reading["bits"], chosen, certified=certified), reading
    from forel.scoring import reading_of

    if not isinstance(start.model, Linear):
        raise refuse("start", "a model for predicting only", "one that was saved whole")
    if settings is not None and settings != start.model.settings:
        raise refuse("settings", settings, "none, or those that the model was begun with")
    if certified and not start.model.certified:
        raise refuse("certified", certified, "False: the model was begun without, and the first rows are gone")
    # Names that were kept go on being kept: a model must not forget what its first rows were called.
    named = {} if start.names is None else {"names": start.names}
    return start.model, {**reading_of(start, reading), **named}


@dataclass
class _Pass:
    """One pass over the source: what it learns, what it measures, and how far it is."""

    turn: int
    model: Linear
    targets: Targets
    seen: Progressive
    held: Progressive
    rows: int = 0
    entries: int = 0
    bytes: int = 0

    def learn(self, block: Block, every: int) -> Moment:
        labels, good = self.targets.of(block)
        if good is not None:
            block, labels = without(block, np.flatnonzero(~good)), labels[good]
        out = (np.arange(self.rows + 1, self.rows + len(block) + 1) % every == 0) if every else None
        margins = self.model.progress(Rows(*block.rows), labels, block.importance, out)[:, 0]
        if out is None:
            self.seen.add(margins, labels, block.importance)
        else:
            for measure, rows in ((self.seen, ~out), (self.held, out)):
                measure.add(margins[rows], labels[rows], block.importance[rows])
        self.rows += len(block)
        self.entries += block.indices.size
        self.bytes += block.size
        return Moment(self.turn, self.rows, self.entries, self.bytes, self.seen, self.held, block, margins)


def _hint(problems: Problems) -> str:
    return f"; {problems.count} were malformed, the first: {problems.messages[0]}" if problems.messages else ""


def _json(value: Any) -> Any:
    return [_json(one) for one in value] if isinstance(value, list | tuple | set | frozenset) else value


def _plain(report: Report) -> dict[str, Any]:
    """Return the numbers of a report, as JSON has room for them."""
    return {k: v for k, v in asdict(report).items() if k != "table" and v == v}
