"""Ranges of numeric columns over all rows, found by the slots of the columns' names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled import scanner
from forel.data.features.hashing import ALL, slot

__all__ = ["ColumnRanges", "Outside", "SlotTable"]

FACTOR = 0x9E3779B97F4A7C15  # as in compiled code
MOST = 1 << 12  # columns; with more numbers, keys are features rather than columns


@dataclass(frozen=True, eq=False)
class SlotTable:
    """A hash table from slots to columns, for compiled code."""

    slots: NDArray[Any]
    columns: NDArray[np.int32]
    shift: np.uint64

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[np.int32], np.uint64]:
        """The arguments of compiled functions."""
        return self.slots, self.columns, self.shift

    @classmethod
    def of(cls, names: Sequence[str], bits: int) -> "SlotTable":
        """Return the table of the slots of columns; of columns that share a slot, the first is used."""
        bit_length = max(
            10, (4 * len(names)).bit_length()
        )  # at least 1,024 entries, so that most other slots find an empty one
        size, shift = 1 << bit_length, 64 - bit_length
        table = cls(np.full(size, -1, np.int32), np.zeros(size, np.int32), np.uint64(shift))
        for column, name in enumerate(names):
            column_slot = slot(name.encode("utf-8", "surrogatepass"), bits=bits)
            place = (column_slot * FACTOR & ALL) >> shift
            while table.slots[place] not in (-1, column_slot):
                place = (place + 1) & (size - 1)
            if table.slots[place] < 0:
                table.slots[place], table.columns[place] = column_slot, column
        return table


class ColumnRanges:
    """The smallest and largest values of numeric columns, the number of values, and the sum of their absolute values.

    Parameters
    ----------
    bits : number of bits of slots

    >>> ranges = ColumnRanges(10)
    >>> age = slot("age", bits=10)
    >>> block = Block(np.array([0, 1, 2]), np.int32([age, age]), np.float32([31, 17]), np.float32([1, 0]))
    >>> ranges.add(block, ["age", "size"])
    >>> ranges.pack()
    {'age': [17.0, 31.0, 2, 48.0]}
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._names: list[str] = []
        self._low, self._high = np.zeros(0, np.float32), np.zeros(0, np.float32)
        self._counts, self._magnitudes = np.zeros(0, np.int64), np.zeros(0)
        self._table = SlotTable.of([], bits)

    def add(self, block: Block, names: Sequence[str]) -> None:
        """Add the rows of a block; ``names`` are the numeric columns known so far."""
        if len(names) > len(self._names):
            known = set(self._names)
            self._resize([*self._names, *(name for name in names if name not in known)][:MOST])
        if self._names:
            scanner("merge", "add_ranges")(
                block.indices, block.values, *self._table.parts, self._low, self._high, self._counts, self._magnitudes
            )

    def _resize(self, names: list[str]) -> None:
        more = len(names) - len(self._names)
        self._low = np.append(self._low, np.full(more, np.inf, np.float32))
        self._high = np.append(self._high, np.full(more, -np.inf, np.float32))
        self._counts = np.append(self._counts, np.zeros(more, np.int64))
        self._magnitudes = np.append(self._magnitudes, np.zeros(more))
        self._names, self._table = names, SlotTable.of(names, self._bits)

    def pack(self) -> dict[str, list[Any]]:
        """Return smallest and largest value, number of values and sum of absolute values of each column, as JSON.

        Columns without values are left out, and sums that are not known.
        """
        arrays = self._low, self._high, self._counts, self._magnitudes
        rows = zip(self._names, *(array.tolist() for array in arrays), strict=True)
        return {name: [*row, total][: 4 if total == total else 3] for name, *row, total in sorted(rows) if row[2]}

    def restore(self, packed: Mapping[str, Sequence[Any]]) -> None:
        """Continue from the result of :meth:`pack`."""
        self._resize(list(packed))
        for k, (low, high, count, *total) in enumerate(packed.values()):
            self._low[k], self._high[k], self._counts[k] = low, high, count
            self._magnitudes[k] = total[0] if total else np.nan  # unknown where an earlier version wrote it


@dataclass(eq=False)
class Outside:
    """Counts values outside the ranges of their columns.

    Parameters
    ----------
    ranges : smallest and largest values by column
    bits : number of bits of slots

    >>> outside = Outside({"age": (17.0, 90.0)}, 10)
    >>> age = slot("age", bits=10)
    >>> block = Block(np.array([0, 1, 2]), np.int32([age, age]), np.float32([31, 99]), np.float32([1, 0]))
    >>> outside.add(block)
    {'age': 1}
    >>> outside.found
    {'age': (1, 99.0)}
    """

    ranges: Mapping[str, tuple[float, float]]
    bits: int

    def __post_init__(self) -> None:
        self.found: dict[str, tuple[int, float]] = {}
        self._names = list(self.ranges)
        self._table = SlotTable.of(self._names, self.bits)
        self._low, self._high = np.array(list(self.ranges.values()), np.float32).reshape(-1, 2).T.copy()

    def add(self, block: Block) -> dict[str, int]:
        """Add the rows of a block; return the entry of the first such value of each column in it."""
        if not self._names:
            return {}
        counts, first = np.zeros(len(self._names), np.int64), np.full(len(self._names), -1, np.int64)
        scanner("merge", "count_outside")(
            block.indices, block.values, *self._table.parts, self._low, self._high, counts, first
        )
        entries = {self._names[k]: int(first[k]) for k in np.flatnonzero(counts).tolist()}
        for k, (name, entry) in zip(np.flatnonzero(counts).tolist(), entries.items(), strict=True):
            before, example = self.found.get(name, (0, float(block.values[entry])))
            self.found[name] = before + int(counts[k]), example
        return entries
