"""Blocks of examples: sparse rows with labels and importances; and tasks, which return them on any thread."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.problems import Problems

__all__ = [
    "BEGINNING", "MOST_BITS", "Block", "Position", "Task", "completed_task", "completed_tasks", "concatenate",
    "take_rows",
]  # fmt: skip

MOST_BITS = 31  # slots are int32


class Position(NamedTuple):
    """A position between two blocks; positions are ordered.

    Parameters
    ----------
    file : number of files before it
    blocks : number of blocks of the next file before it; 0 in line formats, where ``bytes`` locates it
    bytes, line : uncompressed bytes of a line format before it, and the number of the next line

    >>> Position(0, 0, 90, 3) < Position(1)
    True
    """

    file: int = 0
    blocks: int = 0
    bytes: int = 0
    line: int = 1


BEGINNING = Position()
OF_ROWS = ("labels", "importance", "tags", "lines", "slices", "numbers", "held_out")
OF_ENTRIES = ("entry_names", "columns")


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive examples: row r has the slots ``indices[indptr[r]:indptr[r + 1]]``, each once, in any order.

    Parameters
    ----------
    indptr : offsets of rows
    indices, values : slots below 2**bits, int32, and their values, all finite
    labels : NaN where one is missing
    importance : example weights; 1 where one is missing
    tags : one for each row, with the option ``tags``
    file, line : where the block begins; lines are records in formats without lines
    size : number of bytes of text that were read, 0 if unknown
    after : position after the block, to continue from
    lines : line of each row, if known
    label_words : words that labels are indices of, before a reader numbers classes
    entry_names : namespace and name of each entry, with the option ``entry_names``; equal slots of a row are then not
        summed
    slices : values of the columns in the option ``slices``, a row for each column; empty where one is missing
    numbers : the number of each row in its source, from 0, in whatever order rows come; None where it is not counted
    held_out : which rows are not learned from, once that is decided; None for none
    columns : the column of each entry, by the slot of its name, with the option ``columns``: that of a number is its
        slot, and -1 stands for text, the constant and others without a column

    >>> block = Block(np.array([0, 2, 3]), np.int32([4, 1, 4]), np.float32([1, 2, 3]), np.float32([1, 0]))
    >>> len(block), block.importance.tolist()
    (2, [1.0, 1.0])
    >>> block.matrix(5).toarray()[1]
    array([0., 0., 0., 0., 3.], dtype=float32)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[np.float32]
    labels: NDArray[np.float64]
    importance: NDArray[np.float32] = None  # type: ignore[assignment]
    tags: tuple[bytes, ...] | None = None
    file: str = ""
    line: int = 1
    size: int = 0
    after: Position | None = None
    lines: NDArray[np.int64] | None = None
    entry_names: tuple[tuple[bytes, bytes], ...] | None = None
    label_words: tuple[str, ...] | None = None
    slices: NDArray[np.object_] | None = None
    numbers: NDArray[np.int64] | None = None
    held_out: NDArray[np.bool_] | None = None
    columns: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        if self.importance is None:
            object.__setattr__(self, "importance", np.ones(self.labels.size, np.float32))

    def __len__(self) -> int:
        return self.labels.size

    @property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32]]:
        """The arrays ``indptr``, ``indices`` and ``values``."""
        return self.indptr, self.indices, self.values

    def matrix(self, features: int) -> Any:
        """Return the rows as a scipy sparse array with ``features`` columns."""
        from scipy import sparse

        return sparse.csr_array((self.values, self.indices, self.indptr), shape=(len(self), features))


def concatenate(blocks: Iterable[Block]) -> Block:
    """Concatenate blocks.

    >>> one = Block(np.array([0, 1]), np.int32([4]), np.float32([1]), np.float32([1]))
    >>> concatenate([one, one]).indptr
    array([0, 1, 2])
    """
    all_blocks = list(blocks)
    if not all_blocks:
        return Block(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0))
    sizes = np.cumsum([0] + [b.indices.size for b in all_blocks])
    offsets = [all_blocks[0].indptr[:1]]
    offsets += [b.indptr[1:] + size for b, size in zip(all_blocks, sizes, strict=False)]

    def joined(name: str) -> Any:
        parts = [getattr(b, name) for b in all_blocks]
        if any(part is None for part in parts):
            return None
        return tuple(chain.from_iterable(parts)) if isinstance(parts[0], tuple) else np.concatenate(parts, axis=-1)

    return replace(
        all_blocks[0], indptr=np.concatenate(offsets), size=sum(b.size for b in all_blocks), after=all_blocks[-1].after,
        label_words=None, **{name: joined(name) for name in ("indices", "values", *OF_ROWS, *OF_ENTRIES)},
    )  # fmt: skip


def take_rows(block: Block, order: NDArray[Any]) -> Block:
    """Return some rows of a block, in any order.

    >>> block = Block(np.array([0, 1, 3]), np.int32([4, 5, 6]), np.float32([1, 2, 3]), np.float32([0, 1]))
    >>> taken = take_rows(block, np.array([1, 0]))
    >>> taken.indices.tolist(), taken.labels.tolist()
    ([5, 6, 4], [1.0, 0.0])
    """
    sizes = np.diff(block.indptr)[order]
    indptr = np.append(0, np.cumsum(sizes))
    entries = np.repeat(block.indptr[:-1][order] - indptr[:-1], sizes) + np.arange(indptr[-1])

    def chosen(name: str, places: NDArray[Any]) -> Any:
        given = getattr(block, name)
        if isinstance(given, tuple):
            return tuple(given[k] for k in places.tolist())
        return None if given is None else given[..., places]

    by_row = {name: chosen(name, order) for name in OF_ROWS}
    by_entry = {name: chosen(name, entries) for name in ("indices", "values", *OF_ENTRIES)}
    return replace(block, indptr=indptr, **by_row, **by_entry)


Task = Callable[[], tuple[Block | None, Problems]]


def completed_task(block: Block | None, problems: Problems) -> Task:
    """Return a task that returns an existing block, and the problems recorded until then."""
    taken = Problems(problems.on_error)
    taken.absorb(problems)
    return partial(_pair, block, taken)


def completed_tasks(blocks: Iterable[Block], problems: Problems, start: Position) -> Iterator[Task]:
    """Yield a task for each block, with the problems recorded since the previous one.

    Blocks before ``start`` are read and dropped, with their problems.
    """
    tasks = (
        completed_task(replace(block, after=Position(start.file, number)), problems)
        for number, block in enumerate(blocks, 1)
    )
    yield from islice(tasks, start.blocks, None)
    yield completed_task(None, problems)


def _pair(block: Block | None, problems: Problems) -> tuple[Block | None, Problems]:
    return block, problems
