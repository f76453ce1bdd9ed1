"""One pass of training: labels are encoded, rows predicted and learned from, and metrics updated."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from forel.data import Block, Problems
from forel.data.features.rows import drop_rows
from forel.data.holdout import Holdout
from forel.data.labels import padded_names
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.training.labels import ClassEncoder, LabelEncoder, label_encoder
from forel.training.overlap import available_cores, overlapped
from forel.training.passes import Passes
from forel.training.state import Progress, TrainingState
from forel.training.subsampling import Subsampling
from forel.validation import refuse

__all__ = ["counted_blocks", "end_pass", "learn_pass", "marked_blocks", "with_labels"]

# From rows, labels, importances and held-out rows to a function that returns margins.
Start = Callable[[CoalescedRows, Any, Any, Any], Callable[[], Any]]


def learn_pass(
    model: Learner,
    state: TrainingState,
    passes: Passes,
    holdout: Holdout,
    begun: Iterator[Block] | None,
    sampling: Subsampling | None,
    exact: Callable[[], bool],
) -> Iterator[Progress]:
    """Learn from the remaining blocks of the current pass, which may have begun.

    The experts of a mixture are mixed on another thread while its linear models learn the next block. ``exact`` is
    called in between; True if the model is read after the block, so that the next one has to wait.
    """
    # Only the first pass collects names and problems, and weights the settings.
    first = state.pass_number == 1
    problems, names = (state.problems, state.names) if first else (Problems(state.problems.on_error), None)
    seen = state.kinds.seen if passes.options.label is None else None
    labels = label_encoder(model.settings, problems, model.classes, state.classes.names, state.negative_label, seen)
    if begun is None:
        place = None if state.place is None else state.place._replace(rows=0)
        begun = passes.blocks(state.pass_number, problems, names, place, state.kinds, state.classes, state.rows_read)
        begun = counted_blocks(begun, state.problems, state.counts)
    if sampling is not None and (model.classes is not None or labels.kind == "number"):
        raise refuse("subsample", sampling.rate, "labels of two classes with it")
    encoded: Iterator[Block]
    encoded = (_sampled(with_labels(block, labels), sampling) for block in marked_blocks(begun, state))
    start: Start = partial(model.begin, again=not first)
    steps: Iterator[Callable[[], Progress]]
    steps = (_start_block(model, state, labels.negative, block, holdout, start) for block in encoded)
    concurrent = model.mixture is not None and passes.threads != 0 and available_cores() > 1
    yield from overlapped(steps, exact) if concurrent else (finish() for finish in steps)


def counted_blocks(blocks: Iterator[Block], problems: Problems, counts: deque[tuple[int, int]]) -> Iterator[Block]:
    """Yield blocks, and append the number of problems and messages before each to ``counts``.

    A checkpoint may be within a block, which is then read again.
    """
    while True:
        before = problems.count, len(problems.messages)
        if (block := next(blocks, None)) is None:
            return
        counts.append(before)
        yield block


def marked_blocks(blocks: Iterator[Block], state: TrainingState) -> Iterator[Block]:
    """Yield blocks, and keep what was counted before each."""
    for block in blocks:
        state.before_block = *state.counts.popleft(), state.rows_read
        state.rows_read += len(block)
        yield block


def with_labels(block: Block, encoder: LabelEncoder | ClassEncoder) -> Block:
    """Return a block with encoded labels, without rows of invalid ones."""
    labels, valid = encoder.encode(block)
    encoded = replace(block, labels=labels)
    return encoded if valid is None else drop_rows(encoded, np.flatnonzero(~valid))


def _sampled(block: Block, sampling: Subsampling | None) -> Block:
    """Return a block without the negative rows that are left out."""
    return block if sampling is None else sampling.apply(block)


def _start_block(
    model: Learner, state: TrainingState, negative: float | None, block: Block, holdout: Holdout, start: Start
) -> Callable[[], Progress]:
    """Learn the rows of a block; return a function that mixes their predictions and updates the metrics."""
    labels, first = block.labels, state.pass_number == 1
    if first:
        state.schema.add(block, state.kinds)
    assert block.numbers is not None
    held_out = holdout.mask(block.numbers)
    rows = CoalescedRows(*block.rows)
    if state.inclusion is not None:
        rows = state.inclusion.apply(block, state.rows, held_out, first)
    mixed = start(rows, labels, block.importance, held_out)
    state.rows += len(block)
    state.entries += block.indices.size
    state.bytes += block.size
    state.negative_label, state.place = negative, block.after
    counts = state.pass_number, state.rows, state.entries, state.bytes

    def finish() -> Progress:
        margins = mixed()
        margins = margins if model.classes is not None else margins[:, 0]
        learned: Any = slice(None) if held_out is None else ~held_out
        scores = state.progressive.add(margins[learned], labels[learned], block.importance[learned])
        if held_out is not None:
            state.holdout.add(margins[held_out], labels[held_out], block.importance[held_out])
            if state.kept is not None:
                state.kept.add(block, held_out)
        if first and block.slices is not None:
            for values, metrics in zip(block.slices, state.slices, strict=True):
                metrics.add(values[learned], scores)
        calibrated = None
        if state.calibrator is not None:
            calibrated = state.calibrator.add(block, margins, held_out, first)
        names = () if model.classes is None else padded_names(state.classes.names, model.classes)
        return Progress(*counts, state.progressive, state.holdout, block, margins, model, names, calibrated)

    return finish


def end_pass(model: Learner, state: TrainingState, more: bool) -> None:
    """Raise if there were no rows; summarize the certificate of the rows of the first pass."""
    if state.pass_number == 1 and not state.rows:
        problems = state.problems
        hint = f"; {problems.count} were malformed, the first: {problems.messages[0]}" if problems.messages else ""
        raise ValueError(f"source: got no rows, expected at least one{hint}")
    if model.certified:
        first = state.metrics[0].report()
        total = first.loss * first.weight if first.weight else 0.0
        state.certificate.end_pass(model, (first.rows, total), more)
