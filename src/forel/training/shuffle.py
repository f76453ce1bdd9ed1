"""Rows in random order.

A temporary file holds the rows in groups, which are mixed in pools, in bounded memory. Each pass reads the groups in
another random order, a pool of them at a time, and shuffles the rows of the pool. Groups have a fixed number of rows,
so that the order depends only on the seed, the pass and the rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from forel.data import Block, Position, concatenate
from forel.data.block import take_rows
from forel.data.sources.row_cache import RowCache

__all__ = ["ShuffledRows"]

GROUP = 1 << 13  # rows in random order that stay together in the file
POOL = 16  # groups whose rows are mixed


class ShuffledRows:
    """The rows of blocks in a temporary file, to be read in random orders.

    Parameters
    ----------
    blocks : read to their end at once, with all rows in their order
    seed : of the orders

    >>> ones = np.ones(100, np.float32)
    >>> block = Block(np.arange(101), np.arange(100, dtype=np.int32), ones, ones)
    >>> rows = ShuffledRows([block], seed=1)
    >>> once, again = (next(rows.blocks(1)).indices for _ in range(2))
    >>> bool((once == again).all()), sorted(once.tolist()) == list(range(100)), once.tolist() == list(range(100))
    (True, True, False)
    """

    def __init__(self, blocks: Iterable[Block], seed: int = 0) -> None:
        self._seed, rows = seed, [0]
        self._cache = RowCache()
        for group in _groups(blocks):
            self._cache.add(group)
            rows.append(len(group))
        self._starts = np.cumsum(rows)

    def blocks(self, pass_number: int, first: int = 0) -> Iterator[Block]:
        """Yield the rows in the order of a pass, with their numbers, from the block number ``first`` on."""
        order = np.random.default_rng([self._seed, pass_number]).permutation(len(self._cache)).tolist()
        for number in range(first, -(-len(order) // POOL)):
            groups = [self._group(k) for k in order[number * POOL : (number + 1) * POOL]]
            pool = concatenate(groups)
            rows = take_rows(pool, np.random.default_rng([self._seed, pass_number, number]).permutation(len(pool)))
            if len({group.file for group in groups}) > 1 or rows.lines is None:
                rows = replace(rows, file="shuffled rows", lines=None)
            yield replace(rows, after=Position(0, blocks=number + 1), size=0)

    def _group(self, number: int) -> Block:
        return replace(self._cache.block(number), numbers=np.arange(*self._starts[number : number + 2]))


def _groups(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the same rows in blocks of ``GROUP`` rows, except for the last of each file."""
    pending, size = list[Block](), 0
    for block in blocks:
        if pending and pending[0].file != block.file:
            yield concatenate(pending)
            pending, size = [], 0
        pending.append(block)
        size += len(block)
        while size >= GROUP:
            whole = concatenate(pending)
            yield take_rows(whole, np.arange(GROUP))
            rest = take_rows(whole, np.arange(GROUP, size))
            pending, size = ([rest], len(rest)) if len(rest) else ([], 0)
    if pending:
        yield concatenate(pending)
