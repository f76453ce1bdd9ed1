"""From bytes to a model: passes over a source, each row predicted before it is learned from."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Names, Problems, ReadOptions
from forel.data.assemble import without
from forel.data.holdout import Holdout
from forel.data.kinds import Kinds
from forel.data.place import prints_of
from forel.data.reading import names_for
from forel.learner.certificate import Snapshot
from forel.learner.grid import settle
from forel.learner.linear import Linear
from forel.learner.mixture import Mixture
from forel.learner.rows import Merged
from forel.learner.settings import Settings
from forel.store import Stored
from forel.store.files import Path
from forel.store.header import pack_settings
from forel.store.locks import locked
from forel.training.checkpoint import Saving, Standing, read_checkpoint, remove_checkpoint
from forel.training.passes import Passes, cached_options, once
from forel.training.progressive import Progressive, Report
from forel.training.scoring import options_of, updated_options
from forel.training.targets import Targets, measure_of
from forel.validation import refuse, whole

__all__ = ["Moment", "Trained", "train"]

OWN = ("reading", "report", "holdout", "checkpoint")  # what training keeps with a model itself


@dataclass(frozen=True)
class Moment:
    """How far training is: given to ``progress`` after each block.

    Parameters
    ----------
    turn : the present pass, from 1 on
    rows, entries, bytes : read so far in this pass; bytes are those of text
    seen, held : what measures rows learned from and rows held out, in this pass
    block, margins : the last block, and its rows' margins before they were learned from
    model : as it is now
    """

    turn: int
    rows: int
    entries: int
    bytes: int
    seen: Progressive
    held: Progressive
    block: Block = field(repr=False)
    margins: NDArray[Any] = field(repr=False)
    model: Linear | Mixture = field(repr=False)


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
    certificate : what is proved of the rows of ``report``, against fixed models no larger than the one learned from
        them; None for a model that is not certified
    others : what was kept with the model that training went on from
    """

    model: Linear | Mixture
    report: Report
    holdout: Report | None
    passes: tuple[Report, ...]
    rows: int
    entries: int
    seconds: float
    problems: Problems
    certificate: str | None = None
    names: Names | None = field(default=None, repr=False)
    reading: dict[str, Any] = field(default_factory=dict, repr=False)
    checkpoint: Path | None = field(default=None, repr=False)
    others: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def stored(self) -> Stored:
        """The model as :func:`forel.load` would return it."""
        return Stored(self.model, self.extra, self.names)

    @property
    def extra(self) -> dict[str, Any]:
        """What is kept with the model: how to read, how good predictions were, and what was kept before."""
        reports = {"report": self.report, "holdout": self.holdout}
        return {
            **self.others,
            "reading": self.reading,
            **{k: None if r is None else _plain(r) for k, r in reports.items()},
        }

    def save(self, path: Path) -> None:
        """Write the model to a file, with how to read for it and the names of slots, if these were kept.

        The checkpoint has then done its service, and is removed.
        """
        from forel.store import save

        save(path, self.model, self.extra, self.names)
        self.done()

    def best(self) -> "Trained":
        """Return the same with the best setting's model alone; itself where there is one setting only."""
        return replace(self, model=self.model.only()) if isinstance(self.model, Mixture) else self

    def done(self) -> None:
        """Remove the checkpoint, because the model is in another file."""
        if self.checkpoint is not None:
            remove_checkpoint(self.checkpoint)


