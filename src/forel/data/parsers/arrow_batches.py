"""Record batches of Parquet and Arrow files, and their arrays as numpy arrays.

``to_numpy`` and ``pa.array`` import pandas where it is installed, and ``pyarrow.compute`` builds the documentation of
all its functions, which takes most of the time of reading a small table: neither is used here.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.parsers.cells import Spans
from forel.data.parsers.columns import Columns
from forel.data.problems import Malformed, Problems
from forel.validation import refuse

__all__ = [
    "NumberedBatch", "arrow_batches", "dictionary_batches", "feature_names", "is_number", "is_string",
    "number_rows", "parquet_batches", "plain", "string_spans", "valid",
]  # fmt: skip

PLAIN = {f"{sign}int{bits}": f"{sign[:1] or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
PLAIN |= {"float": "f4", "double": "f8"}
CELLS = 1 << 22  # cells of a batch
LARGEST = 1 << 20  # bytes of a dictionary, above which writers fall back to plain strings
NumberedBatch = tuple[Any, NDArray[np.int64]]  # a record batch, and the number of each row


def plain(array: Any) -> NDArray[Any] | None:
    """Return a view of the numbers of an array, undefined where one is null; None for other types."""
    kind = PLAIN.get(str(array.type))
    if kind is None:
        return None
    data = array.buffers()[1]
    return np.frombuffer(data if data is not None else b"", kind)[array.offset :][: len(array)]


def valid(array: Any) -> NDArray[np.bool_]:
    """Return the mask of rows that are not null."""
    bits = array.buffers()[0] if array.null_count else None
    if bits is None:
        return np.full(len(array), array.null_count == 0)
    return np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[array.offset :][: len(array)].astype(bool)


@lru_cache(1 << 12)
def is_number(kind: Any) -> bool:
    """Return whether a type is one of numbers."""
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


@lru_cache(1 << 12)
def is_string(kind: Any) -> bool:
    """Return whether a type is one of strings."""
    from pyarrow import types

    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )


def string_spans(array: Any, name: str) -> Spans:
    """Return strings as spans of their bytes."""
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    view = types.is_string_view(kind) or types.is_binary_view(kind)
    if not (is_string(kind) or view):
        raise refuse(f"column {name}", f"type {kind}", f"numbers, booleans or strings; ignore=[{name!r}] leaves it out")
    if view:
        array = array.cast(pa.large_string() if types.is_string_view(kind) else pa.large_binary())
    _, offsets, data = array.buffers()
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    ends = np.frombuffer(offsets or b"\0" * 8, np.int64 if wide else np.int32)[array.offset :][: len(array) + 1]
    # Read-only, as all Arrow buffers are, so that scanners are compiled for one type.
    text = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
    return Spans(text, ends[:-1], ends[1:])


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
    if isinstance(raw, pa.NativeFile):
        return raw
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
