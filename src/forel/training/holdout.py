"""Held-out rows: predicted, and never learned from, in any pass and any order.

A row that is held out in the middle of a stream is predicted by the model of that moment, which has just learned from
its neighbours. Where labels follow one another, this is much better than what the final model does, which is therefore
measured on some of these rows too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, concatenate
from forel.data.block import take_rows
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.markup import counted
from forel.training.metrics import Report, StreamMetrics
from forel.training.row_sample import bare_rows, packed_rows, unpacked_rows
from forel.training.run import Observer, Step, Transform
from forel.validation import refuse, whole

__all__ = ["HeldOutRows", "Holdout"]

MAX_ROWS, MAX_ENTRIES = 5000, 1 << 20


@dataclass(frozen=True)
class Holdout(Transform):
    """Holds out every n-th row of the source (``every``), or all rows after the first n (``after``).

    >>> numbers = np.array([3, 1, 2, 4])  # in any order
    >>> Holdout(every=3).mask(numbers), Holdout(after=3).mask(numbers), Holdout().mask(numbers)
    (array([False, False,  True, False]), array([ True, False, False,  True]), None)
    """

    every: int = 0
    after: int | None = None

    def __post_init__(self) -> None:
        if whole("holdout", self.every) == 1:
            raise refuse("holdout", self.every, "0 for none, or at least 2: every n-th row is held out")
        if self.after is not None and whole("holdout_after", self.after, low=1) and self.every:
            raise refuse("holdout", self.every, "0 if holdout_after is used")

    def mask(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return the mask of held-out rows by their numbers in the source, from 0; None if nothing is held out."""
        if self.after is not None:
            return numbers >= self.after
        return (numbers + 1) % self.every == 0 if self.every else None

    def warning(self, rows: int) -> str | None:
        """Return a warning if a source with so many rows is too short for any to be held out.

        >>> Holdout(after=300).warning(200)
        'holdout_after: got 300, expected fewer than the 200 rows of the source; none was held out'
        """
        name, given, limit = "holdout", self.every, "at most"
        if self.after is not None:
            name, given, limit = "holdout_after", self.after, "fewer than"
        if rows >= given + (self.after is not None):
            return None
        return f"{name}: got {given}, expected {limit} the {counted(rows, 'row')} of the source; none was held out"

    def __call__(self, block: Block) -> Block:
        """Return a block that says which of its rows are held out."""
        assert block.numbers is not None
        return replace(block, held_out=self.mask(block.numbers))


class HeldOutRows(Observer):
    """Held-out rows of the last pass: all of them, or every second, fourth, ... one, so that they fit into memory.

    >>> rows = HeldOutRows()
    >>> block = Block(np.arange(5), np.arange(4), np.ones(4, np.float32), np.ones(4, np.float32), numbers=np.arange(4))
    >>> rows.keep(block, np.array([True, False, True, True]))
    >>> len(rows)
    3
    """

    name = "held out rows"

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._every, self._seen = 1, 0  # every n-th held-out row is kept; their number so far

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def after_block(self, step: Step) -> None:
        """Keep the held-out rows of a block."""
        if step.block.held_out is not None:
            self.keep(step.block, step.block.held_out)

    def keep(self, block: Block, held_out: NDArray[np.bool_]) -> None:
        """Keep the held-out rows of a block."""
        rows = np.flatnonzero(held_out)
        places = self._seen + np.arange(rows.size)
        self._seen += rows.size
        chosen = places % self._every == 0
        if chosen.any():
            # In place of the number of the row, its place among held-out rows.
            self._blocks.append(replace(bare_rows(block, rows[chosen]), numbers=places[chosen]))
        while len(self) > MAX_ROWS or (len(self) > 1 and sum(one.indices.size for one in self._blocks) > MAX_ENTRIES):
            self._every *= 2
            whole = concatenate(self._blocks)
            assert whole.numbers is not None
            self._blocks = [take_rows(whole, np.flatnonzero(whole.numbers % self._every == 0))]

    def end(self, pass_number: int, last: bool) -> None:
        """Forget the rows, if the next pass has them too."""
        if not last:
            self._blocks, self._every, self._seen = [], 1, 0

    def report(self, model: Learner, metrics: StreamMetrics) -> Report | None:
        """Return the metrics of a model on the rows; None without rows."""
        if not self._blocks:
            return None
        rows = concatenate(self._blocks)
        margins = model.margins(CoalescedRows(*rows.rows))
        metrics.add(margins if model.classes is not None else margins[:, 0], rows.labels, rows.importance)
        return metrics.report()

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the state as arrays."""
        return [self._every, self._seen], packed_rows(concatenate(self._blocks))

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        self._every, self._seen = known
        rows = unpacked_rows(arrays)
        self._blocks = [rows] if len(rows) else []
