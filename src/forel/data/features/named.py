"""Features as they were written: each with its name, none of them summed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.crosses import Entries
from forel.data.features.names import Names
from forel.data.problems import Malformed

__all__ = ["Apart"]


@dataclass(frozen=True)
class Apart:
    """The step that crosses nothing, and keeps the namespace and the name of every feature instead.

    >>> from forel.data import read
    >>> (block,) = read([{"city": "Rome", "price": 3.0}], words=True)
    >>> block.words
    ((b'city', b'Rome'), (b'', b'price'))
    """

    def kind(self, name: bytes) -> int:
        """Return 0: all names are alike here."""
        return 0

    def check(self, features: Iterable[str]) -> None:
        """Refuse nothing."""

    def width(self, features: Iterable[str]) -> int:
        """Return how many features a row has that has one of each."""
        return len(list(features))

    def kinds_of(self, text: NDArray[np.uint8], records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the kinds of features, which are all alike."""
        return np.zeros(len(records), np.int64)

    def cross(self, entries: Entries, block: Block, bits: int, names: Names | None) -> tuple[Block, list[Malformed]]:
        """Return a block with its entries and their words."""
        slots = (entries.hashes & np.uint64((1 << bits) - 1)).astype(np.int32)
        words = tuple(entries.word(k) for k in range(slots.size))
        return replace(block, indptr=entries.indptr, indices=slots, values=entries.values, words=words), []
