"""Columns of tables, whether CSV or Arrow: their values and the names of their features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.buffers import Buffers
from forel.data.compiled import layout, scanner
from forel.data.features.hashing import START, hash_name, hash_spans, slots_of_hashes
from forel.data.features.names import Names
from forel.data.features.rows import Cells
from forel.data.problems import Malformed, Problems, excerpt
from forel.data.sources.streams import PAD
from forel.data.values import formatted_number, nearest_float32, parse_number, plain_number

__all__ = [
    "DictionaryCache", "DictionaryColumn", "DictionaryColumns", "FeatureColumn", "NumberColumn", "RowProblems",
    "Spans", "StringColumn", "cell_numbers", "namespace_hash", "plain_numbers",
]  # fmt: skip


@lru_cache(1 << 12)
def namespace_hash(key: bytes) -> int:
    """Return the hash of a column's name, with which the hashes of its categories start."""
    return hash_name(key) if key else START


@dataclass(frozen=True, eq=False)
class Spans:
    """Strings as spans of bytes of a text."""

    text: NDArray[np.uint8]
    starts: NDArray[Any]
    stops: NDArray[Any]

    def __getitem__(self, k: int) -> bytes:
        return self.text[self.starts[k] : self.stops[k]].tobytes()

    def plain_numbers(self, sign: str, decimal: str) -> "Spans":
        """Return amounts as plain numbers, and other cells as they are."""
        text, spans = self.text.tobytes(), zip(self.starts.tolist(), self.stops.tolist(), strict=True)
        words = (text[start:stop].decode("utf-8", "surrogateescape").strip() for start, stop in spans)
        cells = [plain_number(word, sign, decimal).encode("utf-8", "surrogateescape") for word in words]
        ends = np.zeros((len(cells) + 1, 2), np.int32)  # in columns, as those of CSV are, for the same compiled code
        np.cumsum([len(cell) + 1 for cell in cells], out=ends[1:, 0])
        ends[:-1, 1] = ends[1:, 0] - 1
        joined = bytearray(b"\n".join(cells) + bytes(PAD))
        return Spans(np.frombuffer(joined, np.uint8), ends[:-1, 0], ends[:-1, 1])

    def hashes(self, key: bytes, which: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the 64-bit hashes of some categories of a column; slots are their last bits."""
        return hash_spans(self.text, self.starts[which], self.stops[which], namespace_hash(key))


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """The names of a column's features, to hash and record them.

    Parameters
    ----------
    key : name of the column
    words : categories; None for numbers
    codes : the category of each row, by number; None if row r has category r
    others, mixed : categories of a numeric column, and the rows that have one
    """

    key: bytes
    words: Spans | None = None
    codes: NDArray[Any] | None = None
    others: Spans | None = None
    mixed: NDArray[np.bool_] | None = None

    def add_names(self, names: Names, slots: NDArray[Any], rows: NDArray[np.int64]) -> None:
        """Record the names of some rows with their slots."""
        if self.words is None:
            mixed = np.zeros(rows.size, bool) if self.mixed is None else self.mixed[rows]
            rows = np.concatenate([rows[~mixed][:1], rows[mixed]])
        names.add(slots[rows], self.hashes(rows), lambda k: b"^".join(filter(None, self.word(rows[k]))))

    def hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the 64-bit hashes of some rows."""
        if self.words is None:
            found = np.full(rows.size, namespace_hash(self.key), np.uint64)
        else:
            found = self.words.hashes(self.key, rows if self.codes is None else self.codes[rows])
        if self.others is not None and self.mixed is not None:
            found = np.where(self.mixed[rows], self.others.hashes(self.key, rows), found)
        return found

    def word(self, row: int) -> tuple[bytes, bytes]:
        """Return the namespace and the name of a row's feature."""
        if self.others is not None and self.mixed is not None and self.mixed[row]:
            return self.key, self.others[row]
        if self.words is None:
            return b"", self.key
        return self.key, self.words[row if self.codes is None else self.codes[row]]


class RowProblems:
    """The mask of well-formed rows of a table, and where problems of others are recorded."""

    def __init__(self, lines: NDArray[np.int64], problems: Problems, file: str) -> None:
        self.lines, self.problems, self.file = lines, problems, file
        self.good = np.ones(lines.size, bool)

    def record(self, name: str, rows: NDArray[np.int64], got: Sequence[str], expected: str) -> None:
        """Record a problem for each of some rows, unless the row has one already."""
        for row, what in zip(rows.tolist(), got, strict=True):
            if self.good[row]:
                if what == f"'{name}'":
                    expected = (
                        f"{expected.partition(';')[0]}; the row repeats the header: on_error='skip' leaves it out"
                    )
                self.problems.record(Malformed(self.file, int(self.lines[row]), name, what, expected))
        self.good[rows] = False


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """Numbers as float32 and as float64, and which rows have one.

    Parameters
    ----------
    values, present, wide : of each row
    non_numbers : the strings of rows that hold something else, if there are any
    expected : of labels, for errors
    words : of which labels are indices, if these are classes
    """

    values: NDArray[np.float32]
    present: NDArray[np.bool_]
    wide: NDArray[Any]
    non_numbers: "StringColumn | None" = None
    expected: str = "a number"
    words: tuple[str, ...] | None = None

    def slice_rows(self, rows: slice) -> "NumberColumn":
        """Return some rows."""
        non_numbers = None if self.non_numbers is None else self.non_numbers.slice_rows(rows)
        values, present, wide = self.values[rows], self.present[rows], self.wide[rows]
        return replace(self, values=values, present=present, wide=wide, non_numbers=non_numbers)

    def record_non_numbers(self, name: str, expected: str, row_problems: RowProblems) -> None:
        """Record a problem for each row that holds a string."""
        if self.non_numbers is not None:
            rows = np.flatnonzero(self.non_numbers.present)
            remedy = formatted_number(self.non_numbers.words[rows[0]].decode("utf-8", "replace")) if rows.size else None
            expected = expected if remedy is None else f"{expected}; {remedy}"
            row_problems.record(name, rows, [excerpt(self.non_numbers.words[row]) for row in rows.tolist()], expected)

    def record_infinite(self, name: str, expected: str, row_problems: RowProblems) -> None:
        """Record a problem for each row whose number is out of the range of float32."""
        rows = np.flatnonzero(self.present & ~np.isfinite(self.values))
        row_problems.record(name, rows, [str(value) for value in self.wide[rows]], expected)


@dataclass(frozen=True, eq=False)
class StringColumn:
    """A string for each row, and which rows have one."""

    words: Spans
    present: NDArray[np.bool_]

    def slice_rows(self, rows: slice) -> "StringColumn":
        """Return some rows."""
        return StringColumn(Spans(self.words.text, self.words.starts[rows], self.words.stops[rows]), self.present[rows])

    def feature(self, cells: Cells, column: int, key: bytes, bits: int) -> FeatureColumn:
        """Fill a column of the cells."""
        cells.slots[:, column] = slots = slots_of(self.words, key, bits)
        cells.present[:, column] = self.present & (slots >= 0)
        return FeatureColumn(key, self.words)


@dataclass(frozen=True, eq=False)
class DictionaryColumn:
    """Dictionary-encoded strings, hashed once per dictionary, and which rows have one.

    The slot of an empty string is −1: it is absent.
    """

    words: Spans
    slots: NDArray[Any]
    codes: NDArray[Any]
    present: NDArray[np.bool_]

    def slice_rows(self, rows: slice) -> "DictionaryColumn":
        """Return some rows."""
        return DictionaryColumn(self.words, self.slots, self.codes[rows], self.present[rows])

    def feature(self, cells: Cells, column: int, key: bytes, bits: int) -> FeatureColumn:
        """Return the feature; :class:`DictionaryColumns` fills its column of the cells."""
        return FeatureColumn(key, self.words, self.codes)


class DictionaryColumns:
    """All dictionary-encoded columns of a batch, so that one loop fills their cells.

    Parameters
    ----------
    places : the columns of the cells
    slots : of all dictionaries, after −1 for absent values
    codes : a row for each column: the index in ``slots`` for each row of the batch
    """

    def __init__(self, places: NDArray[np.int64], slots: NDArray[Any], codes: NDArray[np.int32]) -> None:
        self.places, self.slots, self.codes = places, slots, codes

    @classmethod
    def of(cls, features: Sequence[Any], rows: int, bits: int, buffers: Buffers) -> "DictionaryColumns":
        """Collect the features that are dictionary-encoded, each with ``rows`` rows and slots of ``bits`` bits."""
        coded = {column: one for column, one in enumerate(features) if isinstance(one, DictionaryColumn)}
        codes = buffers.empty((len(coded), rows), np.int32)
        slots, end = [np.full(1, -1, np.int32)], 1
        for row, one in zip(codes, coded.values(), strict=True):
            np.add(one.codes, end, out=row, casting="unsafe")
            if not one.present.all():
                row[~one.present] = 0
            slots.append(one.slots)
            end += one.slots.size
        return cls(np.array(list(coded), np.int64), np.concatenate(slots), codes)

    def fill(self, cells: Cells, start: int) -> None:
        """Fill the columns of the cells with the rows from ``start`` on."""
        scanner("hashing", "fill_codes")(self.codes, self.slots, self.places, start, cells.slots, cells.present)


class DictionaryCache:
    """The last dictionary of each column with its slots: consecutive batches often share it."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._held: dict[bytes, tuple[Any, Spans, NDArray[Any]]] = {}

    def of(self, key: bytes, dictionary: Any, words: Callable[[], Spans]) -> tuple[Spans, NDArray[Any]]:
        """Return the strings of a column's dictionary, and their slots."""
        if key not in self._held or not dictionary.equals(self._held[key][0]):
            found = words()
            self._held[key] = dictionary, found, slots_of(found, key, self._bits)
        return self._held[key][1:]


def slots_of(words: Spans, key: bytes, bits: int) -> NDArray[Any]:
    """Return the slots of categories of a column, −1 for empty ones."""
    hashes = hash_spans(words.text, words.starts, words.stops, namespace_hash(key))
    slots = slots_of_hashes(hashes, bits)
    slots[words.stops <= words.starts] = -1
    return slots


def cell_numbers(words: Spans, exact: bool, sign: str | None = None, decimal: str = ".") -> NumberColumn:
    """Return the numbers of a column; ``exact`` rounds them correctly to float64, which is slower.

    Amounts are numbers if they have the sign of the column, or none; where it is None, they are not.
    """
    found = None if sign else plain_numbers(words, exact)
    if found is not None and (found.non_numbers is None or sign is None):
        return found
    return plain_numbers(words.plain_numbers(sign or "", decimal), exact)


def plain_numbers(words: Spans, exact: bool) -> NumberColumn:
    """Return the numbers of cells that are written without signs and separators."""
    n = words.starts.size
    wide, kinds = np.empty(n), np.empty(n, np.uint8)
    scanner("csv_rows", "read_cells")(words.text, words.starts, words.stops, exact, wide, kinds)
    non_numbers, unsure = np.zeros(n, bool), (kinds == layout.UNSURE).nonzero()[0]
    for row in unsure.tolist():
        try:
            value = parse_number(words[row])
        except ValueError:
            non_numbers[row] = True
            value = None
        kinds[row] = layout.ABSENT if value is None else layout.THERE
        wide[row] = 0.0 if value is None else value
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
        for row in unsure.tolist():
            if wide[row] not in (0.0, 1.0) and np.isfinite(wide[row]):
                # A double may have been rounded twice; whitespace is that of text, not of bytes.
                values[row] = nearest_float32(words[row].decode().strip().encode())
    if not np.isfinite(values).all():
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            wide[row] = parse_number(words[row])  # as written, for the error
    return NumberColumn(
        values, kinds == layout.THERE, wide, StringColumn(words, non_numbers) if non_numbers.any() else None
    )
