"""Held-out rows that are kept, so that the final model can be measured on them.

A row that is held out in the middle of a stream is predicted by the model of that moment, which has just learned from
its neighbours. Where labels follow one another, this is much better than what the final model does.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, concatenate
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.training.metrics import Report, StreamMetrics
from forel.training.shuffle import take_rows

__all__ = ["HeldOutRows"]

MAX_ROWS, MAX_ENTRIES = 5000, 1 << 20
ARRAYS = "indptr", "indices", "values", "labels", "importance", "numbers"


class HeldOutRows:
    """Held-out rows of a pass: all of them, or every second, fourth, ... one, so that they fit into memory.

    >>> rows = HeldOutRows()
    >>> block = Block(np.arange(5), np.arange(4), np.ones(4, np.float32), np.ones(4, np.float32), numbers=np.arange(4))
    >>> rows.add(block, np.array([True, False, True, True]))
    >>> len(rows)
    3
    """

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._every, self._seen = 1, 0  # every n-th held-out row is kept; their number so far

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def add(self, block: Block, held_out: NDArray[np.bool_]) -> None:
        """Keep the held-out rows of a block."""
        rows = np.flatnonzero(held_out)
        places = self._seen + np.arange(rows.size)
        self._seen += rows.size
        chosen = places % self._every == 0
        if chosen.any():
            # In place of the number of the row, its place among held-out rows.
            kept = take_rows(block, rows[chosen])
            self._blocks.append(Block(*kept.rows, kept.labels, kept.importance, numbers=places[chosen]))
        while len(self) > MAX_ROWS or (len(self) > 1 and sum(one.indices.size for one in self._blocks) > MAX_ENTRIES):
            self._every *= 2
            whole = concatenate(self._blocks)
            assert whole.numbers is not None
            self._blocks = [take_rows(whole, np.flatnonzero(whole.numbers % self._every == 0))]

    def next_pass(self) -> None:
        """Forget the rows, because the next pass has them too."""
        self._blocks, self._every, self._seen = [], 1, 0

    def report(self, model: Learner, metrics: StreamMetrics) -> Report | None:
        """Return the metrics of a model on the rows; None without rows."""
        if not self._blocks:
            return None
        rows = concatenate(self._blocks)
        margins = model.margins(CoalescedRows(*rows.rows))
        metrics.add(margins if model.classes is not None else margins[:, 0], rows.labels, rows.importance)
        return metrics.report()

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays."""
        whole = concatenate(self._blocks)
        numbers = np.zeros(0) if whole.numbers is None else whole.numbers
        arrays = {name: getattr(whole, name) for name in ARRAYS} | {"numbers": numbers}
        return {**arrays, "state": np.array([self._every, self._seen], np.float64)}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that :meth:`pack` returned."""
        self._every, self._seen = (int(value) for value in arrays["state"])
        kinds: tuple[Any, ...] = np.int64, np.int32, np.float32, np.float64, np.float32, np.int64
        parts: dict[str, Any] = {name: arrays[name].astype(kind) for name, kind in zip(ARRAYS, kinds, strict=True)}
        self._blocks = [Block(**parts)] if parts["labels"].size else []
