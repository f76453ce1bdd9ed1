"""Rows in random order, in bounded memory: a temporary file holds parsed rows in groups, which are mixed in pools.

Each pass reads the groups in another random order, a pool of them at a time, and shuffles the rows of the pool. Groups
have a fixed number of rows, so that the order depends only on the seed, the pass and the rows.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, Position, concatenate
from forel.training.row_cache import temporary_folder

__all__ = ["ShuffledRows", "take_rows"]

GROUP = 1 << 13  # rows that stay together in the file
POOL = 16  # groups whose rows are mixed
PARTS = {  # of a block, with their dtypes; None for those that blocks have
    "indptr": np.int64, "indices": None, "values": np.float32, "labels": None, "importance": np.float32,
    "lines": np.int64, "numbers": np.int64,
}  # fmt: skip


def take_rows(block: Block, order: NDArray[Any]) -> Block:
    """Return some rows of a block, in another order.

    >>> block = Block(np.array([0, 1, 3]), np.int32([4, 5, 6]), np.float32([1, 2, 3]), np.float32([0, 1]))
    >>> taken = take_rows(block, np.array([1, 0]))
    >>> taken.indices.tolist(), taken.labels.tolist()
    ([5, 6, 4], [1.0, 0.0])
    """
    sizes = np.diff(block.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    entries = np.repeat(block.indptr[:-1][order] - indptr[:-1], sizes) + np.arange(indptr[-1])
    lines = None if block.lines is None else block.lines[order]
    numbers = None if block.numbers is None else block.numbers[order]
    return replace(
        block, indptr=indptr, indices=block.indices[entries], values=block.values[entries], labels=block.labels[order],
        importance=block.importance[order], tags=None, lines=lines, slices=None, numbers=numbers,
    )  # fmt: skip


class ShuffledRows:
    """The rows of blocks in a temporary file, to be read in random orders.

    Parameters
    ----------
    blocks : read to their end at once
    stack : removes the file at its exit
    seed : of the orders

    >>> ones = np.ones(100, np.float32)
    >>> block = Block(np.arange(101), np.arange(100, dtype=np.int32), ones, ones)
    >>> with ExitStack() as stack:
    ...     rows = ShuffledRows([block], stack, seed=1)
    ...     once, again = (next(rows.blocks(1)).indices for _ in range(2))
    >>> bool((once == again).all()), sorted(once.tolist()) == list(range(100)), once.tolist() == list(range(100))
    (True, True, False)
    """

    def __init__(self, blocks: Iterable[Block], stack: ExitStack, seed: int = 0) -> None:
        self._seed = seed
        file: Any = tempfile.TemporaryFile(prefix="forel-", dir=temporary_folder())  # noqa: SIM115
        self._file: Any = stack.enter_context(file)
        self._groups: list[tuple[int, int, int, str]] = []  # offset, rows, entries and source
        self._kinds: dict[str, Any] = {}  # dtypes where PARTS has none
        for group in _groups(blocks):
            self._groups.append((self._file.tell(), len(group), group.indices.size, group.file))
            self._kinds = {name: getattr(group, name).dtype for name, kind in PARTS.items() if kind is None}
            for name, kind in PARTS.items():
                kind = kind or self._kinds[name]
                column = np.zeros(len(group), kind) if getattr(group, name) is None else getattr(group, name)
                self._file.write(np.ascontiguousarray(column, kind).data)

    def blocks(self, pass_number: int, first: int = 0) -> Iterator[Block]:
        """Yield the rows in the order of a pass, from the block number ``first`` on."""
        order = np.random.default_rng([self._seed, pass_number]).permutation(len(self._groups)).tolist()
        for number, start in enumerate(range(0, len(order), POOL)):
            if number < first:
                continue
            pool = concatenate([self._read(k) for k in order[start : start + POOL]])
            sources = {self._groups[k][3] for k in order[start : start + POOL]}
            rows = take_rows(pool, np.random.default_rng([self._seed, pass_number, number]).permutation(len(pool)))
            after = Position(0, blocks=number + 1)
            if len(sources) > 1 or not np.any(rows.lines):
                rows = replace(rows, file="shuffled rows", lines=None)
            yield replace(rows, after=after, size=0)

    def _read(self, number: int) -> Block:
        offset, rows, entries, file = self._groups[number]
        sizes = {"indptr": rows + 1, "indices": entries, "values": entries}
        parts: dict[str, Any] = {}
        self._file.seek(offset)
        for name, kind in PARTS.items():
            count, dtype = sizes.get(name, rows), np.dtype(kind or self._kinds[name])
            parts[name] = np.frombuffer(self._file.read(count * dtype.itemsize), dtype)
        return Block(**parts, file=file)


def _groups(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the same rows in blocks of ``GROUP`` rows, except for the last of each file."""
    pending, size = list[Block](), 0
    for block in blocks:
        if pending and pending[0].file != block.file:
            yield concatenate(pending)
            pending, size = [], 0
        pending.append(replace(block, tags=None, entry_names=None, slices=None))
        size += len(block)
        while size >= GROUP:
            whole = concatenate(pending)
            yield take_rows(whole, np.arange(GROUP))
            rest = take_rows(whole, np.arange(GROUP, size))
            pending, size = ([rest], len(rest)) if len(rest) else ([], 0)
    if pending:
        yield concatenate(pending)