def train(
    source: Any,
    settings: Settings | None = None,
    *,
    passes: int = 1,
    holdout: int = 0,
    holdout_after: int | None = None,
    threads: int | None = None,
    certified: bool = False,
    share: float | None = None,
    start: Stored | None = None,
    copy: bool = True,
    progress: Callable[[Moment], None] | None = None,
    cache: Path | None = None,
    checkpoint: Path | None = None,
    every: int = 1_000_000,
    resume: bool = False,
    **reading: Any,
) -> Trained:
    """Learn a model from a source, in constant memory.

    Parameters
    ----------
    source : as :func:`forel.data.read` takes it: paths, patterns, "-", file objects, tables, dicts
    settings : what is learned, and how; lanes of several settings are mixed; None mixes 16 that suit most data, as
        :func:`forel.learner.grid.settle` has them
    passes : over the source
    holdout : every so many rows one is predicted and not learned from; 0 for none
    holdout_after : or all rows after so many
    threads : that parse, which changes nothing but the time; None for what suits the machine
    certified : whether to keep what a certificate needs
    share : of a mixture for streams that drift, as in :class:`forel.learner.mixture.Mixture`
    start : a stored model to go on from, with its settings and what was kept with it
    copy : whether to learn on a copy of it; without, the given model itself goes on, which saves its memory
    progress : called after each block
    cache : where to keep parsed blocks for later passes and runs, or where they are kept; None for a file without a
        name, which later passes read and which is gone at the end
    checkpoint : where to keep the model and how far training is, so that a run that was stopped can go on; removed when
        the trained model is saved
    every : so many rows, at the end of a block, a checkpoint is written
    resume : whether to go on from the checkpoint, if there is one; options and files have to be the same, and the model
        becomes the same, to the bit, as if the run had never been stopped
    reading : options of :class:`forel.data.ReadOptions`: ``bits``, ``format``, ``label``, ``names``, ``on_error``, ...

    Labels of −1 and 1, or 0 and 1, suit both log-loss and hinges.

    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> trained = train(clicks, Settings(alpha=1.0), label="click", bits=10, holdout=10)
    >>> trained.model.rounds, trained.holdout.rows, round(trained.report.loss, 2)
    (90, 10, 0.15)
    >>> print(train(clicks, label="click", bits=10).model.guarantee())
    within 0.028 per example of the best of 16 settings over 100 rows, which is alpha=3.61, l1=0.1 (0.053...)
    """
    turns, out = whole("passes", passes, low=1), Holdout(whole("holdout", holdout), holdout_after)
    if out.every == 1:
        raise refuse("holdout", holdout, "0 for none, or at least 2: of so many rows, one is held out")
    if holdout_after is not None and (out.every or whole("holdout_after", holdout_after, low=1) < 1):
        raise refuse("holdout", holdout, "0 where rows after holdout_after are held out")
    model, options, names = _begin(settings, certified, share, start, copy, source, reading)
    others = {} if start is None else {name: v for name, v in start.extra.items() if name not in OWN}
    kept = options.stored
    measure = partial(measure_of, model.settings)
    problems = Problems(options.on_error)
    standing = Standing(measure(), measure(), problems, names, kinds=Kinds(options.kinds))
    save, lock = None, ExitStack()
    if checkpoint is not None:
        told, often = _told(source, options, model, turns, out, start), whole("every", every, low=1)
        with ExitStack() as held_lock:
            held_lock.enter_context(locked(checkpoint))
            if resume and os.path.exists(checkpoint):
                model, standing = read_checkpoint(checkpoint, told, problems, measure, _own(model.settings))
            lock = held_lock.pop_all()  # until training ends
        save = Saving(checkpoint, often, told, {**others, "reading": kept}, standing.turn, standing.rows)
    # What is said of this run's rows needs the sums from before them.
    before = Snapshot() if start is None else start.model.snapshot()
    begun = time.perf_counter() - standing.seconds
    with lock, Passes(source, options, turns, cache, threads) as rows:
        while standing.turn <= turns:
            # Names are known, and problems counted, after the first pass.
            first = standing.turn == 1
            met = problems if first else Problems(problems.on_error)
            targets = Targets(model.settings, met, standing.negative)
            for block in rows.blocks(
                standing.turn, met, standing.names if first else None, standing.place, standing.kinds
            ):  # fmt: skip
                moment = _learn(model, standing, targets, block, out)
                standing.seconds = time.perf_counter() - begun
                if progress is not None:
                    progress(moment)
                if save is not None:
                    save(model, standing)
            if first and not standing.rows:
                raise refuse("source", "no examples", "at least one" + _hint(met))
            if first and model.certified:
                total = standing.seen.report()
                standing.certificate = model.words(since=before, suffered=total.loss * total.weight)
            held = standing.held.report() if any(out) else None
            standing.next_pass(measure)
    kept |= {"kinds": standing.kinds.known} if standing.kinds.known else {}
    reports = tuple(one.report() for one in standing.finished)
    seconds = time.perf_counter() - begun
    return Trained(
        model, reports[0], held, reports, *standing.first, seconds, problems, standing.certificate, standing.names,
        kept, checkpoint, others,
    )  # fmt: skip


