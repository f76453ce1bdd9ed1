"""Blocks from the columns of some rows of a table, whether CSV, Arrow or dicts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.crosses import Entries, block_of_entries
from forel.data.features.dates import date_features, date_hashes, expected_date
from forel.data.features.hashing import hash_names, slot, slots_of_hashes
from forel.data.features.kinds import sign_of
from forel.data.features.names import Names
from forel.data.features.rows import Cells, Examples, block_from_cells, drop_rows
from forel.data.features.text import append_features
from forel.data.options import ReadOptions
from forel.data.parsers.column_values import (
    DictionaryColumn,
    FeatureColumn,
    NumberColumn,
    RowProblems,
    StringColumn,
    namespace_hash,
)
from forel.data.parsers.columns import Columns
from forel.data.problems import excerpt
from forel.data.values import signed_log1p

__all__ = ["block_of_columns", "with_derived"]

WEIGHT = "a number, such as 1; on_error='skip' leaves out such rows"
IN_RANGE = "a number within the range of float32"
Column = NumberColumn | StringColumn | DictionaryColumn | FeatureColumn
Features = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]


def block_of_columns(
    values: Mapping[str, Column], features: Sequence[str], derived: Mapping[str, StringColumn], cells: Cells,
    columns: Columns, row_problems: RowProblems, names: Names | None,
) -> Block:  # fmt: skip
    """Return the block of the well-formed rows.

    Parameters
    ----------
    values : by name, those of labels and importances, too; the cells of a :class:`FeatureColumn` are filled already
    features : the columns of the cells
    derived : columns of text and dates
    """
    examples = _examples(values, columns, row_problems)
    made = [
        value
        if isinstance(value := values[name], FeatureColumn)
        else _fill_numbers(value, name, k, columns, cells, row_problems)
        if isinstance(value, NumberColumn)
        else value.feature(cells, k, name.encode(), columns.options.bits)
        for k, name in enumerate(features)
    ]
    block = _merged(cells, made, examples, row_problems.good, columns.options, names)
    return with_derived(block, derived, columns, row_problems, names) if derived else block


def _merged(
    cells: Cells, features: Sequence[FeatureColumn], examples: Examples, good: NDArray[np.bool_], options: ReadOptions,
    names: Names | None,
) -> Block:  # fmt: skip
    """Return the block of the good rows, with the names of their features recorded."""
    transform, bits = options.transform, options.bits
    if transform is None:
        if names is not None:
            for k, feature in enumerate(features):
                feature.add_names(names, cells.slots[:, k], np.flatnonzero(cells.present[:, k] & good))
        keys = np.array([namespace_hash(feature.key) for feature in features if options.columns], np.uint64)
        return block_from_cells(cells, good, examples, slots_of_hashes(keys, bits) if options.columns else None)
    rows, present = np.flatnonzero(good), cells.present[good]
    places = np.argwhere(present)
    indptr = np.append(0, np.cumsum(present.sum(axis=1)))
    hashes = [feature.hashes(rows) for feature in features]
    hashed = np.stack(hashes, axis=1)[present] if features else np.empty(0, np.uint64)
    kinds = np.array([transform.kind(feature.key) for feature in features], np.int64)[places[:, 1]]
    entries = Entries(
        indptr, hashed, cells.values[good][present], kinds, lambda k: features[places[k, 1]].word(rows[places[k, 0]])
    )
    return block_of_entries(entries, examples.chosen(good), transform, bits, names)


def _fill_numbers(
    numbers: NumberColumn, name: str, column: int, columns: Columns, cells: Cells, row_problems: RowProblems
) -> FeatureColumn:
    """Fill one column of the cells with numbers, or their logarithms."""
    key, mask = name.encode(), np.uint64((1 << columns.options.bits) - 1)
    remedy = "missing (--missing) names marks of missing values"
    numbers.record_infinite(name, f"{IN_RANGE}; {remedy}", row_problems)
    non_numbers = numbers.non_numbers
    if columns.strict and columns.known.get(name) != "either":
        since = "in earlier rows" if name in columns.known else "the column's first"
        expected = f"a number, as {since}; or use categories=[{name!r}], or missing (--missing) for a mark"
        if columns.options.unlabelled:  # rows to predict
            expected = "a number, as in training; or leave out strict (--strict)"
        numbers.record_non_numbers(name, expected, row_problems)
        non_numbers = None
    cells.slots[:, column] = np.uint64(namespace_hash(key)) & mask
    cells.values[:, column] = signed_log1p(numbers.wide) if name in columns.log else numbers.values
    cells.present[:, column] = numbers.present
    if non_numbers is None:
        return FeatureColumn(key)
    rows = np.flatnonzero(non_numbers.present)
    if sign_of(columns.known.get(name)) is not None:
        row_problems.problems.words.update({name: rows.size})
    cells.slots[rows, column] = non_numbers.words.hashes(key, rows) & mask
    cells.values[rows, column], cells.present[rows, column] = 1, True
    return FeatureColumn(key, others=non_numbers.words, mixed=non_numbers.present)


def _examples(values: Mapping[str, Any], columns: Columns, row_problems: RowProblems) -> Examples:
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
    lines, problems, file = row_problems.lines, row_problems.problems, row_problems.file
    return Examples(labels, importance, lines, problems, file, words)


def _record_labels(numbers: NumberColumn, name: str, row_problems: RowProblems) -> None:
    """Record labels or importances that are no numbers, or too large."""
    numbers.record_non_numbers(name, numbers.expected, row_problems)
    numbers.record_infinite(name, IN_RANGE, row_problems)


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


def with_derived(
    block: Block, strings: Mapping[str, StringColumn], columns: Columns, row_problems: RowProblems, names: Names | None
) -> Block:
    """Return a block with the features of text and date columns.

    Parameters
    ----------
    block : the well-formed rows of a table, with other columns
    strings : strings of each row of the table, and which rows have one
    columns : which columns are text
    row_problems : the lines of the rows of the table; receives values that are not dates
    names : receives the names of features; None if names are not kept
    """
    found, split, bits = list[tuple[*Features, int]](), columns.options.text_features, columns.options.bits
    before = row_problems.good.copy()
    for name, column in strings.items():
        cells = column.words
        if name in columns.options.text:
            indptr, hashes = split.hashes(cells.text, cells.starts, cells.stops, column.present, name)
            found.append((indptr, hashes, np.ones(hashes.size, np.float32), -1))
            words = [] if names is None else [token for text in _texts(column) for token in split.tokens(text)]
        else:
            rows = _dates(name, column, columns, row_problems)
            found.append((*date_hashes(rows, name), slot(name.encode("utf-8", "surrogatepass"), bits=bits)))
            words = [] if names is None else [part for row in rows for part, _ in row]
        if names is not None:
            _record(names, name, words, bits)
    block = append_features(block, row_problems.lines, found, bits)
    wrong = row_problems.lines[before & ~row_problems.good]
    return block if not wrong.size else drop_rows(block, np.flatnonzero(np.isin(np.asarray(block.lines), wrong)))


def _texts(column: StringColumn) -> list[str]:
    return [column.words[k].decode("utf-8", "backslashreplace") for k in np.flatnonzero(column.present).tolist()]


def _dates(
    name: str, column: StringColumn, columns: Columns, row_problems: RowProblems
) -> list[list[tuple[str, float]]]:  # fmt: skip
    """Return the features of each row; values that are not dates are malformed, or absent if the reader is lenient."""
    rows: list[list[tuple[str, float]]] = [[] for _ in range(column.present.size)]
    wrong, order = [], columns.dates.get(name, "")
    for row, text in zip(np.flatnonzero(column.present).tolist(), _texts(column), strict=True):
        try:
            rows[row] = date_features(text, order)
        except (ValueError, OverflowError):
            wrong.append(row)
    if columns.strict:
        shown = [excerpt(column.words[k]) for k in wrong]
        row_problems.record(name, np.array(wrong, np.int64), shown, expected_date(name, order))
    elif wrong:
        row_problems.problems.words.update({name: len(wrong)})
    return rows


def _record(names: Names, name: str, words: list[str], bits: int) -> None:
    """Record the names of the features of a column; the empty one is the column itself."""
    key, parts = name.encode(), [word.encode() for word in words]
    hashes = hash_names(parts, np.full(len(parts), namespace_hash(key), np.uint64))
    hashes = np.where([bool(part) for part in parts], hashes, np.uint64(namespace_hash(key)))
    slots = (hashes & np.uint64((1 << bits) - 1)).astype(np.int64)
    names.add(slots, hashes, lambda k: b"^".join(filter(None, (key, parts[k]))))
