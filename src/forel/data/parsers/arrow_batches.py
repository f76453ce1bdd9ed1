"""Record batches of Parquet and Arrow files, of numpy arrays, of scipy sparse matrices, and of frames.

The columns of an array are named c1, c2, ... as those of a file without a header, and so have the same slots.
``to_numpy`` and ``pa.array`` import pandas where it is installed, and ``pyarrow.compute`` builds the documentation of
all its functions, which takes most of the time of reading a small table: files are read without them.
"""

import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled import scanner
from forel.data.features.hashing import START, hash_names, slots_of_hashes
from forel.data.features.names import Names
from forel.data.features.rows import drop_rows
from forel.data.options import COLUMNS, ReadOptions
from forel.data.parsers.column_values import Spans
from forel.data.parsers.columns import Columns
from forel.data.problems import Malformed, Problems
from forel.validation import refuse

__all__ = [
    "Arrays", "NumberedBatch", "arrays_of", "arrow_batches", "conversion_errors", "dictionary_batches",
    "feature_names", "frame_of", "is_number", "is_pandas", "is_string", "number_rows", "parquet_batches",
    "plain", "string_spans", "valid", "with_features",
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


ROWS = 1 << 14  # rows of a batch
LABEL, IMPORTANCE = "y", "w"  # names of columns without another one


@dataclass(frozen=True, eq=False)
class Arrays:
    """Examples in arrays: X, with labels and importances if there are any.

    Parameters
    ----------
    X : numpy array of two dimensions, or a sparse array or matrix of scipy, or a table with the Arrow interface
    y, w : arrays or series of one dimension, or None
    """

    X: Any
    y: Any = None
    w: Any = None

    @property
    def sparse(self) -> bool:
        """Whether X is a sparse array or matrix."""
        return _is_sparse(self.X)

    @property
    def nan_as_null(self) -> bool:
        """Whether a null importance may have been NaN."""
        return self.w is not None or is_pandas(self.X)

    def named(self, columns: Columns) -> Columns:
        """Return the roles of columns, with names for labels and importances."""
        options = columns.options
        label = options.label or (LABEL if self.y is not None else None)
        importance = options.importance or (IMPORTANCE if self.w is not None else None)
        return replace(columns, options=replace(options, label=label, importance=importance))

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Yield record batches of all columns; of sparse arrays only labels and importances."""
        import pyarrow as pa

        X = self.X
        if not (self.sparse or isinstance(X, np.ndarray)):
            with conversion_errors(X):
                table = pa.table(X)
            for name, values in ((columns.label, self.y), (columns.importance, self.w)):
                table = table if values is None else table.append_column(name, _checked(name, values, table.num_rows))
            yield from table.to_batches(max_chunksize=ROWS)
            return
        if X.ndim != 2:
            raise ValueError(f"X: got an array of shape {X.shape}, expected two dimensions, one row per example")
        beside = {
            str(name): _checked(str(name), values, X.shape[0])
            for name, values in ((columns.label, self.y), (columns.importance, self.w))
            if values is not None
        }
        for start in range(0, X.shape[0], ROWS):
            part = slice(start, start + ROWS)
            cells = {} if self.sparse else {f"c{k + 1}": _array(X[part, k]) for k in range(X.shape[1])}
            some = {name: values.slice(start, ROWS) for name, values in beside.items()}
            count = min(ROWS, X.shape[0] - start)
            # A batch without columns would have no rows.
            yield pa.record_batch({**cells, **some} or {IMPORTANCE: _array(np.ones(count))})


def arrays_of(source: Any) -> Arrays | None:
    """Return a source as arrays, if it is one, or a tuple (X, y) or (X, y, importance).

    >>> arrays_of((np.eye(2), [1, 0])).y, arrays_of("file.csv")
    ([1, 0], None)
    """
    parts = source if type(source) is tuple else (source,)
    if not 1 <= len(parts) <= 3:
        return None
    array = isinstance(parts[0], np.ndarray) or _is_sparse(parts[0])
    table = len(parts) > 1 and hasattr(parts[0], "__arrow_c_stream__")
    return Arrays(*parts) if array or table else None


def is_pandas(source: Any) -> bool:
    """Return whether a source is an object of pandas, whose NaN become nulls in Arrow.

    >>> import pandas
    >>> is_pandas(pandas.DataFrame()), is_pandas(np.ones(1))
    (True, False)
    """
    return any(base.__module__.partition(".")[0] == "pandas" for base in type(source).__mro__)


def frame_of(source: Any) -> Any:
    """Return a frame that narwhals knows, such as a lazy frame of polars, as an Arrow table; None for other sources."""
    if not hasattr(type(source), "columns") or find_spec("narwhals") is None:
        return None
    import narwhals.stable.v2 as nw

    frame: Any = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame.to_arrow() if isinstance(frame, nw.DataFrame) else None


def with_features(
    blocks: Iterator[Block], X: Any, options: ReadOptions, problems: Problems, names: Names | None
) -> Iterator[Block]:
    """Yield blocks of labels with the features of a sparse array in their rows."""
    usual = ReadOptions()
    for name in COLUMNS:
        if name not in ("label", "importance") and getattr(options, name) != getattr(usual, name):
            raise refuse(name, getattr(options, name), "none for sparse arrays, whose columns have no names")
    if options.transform is not None:
        raise refuse("interactions", "crosses", "none for sparse arrays, which have no namespaces")
    matrix = X.tocsr()
    words = [b"c%d" % (k + 1) for k in range(matrix.shape[1])]
    hashes = hash_names(words, np.full(len(words), START, np.uint64))
    slots = slots_of_hashes(hashes, options.bits)
    for block in blocks:
        if block.lines is None:
            raise TypeError("lines: got None, expected the number of each row")
        part = matrix[block.lines - 1]
        with np.errstate(over="ignore"):
            values: NDArray[np.float32] = part.data.astype(np.float32)
        lost = _not_finite(values, part, block, problems)
        columns, indptr = part.indices, part.indptr.astype(np.int64)
        indices: NDArray[Any] = slots[columns]
        bad = scanner("merge", "merge_rows")(indptr, indices, values)
        if bad >= 0 and not lost.size:
            raise refuse("X", f"values of one slot that are too large together in row {bad}", "a finite sum")
        if names is not None:
            first = np.unique(columns)
            names.add(slots[first].astype(np.int64), hashes[first], [words[int(k)] for k in first].__getitem__)
        end = int(indptr[-1])
        whole = replace(block, indptr=indptr, indices=indices[:end], values=values[:end])
        yield drop_rows(whole, lost) if lost.size else whole


def _not_finite(values: NDArray[np.float32], part: Any, block: Block, problems: Problems) -> NDArray[np.intp]:
    """Record values that are not finite, and return their rows."""
    places = np.flatnonzero(~np.isfinite(values))
    rows = np.searchsorted(part.indptr, places, side="right") - 1
    for place, row in zip(places.tolist(), rows.tolist(), strict=True):
        line = block.line if block.lines is None else int(block.lines[row])
        expected = "a number within the range of float32"
        problems.record(Malformed(block.file, line, f"c{part.indices[place] + 1}", str(part.data[place]), expected))
    return np.unique(rows)


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def _array(values: Any) -> Any:
    """Return a column as an Arrow array; NaN is missing, as an empty cell of a file is."""
    import pyarrow as pa

    return pa.array(values, from_pandas=True)


@contextmanager
def conversion_errors(source: Any) -> Iterator[None]:
    """Raise errors of converting a frame to Arrow as a ValueError that names the column and a remedy.

    >>> import pandas
    >>> with conversion_errors(frame := pandas.DataFrame({"d": [1, "a"]})):
    ...     _ = frame.__arrow_c_stream__()
    Traceback (most recent call last):
    ValueError: column d: got values that are not of one type (Could not convert 'a' with type str: tried to convert to
    int64), expected numbers or words; astype(str) makes words, and to_dict('records') rows of both
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as wrong:
        reason = str(wrong.args[0]).rstrip()
        if "non-struct" in reason:
            row = "a row is frame.iloc[[0]] or [row.to_dict()], and a column is frame[['name']]"
            raise refuse("source", type(source).__name__, f"a table; of a frame, {row}") from None
        column = re.search(r"for column (.*) with type", " ".join(map(str, wrong.args)))
        name = "source" if column is None else f"column {column[1]}"
        remedy = "astype(str) makes words, and to_dict('records') rows of both"
        raise ValueError(
            f"{name}: got values that are not of one type ({reason}), expected numbers or words; {remedy}"
        ) from None


def _checked(name: str | None, values: Any, rows: int) -> Any:
    import pyarrow as pa

    if len(shape := getattr(values, "shape", ())) > 1:
        raise refuse(str(name), f"an array of shape {shape}", "one dimension, such as y.ravel() or frame['y']")
    exported = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    column = pa.chunked_array(values).combine_chunks() if exported else _array(values)
    if len(column) != rows:
        raise refuse(str(name), f"{len(column)} values", f"one for each of {rows} rows")
    return column
