"""Columns of tables, numbers or strings, and how they become labels or features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.buffers import Buffers
from forel.data.compiled import scanner
from forel.data.features.hashing import hash_spans, slots_of_hashes
from forel.data.features.kinds import sign_of
from forel.data.features.rows import Cells
from forel.data.features.transforms import buckets, signed_log1p
from forel.data.parsers.cells import FeatureColumn, Labels, RowProblems, Spans, namespace_hash
from forel.data.parsers.columns import Columns
from forel.data.problems import excerpt
from forel.data.values import formatted_number

__all__ = [
    "DictionaryCache", "DictionaryColumn", "DictionaryColumns", "NumberColumn", "StringColumn", "bucket_column",
    "fill_numbers", "labels_and_importance",
]  # fmt: skip

WEIGHT = "a number, such as 1; on_error='skip' leaves out such rows"


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

    def infinite(self) -> NDArray[np.int64]:
        """Return the rows whose numbers are out of the range of float32."""
        return np.flatnonzero(self.present & ~np.isfinite(self.values))


@dataclass(frozen=True, eq=False)
class StringColumn:
    """A string for each row, and which rows have one."""

    words: Spans
    present: NDArray[np.bool_]

    def slice_rows(self, rows: slice) -> "StringColumn":
        """Return some rows."""
        return StringColumn(Spans(self.words.text, self.words.starts[rows], self.words.stops[rows]), self.present[rows])

    def feature(self, cells: Cells, column: int, key: bytes, mask: np.uint64) -> FeatureColumn:
        """Fill a column of the cells."""
        text, starts, stops = self.words.text, self.words.starts, self.words.stops
        scanner("hashing", "fill_spans")(
            text, starts, stops, self.present, np.uint64(namespace_hash(key)), mask, cells.slots, cells.present, column
        )
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

    def feature(self, cells: Cells, column: int, key: bytes, mask: np.uint64) -> FeatureColumn:
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


def bucket_column(numbers: NumberColumn, per: int, key: bytes, mask: np.uint64) -> DictionaryColumn:
    """Return numbers as categories by magnitude."""
    good = numbers.present & np.isfinite(numbers.values)
    names, which = buckets(np.where(good, numbers.wide, 0.0), per)
    encoded = [name.encode() for name in names] or [b""]
    ends = np.cumsum([0, *map(len, encoded)])
    words = Spans(np.frombuffer(b"".join(encoded) + b"\0", np.uint8), ends[:-1], ends[1:])
    return DictionaryColumn(words, slots_of(words, key, int(mask).bit_length()), which, numbers.present)


def fill_numbers(
    numbers: NumberColumn,
    name: str,
    column: int,
    columns: Columns,
    cells: Cells,
    mask: np.uint64,
    row_problems: RowProblems,
) -> FeatureColumn:
    """Fill one column of the cells with numbers, their logarithms or their buckets."""
    key, bad = name.encode(), numbers.infinite()
    row_problems.record(
        name,
        bad,
        [str(v) for v in numbers.wide[bad]],
        "a number within the range of float32; missing (--missing) names marks of missing values",
    )
    non_numbers = numbers.non_numbers
    if columns.strict and columns.known.get(name) != "either":
        since = "in earlier rows" if name in columns.known else "the column's first"
        expected = f"a number, as {since}; or use categories=[{name!r}], or missing (--missing) for a mark"
        if columns.options.unlabelled:  # rows to predict
            expected = "a number, as in training; or leave out strict (--strict)"
        numbers.record_non_numbers(name, expected, row_problems)
        non_numbers = None
    made = _filled(numbers, name, key, column, columns, cells, mask)
    if non_numbers is None:
        return made
    rows = np.flatnonzero(non_numbers.present)
    if sign_of(columns.known.get(name)) is not None:
        row_problems.problems.note_words({name: rows.size})
    cells.slots[rows, column] = non_numbers.words.hashes(key, rows) & mask
    cells.values[rows, column], cells.present[rows, column] = 1, True
    return replace(made, others=non_numbers.words, mixed=non_numbers.present)


def _filled(
    numbers: NumberColumn, name: str, key: bytes, column: int, columns: Columns, cells: Cells, mask: np.uint64
) -> FeatureColumn:
    if name in columns.buckets:
        made = bucket_column(numbers, columns.buckets[name], key, mask)
        slots = np.where(made.present, made.slots[made.codes], made.slots.dtype.type(-1))
        cells.slots[:, column], cells.present[:, column] = slots, slots >= 0
        return made.feature(cells, column, key, mask)
    cells.slots[:, column] = np.uint64(namespace_hash(key)) & mask
    cells.values[:, column] = signed_log1p(numbers.wide) if name in columns.log else numbers.values
    cells.present[:, column] = numbers.present
    return FeatureColumn(key)


def labels_and_importance(values: Mapping[str, Any], columns: Columns, row_problems: RowProblems) -> Labels:
    """Return the labels and importances of some rows, and the words of classes; defaults if columns are missing."""
    rows, words = row_problems.lines.size, None
    labels, importance = np.full(rows, np.nan), np.ones(rows, np.float32)
    if columns.label is not None and columns.label in values:
        numbers = values[columns.label]
        if not columns.options.unlabelled:
            _record_labels(numbers, columns.label, row_problems)
        words = numbers.words
        labels = np.where(numbers.present & np.isfinite(numbers.values), numbers.wide, np.nan)
    if columns.importance is not None and columns.importance in values:
        importance = _importance(values[columns.importance], columns.importance, row_problems)
    return labels, importance, words


def _record_labels(numbers: NumberColumn, name: str, row_problems: RowProblems) -> None:
    """Record labels or importances that are no numbers, or too large."""
    numbers.record_non_numbers(name, numbers.expected, row_problems)
    bad = numbers.infinite()
    row_problems.record(name, bad, [str(v) for v in numbers.wide[bad]], "a number within the range of float32")


def _importance(numbers: NumberColumn, name: str, row_problems: RowProblems) -> NDArray[np.float32]:
    """Return the importances of some rows: 1 where there is none; NaN is an error."""
    numbers.record_non_numbers(name, WEIGHT, row_problems)
    missing = np.flatnonzero(numbers.present & np.isnan(numbers.values))
    row_problems.record(name, missing, ["a missing value"] * missing.size, WEIGHT)
    _record_labels(numbers, name, row_problems)
    found = np.where(numbers.present, numbers.values, np.float32(1))
    negative = np.flatnonzero(found < 0)
    row_problems.record(name, negative, [str(v) for v in found[negative]], "an importance of at least 0")
    return found
