"""Tables: a numeric column is a value, a string column a category, a null is absent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.checks import refuse
from forel.formats.assemble import assemble
from forel.formats.block import Block
from forel.formats.columns import Columns
from forel.formats.crosses import Entries, Step, crossed
from forel.formats.hashing import START, hash_buffer, hash_name
from forel.formats.names import Names
from forel.formats.problems import Malformed, Problems
from forel.formats.transforms import buckets, logarithms

__all__ = ["Numbered", "arrow_batches", "numbered", "parquet_batches", "table_blocks"]

Numbered = tuple[Any, NDArray[np.int64]]  # a record batch, and the line or record that each row is from


def numbered(batches: Iterable[Any], kind: str, problems: Problems, file: str) -> Iterator[Numbered]:
    """Number the rows of batches from 1 on; what breaks while they are read is a problem that names the place."""
    import pyarrow as pa

    row = 1
    held = iter(batches)
    while True:
        try:
            batch = next(held, None)
            if batch is not None:
                # Offsets in a broken file may point anywhere, and compiled code would follow them.
                batch.validate(full=True)
        except (pa.ArrowException, OSError, MemoryError) as wrong:
            got = (str(wrong) or type(wrong).__name__).splitlines()[0].rstrip(".")
            problems.meet(Malformed(file, row, None, got, f"a whole {kind}"))
            return
        if batch is None:
            return
        yield batch, np.arange(row, row + batch.num_rows)
        row += batch.num_rows


def parquet_batches(stream: Any) -> Iterator[Any]:
    """Yield the record batches of a Parquet file, which must be one that can be sought in."""
    import pyarrow.parquet as pq

    yield from pq.ParquetFile(stream).iter_batches(batch_size=1 << 14)


def arrow_batches(stream: Any) -> Iterator[Any]:
    """Yield the record batches of an Arrow file or stream."""
    import pyarrow as pa

    if stream.peek(6)[:6] == b"ARROW1":
        file = pa.ipc.open_file(stream)
        yield from (file.get_batch(k) for k in range(file.num_record_batches))
    else:
        yield from pa.ipc.open_stream(stream)


def table_blocks(
    batches: Iterable[Numbered],
    columns: Columns,
    bits: int,
    block_bytes: int,
    problems: Problems,
    names: Names | None,
    file: str,
    step: Step | None = None,
) -> Iterator[Block]:
    """Yield blocks of the rows of record batches."""
    for batch, lines in batches:
        features = columns.features(batch.schema.names)
        width = len(features)
        if step is not None:
            step.check(features)
            width = step.width(features)
        size = max(1, block_bytes // (8 * max(1, width)))
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            block = _block(part, lines[start : start + size], features, columns, bits, problems, names, file, step)
            if len(block):
                yield block


@dataclass(frozen=True, eq=False)
class _Column:
    """A column's hashes, values and which of them are there; the bytes of its rows where it is of strings."""

    key: bytes
    hashes: NDArray[np.uint64]
    values: NDArray[np.float32]
    there: NDArray[np.bool_]
    text: NDArray[np.uint8] | None = None
    ends: NDArray[np.int64] | None = None

    def name(self, names: Names, bits: int, good: NDArray[np.bool_]) -> None:
        """Keep the names of the rows that are there and good."""
        rows = np.flatnonzero(self.there & good)
        if self.text is None or self.ends is None:
            rows = rows[:1]
        hashes = self.hashes[rows]
        names.meet(_slots(hashes, bits), hashes, lambda k: b"^".join(filter(None, self.word(rows[k]))))

    def word(self, row: int) -> tuple[bytes, bytes]:
        """Return the namespace and the name of a row's feature."""
        if self.text is None or self.ends is None:
            return b"", self.key
        return self.key, self.text[self.ends[row] : self.ends[row + 1]].tobytes()


class _Faults:
    """The rows of a batch that are good, and what to do with those that are not."""

    def __init__(self, lines: NDArray[np.int64], problems: Problems, file: str) -> None:
        self.lines, self.problems, self.file = lines, problems, file
        self.good = np.ones(lines.size, bool)

    def meet(self, name: str, bad: NDArray[np.bool_], values: NDArray[Any], expected: str) -> None:
        """Meet a problem for each bad row, at its value; a row has one problem at most."""
        for row in np.flatnonzero(bad & self.good):
            self.problems.meet(Malformed(self.file, int(self.lines[row]), name, str(values[row]), expected))
        self.good[bad] = False


