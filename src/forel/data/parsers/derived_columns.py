"""Columns of text and of dates, each value of which is several features, added to the rows of a block."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.dates import date_features, date_hashes, expected_date
from forel.data.features.hashing import hash_names, slot
from forel.data.features.kinds import DATE
from forel.data.features.names import Names
from forel.data.features.rows import drop_rows
from forel.data.features.text import append_features
from forel.data.parsers.arrow_batches import is_number, string_spans, valid
from forel.data.parsers.cells import RowProblems, namespace_hash
from forel.data.parsers.column_values import StringColumn
from forel.data.parsers.columns import Columns
from forel.data.problems import excerpt
from forel.validation import refuse

__all__ = ["derived_columns", "with_derived"]

Features = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32]]


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
        row_problems.problems.note_words({name: len(wrong)})
    return rows


def derived_columns(
    batch: Any, names: Sequence[str], columns: Columns, found: dict[str, str], crossed: bool
) -> dict[str, StringColumn]:
    """Return the text and date columns of a record batch; ``found`` receives those that are dates by their type."""
    dates = {name for name in names if _is_temporal(batch.schema.field(name).type)} - columns.kinds.keys()
    found.update(dict.fromkeys(sorted(dates - columns.known.keys()), DATE))
    derived = [name for name in names if name in dates or name in columns.derived]
    if derived and crossed:
        raise refuse("interactions", f"the dates of {derived[0]!r}", "no dates with crosses; or ignore the column")
    return {name: _strings(batch.column(name), name) for name in derived}


def _is_temporal(kind: Any) -> bool:
    """Return whether an Arrow type is a date or a time stamp."""
    from pyarrow import types

    return bool(types.is_timestamp(kind) or types.is_date(kind))


def _strings(array: Any, name: str) -> StringColumn:
    """Return the strings of a column of an Arrow table."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    array = array.cast(pa.string()) if is_number(array.type) or _is_temporal(array.type) else array
    return StringColumn(string_spans(array, name), valid(array))


def _record(names: Names, name: str, words: list[str], bits: int) -> None:
    """Record the names of the features of a column; the empty one is the column itself."""
    key, parts = name.encode(), [word.encode() for word in words]
    hashes = hash_names(parts, np.full(len(parts), namespace_hash(key), np.uint64))
    hashes = np.where([bool(part) for part in parts], hashes, np.uint64(namespace_hash(key)))
    slots = (hashes & np.uint64((1 << bits) - 1)).astype(np.int64)
    names.add(slots, hashes, lambda k: b"^".join(filter(None, (key, parts[k]))))
