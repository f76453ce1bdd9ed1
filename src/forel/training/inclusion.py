"""Rare features: a feature is learned from once it has occurred often enough, or from a random occurrence on.

Most features of a stream of events are rare, and each would take a record of the model (McMahan et al. 2013, "Ad click
prediction", section 3.1). Features are hashed to slots, so one byte for each slot counts occurrences exactly; a
counting Bloom filter, which is for unbounded names, would take more memory or make errors. Features that are not
included have weight 0, so predictions need no counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.data.scanners import scanner
from forel.learner.rows import CoalescedRows
from forel.store.header import damaged
from forel.validation import number, refuse, whole

__all__ = ["Inclusion", "InclusionRule"]

MOST = 255  # occurrences that a byte counts
ARRAY = "inclusion"  # of a model file


@dataclass(frozen=True)
class InclusionRule:
    """When a feature is included: at its ``min_count``-th row, or at each row with a probability, 1 by default.

    >>> InclusionRule(min_count=3, probability=0.1)
    Traceback (most recent call last):
    ValueError: include_probability: got 0.1, expected none with min_count (--min-count)
    """

    min_count: int | None = None
    probability: float | None = None

    def __post_init__(self) -> None:
        if self.min_count is not None:
            if not 1 <= whole("min_count", self.min_count, low=1) <= MOST:
                raise refuse("min_count", self.min_count, f"1 to {MOST}")
            if self.probability is not None:
                raise refuse("include_probability", self.probability, "none with min_count (--min-count)")
        elif self.probability is not None:
            number("include_probability", self.probability, "a number above 0 and at most 1", low=1e-9, high=1.0)

    @property
    def active(self) -> bool:
        """Whether some features may be left out."""
        return self.min_count is not None or self.probability is not None

    def check_model(self, certified: bool) -> None:
        """Raise for a model that cannot leave features out."""
        for name, value in self.to_json().items():
            if certified:
                raise refuse(name, value, "none with a certificate, which is about models of all features of the rows")

    def check_start(self, known: Mapping[str, Any]) -> "InclusionRule":
        """Return the rule of a model that training continues from; raise if this one is given and differs."""
        if self.active and self.to_json() != known:
            name, value = next(iter(self.to_json().items()))
            raise refuse(name, value, f"{known.get(name)}: training continues with the model's rule")
        return InclusionRule.of(known)

    def to_json(self) -> dict[str, Any]:
        """Return the rule as JSON values."""
        names = {"min_count": self.min_count, "include_probability": self.probability}
        return {name: value for name, value in names.items() if value is not None}

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> "InclusionRule":
        """Return the rule of JSON values."""
        return cls(known.get("min_count"), known.get("include_probability"))


class Inclusion:
    """Leaves features out of rows until they are included.

    Parameters
    ----------
    rule : when they are
    slots : number of slots
    seed : of random inclusion, which depends on it, on the slot and on the number of the row

    >>> inclusion = Inclusion(InclusionRule(min_count=2), 8)
    >>> block = Block(np.array([0, 2, 3, 5]), np.int32([4, 1, 4, 1, 5]), np.float32([1, 2, 3, 4, 5]), np.zeros(3, "f4"))
    >>> inclusion.apply(block, 0, None).indices
    array([4, 1], dtype=int32)
    """

    def __init__(self, rule: InclusionRule, slots: int, seed: int = 0) -> None:
        self.rule, self._seed = rule, np.uint64(seed * 0xD1B54A32D192ED03 % (1 << 64))
        self.table = np.zeros(slots, np.uint8)
        self._limit = np.uint8(rule.min_count or 1)
        self._threshold = np.uint64(0)
        if rule.probability is not None:
            self._threshold = np.uint64(min(max(round(rule.probability * 2**64), 1), 2**64 - 1))

    def apply(self, block: Block, before: int, held_out: NDArray[np.bool_] | None, first: bool = True) -> CoalescedRows:
        """Return the rows of a block with their included features.

        Parameters
        ----------
        block : the rows
        before : number of rows before them
        held_out : rows that do not count; None for none
        first : whether this is the first pass; rows of later passes do not count again
        """
        counted = np.full(len(block), first) if held_out is None else first & ~held_out
        indptr = np.zeros(len(block) + 1, np.int64)
        indices, values = np.empty_like(block.indices), np.empty_like(block.values)
        end = scanner("inclusion", "include")(
            *block.rows, counted, before, self._limit, self._threshold, self._seed, self.table, indptr, indices, values
        )
        return CoalescedRows(indptr, indices[:end], values[:end])

    @property
    def included(self) -> int:
        """The number of slots that are included."""
        return int(np.count_nonzero(self.table >= self._limit))

    def pack(self) -> dict[str, NDArray[np.float64]]:
        """Return the counts as an array of a model file: a slot and its count in one number."""
        slots = np.flatnonzero(self.table)
        return {ARRAY: (slots * 256 + self.table[slots]).astype(np.float64)}

    def unpack(self, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Replace the counts by those that :meth:`pack` returned."""
        packed = arrays.get(ARRAY, np.array([-1.0])).astype(np.int64)
        if packed.min(initial=0) < 0 or packed.max(initial=0) >> 8 >= self.table.size:
            raise damaged("the counts of rare features are missing or out of range")
        self.table[:] = 0
        self.table[packed >> 8] = packed & 255
