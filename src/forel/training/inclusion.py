"""Rare features: a feature is learned from once it has occurred often enough.

Most features of a stream of events are rare, and each would take a record of the model (McMahan et al. 2013, "Ad click
prediction", section 3.1). Features are hashed to slots, so one byte for each slot counts occurrences exactly; a
counting Bloom filter, which is for unbounded names, would take more memory or make errors. Features that are not
included have weight 0, so predictions need no counts.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.data.compiled import scanner
from forel.store.header import damaged
from forel.training.run import Transform
from forel.validation import refuse, whole

__all__ = ["Inclusion", "min_count_of"]

MOST = 255  # occurrences that a byte counts


class Inclusion(Transform):
    """Leaves features out of rows until the ``min_count``-th row that has them, which is learned from.

    Parameters
    ----------
    min_count : the number of rows
    slots : number of slots
    extra, arrays : stored content of the model that training continues from

    >>> inclusion = Inclusion(2, 8)
    >>> block = Block(np.array([0, 2, 3, 5]), np.int32([4, 1, 4, 1, 5]), np.float32([1, 2, 3, 4, 5]), np.zeros(3, "f4"))
    >>> inclusion(block).indices
    array([4, 1], dtype=int32)
    """

    name = "inclusion"

    def __init__(
        self,
        min_count: int,
        slots: int,
        extra: Mapping[str, Any] | None = None,
        arrays: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> None:
        if not 1 <= whole("min_count", min_count, low=1) <= MOST:
            raise refuse("min_count", min_count, f"1 to {MOST}")
        self.min_count, self.table, self._counts = min_count, np.zeros(slots, np.uint8), True
        if extra is not None:
            known = min_count_of(extra)
            if known != min_count:
                raise refuse("min_count", min_count, f"{known}: training continues with the model's rule")
            counts = {name.removeprefix("inclusion."): array for name, array in (arrays or {}).items()}
            self.unpack(None, counts)

    def begin(self, pass_number: int) -> None:
        """Count the rows of the first pass only."""
        self._counts = pass_number == 1

    def __call__(self, block: Block) -> Block:
        """Return a block with the features that are included."""
        counted = (block.importance > 0) & self._counts
        if block.held_out is not None:
            counted &= ~block.held_out
        indptr = np.zeros(len(block) + 1, np.int64)
        indices, values = np.empty_like(block.indices), np.empty_like(block.values)
        limit = np.uint8(self.min_count)
        end = scanner("inclusion", "include")(*block.rows, counted, limit, self.table, indptr, indices, values)
        return replace(block, indptr=indptr, indices=indices[:end], values=values[:end])

    @property
    def included(self) -> int:
        """The number of slots that are included."""
        return int(np.count_nonzero(self.table >= self.min_count))

    def extra(self) -> dict[str, Any]:
        """Return the rule."""
        return {"inclusion": {"min_count": self.min_count}}

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the counts as an array of a model file."""
        return {f"{self.name}.{name}": array for name, array in self.pack()[1].items()}

    def pack(self) -> tuple[Any, dict[str, NDArray[np.float64]]]:
        """Return the counts as an array: a slot and its count in one number."""
        slots = np.flatnonzero(self.table)
        return None, {"counts": (slots * 256 + self.table[slots]).astype(np.float64)}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Replace the counts by those that :meth:`pack` returned."""
        packed = arrays.get("counts", np.array([-1.0])).astype(np.int64)
        if packed.min(initial=0) < 0 or packed.max(initial=0) >> 8 >= self.table.size:
            raise damaged("the counts of rare features are missing or out of range")
        self.table[:] = 0
        self.table[packed >> 8] = packed & 255


def min_count_of(extra: Mapping[str, Any]) -> int | None:
    """Return the rule in the stored content of a model; None without one."""
    rule = extra.get("inclusion")
    return rule.get("min_count") if isinstance(rule, dict) else None
