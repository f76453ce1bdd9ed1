"""Features as written: each with its name, and no sums over slots."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.crosses import Entries
from forel.data.features.hashing import slots_of_hashes
from forel.data.features.names import Names
from forel.data.problems import Malformed

__all__ = ["SeparateFeatures"]


@dataclass(frozen=True)
class SeparateFeatures:
    """The transform that keeps every feature, with its namespace and name.

    >>> from forel.data import read
    >>> (block,) = read([{"city": "Rome", "price": 3.0}], entry_names=True)
    >>> block.entry_names
    ((b'city', b'Rome'), (b'', b'price'))
    """

    def kind(self, name: bytes) -> int:
        """Return 0: namespaces are not distinguished."""
        return 0

    def check(self, features: Iterable[str]) -> None:
        """Accept every table."""

    def width(self, features: Iterable[str]) -> int:
        """Return the number of features of a full row."""
        return len(list(features))

    def kinds_of(self, text: NDArray[np.uint8], records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the kind 0 for each feature."""
        return np.zeros(len(records), np.int64)

    def apply(self, entries: Entries, block: Block, bits: int, names: Names | None) -> tuple[Block, list[Malformed]]:
        """Return a block with its entries and their names."""
        slots = slots_of_hashes(entries.hashes, bits)
        pairs = tuple(entries.word(k) for k in range(slots.size))
        return replace(block, indptr=entries.indptr, indices=slots, values=entries.values, entry_names=pairs), []
