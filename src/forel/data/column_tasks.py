"""Tasks of sources with columns: CSV, Parquet, Arrow and JSON files, tables, arrays, and dicts."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from forel.data.block import Position, Task, completed_tasks
from forel.data.options import ReadOptions
from forel.data.parsers.arrow_batches import (
    Arrays,
    NumberedBatch,
    arrays_of,
    arrow_batches,
    conversion_errors,
    dictionary_batches,
    frame_of,
    is_pandas,
    number_rows,
    with_features,
)
from forel.data.parsers.columns import Columns
from forel.data.parsers.csv_header import separator_of
from forel.data.parsers.csv_rows import CsvFormat, parse_csv
from forel.data.parsers.dicts import JsonDicts, batched_blocks
from forel.data.parsers.json_lines import parse_json
from forel.data.parsers.label_codes import LabelCodes
from forel.data.parsers.tables import table_blocks
from forel.data.problems import Problems
from forel.data.slices import SliceRecorder
from forel.data.sources.streams import chunks, skip
from forel.validation import refuse

if TYPE_CHECKING:
    from forel.data.reader import Reader

__all__ = ["object_tasks", "stream_tasks"]

DATASET_ROWS = 1 << 14  # rows of a batch of a Ray dataset


def object_tasks(source: Any, reader: "Reader", problems: Problems, start: Position) -> Iterator[Task]:
    """Yield a task for each block of a table, an array, a dataset or an iterable of dicts."""
    _check_missing(reader.options, "tables and dicts in memory")
    if (arrays := arrays_of(source)) is not None:
        yield from _array_tasks(arrays, reader, problems, start)
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        numbered = number_rows(_exported_batches(source), "table", problems, "table")
        yield from _table_tasks(
            numbered, "table", reader, problems, start, _columns(reader, start), from_pandas=is_pandas(source)
        )
    elif hasattr(source, "iter_batches") and hasattr(source, "materialize"):
        tables = source.iter_batches(batch_format="pyarrow", batch_size=DATASET_ROWS)
        numbered = number_rows(
            (batch for table in tables for batch in table.to_batches()), "dataset", problems, "dataset"
        )
        yield from _table_tasks(numbered, "dataset", reader, problems, start, _columns(reader, start))
    elif (frame := frame_of(source)) is not None:
        yield from object_tasks(frame, reader, problems, start)
    elif isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        yield from _dict_tasks(enumerate(source, 1), "dicts", reader, problems, start)
    else:
        one = "; one row is [row]" if isinstance(source, Mapping) else ""
        expected = f"a path, a binary file object, a table, an array (X, y), or an iterable of dicts{one}"
        raise refuse("source", type(source).__name__, expected)


def _exported_batches(source: Any) -> Any:
    """Return the record batches of an object with the Arrow PyCapsule interface."""
    import pyarrow as pa

    with conversion_errors(source):
        whole = hasattr(source, "__arrow_c_stream__")
        return pa.RecordBatchReader.from_stream(source) if whole else [pa.record_batch(source)]


def stream_tasks(
    stream: Any, form: str, beginning: bytes, file: str, reader: "Reader", problems: Problems, start: Position
) -> Iterator[Task]:
    """Yield a task for each block of a file; ``beginning`` has its first bytes."""
    options, columns, kinds_found = reader.options, _columns(reader, start), reader.kinds.of_file(start.file)
    if form in ("csv", "tsv"):
        rows = CsvFormat(separator_of(form, options, beginning), columns, options.longest_line(form))
        yield from parse_csv(stream, rows, problems, reader.names, file, start, kinds_found)
    elif form == "parquet":
        _check_missing(options, form)
        numbered = number_rows(dictionary_batches(stream, columns), "parquet file", problems, file)
        used = {columns.label, columns.importance}
        hidden = {name for name in options.slices if name not in used and not columns.uses(name)}
        yield from _table_tasks(numbered, file, reader, problems, start, replace(columns, checked=True), hidden)
    elif form == "arrow":
        _check_missing(options, form)
        numbered = number_rows(arrow_batches(stream), "arrow file", problems, file)
        yield from _table_tasks(numbered, file, reader, problems, start, columns)
    else:  # JSON lines
        _check_missing(options, form)
        skip(stream, start.bytes)
        text = chunks(stream, options.chunk_bytes, problems, file, start.line, limit=options.longest_line(form))
        if columns.derived or options.slices:  # these positions are in blocks
            yield from _dict_tasks(JsonDicts(text, problems, file), file, reader, problems, start)
            return
        yield from parse_json(text, columns, problems, reader.names, file, start, kinds_found)


def _check_missing(options: ReadOptions, form: str) -> None:
    """Warn in training that marks of missing values are for delimited text."""
    if options.missing and not options.unlabelled:
        marks = ", ".join(options.missing)
        warnings.warn(f"missing: got {marks}, which is ignored in {form}; use null there", UserWarning, stacklevel=2)


def _columns(reader: "Reader", start: Position) -> Columns:
    """Return the roles of a file's columns, with their kinds in earlier files."""
    return Columns(reader.options, reader.kinds.before(start.file), reader.kinds.seen)


def _table_tasks(
    batches: Iterable[NumberedBatch], file: str, reader: "Reader", problems: Problems, start: Position,
    columns: Columns, hidden: Collection[str] = (), from_pandas: bool = False,
) -> Iterator[Task]:  # fmt: skip
    options, recorder = reader.options, SliceRecorder(reader.options.slices)
    batches = recorder.batches(batches, hidden) if options.slices else batches
    blocks = table_blocks(batches, columns, problems, reader.names, file, reader.kinds.of_file(start.file), from_pandas)
    yield from completed_tasks(recorder.blocks(blocks) if options.slices else blocks, problems, start)


def _array_tasks(arrays: Arrays, reader: "Reader", problems: Problems, start: Position) -> Iterator[Task]:
    columns, options = arrays.named(_columns(reader, start)), reader.options
    numbered = number_rows(arrays.batches(columns), "array", problems, "array")
    if not arrays.sparse:
        yield from _table_tasks(numbered, "array", reader, problems, start, columns, from_pandas=arrays.nan_as_null)
        return
    columns.saw(f"c{k + 1}" for k in range(arrays.X.shape[1]))
    # The table has labels and importances only.
    none = replace(columns, options=replace(columns.options, keep=()))
    labels = table_blocks(numbered, none, problems, None, "array", reader.kinds.of_file(start.file), from_pandas=True)
    yield from completed_tasks(with_features(labels, arrays.X, options, problems, reader.names), problems, start)


def _dict_tasks(
    items: Iterable[tuple[int, Any]], file: str, reader: "Reader", problems: Problems, start: Position
) -> Iterator[Task]:
    options, columns, kinds_found = reader.options, _columns(reader, start), reader.kinds.of_file(start.file)
    labels, recorder = LabelCodes(columns), SliceRecorder(options.slices)
    source = items
    items = recorder.dicts(items) if options.slices else items
    items = items if columns.label is None else labels.encode_all(items, kinds_found)
    blocks = batched_blocks(
        items, columns, problems, reader.names, file, kinds_found,
        lambda: getattr(source, "complete", False),
    )  # fmt: skip
    blocks = recorder.blocks(blocks) if options.slices else blocks
    named = (replace(block, label_words=tuple(labels.classes)) if labels.classes else block for block in blocks)
    yield from completed_tasks(named, problems, start)
