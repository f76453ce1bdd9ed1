"""Arrow tables as blocks: numbers are values, strings are categories, and nulls are absent."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.buffers import Buffers
from forel.data.features.crosses import Transform
from forel.data.features.kinds import add_kind
from forel.data.features.label_words import LabelWords, kind_of_words
from forel.data.features.names import Names
from forel.data.features.rows import Cells
from forel.data.parsers.arrow_arrays import is_number, is_string, plain, string_spans, valid
from forel.data.parsers.cell_values import parse_number
from forel.data.parsers.cells import RowProblems, block_from_columns
from forel.data.parsers.column_values import (
    DictionaryCache,
    DictionaryColumn,
    DictionaryColumns,
    NumberColumn,
    StringColumn,
    fill_numbers,
    labels_and_importance,
)
from forel.data.parsers.columns import Columns
from forel.data.parsers.derived_columns import derived_columns, with_derived
from forel.data.parsers.label_cells import class_labels, given_words, has_classes, no_labels, word_labels, words_of
from forel.data.problems import Malformed, Problems
from forel.data.sources.remote import RemoteFile
from forel.validation import refuse

__all__ = ["NumberedBatch", "arrow_batches", "dictionary_batches", "number_rows", "parquet_batches", "table_blocks"]

CELLS = 1 << 22  # cells of a batch
LARGEST = 1 << 20  # bytes of a dictionary, above which writers fall back to plain strings
NumberedBatch = tuple[Any, NDArray[np.int64]]  # a record batch, and the number of each row


def number_rows(batches: Iterable[Any], kind: str, problems: Problems, file: str) -> Iterator[NumberedBatch]:
    """Number the rows of batches from 1 on; an error of reading is recorded as a problem with its row."""
    import pyarrow as pa

    row = 1
    remaining = iter(batches)
    known: dict[str, Any] = {}
    while True:
        try:
            batch = next(remaining, None)
            if batch is not None:
                _check(batch, known)
        except (pa.ArrowException, OSError, MemoryError) as wrong:
            got = (str(wrong) or type(wrong).__name__).splitlines()[0].rstrip(".")
            problems.record(Malformed(file, row, None, got, f"a whole {kind}"))
            return
        if batch is None:
            return
        yield batch, np.arange(row, row + batch.num_rows)
        row += batch.num_rows


def _check(batch: Any, known: dict[str, Any]) -> None:
    """Raise for offsets and codes out of bounds, as damaged files may have them: compiled code does not check them.

    ``known`` has the dictionaries of the previous batch, which are not validated again if they are repeated.
    """
    import pyarrow as pa
    from pyarrow import types

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        column.validate()
        codes = plain(column.indices) if types.is_dictionary(column.type) else None
        if codes is None:
            column.validate(full=True)
            continue
        words = column.dictionary
        if name not in known or not words.equals(known[name]):
            words.validate(full=True)
            known[name] = words
        there = codes if not column.null_count else codes[valid(column)]
        # As unsigned integers, negative codes are too large.
        if there.size and int(there.view(f"u{there.itemsize}").max()) >= len(words):
            raise pa.ArrowInvalid(f"column {name} has a code that is not in its dictionary")


def parquet_batches(stream: Any) -> Iterator[Any]:
    """Yield the record batches of a seekable Parquet file."""
    import pyarrow.parquet as pq

    yield from pq.ParquetFile(_native(stream)).iter_batches(batch_size=1 << 14)


def _native(stream: Any) -> Any:
    """Return a plain file as an Arrow file, which is read without Python calls; other streams unchanged."""
    import pyarrow as pa

    raw = getattr(stream, "raw", None)
    if isinstance(raw, RemoteFile):
        return raw.native
    name = getattr(raw, "name", None)
    if not isinstance(name, str) or not os.path.isfile(name):
        return stream
    # The name may belong to another file by now.
    return pa.OSFile(name) if os.path.samestat(os.stat(name), os.fstat(stream.fileno())) else stream


def _ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches while a thread reads the next one: pyarrow takes as long as all later stages together."""
    with ThreadPoolExecutor(1, "forel-batches") as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