def _begin(
    settings: Settings | None,
    certified: bool,
    share: float | None,
    start: Stored | None,
    copy: bool,
    source: Any,
    reading: dict[str, Any],
) -> tuple[Linear | Mixture, ReadOptions, Names | None]:
    """Return the model to train, the options of reading, and what records names."""
    if start is None:
        chosen = settle() if settings is None else settings
        measure_of(chosen)  # refuses what cannot be learned so, before memory is asked for
        options = (cached_options(source) or ReadOptions()).updated(reading)
        names = names_for(options, reading.get("names"))
        if chosen.lanes > 1:
            return Mixture(1 << options.bits, chosen, certified=certified, share=share), options, names
        if share is not None:
            raise refuse("share", share, "None for one model, which shares with no other")
        return Linear(1 << options.bits, chosen, certified=certified), options, names
    if not isinstance(start.model, Linear | Mixture):
        raise refuse("start", "a model for predicting only", "one that was saved whole")
    if settings is not None and settings != start.model.settings:
        own = start.model.settings
        other = next(f.name for f in fields(own) if getattr(settings, f.name) != getattr(own, f.name))
        expected = f"nothing said, or {own.words(other)}: settings are those that the model was begun with"
        raise refuse(other, getattr(settings, other), expected)
    if share is not None and share != getattr(start.model, "share", None):
        raise refuse("share", share, "none, or that which the model was begun with")
    if certified and not start.model.certified:
        raise refuse("certified", certified, "False: the model was begun without, and the first rows are gone")
    # Names that were kept go on being kept: a model must not forget what its first rows were called.
    cached = cached_options(source)
    options = updated_options(options_of(start), {**({} if cached is None else cached.stored), **reading})
    model, names = start.model, start.names
    if copy:
        # Settings are shared, because kernels of a loss of one's own know it by identity.
        model, names = deepcopy(model, {id(model.settings): model.settings}), deepcopy(names)
    given = reading.get("names") if names is None else names
    options = options.updated({"names": given})
    return model, options, names_for(options, given)


def _learn(model: Linear | Mixture, standing: Standing, targets: Targets, block: Block, holdout: Holdout) -> Moment:
    """Learn from a block and measure."""
    now, place = standing, block.after
    labels, good = targets.of(block)
    if good is not None:
        block, labels = without(block, np.flatnonzero(~good)), labels[good]
    out = holdout.rows(now.rows, len(block))
    # Rows that were seen before say nothing about which setting is best.
    learn = model.again if isinstance(model, Mixture) and now.turn > 1 else model.progress
    margins = learn(Merged(*block.rows), labels, block.importance, out)[:, 0]
    if out is None:
        now.seen.add(margins, labels, block.importance)
    else:
        for measure, rows in ((now.seen, ~out), (now.held, out)):
            measure.add(margins[rows], labels[rows], block.importance[rows])
    now.rows += len(block)
    now.entries += block.indices.size
    now.bytes += block.size
    now.negative, now.place = targets.negative, place
    far = now.turn, now.rows, now.entries, now.bytes
    return Moment(*far, now.seen, now.held, block, margins, model)


def _told(
    source: Any, options: ReadOptions, model: Linear | Mixture, passes: int, holdout: Holdout, start: Stored | None
) -> dict[str, Any]:
    """Return what a run has to be told again to go on."""
    sources = None if once(source) else prints_of(source)
    if sources is None:
        raise refuse("checkpoint", "a source that is not files", "files: a stream cannot be read again from a place")
    begun = None if start is None else [model.rounds, *np.atleast_1d(model.loss).tolist()]
    return {
        **options.resume_key, "sources": sources, "passes": passes, "holdout": holdout.every,
        "holdout_after": holdout.after, "start": begun, "certified": model.certified,
        "settings": pack_settings(model.settings), "share": getattr(model, "share", None),
    }  # fmt: skip


def _own(settings: Settings) -> Any:
    """Return the user's own loss, which a file knows only by name; None for others."""
    loss = pack_settings(settings)["loss"]
    return settings.loss if isinstance(loss, dict) and "own" in loss else None


def _hint(problems: Problems) -> str:
    return f"; {problems.count} were malformed, the first: {problems.messages[0]}" if problems.messages else ""


def _plain(report: Report) -> dict[str, Any]:
    """Return the numbers of a report, as JSON has room for them."""
    return {k: v for k, v in asdict(report).items() if k != "table" and v == v}
