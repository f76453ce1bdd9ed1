"""What a column of a table holds, numbers or words, and how it becomes labels or a feature."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.buffers import Buffers
from forel.data.features.hashing import hash_spans
from forel.data.features.rows import Cells
from forel.data.features.transforms import buckets, logarithms
from forel.data.parsers.cells import Column, Faults, Words, start_of
from forel.data.parsers.columns import Columns
from forel.data.problems import shown
from forel.data.scanners import scanner

__all__ = ["Book", "Coded", "Hashed", "Numbers", "Strings", "bucketed", "numeric", "targets"]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers as float32, which rows have one, and the numbers before they were narrowed.

    ``strays`` are the words of rows that hold something else, if there are any.
    """

    values: NDArray[np.float32]
    there: NDArray[np.bool_]
    wide: NDArray[Any]
    strays: "Strings | None" = None

    def part(self, rows: slice) -> "Numbers":
        """Return some rows."""
        strays = None if self.strays is None else self.strays.part(rows)
        return Numbers(self.values[rows], self.there[rows], self.wide[rows], strays)

    def refuse_strays(self, name: str, expected: str, faults: Faults) -> None:
        """Meet a problem for each row that holds something else."""
        if self.strays is not None:
            rows = np.flatnonzero(self.strays.there)
            faults.meet(name, rows, [shown(self.strays.words[row]) for row in rows.tolist()], expected)

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

    def feature(self, cells: Cells, place: int, key: bytes, mask: np.uint64) -> Column:
        """Fill one column of the cells."""
        text, starts, stops = self.words.text, self.words.starts, self.words.stops
        scanner("hashing", "fill_spans")(
            text, starts, stops, self.there, np.uint64(start_of(key)), mask, cells.slots, cells.there, place
        )
        return Column(key, self.words)


@dataclass(frozen=True, eq=False)
class Coded:
    """Words that rows name by their number, hashed once whatever the number of rows; and which rows have one.

    The slot of a word without a byte is −1: there is nothing.
    """

    words: Words
    slots: NDArray[np.int32]
    codes: NDArray[Any]
    there: NDArray[np.bool_]

    def part(self, rows: slice) -> "Coded":
        """Return some rows."""
        return Coded(self.words, self.slots, self.codes[rows], self.there[rows])

    def feature(self, cells: Cells, place: int, key: bytes, mask: np.uint64) -> Column:
        """Return the feature, whose column of the cells a :class:`Book` has filled."""
        return Column(key, self.words, self.codes)


class Book:
    """The words of all columns that have them by number, so that one loop fills the cells of all.

    Parameters
    ----------
    places : the columns of the cells
    slots : those of all words, after a first one that stands for none
    codes : a row a column: where in ``slots`` each row's is
    """

    def __init__(self, places: NDArray[np.int64], slots: NDArray[np.int32], codes: NDArray[np.int32]) -> None:
        self.places, self.slots, self.codes = places, slots, codes

    @classmethod
    def of(cls, features: Sequence[Any], rows: int, buffers: Buffers) -> "Book":
        """Return the book of those features that are coded, each with so many rows."""
        coded = {place: one for place, one in enumerate(features) if isinstance(one, Coded)}
        codes = buffers.empty((len(coded), rows), np.int32)
        slots, end = [np.full(1, -1, np.int32)], 1
        for held, one in zip(codes, coded.values(), strict=True):
            np.add(one.codes, end, out=held, casting="unsafe")
            if not one.there.all():
                held[~one.there] = 0
            slots.append(one.slots)
            end += one.slots.size
        return cls(np.array(list(coded), np.int64), np.concatenate(slots), codes)

    def fill(self, cells: Cells, start: int) -> None:
        """Fill its columns of the cells, with the rows from ``start`` on."""
        scanner("hashing", "fill_codes")(self.codes, self.slots, self.places, start, cells.slots, cells.there)


class Hashed:
    """Words that were hashed before, a dictionary for each column: the next batch most often has the same."""

    def __init__(self, bits: int) -> None:
        self._mask = np.uint64((1 << bits) - 1)
        self._held: dict[bytes, tuple[Any, Words, NDArray[np.int32]]] = {}

    def of(self, key: bytes, dictionary: Any, words: Callable[[], Words]) -> tuple[Words, NDArray[np.int32]]:
        """Return the words of a column's dictionary, and their slots."""
        if key not in self._held or not dictionary.equals(self._held[key][0]):
            found = words()
            self._held[key] = dictionary, found, slots_of(found, key, self._mask)
        return self._held[key][1:]


