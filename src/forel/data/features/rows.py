"""Blocks from hashed entries, of which those of a slot in a row are summed; and the feature ``Constant``."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block, take_rows
from forel.data.buffers import Buffers
from forel.data.compiled import scanner
from forel.data.features.hashing import hash_name
from forel.data.features.names import Names
from forel.data.problems import Malformed, Problems

__all__ = [
    "CONSTANT", "Cells", "Examples", "add_constant", "block_from_cells", "block_from_entries", "drop_rows",
    "merged_columns", "record_constant",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Cells:
    """A dense table of rows and features: the slot and value of each, and whether it is present."""

    slots: NDArray[Any]
    values: NDArray[np.float32]
    present: NDArray[np.bool_]
    buffers: Buffers

    @classmethod
    def empty(cls, rows: int, features: int, bits: int, buffers: Buffers) -> "Cells":
        """Return an uninitialized table, except that values are 1."""
        slots, values, present = (buffers.empty((rows, features), kind) for kind in (np.int32, np.float32, bool))
        values.fill(1)
        return cls(slots, values, present, buffers)


class Examples(NamedTuple):
    """What rows have beside features: labels, importances and lines, and where problems of them are recorded.

    ``words`` are what labels are indices of, if these are classes.
    """

    labels: NDArray[np.float64]
    importance: NDArray[np.float32]
    lines: NDArray[np.int64]
    problems: Problems
    file: str
    words: tuple[str, ...] | None = None

    def chosen(self, rows: NDArray[np.bool_]) -> "Examples":
        """Return some rows."""
        if rows.all():
            return self
        return self._replace(labels=self.labels[rows], importance=self.importance[rows], lines=self.lines[rows])

    def block(
        self, rows: tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32]],
        columns: NDArray[np.int32] | None = None,
    ) -> Block:  # fmt: skip
        """Return a block with offsets, slots and values of rows, and the columns of entries."""
        line = int(self.lines[0]) if self.lines.size else 1
        indptr, indices, values = rows
        return Block(
            indptr, indices, values, self.labels, self.importance, file=self.file, line=line, lines=self.lines,
            label_words=self.words, columns=columns,
        )  # fmt: skip


def block_from_entries(
    indptr: NDArray[np.int64], indices: NDArray[Any], values: NDArray[np.float32], examples: Examples,
    columns: NDArray[np.int32] | None = None,
) -> Block:  # fmt: skip
    """Return the block of some rows, which owns the arrays; ``columns`` has the column of each entry."""
    given = None if columns is None else (indptr.copy(), indices.copy(), columns)
    bad = scanner("merge", "merge_rows")(indptr, indices, values)
    return _finite(bad, (indptr, indices, values), examples, given)


def block_from_cells(
    cells: Cells, good: NDArray[np.bool_], examples: Examples, columns: NDArray[np.int32] | None = None
) -> Block:
    """Return the block of the good rows of a table; examples have all rows."""
    size = int(np.count_nonzero(cells.present))
    indptr = np.zeros(int(np.count_nonzero(good)) + 1, np.int64)
    indices, values = (cells.buffers.empty(size, kind) for kind in (cells.slots.dtype, np.float32))
    bad = scanner("merge", "pack_rows")(cells.slots, cells.values, cells.present, good, indptr, indices, values)
    given = None
    if columns is not None:
        there = cells.present & good[:, None]
        before = np.append(0, np.cumsum(there[good].sum(axis=1)))
        given = before, cells.slots[there], np.broadcast_to(columns, there.shape)[there]
    return _finite(bad, (indptr, indices, values), examples.chosen(good), given)


def _finite(
    bad: int, rows: tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32]], examples: Examples,
    given: tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int32]] | None,
) -> Block:  # fmt: skip
    indptr, indices, values = rows
    end = int(indptr[-1])
    columns = None if given is None else merged_columns(*given, end)
    block = examples.block((indptr, indices[:end], values[:end]), columns=columns)
    if bad < 0:
        return block
    row_of = np.repeat(np.arange(len(block)), np.diff(indptr))
    infinite = np.unique(row_of[~np.isfinite(block.values)])
    for line in examples.lines[infinite].tolist():
        got = "values of one slot that are too large together"
        examples.problems.record(Malformed(examples.file, line, None, got, "a finite sum"))
    return drop_rows(block, infinite)


def merged_columns(
    indptr: NDArray[np.int64], slots: NDArray[Any], columns: NDArray[np.int32], size: int
) -> NDArray[np.int32]:
    """Return the columns of the ``size`` entries that are left after merging: the first of each slot in a row."""
    if columns.size == size:
        return columns
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    _, first = np.unique(rows << 32 | slots, return_index=True)
    return columns[np.sort(first)]


def drop_rows(block: Block, rows: NDArray[Any]) -> Block:
    """Return a block without some rows.

    >>> block = Block(np.array([0, 1, 3]), np.int32([4, 5, 6]), np.float32([1, 2, 3]), np.float32([0, 1]))
    >>> drop_rows(block, np.array([0])).indices
    array([5, 6], dtype=int32)
    """
    return take_rows(block, np.delete(np.arange(len(block)), rows))


CONSTANT = b"Constant"


def record_constant(names: Names) -> None:
    """Record the name of the constant, before all others."""
    hashed = hash_name(CONSTANT)
    slot = hashed & ((1 << names.bits) - 1)
    names.add(np.array([slot]), np.array([hashed], np.uint64), lambda k: CONSTANT)


def add_constant(block: Block, bits: int) -> Block:
    """Return a block with the feature ``Constant`` of value 1 at the end of each row.

    A learner's bias is not penalized; this feature is, like the constant of Vowpal Wabbit.

    >>> block = Block(np.array([0, 2, 3]), np.int32([4, 1, 4]), np.float32([1, 2, 3]), np.float32([1, 0]))
    >>> add_constant(block, 3).values
    array([1., 2., 1., 3., 1.], dtype=float32)
    """
    slot = hash_name(CONSTANT) & ((1 << bits) - 1)
    collisions = np.flatnonzero(block.indices == slot)
    values = block.values
    missing = np.ones(len(block), bool)
    if collisions.size:  # another name has the same slot, and rows have each slot once
        values = values.copy()
        values[collisions] += 1
        missing[np.searchsorted(block.indptr, collisions, side="right") - 1] = False
    ends = block.indptr[1:][missing]
    indptr = block.indptr + np.append(0, np.cumsum(missing))
    indices = np.insert(block.indices, ends, slot)
    values = np.insert(values, ends, np.float32(1))
    columns = None if block.columns is None else np.insert(block.columns, ends, np.int32(-1))
    return replace(block, indptr=indptr, indices=indices, values=values, columns=columns)
