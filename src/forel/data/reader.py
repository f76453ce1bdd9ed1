"""``read``: blocks of examples from files, streams, tables and dicts."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from forel.data.block import Block
from forel.data.features.class_names import ClassNames, class_name, shown_names
from forel.data.features.constant import add_constant, record_constant
from forel.data.features.crosses import CHUNK
from forel.data.features.kinds import Kinds
from forel.data.features.names import Names
from forel.data.features.rows import drop_rows
from forel.data.features.separate import SeparateFeatures
from forel.data.line_formats import LINE_FORMATS
from forel.data.options import COLUMNS, ReadKeywords, ReadOptions
from forel.data.parsers.arrays import Arrays, arrays_of, frame_of, with_features
from forel.data.parsers.arrow_batches import NumberedBatch, arrow_batches, dictionary_batches, number_rows
from forel.data.parsers.columns import Columns
from forel.data.parsers.csv_blocks import parse_csv
from forel.data.parsers.csv_rows import CsvFormat
from forel.data.parsers.csv_separator import format_of, separator_of
from forel.data.parsers.dict_batches import batched_blocks
from forel.data.parsers.dicts import json_dicts
from forel.data.parsers.json_lines import JsonFormat, detect_label_words, parse_json
from forel.data.parsers.label_cells import dicts_with_numbers
from forel.data.parsers.lines import LineFormat, parse_lines
from forel.data.parsers.tables import table_blocks
from forel.data.position import BEGINNING, Position
from forel.data.problems import Malformed, Problems
from forel.data.slices import SliceRecorder
from forel.data.sources.files import single_sources
from forel.data.sources.row_cache import RowCache, open_cache
from forel.data.sources.streams import Limited, chunks, open_stream, read_errors, skip
from forel.data.tasks import Task, completed_task, completed_tasks
from forel.validation import refuse

__all__ = ["Reader", "names_for", "read"]

DATASET_ROWS = 1 << 14  # rows of a batch of a Ray dataset


@dataclass(frozen=True, eq=False)
class Reader:
    """An iterator over the blocks of one pass, which fills ``problems``, ``names``, ``kinds`` and ``classes``.

    To parse on several threads, run :meth:`tasks` on any of them and pass the results to :meth:`finish` in order; with
    ``names``, tasks have to run in order too.

    Parameters
    ----------
    source, options : as in :func:`read`
    problems, names, kinds, classes : updated while blocks are read; names may have been recorded before
    start : where to start: the position after a block of another reader with the same source and options
    stop : number of bytes of a plain VW or svmlight file after which to stop, at a line end; None for its end
    """

    source: Any
    options: ReadOptions
    problems: Problems
    names: Names | None = field(default=None, repr=False)
    start: Position = BEGINNING
    kinds: Kinds = field(default_factory=Kinds, repr=False)
    stop: int | None = None
    classes: ClassNames = field(default_factory=ClassNames, repr=False)

    def __iter__(self) -> Iterator[Block]:
        for task in self.tasks():
            yield from self.finish(*task())

    def tasks(self) -> Iterator[Task]:
        """Yield a task for each block, in order."""
        if self.options.constant and self.names is not None:
            record_constant(self.names)
        if isinstance(self.source, RowCache):
            self.kinds.of_file(0).update(self.source.kinds)
            self.kinds.seen.names.update(self.source.kinds)
            yield from self.source.tasks(self.source.find(self.start) if self.start > BEGINNING else 0)
            return
        for number, one in enumerate(single_sources(self.source)):
            if number >= self.start.file:
                yield from self.file_tasks(one, self.start if number == self.start.file else Position(number))

    def file_tasks(self, source: Any, start: Position, name: str | None = None) -> Iterator[Task]:
        """Yield a task for each block of one file from a position on; ``name`` is its name in messages."""
        yield from _tasks(source, self, Problems(self.problems.on_error), start, name)

    def finish(self, block: Block | None, problems: Problems) -> Iterator[Block]:
        """Record the problems of a task, number the classes of its block, and yield it if it has examples."""
        self.problems.absorb(problems)
        if block is not None and (block.label_words is not None or self.options.classes is not None):
            block = self._with_class_numbers(block)
        if block is not None and len(block):
            yield add_constant(block, self.options.bits) if self.options.constant else block

    def _with_class_numbers(self, block: Block) -> Block:
        """Return a block with the numbers of classes as labels; a row of an unknown class is malformed."""
        numbers = self.classes.number(block.labels, block.label_words)
        unknown, named = numbers == -1, replace(block, labels=numbers, label_words=None)
        if not unknown.any():
            return named
        if self.options.unlabelled:
            return replace(named, labels=np.where(unknown, np.float32(np.nan), numbers))
        for row in np.flatnonzero(unknown).tolist():
            label = block.labels[row] if block.label_words is None else block.label_words[int(block.labels[row])]
            line = block.line if block.lines is None else int(block.lines[row])
            got, expected = f"the class {class_name(label)!r}", f"one of {shown_names(self.classes.names)}"
            self.problems.record(Malformed(block.file, line, self.options.label, got, expected))
        return drop_rows(named, np.flatnonzero(unknown))


def read(
    source: Any, format: str | None = None, *, options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> Reader:
    r"""Read examples in blocks, in constant memory.

    Parameters
    ----------
    source : a path, a glob pattern, "-" for standard input, a binary file object, or a list of these, plain or
        compressed by gzip or zstd; or a frame of pandas, polars or another library that narwhals knows, or a table
        with the Arrow PyCapsule interface; or a numpy array, or a sparse array or matrix of scipy, whose columns are
        named c1, c2, ...; or a tuple (X, y) or (X, y, importance) of such a table or array and its labels; or a
        ``ray.data.Dataset``, in its own order; or an iterable of dicts
    format : as in :class:`ReadOptions`
    options : to start from; defaults if None
    keywords : options by name, which override those; see :class:`ReadOptions`. ``names`` may be names to add to

    >>> import io
    >>> reader = read(io.BytesIO(b"1 2.0 |a x:3 y\n-1 |a y\n"))
    >>> [(b.labels.tolist(), b.importance.tolist(), b.values.tolist()) for b in reader]
    [([1.0, -1.0], [2.0, 1.0], [3.0, 1.0, 1.0])]
    """
    chosen = (options or ReadOptions()).updated({"format": format, **keywords})
    names = names_for(chosen, keywords.get("names"))
    kinds, classes = Kinds(chosen.kinds), ClassNames(chosen.classes)
    return Reader(source, chosen, Problems(chosen.on_error), names, kinds=kinds, classes=classes)


def names_for(options: ReadOptions, names: bool | Names | None = None) -> Names | None:
    """Return the object that records names: ``names`` itself, a new one if the options enable it, or None."""
    if not isinstance(names, Names):
        return Names(options.bits) if options.names else None
    if names.bits != options.bits:
        raise refuse("names", f"names of {names.bits} bits", f"names of {options.bits}, the number of bits of slots")
    return names


def _tasks(source: Any, reader: Reader, problems: Problems, start: Position, name: str | None = None) -> Iterator[Task]:
    if isinstance(source, str) or hasattr(source, "read"):
        file = name or _name(source)
        with open_stream(source) as stream:
            yield from _stream_tasks(stream, file, reader, problems, start)
    elif (arrays := arrays_of(source)) is not None:
        yield from _array_tasks(arrays, reader, problems, start)
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        import pyarrow as pa

        whole = hasattr(source, "__arrow_c_stream__")
        batches = pa.RecordBatchReader.from_stream(source) if whole else [pa.record_batch(source)]
        numbered = number_rows(batches, "table", problems, "table")
        yield from _table_tasks(numbered, "table", reader, problems, start, _columns(reader, start))
    elif hasattr(source, "iter_batches") and hasattr(source, "materialize"):
        tables = source.iter_batches(batch_format="pyarrow", batch_size=DATASET_ROWS)
        numbered = number_rows(
            (batch for table in tables for batch in table.to_batches()), "dataset", problems, "dataset"
        )
        yield from _table_tasks(numbered, "dataset", reader, problems, start, _columns(reader, start))
    elif (frame := frame_of(source)) is not None:
        yield from _tasks(frame, reader, problems, start)
    elif isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        yield from _dict_tasks(enumerate(source, 1), "dicts", reader, problems, start)
    else:
        expected = "a path, a binary file object, a table, an array (X, y), or an iterable of dicts"
        raise refuse("source", type(source).__name__, expected)


def _stream_tasks(stream: Any, file: str, reader: Reader, problems: Problems, start: Position) -> Iterator[Task]:
    options, columns, kinds_found = reader.options, _columns(reader, start), reader.kinds.of_file(start.file)
    try:
        beginning = stream.peek(1 << 12) if options.format in ("auto", "csv") else b""
        form = format_of(file, options, beginning)
    except read_errors() as wrong:
        problems.record(Malformed(file, 1, None, str(wrong).rstrip("."), "a whole file"))
        yield completed_task(None, problems)
        return
    if form not in LINE_FORMATS:
        _check_sequences(options)
    if form in ("csv", "tsv"):
        rows = CsvFormat(
            separator_of(form, options, beginning),
            columns,
            options.bits,
            options.block_bytes,
            options.transform,
            options.longest_line(form),
        )
        yield from parse_csv(stream, rows, problems, reader.names, file, start, kinds_found)
    elif form == "arrow" and (cache := open_cache(stream, file)) is not None:
        _check_cache(cache, reader)
        kinds_found.update(cache.kinds)
        reader.kinds.seen.names.update(cache.kinds)
        yield from cache.tasks(start.blocks, start.file)
    elif form == "parquet":
        numbered = number_rows(dictionary_batches(stream, columns), "parquet file", problems, file)
        used = {columns.label, columns.importance}
        hidden = {name for name in options.slices if name not in used and not columns.uses(name)}
        yield from _table_tasks(numbered, file, reader, problems, start, columns.projected, hidden)
    elif form == "arrow":
        numbered = number_rows(arrow_batches(stream), "arrow file", problems, file)
        yield from _table_tasks(numbered, file, reader, problems, start, columns)
    elif form == "jsonl":
        size = options.block_bytes if options.transform is None else min(options.block_bytes, CHUNK)
        skip(stream, start.bytes)
        text = chunks(stream, size, problems, file, start.line, limit=options.longest_line(form))
        worded, lines = (False, text) if start.bytes else detect_label_words(text, columns)
        if worded or columns.derived or options.slices or start.blocks:  # these positions are in blocks
            yield from _dict_tasks(json_dicts(lines, problems, file), file, reader, problems, start)
        else:
            objects = JsonFormat(columns, options.bits, options.transform)
            yield from parse_json(lines, objects, problems, reader.names, file, start, kinds_found)
    else:
        defaults, syntax = ReadOptions(), LINE_FORMATS[form]
        taken = ("ngram", "skips") if syntax.namespaces and options.sequences is not None else ()
        if any(getattr(options, name) != getattr(defaults, name) for name in COLUMNS if name not in taken):
            raise refuse(", ".join(COLUMNS), options.label or "columns", f"none for {form}, which has no columns")
        separate = isinstance(options.transform, SeparateFeatures)
        transform = None if separate and not syntax.namespaces else options.transform
        if transform is not None and not syntax.namespaces:
            raise refuse("interactions", "crosses", f"none for {form}, which has no namespaces")
        if options.slices and not syntax.namespaces:
            raise refuse("slices", ", ".join(options.slices), f"none for {form}, which has no columns or namespaces")
        shift = 1 if options.zero_based is False and syntax.ids else 0
        tags, sequences = options.tags and syntax.tags, options.sequences
        line_format = LineFormat(form, options.bits, shift, tags, transform, options.slices, sequences)
        plain = transform is None and sequences is None
        size = options.block_bytes if plain else min(options.block_bytes, CHUNK)
        skip(stream, start.bytes)
        limited = stream if reader.stop is None else Limited(stream, reader.stop - start.bytes)
        found_lines = chunks(limited, size, problems, file, start.line, limit=options.longest_line(form))
        yield from parse_lines(found_lines, line_format, problems, reader.names, file, start)


def _check_sequences(options: ReadOptions) -> None:
    """Raise if sequences of words are wanted, but no column of text is named."""
    if options.sequences is not None:
        raise refuse("ngram", options.ngram, "1 without text (--text), which names columns; VW text needs none")


def _columns(reader: Reader, start: Position) -> Columns:
    """Return the roles of a file's columns, with their kinds in earlier files."""
    return Columns(reader.options, reader.kinds.before(start.file), reader.kinds.seen)