def slots_of(words: Words, key: bytes, mask: np.uint64) -> NDArray[np.int32]:
    """Return the slots of some words of a column, −1 for those without a byte."""
    hashes = hash_spans(words.text, words.starts, words.stops, start_of(key))
    return np.where(words.stops > words.starts, (hashes & mask).astype(np.int32), np.int32(-1))


def bucketed(numbers: Numbers, per: int, key: bytes, mask: np.uint64) -> Coded:
    """Return numbers as categories by their size."""
    good = numbers.there & np.isfinite(numbers.values)
    names, which = buckets(np.where(good, numbers.wide, 0.0), per)
    held = [name.encode() for name in names] or [b""]
    ends = np.cumsum([0, *map(len, held)])
    words = Words(np.frombuffer(b"".join(held) + b"\0", np.uint8), ends[:-1], ends[1:])
    return Coded(words, slots_of(words, key, mask), which, numbers.there)


def numeric(
    numbers: Numbers, name: str, place: int, columns: Columns, cells: Cells, mask: np.uint64, faults: Faults
) -> Column:
    """Fill one column of the cells with numbers, their logarithms or their buckets."""
    key, bad = name.encode(), numbers.infinite()
    faults.meet(name, bad, [str(v) for v in numbers.wide[bad]], "a number within the range of float32, or null")
    strays = numbers.strays
    if columns.strict and columns.known.get(name) != "either":
        since = "in earlier rows" if name in columns.known else "the column's first"
        numbers.refuse_strays(name, f"a number, as {since}; or say categories=[{name!r}]", faults)
        strays = None
    made = _filled(numbers, name, key, place, columns, cells, mask)
    if strays is None:
        return made
    rows = np.flatnonzero(strays.there)
    cells.slots[rows, place] = strays.words.hashes(key, rows) & mask
    cells.values[rows, place], cells.there[rows, place] = 1, True
    return replace(made, others=strays.words, spelled=strays.there)


def _filled(
    numbers: Numbers, name: str, key: bytes, place: int, columns: Columns, cells: Cells, mask: np.uint64
) -> Column:
    if name in columns.buckets:
        made = bucketed(numbers, columns.buckets[name], key, mask)
        slots = np.where(made.there, made.slots[made.codes], np.int32(-1))
        cells.slots[:, place], cells.there[:, place] = slots, slots >= 0
        return made.feature(cells, place, key, mask)
    cells.slots[:, place] = np.uint64(start_of(key)) & mask
    cells.values[:, place] = logarithms(numbers.wide) if name in columns.log else numbers.values
    cells.there[:, place] = numbers.there
    return Column(key)


def targets(
    held: Mapping[str, Any], columns: Columns, faults: Faults
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:  # fmt: skip
    """Return the labels and importances of some rows, from those columns of numbers that are there."""
    rows = faults.lines.size
    labels, importance = np.full(rows, np.nan, np.float32), np.ones(rows, np.float32)
    if columns.label is not None and columns.label in held:
        labels = target(held[columns.label], columns.label, np.nan, faults)
    if columns.importance is not None and columns.importance in held:
        importance = weights(held[columns.importance], columns.importance, faults)
    return labels, importance


def target(numbers: Numbers, name: str, missing: float, faults: Faults) -> NDArray[np.float32]:
    """Return the labels or importances of some rows."""
    numbers.refuse_strays(name, "a number", faults)
    bad = numbers.infinite()
    faults.meet(name, bad, [str(v) for v in numbers.wide[bad]], "a number within the range of float32")
    return np.where(numbers.there, numbers.values, np.float32(missing))


def weights(numbers: Numbers, name: str, faults: Faults) -> NDArray[np.float32]:
    """Return the importances of some rows."""
    found = target(numbers, name, 1.0, faults)
    negative = np.flatnonzero(found < 0)
    faults.meet(name, negative, [str(v) for v in found[negative]], "an importance of at least 0")
    return found
