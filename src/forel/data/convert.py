"""Conversion between formats, with an account of what is lost."""

import gzip
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from forel.data.options import TEXT, ReadOptions
from forel.data.parsers.arrow_batches import arrow_batches, number_rows, parquet_batches
from forel.data.parsers.columns import Columns
from forel.data.parsers.csv_blocks import csv_batches
from forel.data.parsers.csv_rows import CsvFormat
from forel.data.parsers.csv_separator import format_of, separator_of
from forel.data.problems import Problems
from forel.data.reader import read
from forel.data.sources.detect import SUFFIXES
from forel.data.sources.streams import expand_paths, open_stream
from forel.data.writers import WRITERS
from forel.validation import refuse

__all__ = ["Converted", "convert"]

TABLES = ("csv", "tsv", "parquet", "arrow")
COLUMNAR = ("parquet", "arrow")


@dataclass(frozen=True)
class Converted:
    """The number of examples written, counts of what the format cannot hold, and problems of reading."""

    rows: int
    lost: dict[str, int]
    problems: Problems


def convert(source: Any, path: str | os.PathLike[str], to: str = "auto", **reading: Any) -> Converted:
    """Write the examples of a source to a file of another format, atomically.

    ===================  ============================================================================================
    to                   what is kept
    ===================  ============================================================================================
    ``vw``, ``jsonl``    every feature with its namespace, name and value; JSON has the keys label and importance;
                         names of svmlight are its ids below 2**bits, by default 2**31; others are hashed
    ``svmlight``         slots as ids, for a model with as many bits: training gives the same model
    ``parquet, arrow``   the columns of CSV, TSV, Parquet or Arrow, with their types; with ``keep`` or ``ignore`` some
    ===================  ============================================================================================

    Parameters
    ----------
    source : as :func:`forel.data.read` takes it; for Parquet and Arrow one file with columns
    path : the file to write; compressed if it ends with .gz
    to : one of vw, svmlight, jsonl, parquet, arrow; "auto" uses the suffix of the path
    reading : options of :class:`forel.data.ReadOptions`, such as ``label``, ``bits`` and ``on_error``

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.vw"
    >>> convert([{"city": "New York", "price": 3.5, "click": 1}], path, label="click").lost
    {'names with bytes that became _': 1}
    >>> path.read_text()
    '1 |city New_York | price:3.5\\n'
    """
    name = os.fspath(path)
    chosen = SUFFIXES.get(name.lower().removesuffix(".gz").rpartition(".")[2], "") if to == "auto" else to
    if chosen in COLUMNAR:
        return _columns(source, name, chosen, ReadOptions().updated(reading))
    if chosen not in WRITERS:
        raise refuse("to", chosen or name, f"one of {', '.join((*WRITERS, *COLUMNAR))}")
    options = ReadOptions(tags=True) if chosen == "svmlight" else ReadOptions(tags=True, entry_names=True, bits=31)
    reader = read(source, options=options.updated(reading))
    rows, lost = 0, Counter[str]()
    with _replacing(name) as part, (gzip.open if name.endswith(".gz") else open)(part, "wb") as file:
        for block in reader:
            if reader.classes.names:  # numbers from 1 on, as Vowpal Wabbit has them
                block = replace(block, labels=block.labels + 1)
                lost["names of classes, of which the numbers are left"] = len(reader.classes.names)
            for line in WRITERS[chosen](block, lost):
                file.write(line.encode("utf-8", "surrogateescape") + b"\n")
                rows += 1
    if chosen == "svmlight":
        lost["names, of which the slots are left"] = rows
    return Converted(rows, {what: times for what, times in lost.items() if times}, reader.problems)


def _columns(source: Any, name: str, to: str, options: ReadOptions) -> Converted:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if name.endswith(".gz"):
        raise refuse("path", name, f"a name without .gz: {to} files are compressed already")
    columns = Columns(replace(options, categories=(), log=(), bucket=()))
    sources = source if isinstance(source, list | tuple) else [source]
    files = [file for one in sources for file in expand_paths(one)]
    if len(files) != 1:
        raise refuse("source", f"{len(files)} files", f"one file with columns for {to}")
    problems = Problems(options.on_error)
    rows = 0
    with _replacing(name) as part, ExitStack() as stack, open_stream(files[0]) as stream:
        form = format_of(files[0], options, stream.peek(1 << 12))
        if form not in TABLES:
            raise refuse("source", form, f"columns for {to}: {', '.join(TABLES)}")
        writer, schema = None, None
        for batch in _batches(stream, form, options, problems, files[0]):
            used = columns.features(batch.schema.names)
            batch = batch.select([n for n in batch.schema.names if n in (*used, columns.label, columns.importance)])
            if writer is None:
                maker, schema = pq.ParquetWriter if to == "parquet" else pa.ipc.new_file, batch.schema
                writer = stack.enter_context(maker(part, schema))
            for new, old in zip(batch.schema, schema or (), strict=True):
                if new != old:  # all cells were empty until now
                    raise refuse(
                        f"column {new.name}", f"{new.type} after {old.type}", "one type; name the column in categories"
                    )
            writer.write_batch(batch)
            rows += batch.num_rows
        if writer is None:
            raise refuse("source", "no rows", "at least one")
    return Converted(rows, {}, problems)


def _batches(stream: Any, form: str, options: ReadOptions, problems: Problems, file: str) -> Iterator[Any]:
    if form in COLUMNAR:
        opener = parquet_batches if form == "parquet" else arrow_batches
        yield from (batch for batch, _ in number_rows(opener(stream), f"{form} file", problems, file))
        return
    known = dict.fromkeys(options.categories, "category")
    columns = Columns(replace(ReadOptions(), **{name: getattr(options, name) for name in TEXT}), known)
    separator = separator_of(form, options, stream.peek(1 << 12))
    rows = CsvFormat(separator, columns, options.bits, 1 << 20, line_limit=options.longest_line(form))
    yield from (batch for batch, _ in csv_batches(stream, rows, problems, file))


@contextmanager
def _replacing(path: str) -> Iterator[str]:
    """Yield a temporary path, and rename the file when it is complete."""
    part = f"{path}.part"
    try:
        yield part
        os.replace(part, path)
    finally:
        with suppress(OSError):
            os.remove(part)
