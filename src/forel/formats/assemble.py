"""From hashed entries to a block: what meets in one slot of a row is summed, rows that cannot be are left out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.formats.block import Block
from forel.formats.problems import Malformed, Problems
from forel.formats.scanners import scanner

__all__ = ["assemble", "without"]


def assemble(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    labels: NDArray[np.float32],
    importance: NDArray[np.float32],
    lines: NDArray[np.int64],
    problems: Problems,
    file: str,
) -> Block:
    """Return the block of some rows, whose arrays become its own; ``lines`` says where each row is from."""
    bad = scanner("merge", "merge_rows")(indptr, indices, values)
    end = int(indptr[-1])
    line = int(lines[0]) if lines.size else 1
    block = Block(indptr, indices[:end], values[:end], labels, importance, None, file, line, lines=lines)
    if bad < 0:
        return block
    row_of = np.repeat(np.arange(len(block)), np.diff(indptr))
    rows = np.unique(row_of[~np.isfinite(block.values)])
    for row in rows:
        problems.meet(
            Malformed(file, int(lines[row]), None, "values of one slot that are too large together", "a finite sum")
        )
    return without(block, rows)


def without(block: Block, rows: NDArray[Any]) -> Block:
    """Return a block without some of its rows.

    >>> block = Block(np.array([0, 1, 3]), np.int32([4, 5, 6]), np.float32([1, 2, 3]), np.float32([0, 1]))
    >>> without(block, np.array([0])).indices
    array([5, 6], dtype=int32)
    """
    kept = np.ones(len(block), bool)
    kept[rows] = False
    sizes = np.diff(block.indptr)
    entries = np.repeat(kept, sizes)
    indptr = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
    tags = None if block.tags is None else tuple(tag for tag, good in zip(block.tags, kept, strict=True) if good)
    return Block(
        indptr, block.indices[entries], block.values[entries], block.labels[kept], block.importance[kept], tags,
        block.file, block.line, block.size, block.after,
        lines=None if block.lines is None else block.lines[kept],
        words=None if block.words is None else tuple(w for w, good in zip(block.words, entries, strict=True) if good),
    )  # fmt: skip
