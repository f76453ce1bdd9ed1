"""What a column of a table holds, numbers or words, and how it becomes labels or a feature."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.formats.assemble import Cells
from forel.formats.cells import Column, Faults, Words, start_of
from forel.formats.columns import Columns
from forel.formats.hashing import hash_spans
from forel.formats.scanners import scanner
from forel.formats.transforms import buckets, logarithms

__all__ = ["Coded", "Numbers", "Strings", "bucketed", "coded", "numeric", "target", "weights"]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers as float32, which rows have one, and the numbers before they were narrowed."""

    values: NDArray[np.float32]
    there: NDArray[np.bool_]
    wide: NDArray[Any]

    def part(self, rows: slice) -> "Numbers":
        """Return some rows."""
        return Numbers(self.values[rows], self.there[rows], self.wide[rows])

    def infinite(self) -> NDArray[np.int64]:
        """Return the rows whose numbers are beyond float32."""
        return np.flatnonzero(self.there & ~np.isfinite(self.values))


@dataclass(frozen=True, eq=False)
class Strings:
    """A word for each row, and which rows have one."""

    words: Words
    there: NDArray[np.bool_]

    def part(self, rows: slice) -> "Strings":
        """Return some rows."""
        return Strings(Words(self.words.text, self.words.starts[rows], self.words.stops[rows]), self.there[rows])

    def fill(self, cells: Cells, place: int, key: bytes, mask: np.uint64) -> Column:
        """Fill one column of the cells."""
        text, starts, stops = self.words.text, self.words.starts, self.words.stops
        scanner("hashing", "fill_spans")(
            text, starts, stops, self.there, np.uint64(start_of(key)), mask, cells.slots, cells.there, place
        )
        return Column(key, self.words)


@dataclass(frozen=True, eq=False)
class Coded:
    """Words that rows name by their number, hashed once whatever the number of rows; and which rows have one."""

    words: Words
    slots: NDArray[np.int32]
    filled: NDArray[np.bool_]
    codes: NDArray[Any]
    there: NDArray[np.bool_]

    def part(self, rows: slice) -> "Coded":
        """Return some rows."""
        return Coded(self.words, self.slots, self.filled, self.codes[rows], self.there[rows])

    def fill(self, cells: Cells, place: int, key: bytes, mask: np.uint64) -> Column:
        """Fill one column of the cells."""
        scanner("hashing", "fill_codes")(
            self.codes, self.there, self.slots, self.filled, cells.slots, cells.there, place
        )  # fmt: skip
        return Column(key, self.words, self.codes)


def coded(words: Words, codes: NDArray[Any], there: NDArray[np.bool_], key: bytes, mask: np.uint64) -> Coded:
    """Return the words of a column, there being at least one, by their numbers."""
    hashes = hash_spans(words.text, words.starts, words.stops, start_of(key))
    return Coded(words, (hashes & mask).astype(np.int32), np.asarray(words.stops > words.starts), codes, there)


def bucketed(numbers: Numbers, per: int, key: bytes, mask: np.uint64) -> Coded:
    """Return numbers as categories by their size."""
    good = numbers.there & np.isfinite(numbers.values)
    names, which = buckets(np.where(good, numbers.wide, 0.0), per)
    held = [name.encode() for name in names] or [b""]
    ends = np.cumsum([0, *map(len, held)])
    words = Words(np.frombuffer(b"".join(held) + b"\0", np.uint8), ends[:-1], ends[1:])
    return coded(words, which, numbers.there, key, mask)


def numeric(
    numbers: Numbers, name: str, place: int, columns: Columns, cells: Cells, mask: np.uint64, faults: Faults
) -> Column:
    """Fill one column of the cells with numbers, their logarithms or their buckets."""
    key, bad = name.encode(), numbers.infinite()
    faults.meet(name, bad, [str(v) for v in numbers.wide[bad]], "a number within the range of float32, or null")
    if name in columns.buckets:
        return bucketed(numbers, columns.buckets[name], key, mask).fill(cells, place, key, mask)
    cells.slots[:, place] = np.uint64(start_of(key)) & mask
    cells.values[:, place] = logarithms(numbers.wide) if name in columns.log else numbers.values
    cells.there[:, place] = numbers.there
    return Column(key)


def target(numbers: Numbers, name: str, missing: float, faults: Faults) -> NDArray[np.float32]:
    """Return the labels or importances of some rows."""
    bad = numbers.infinite()
    faults.meet(name, bad, [str(v) for v in numbers.wide[bad]], "a number within the range of float32")
    return np.where(numbers.there, numbers.values, np.float32(missing))


def weights(numbers: Numbers, name: str, faults: Faults) -> NDArray[np.float32]:
    """Return the importances of some rows."""
    found = target(numbers, name, 1.0, faults)
    negative = np.flatnonzero(found < 0)
    faults.meet(name, negative, [str(v) for v in found[negative]], "an importance of at least 0")
    return found
