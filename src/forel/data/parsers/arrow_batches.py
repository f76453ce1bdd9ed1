"""Record batches of Parquet and Arrow files, numbered by row and validated."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.parsers.arrow_arrays import is_string, plain, valid
from forel.data.parsers.columns import Columns
from forel.data.problems import Malformed, Problems
from forel.data.sources.remote import RemoteFile

__all__ = [
    "NumberedBatch", "arrow_batches", "dictionary_batches", "feature_names", "number_rows", "parquet_batches",
]  # fmt: skip

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
