"""A uniform sample of the rows that a certified model learns from, with the margins of its certified lanes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.polish import SampledRows
from forel.training.row_sample import hashes_of
from forel.training.run import Step

__all__ = ["Reservoir"]

ROWS = 3000
Part = tuple[NDArray[Any], ...]


class Reservoir:
    """The rows whose numbers have the smallest hashes, whatever the blocks.

    Rows are kept in parts: hashes, widths, labels, importances and margins of rows, slots and values of their entries.
    """

    def __init__(self) -> None:
        self.most, self._seen, self._parts, self._kept = ROWS, 0, list[Part](), 0
        self._largest = np.uint64(2**64 - 1)

    def add(self, step: Step, margins: NDArray[Any]) -> None:
        """Add the rows of a block that are learned from, with the margins of all rows of the block."""
        block = step.block
        numbers = np.arange(self._seen, self._seen + len(block)) if block.numbers is None else block.numbers
        self._seen += len(block)
        hashes = hashes_of(numbers)
        some = (hashes <= self._largest) & (block.importance > 0)
        if block.held_out is not None:
            some &= ~block.held_out
        chosen = np.flatnonzero(some)
        if not chosen.size:
            return
        widths = np.diff(block.indptr)[chosen]
        entries = _entries(block.indptr[chosen], widths)
        columns = block.labels, block.importance, margins
        rows = (np.array(column[chosen], np.float64) for column in columns)
        self._parts.append((hashes[chosen], widths, *rows, block.indices[entries], block.values[entries]))
        self._kept += chosen.size
        if self._kept > 2 * self.most:
            self._compact()

    def _compact(self) -> None:
        """Keep only the rows with the smallest hashes, in their order."""
        if not self._parts:
            return
        hashes, widths, *rows, slots, values = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        order = np.sort(np.argsort(hashes, kind="stable")[: self.most])
        starts = np.cumsum(np.append(0, widths))[order]
        entries = _entries(starts, widths[order])
        kept = hashes[order], widths[order], *(each[order] for each in rows), slots[entries], values[entries]
        self._parts, self._kept = [kept], order.size
        if order.size == self.most:
            self._largest = kept[0].max()

    def rows(self, learned: int) -> SampledRows | None:
        """Return the sample of so many rows of positive importance; None without rows."""
        self._compact()
        if not self._parts:
            return None
        _, widths, labels, importance, margins, slots, values = self._parts[0]
        indptr = np.append(0, np.cumsum(widths))
        every = labels.size == learned
        return SampledRows(
            indptr, slots.astype(np.int64), values.astype(np.float64), labels, importance, margins, every
        )

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays of float64, which hold a hash in two halves."""
        self._compact()
        if not self._parts:
            return {"seen": np.array([self._seen], np.float64)}
        hashes, widths, labels, importance, margins, slots, values = self._parts[0]
        halves = np.stack([hashes >> np.uint64(32), hashes & np.uint64(2**32 - 1)]).astype(np.float64)
        names = "widths", "labels", "importance", "margins", "slots", "values"
        arrays = dict(zip(names, (widths, labels, importance, margins, slots, values), strict=True))
        seen = np.array([self._seen, margins.shape[1]])
        return {"seen": seen, "hashes": halves, **arrays}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the result of :meth:`pack`."""
        self._seen, self._parts, self._kept = int(arrays["seen"].ravel()[0]), [], 0
        if "hashes" in arrays:
            high, low = arrays["hashes"].reshape(2, -1).astype(np.uint64)
            margins = arrays["margins"].reshape(high.size, -1)
            self._parts = [(
                (high << np.uint64(32)) | low, arrays["widths"].astype(np.int64), arrays["labels"].ravel(),
                arrays["importance"].ravel(), margins, arrays["slots"].astype(np.int32),
                arrays["values"].astype(np.float32),
            )]  # fmt: skip
            self._kept = high.size
            self._compact()


def _entries(starts: NDArray[Any], widths: NDArray[Any]) -> NDArray[np.int64]:
    """Return the places of the entries of rows that start at some places."""
    ends = np.cumsum(widths)
    return np.asarray(np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - (ends - widths), widths))