def _check_cache(cache: RowCache, reader: Reader) -> None:
    """Raise if options are neither defaults nor those that the cache was written with."""
    written, defaults = cache.key.get("options", {}), ReadOptions().meaning
    for name, value in reader.options.meaning.items():
        if (
            name not in ("format", "kinds", "classes")
            and value != written.get(name)
            and (name == "bits" or value != defaults[name])
        ):
            raise refuse(name, value, f"{written.get(name)!r}, as {cache.file} was made with")
    for name, kind in cache.kinds.items():
        if reader.options.kinds.get(name, kind) != kind:
            raise refuse(f"column {name}", f"{kind} in {cache.file}", f"{reader.options.kinds[name]}")
    if reader.options.slices:
        expected = f"none for {cache.file}: a cache has no values of columns; read what it was made from"
        raise refuse("slices", ", ".join(reader.options.slices), expected)
    if reader.names is not None:
        raise refuse("names", True, f"False for {cache.file}: a cache has none; read what it was made from")


def _table_tasks(
    batches: Iterable[NumberedBatch], file: str, reader: Reader, problems: Problems, start: Position, columns: Columns,
    hidden: Collection[str] = (),
) -> Iterator[Task]:  # fmt: skip
    options, recorder = reader.options, SliceRecorder(reader.options.slices)
    _check_sequences(options)
    batches = recorder.batches(batches, hidden) if options.slices else batches
    blocks = table_blocks(
        batches, columns, options.bits, options.block_bytes, problems, reader.names, file, options.transform,
        reader.kinds.of_file(start.file),
    )  # fmt: skip
    yield from completed_tasks(recorder.blocks(blocks) if options.slices else blocks, problems, start)