def _block(
    batch: Any, lines: NDArray[np.int64], features: list[str], columns: Columns, bits: int, problems: Problems,
    names: Names | None, file: str, step: Step | None,
) -> Block:  # fmt: skip
    faults = _Faults(lines, problems, file)
    labels = _target(batch, "label", columns.label, np.nan, faults)
    importance = _target(batch, "importance", columns.importance, 1.0, faults)
    if columns.importance is not None:
        faults.meet(columns.importance, importance < 0, importance, "an importance of at least 0")
    shape = batch.num_rows, len(features)
    hashes, values, there = np.empty(shape, np.uint64), np.empty(shape, np.float32), np.empty(shape, bool)
    held = [_column(batch.column(name), name, columns, faults) for name in features]
    for k, column in enumerate(held):
        hashes[:, k], values[:, k], there[:, k] = column.hashes, column.values, column.there
        if names is not None and step is None:
            column.name(names, bits, faults.good)
    good = faults.good
    if not good.all():
        hashes, values, there = hashes[good], values[good], there[good]
        labels, importance, lines = labels[good], importance[good], lines[good]
    indptr = np.zeros(lines.size + 1, np.int64)
    np.cumsum(there.sum(axis=1), out=indptr[1:])
    hashed, kept = hashes[there], values[there]
    if step is None:
        return assemble(indptr, _slots(hashed, bits), kept, labels, importance, lines, problems, file)
    rows, places = np.flatnonzero(good), np.argwhere(there)
    kinds = np.array([step.kind(column.key) for column in held], np.int64)[places[:, 1]]
    entries = Entries(indptr, hashed, kept, kinds, lambda k: held[places[k, 1]].word(rows[places[k, 0]]))
    return crossed(entries, labels, importance, lines, step, bits, names, problems, file)


def _slots(hashes: NDArray[np.uint64], bits: int) -> NDArray[np.int32]:
    return (hashes & np.uint64((1 << bits) - 1)).astype(np.int32)


def _target(batch: Any, what: str, name: str | None, missing: float, faults: _Faults) -> NDArray[np.float32]:
    """Return the labels or importances of a batch."""
    if name is None or name not in batch.schema.names:
        return np.full(batch.num_rows, missing, np.float32)
    array = batch.column(name)
    if not _is_number(array.type):
        raise refuse(what, f"column {name} of type {array.type}", "a column of numbers")
    values, valid, wide = _numbers(array)
    faults.meet(name, valid & ~np.isfinite(values), wide, "a number within the range of float32")
    values[~valid] = missing
    return values


def _column(array: Any, name: str, columns: Columns, faults: _Faults) -> _Column:
    import pyarrow as pa

    key = name.encode()
    n = len(array)
    if not _is_number(array.type) and columns.kinds.get(name) == "number":
        raise refuse("log" if name in columns.log else "bucket", f"column {name} of type {array.type}", "numbers")
    if _is_number(array.type) and name not in columns.categories:
        values, valid, wide = _numbers(array)
        bad = valid & ~np.isfinite(values)
        faults.meet(name, bad, wide, "a number within the range of float32, or null")
        if name not in columns.buckets:
            if name in columns.log:
                values = logarithms(wide).astype(np.float32)
            return _Column(key, np.full(n, hash_name(key), np.uint64), values, valid)
        words, which = buckets(np.where(valid & ~bad, wide, 0.0), columns.buckets[name])
        array = pa.DictionaryArray.from_arrays(pa.array(which, mask=~valid), pa.array(words))
    text, ends, valid = _strings(array.cast(pa.string()) if _is_number(array.type) else array, name)
    hashes = hash_buffer(text, ends, np.full(n, hash_name(key) if key else START, np.uint64))
    return _Column(key, hashes, np.ones(n, np.float32), valid & (np.diff(ends) > 0), text, ends)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _numbers(array: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[Any]]:
    """Return a column's values as float32, which of them are there, and the values before they were narrowed."""
    import pyarrow as pa

    valid = array.is_valid().to_numpy(zero_copy_only=False)
    wide = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        return wide.astype(np.float32), valid, wide


def _strings(array: Any, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """Return a column's bytes, where each row's end, and which are there."""
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        array, kind = array.cast(kind.value_type), kind.value_type
    view = types.is_string_view(kind) or types.is_binary_view(kind)
    plain = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    if not (plain or view):
        raise refuse(f"column {name}", f"type {kind}", f"numbers, booleans or strings; ignore=[{name!r}] leaves it out")
    if view:
        array = array.cast(pa.large_string() if types.is_string_view(kind) else pa.large_binary())
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return text, ends, array.is_valid().to_numpy(zero_copy_only=False)
