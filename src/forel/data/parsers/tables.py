"""Arrow tables as blocks: numbers are values, strings are categories, and nulls are absent."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from forel.data.block import Block
from forel.data.buffers import Buffers
from forel.data.features.kinds import DATE, add_kind, amount_kind, sign_of
from forel.data.features.names import Names
from forel.data.features.rows import Cells
from forel.data.parsers.arrow_batches import (
    NumberedBatch,
    feature_names,
    is_number,
    is_string,
    plain,
    string_spans,
    valid,
)
from forel.data.parsers.column_blocks import block_of_columns
from forel.data.parsers.column_values import (
    DictionaryCache,
    DictionaryColumn,
    DictionaryColumns,
    NumberColumn,
    RowProblems,
    StringColumn,
    plain_numbers,
)
from forel.data.parsers.columns import Columns
from forel.data.parsers.label_codes import LabelCodes
from forel.data.problems import Problems
from forel.data.values import MISSING, common_sign
from forel.validation import refuse

__all__ = ["table_blocks"]


def table_blocks(
    batches: Iterable[NumberedBatch],
    columns: Columns,
    problems: Problems,
    names: Names | None,
    file: str,
    kinds_found: dict[str, str],
    from_pandas: bool = False,
) -> Iterator[Block]:
    """Yield blocks of the rows of record batches.

    Parameters
    ----------
    kinds_found : receives the kinds of columns
    from_pandas : whether nulls may have been NaN, so that a null importance is an error; otherwise it is 1
    """
    options, found = columns.options, kinds_found
    transform, bits = options.transform, options.bits
    required = from_pandas and not options.unlabelled  # predictions do not depend on importances
    known, buffers, amounts = DictionaryCache(bits), Buffers(), dict[str, str]()
    codes = LabelCodes(columns, {**columns.known, **found})
    for batch, lines in codes.decided(batches, partial(_labels, columns), found):
        used = feature_names(batch.schema, columns)
        derived = _derived_columns(batch, used, columns, found, transform is not None)
        features = [name for name in used if name not in derived]
        width = len(features)
        if transform is not None:
            transform.check(features)
            width = transform.width(features)
        new = [name for name in features if name not in {**found, **columns.known, **columns.kinds}]
        signs = {name: sign for name in new if (sign := _sign(batch.column(name), name, options.decimal)) is not None}
        found.update((name, amount_kind(sign)) for name, sign in signs.items())
        amounts |= signs
        values = {name: _feature(batch.column(name), name, columns, known, amounts.get(name)) for name in features}
        for feature, column in values.items():
            if feature not in columns.kinds and batch.column(feature).null_count < batch.num_rows:
                kind = "number" if isinstance(column, NumberColumn) else "category"
                add_kind(found, columns.known, feature, kind)
        dictionaries = DictionaryColumns.of([values[name] for name in features], batch.num_rows, bits, buffers)
        if columns.label is not None and columns.label in batch.schema.names:
            values[columns.label] = _label(batch.column(columns.label), columns.label, columns, found)
        if columns.importance is not None and columns.importance in batch.schema.names:
            weights = _importance(batch.column(columns.importance), columns.importance)
            values[columns.importance] = _nulls_as_nan(weights) if required else weights
        size = max(1, options.block_bytes // (4 * max(1, width)))
        for start in range(0, batch.num_rows, size):
            rows = slice(start, start + size)
            row_problems = RowProblems(lines[rows], problems, file)
            part = {name: column.slice_rows(rows) for name, column in values.items()}
            cells = Cells.empty(lines[rows].size, len(features), bits, buffers)
            dictionaries.fill(cells, start)
            chosen = {name: column.slice_rows(rows) for name, column in derived.items()}
            block = block_of_columns(part, features, chosen, cells, columns, row_problems, names)
            if len(block):
                yield block


def _label(array: Any, name: str, columns: Columns, found: dict[str, str]) -> NumberColumn:
    """Return the labels of a batch."""
    codes = LabelCodes(columns, {**columns.known, **found})
    decimal = columns.options.decimal
    if is_number(array.type) and codes.words is None:
        return _numbers(array)
    if not codes.worded and (sign := _sign(array, name, decimal)) is not None:
        return _parsed(array, name, sign, decimal)
    found_words = _texts(array, name)
    return codes.column(found_words.words, found_words.present)


def _labels(columns: Columns, numbered: NumberedBatch) -> Iterator[str | float]:
    """Yield the labels of a batch that are not null: words, unless they are numbers."""
    (batch, _), name = numbered, str(columns.label)
    if name not in batch.schema.names or (array := batch.column(name)).null_count == len(array):
        return
    if is_number(array.type) or _sign(array, name, columns.options.decimal) is not None:
        yield 0.0
        return
    words = _texts(array, name)
    yield from (words.words[k].decode("utf-8", "backslashreplace") for k in np.flatnonzero(words.present).tolist())


def _importance(array: Any, name: str) -> NumberColumn:
    if not is_number(array.type):
        raise refuse("importance", f"column {name} of type {array.type}", "a column of numbers")
    return _numbers(array)


def _nulls_as_nan(numbers: NumberColumn) -> NumberColumn:
    """Return importances with NaN, which is an error, where there is none."""
    if numbers.present.all():
        return numbers
    values = np.where(numbers.present, numbers.values, np.float32(np.nan))
    return replace(numbers, values=values, present=np.ones(values.size, bool))


def _sign(array: Any, name: str, decimal: str) -> str | None:
    """Return the sign of strings that are all amounts, "" if they have only separators; None for other columns."""
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary
    if not is_string(array.type):
        return None
    words = string_spans(array, name)
    cells = (words[row].decode("utf-8", "replace").strip() for row in np.flatnonzero(valid(array)).tolist())
    return common_sign((cell for cell in cells if cell not in MISSING), decimal)


def _feature(
    array: Any, name: str, columns: Columns, known: DictionaryCache, amount: str | None = None
) -> NumberColumn | StringColumn | DictionaryColumn:
    """Return the values of a column by its kind."""
    number, kind = is_number(array.type), columns.kinds.get(name) or columns.known.get(name)
    sign = amount if kind is None else sign_of(kind)
    if not number and columns.kinds.get(name) == "number" and columns.strict:
        raise refuse("log", f"column {name} of type {array.type}", "numbers")
    if number and kind != "category":
        return _numbers(array)
    if not number and sign is not None:
        return _parsed(array, name, sign, columns.options.decimal)
    return _strings(array, name, known)


def _parsed(array: Any, name: str, sign: str, decimal: str) -> NumberColumn:
    """Parse strings as numbers; other strings are ``non_numbers``."""
    column = _texts(array, name)
    found = plain_numbers(column.words.plain_numbers(sign, decimal), True)
    present, others = found.present & column.present, None
    if found.non_numbers is not None and (odd := found.non_numbers.present & column.present).any():
        others = StringColumn(column.words, odd)
    return replace(found, present=present, non_numbers=others)


def _numbers(array: Any) -> NumberColumn:
    import pyarrow as pa

    found = plain(array)
    wide = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) if found is None else found.astype(float)
    with np.errstate(over="ignore"):
        return NumberColumn(wide.astype(np.float32), valid(array), wide)


def _strings(array: Any, name: str, known: DictionaryCache) -> StringColumn | DictionaryColumn:
    from pyarrow import types

    coded = types.is_dictionary(array.type) and not is_number(array.type.value_type)  # or a number, as in frames
    codes = plain(array.indices) if coded else None
    if codes is None or not len(array.dictionary) or array.dictionary.null_count:
        return _texts(array, name)
    dictionary, there = array.dictionary, valid(array)
    # Codes of null rows are undefined.
    words, slots = known.of(name.encode(), dictionary, lambda: string_spans(dictionary, name))
    return DictionaryColumn(words, slots, codes if there.all() else np.where(there, codes, 0), there)


def _derived_columns(
    batch: Any, names: Sequence[str], columns: Columns, found: dict[str, str], crossed: bool
) -> dict[str, StringColumn]:
    """Return the text and date columns of a record batch; ``found`` receives those that are dates by their type."""
    dates = {name for name in names if _is_temporal(batch.schema.field(name).type)} - columns.kinds.keys()
    found.update(dict.fromkeys(sorted(dates - columns.known.keys()), DATE))
    derived = [name for name in names if name in dates or name in columns.derived]
    if derived and crossed:
        raise refuse("interactions", f"the dates of {derived[0]!r}", "no dates with crosses; or ignore the column")
    return {name: _texts(batch.column(name), name) for name in derived}


def _is_temporal(kind: Any) -> bool:
    """Return whether an Arrow type is a date or a time stamp."""
    from pyarrow import types

    return bool(types.is_timestamp(kind) or types.is_date(kind))


def _texts(array: Any, name: str) -> StringColumn:
    """Return the strings of a column of an Arrow table."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    array = array.cast(pa.string()) if is_number(array.type) or _is_temporal(array.type) else array
    return StringColumn(string_spans(array, name), valid(array))