def _array_tasks(arrays: Arrays, reader: Reader, problems: Problems, start: Position) -> Iterator[Task]:
    columns, options = arrays.named(_columns(reader, start)), reader.options
    numbered = number_rows(arrays.batches(columns), "array", problems, "array")
    if not arrays.sparse:
        yield from _table_tasks(numbered, "array", reader, problems, start, columns)
        return
    columns.saw(f"c{k + 1}" for k in range(arrays.X.shape[1]))
    # The table has labels and importances only.
    none = replace(columns, options=replace(columns.options, keep=()))
    found, names = reader.kinds.of_file(start.file), reader.names
    labels = table_blocks(
        numbered, none, options.bits, options.block_bytes, problems, None, "array", kinds_found=found
    )  # fmt: skip
    yield from completed_tasks(with_features(labels, arrays.X, options, problems, names), problems, start)


def _dict_tasks(
    items: Iterable[tuple[int, Any]], file: str, reader: Reader, problems: Problems, start: Position
) -> Iterator[Task]:
    options, columns, kinds_found = reader.options, _columns(reader, start), reader.kinds.of_file(start.file)
    words, recorder = list[str](), SliceRecorder(options.slices)
    _check_sequences(options)
    items = recorder.dicts(items) if options.slices else items
    items = items if columns.label is None else dicts_with_numbers(items, columns, kinds_found, words)
    form = JsonFormat(columns, options.bits, options.transform)
    blocks = batched_blocks(items, form, problems, reader.names, file, kinds_found)
    blocks = recorder.blocks(blocks) if options.slices else blocks
    named = (replace(block, label_words=tuple(words)) if words else block for block in blocks)
    yield from completed_tasks(named, problems, start)


def _name(stream: Any) -> str:
    if isinstance(stream, str):
        return "standard input" if stream == "-" else stream
    with suppress(AttributeError):
        return os.fspath(stream.name) if not isinstance(stream.name, int) else f"file {stream.name}"
    return "stream"
