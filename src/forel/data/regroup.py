"""Blocks of other sizes: the same rows, in blocks of a given number of rows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from forel.data.block import Block, concatenate
from forel.data.position import BEGINNING, Position

__all__ = ["regroup", "slice_rows"]


def slice_rows(block: Block, start: int, stop: int) -> Block:
    """Return some rows of a block; its bytes count with its last row.

    >>> import numpy as np
    >>> block = Block(np.array([0, 2, 3]), np.int32([4, 1, 4]), np.float32([1, 2, 3]), np.float32([1, 0]))
    >>> slice_rows(block, 1, 2).indices
    array([4], dtype=int32)
    """
    if start == 0 and stop == len(block):
        return block
    first, last = block.indptr[start], block.indptr[stop]
    return replace(
        block,
        indptr=block.indptr[start : stop + 1] - first,
        indices=block.indices[first:last],
        values=block.values[first:last],
        labels=block.labels[start:stop],
        importance=block.importance[start:stop],
        tags=None if block.tags is None else block.tags[start:stop],
        line=block.line if block.lines is None else int(block.lines[start]),
        size=block.size if stop == len(block) else 0,
        after=block.after if stop == len(block) else None,
        lines=None if block.lines is None else block.lines[start:stop],
        entry_names=None if block.entry_names is None else block.entry_names[first:last],
        slices=None if block.slices is None else block.slices[:, start:stop],
    )


def regroup(blocks: Iterable[Block], rows: Callable[[], int], start: Position | None = BEGINNING) -> Iterator[Block]:
    """Yield the rows of blocks in blocks of ``rows()`` rows each; the last one may have fewer.

    Parameters
    ----------
    blocks : the blocks after ``start``; the first ``start.rows`` rows of the first one are left out
    rows : returns the number of rows of the next block
    start : the position of the first row

    >>> import numpy as np
    >>> one = Block(np.array([0, 1, 2]), np.int32([4, 5]), np.float32([1, 1]), np.float32([1, 0]))
    >>> [block.indices.tolist() for block in regroup([one] * 2, lambda: 3)]
    [[4, 5, 4], [5]]
    """
    used = 0 if start is None else start.rows  # rows of the first pending block that are consumed
    position = None if start is None else start._replace(rows=0)  # of that block
    pending, count, coming = deque[Block](), -used, iter(blocks)
    while True:
        wanted = rows()
        while count < wanted and (block := next(coming, None)) is not None:
            pending.append(block)
            count += len(block)
        if count <= 0:
            return
        parts, left = [], min(wanted, count)
        count -= left
        while left:
            stop = min(len(pending[0]), used + left)
            parts.append(slice_rows(pending[0], used, stop))
            left -= stop - used
            used = stop
            if used == len(pending[0]):
                position, used = pending.popleft().after, 0
        after = None if position is None else position._replace(rows=used)
        yield replace(concatenate(parts), after=after)