def dictionary_batches(stream: Any, columns: Columns) -> Iterator[Any]:
    """Yield batches of the columns in use, dictionary-encoded where the file has dictionaries."""
    import pyarrow.parquet as pq

    source = _native(stream)
    schema = pq.ParquetFile(source).schema_arrow
    used = {columns.label, columns.importance, *columns.options.slices, *feature_names(schema, columns)}
    wanted = [name for name in schema.names if name in used]
    names = [name for name in wanted if is_string(schema.field(name).type)]
    # Every batch repeats its dictionaries, so batches are large.
    size = min(1 << 16, max(1 << 12, CELLS // max(1, len(wanted))))

    def batches(coded: list[str]) -> Iterator[Any]:
        # Without a buffer, all columns of a row group would be in memory at once.
        file = pq.ParquetFile(source, read_dictionary=coded, buffer_size=1 << 16)
        # pyarrow also returns nested columns: "a.b" for "a".
        found = (batch.select(wanted) for batch in file.iter_batches(batch_size=size, columns=wanted))
        return _ahead(batch.replace_schema_metadata(None) for batch in found)

    rest = batches(names)
    start = list(islice(rest, 2))
    if len(start) < 2:
        yield from start
        return
    # Metadata has this information, but pyarrow aborts the process if it is damaged.
    words = [name for name in names if _grows(*(batch.column(name) for batch in start))]
    if words:
        start, rest = [], batches([name for name in names if name not in words])
    while start:
        yield start.pop(0)
    yield from rest


def _grows(before: Any, after: Any) -> bool:
    """Return whether a large dictionary grows from batch to batch, because pyarrow encodes plain strings.

    A writer abandons a dictionary that becomes too large, and writes plain strings after it. Encoding those takes
    longer than hashing each.
    """
    from pyarrow import types

    if not (types.is_dictionary(before.type) and types.is_dictionary(after.type)):
        return False
    size = sum(buffer.size for buffer in before.dictionary.buffers() if buffer is not None)
    return size >= LARGEST and len(after.dictionary) > len(before.dictionary)


def feature_names(schema: Any, columns: Columns) -> list[str]:
    """Return the features of a table, without the index of a pandas frame, unless an option names it."""
    named = {*(columns.options.keep or ()), *columns.kinds}
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        hidden = {name for name in index if isinstance(name, str)} - named
    except (ValueError, AttributeError, TypeError):  # metadata of another writer
        hidden = set()
    features = [name for name in columns.features(schema.names) if name not in hidden]
    columns.saw(features)
    return features


def arrow_batches(stream: Any) -> Iterator[Any]:
    """Yield the record batches of an Arrow file or stream."""
    import pyarrow as pa

    if stream.peek(6)[:6] == b"ARROW1":
        file = pa.ipc.open_file(stream)
        yield from (file.get_batch(k) for k in range(file.num_record_batches))
    else:
        yield from pa.ipc.open_stream(stream)


def table_blocks(
    batches: Iterable[NumberedBatch],
    columns: Columns,
    bits: int,
    block_bytes: int,
    problems: Problems,
    names: Names | None,
    file: str,
    transform: Transform | None = None,
    kinds_found: dict[str, str] | None = None,
) -> Iterator[Block]:
    """Yield blocks of the rows of record batches; ``kinds_found`` receives the kinds of columns."""
    found = {} if kinds_found is None else kinds_found
    mask, known, buffers = np.uint64((1 << bits) - 1), DictionaryCache(bits), Buffers()
    for batch, lines in batches:
        used = feature_names(batch.schema, columns)
        derived = derived_columns(batch, used, columns, found, transform is not None)
        features = [name for name in used if name not in derived]
        width = len(features)
        if transform is not None:
            transform.check(features)
            width = transform.width(features)
        values = {name: _feature(batch.column(name), name, columns, known) for name in features}
        for feature, column in values.items():
            if feature not in columns.kinds and batch.column(feature).null_count < batch.num_rows:
                kind = "number" if isinstance(column, NumberColumn) else "category"
                add_kind(found, columns.known, feature, kind)
        dictionaries = DictionaryColumns.of([values[name] for name in features], batch.num_rows, buffers)
        class_words = None
        if columns.label is not None and columns.label in batch.schema.names:
            values[columns.label], class_words = _label(batch.column(columns.label), columns.label, columns, found)
        if columns.importance is not None and columns.importance in batch.schema.names:
            values[columns.importance] = _importance(batch.column(columns.importance), columns.importance)
        words = given_words(columns, {**columns.known, **found})
        expected = "a number" if words is None else words.expected
        size = max(1, block_bytes // (4 * max(1, width)))
        for start in range(0, batch.num_rows, size):
            rows = slice(start, start + size)
            row_problems = RowProblems(lines[rows], problems, file)
            part = {name: column.slice_rows(rows) for name, column in values.items()}
            cells = Cells.empty(lines[rows].size, len(features), buffers)
            dictionaries.fill(cells, start)
            block = _block(part, features, columns, bits, mask, row_problems, names, transform, cells, expected)
            block = block if class_words is None else replace(block, label_words=class_words)
            if derived:
                chosen = {name: column.slice_rows(rows) for name, column in derived.items()}
                block = with_derived(block, chosen, columns, row_problems, names)
            if len(block):
                yield block


def _block(
    part: dict[str, Any], features: list[str], columns: Columns, bits: int, mask: np.uint64, row_problems: RowProblems,
    names: Names | None, transform: Transform | None, cells: Cells, expected: str,
) -> Block:  # fmt: skip
    labels, importance = labels_and_importance(part, columns, row_problems, expected)
    made = [
        fill_numbers(part[name], name, k, columns, cells, mask, row_problems)
        if isinstance(part[name], NumberColumn)
        else part[name].feature(cells, k, name.encode(), mask)
        for k, name in enumerate(features)
    ]
    return block_from_columns(cells, made, labels, importance, row_problems, bits, names, transform)


def _label(
    array: Any, name: str, columns: Columns, found: dict[str, str]
) -> tuple[NumberColumn, tuple[str, ...] | None]:
    """Return the labels of a table, as indices of words if these are classes, and these words.

    The first batch decides which of two words is positive, or that there are several classes.
    """
    import pyarrow as pa
    from pyarrow import types

    words = given_words(columns, {**columns.known, **found})
    if is_number(array.type) and words is None:
        return _numbers(array), None
    if is_number(array.type):
        array = array.cast(pa.string())
    elif types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    cells, there = string_spans(array, name), valid(array)
    kinds = {**columns.known, **found}
    if words is None and columns.options.unlabelled and not has_classes(columns, kinds):
        return no_labels(len(array)), None
    if words is None and not has_classes(columns, kinds):
        found[name] = kinds[name] = kind_of_words(words_of(cells, there))
        words = LabelWords.of_kind(kinds[name])
    if words is None:
        return class_labels(cells, there)
    return word_labels(cells, words, there), None


def _importance(array: Any, name: str) -> NumberColumn:
    if not is_number(array.type):
        raise refuse("importance", f"column {name} of type {array.type}", "a column of numbers")
    return _numbers(array)


def _feature(
    array: Any, name: str, columns: Columns, known: DictionaryCache
) -> NumberColumn | StringColumn | DictionaryColumn:
    """Return the values of a column by its kind."""
    import pyarrow as pa

    number, kind = is_number(array.type), columns.kinds.get(name) or columns.known.get(name)
    if not number and columns.kinds.get(name) == "number" and columns.strict:
        raise refuse("log" if name in columns.log else "bucket", f"column {name} of type {array.type}", "numbers")
    if number and kind != "category":
        return _numbers(array)
    if not number and kind == "number":
        return _parsed(array, name)
    return _strings(array.cast(pa.string()) if number else array, name, known)


def _parsed(array: Any, name: str) -> NumberColumn:
    """Parse strings as numbers; other strings are ``non_numbers``."""
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    words, there = string_spans(array, name), valid(array)
    wide, non_numbers = np.zeros(len(array)), np.zeros(len(array), bool)
    for row in np.flatnonzero(there).tolist():
        try:
            value = parse_number(words[row])
            there[row], wide[row] = value is not None, 0.0 if value is None else value
        except ValueError:
            there[row], non_numbers[row] = False, True
    with np.errstate(over="ignore"):
        return NumberColumn(
            wide.astype(np.float32), there, wide, StringColumn(words, non_numbers) if non_numbers.any() else None
        )


def _numbers(array: Any) -> NumberColumn:
    import pyarrow as pa

    found = plain(array)
    wide = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) if found is None else found.astype(float)
    with np.errstate(over="ignore"):
        return NumberColumn(wide.astype(np.float32), valid(array), wide)


def _strings(array: Any, name: str, known: DictionaryCache) -> StringColumn | DictionaryColumn:
    import pyarrow as pa
    from pyarrow import types

    if not types.is_dictionary(array.type):
        return StringColumn(string_spans(array, name), valid(array))
    if is_number(array.type.value_type):  # a category that is a number, as in frames
        array = array.cast(array.type.value_type).cast(pa.string())
        return StringColumn(string_spans(array, name), valid(array))
    dictionary, there, codes = array.dictionary, valid(array), plain(array.indices)
    if codes is None or not len(dictionary) or dictionary.null_count:
        array = array.cast(array.type.value_type)
        return StringColumn(string_spans(array, name), valid(array))
    # Codes of null rows are undefined.
    words, slots = known.of(name.encode(), dictionary, lambda: string_spans(dictionary, name))
    return DictionaryColumn(words, slots, codes if there.all() else np.where(there, codes, 0), there)
