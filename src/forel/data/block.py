"""Examples as compiled code takes them: a block of sparse rows with labels and importances."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.position import Position

__all__ = ["Block", "concatenate"]


@dataclass(frozen=True, eq=False)
class Block:
    """Some examples in a row: row r has the features ``indices[indptr[r]:indptr[r + 1]]``, each once, in any order.

    Parameters
    ----------
    indptr : where rows begin and end
    indices, values : slots below 2**bits and their values, all finite
    labels : NaN where one is missing
    importance : 1 where none is given
    tags : one for each row, where they were asked for
    file, line : where the block begins; a line is a record in formats without lines
    size : how many bytes of text it was read from, 0 where that is not known
    after : where reading goes on after it
    lines : the line of each row, where these are known
    words : namespace and name of each entry, where they were asked for; then equal slots of a row are not summed

    >>> block = Block(np.array([0, 2, 3]), np.int32([4, 1, 4]), np.float32([1, 2, 3]), np.float32([1, 0]))
    >>> len(block), block.importance.tolist()
    (2, [1.0, 1.0])
    >>> block.matrix(5).toarray()[1]
    array([0., 0., 0., 0., 3.], dtype=float32)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    labels: NDArray[np.float32]
    importance: NDArray[np.float32] = None  # type: ignore[assignment]
    tags: tuple[bytes, ...] | None = None
    file: str = ""
    line: int = 1
    size: int = 0
    after: Position | None = None
    lines: NDArray[np.int64] | None = None
    words: tuple[tuple[bytes, bytes], ...] | None = None

    def __post_init__(self) -> None:
        if self.importance is None:
            object.__setattr__(self, "importance", np.ones(self.labels.size, np.float32))

    def __len__(self) -> int:
        return self.labels.size

    @property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """The three arrays of the rows, as the learner takes them."""
        return self.indptr, self.indices, self.values

    def matrix(self, features: int) -> Any:
        """Return the rows as a sparse array of scipy with so many columns."""
        from scipy import sparse

        return sparse.csr_array((self.values, self.indices, self.indptr), shape=(len(self), features))


def concatenate(blocks: Iterable[Block]) -> Block:
    """Return all blocks as one.

    >>> one = Block(np.array([0, 1]), np.int32([4]), np.float32([1]), np.float32([1]))
    >>> concatenate([one, one]).indptr
    array([0, 1, 2])
    """
    held = list(blocks)
    if not held:
        return Block(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32))
    sizes = np.cumsum([0] + [b.indices.size for b in held])
    parts = [held[0].indptr[:1]] + [b.indptr[1:] + size for b, size in zip(held, sizes, strict=False)]
    tags = None if any(b.tags is None for b in held) else tuple(t for b in held for t in b.tags or ())
    lines = [b.lines for b in held if b.lines is not None]
    return Block(
        np.concatenate(parts),
        np.concatenate([b.indices for b in held]),
        np.concatenate([b.values for b in held]),
        np.concatenate([b.labels for b in held]),
        np.concatenate([b.importance for b in held]),
        tags,
        held[0].file,
        held[0].line,
        sum(b.size for b in held),
        held[-1].after,
        lines=np.concatenate(lines) if len(lines) == len(held) else None,
        words=None if any(b.words is None for b in held) else tuple(w for b in held for w in b.words or ()),
    )
