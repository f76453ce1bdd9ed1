"""Blocks from hashed entries: values of the same slot in a row are summed, and rows with infinite sums are left out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block, take_rows
from forel.data.buffers import Buffers
from forel.data.compiled import scanner
from forel.data.problems import Malformed, Problems

__all__ = ["Cells", "block_from_cells", "block_from_entries", "drop_rows", "merged_columns"]


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


def block_from_entries(
    indptr: NDArray[np.int64],
    indices: NDArray[Any],
    values: NDArray[np.float32],
    labels: NDArray[np.float64],
    importance: NDArray[np.float32],
    lines: NDArray[np.int64],
    problems: Problems,
    file: str,
    columns: NDArray[np.int32] | None = None,
) -> Block:
    """Return the block of some rows, which owns the arrays; ``lines`` has the line of each row."""
    given = None if columns is None else (indptr.copy(), indices.copy(), columns)
    bad = scanner("merge", "merge_rows")(indptr, indices, values)
    return _finite(bad, indptr, indices, values, labels, importance, lines, problems, file, given)


def block_from_cells(
    cells: Cells,
    good: NDArray[np.bool_],
    labels: NDArray[np.float64],
    importance: NDArray[np.float32],
    lines: NDArray[np.int64],
    problems: Problems,
    file: str,
    columns: NDArray[np.int32] | None = None,
) -> Block:
    """Return the block of the good rows of a table; labels, importance and lines have all rows."""
    size = int(np.count_nonzero(cells.present))
    indptr = np.zeros(int(np.count_nonzero(good)) + 1, np.int64)
    indices, values = (cells.buffers.empty(size, kind) for kind in (cells.slots.dtype, np.float32))
    bad = scanner("merge", "pack_rows")(cells.slots, cells.values, cells.present, good, indptr, indices, values)
    given = None
    if columns is not None:
        there = cells.present & good[:, None]
        before = np.append(0, np.cumsum(there[good].sum(axis=1)))
        given = before, cells.slots[there], np.broadcast_to(columns, there.shape)[there]
    if not good.all():
        labels, importance, lines = labels[good], importance[good], lines[good]
    return _finite(bad, indptr, indices, values, labels, importance, lines, problems, file, given)


def _finite(
    bad: int, indptr: NDArray[np.int64], indices: NDArray[Any], values: NDArray[np.float32],
    labels: NDArray[np.float64], importance: NDArray[np.float32], lines: NDArray[np.int64], problems: Problems,
    file: str, given: tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int32]] | None,
) -> Block:  # fmt: skip
    end = int(indptr[-1])
    line = int(lines[0]) if lines.size else 1
    columns = None if given is None else merged_columns(*given, end)
    block = Block(
        indptr, indices[:end], values[:end], labels, importance, None, file, line, lines=lines, columns=columns
    )
    if bad < 0:
        return block
    row_of = np.repeat(np.arange(len(block)), np.diff(indptr))
    rows = np.unique(row_of[~np.isfinite(block.values)])
    for row in rows:
        problems.record(
            Malformed(file, int(lines[row]), None, "values of one slot that are too large together", "a finite sum")
        )
    return drop_rows(block, rows)


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
