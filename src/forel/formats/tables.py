"""Tables: a numeric column is a value, a string column a category, a null is absent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.checks import refuse
from forel.formats.arrow import plain, valid
from forel.formats.assemble import assemble
from forel.formats.block import Block
from forel.formats.columns import Columns
from forel.formats.crosses import Entries, Step, crossed
from forel.formats.hashing import START, hash_column, hash_name
from forel.formats.names import Names
from forel.formats.problems import Malformed, Problems
from forel.formats.scanners import scanner
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
        size = max(1, block_bytes // (4 * max(1, width)))
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            block = _block(part, lines[start : start + size], features, columns, bits, problems, names, file, step)
            if len(block):
                yield block


@dataclass(frozen=True, eq=False)
class _Cells:
    """A table of rows and features: the slot of each, its value, and whether it is there."""

    slots: NDArray[np.int32]
    values: NDArray[np.float32]
    there: NDArray[np.bool_]
    mask: np.uint64


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of the table by its name; the bytes of its rows where it is of strings."""

    place: int
    key: bytes
    text: NDArray[np.uint8] | None = None
    ends: NDArray[Any] | None = None

    def name(self, names: Names, cells: _Cells, good: NDArray[np.bool_]) -> None:
        """Keep the names of the rows that are there and good."""
        rows = np.flatnonzero(cells.there[:, self.place] & good)
        if self.text is None or self.ends is None:
            rows = rows[:1]
        names.meet(
            cells.slots[rows, self.place], self.hashes(rows), lambda k: b"^".join(filter(None, self.word(rows[k])))
        )

    def hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the whole hashes of some rows, of which slots are the last bits."""
        if self.text is None or self.ends is None:
            return np.full(rows.size, _start(self.key), np.uint64)
        return hash_column(self.text, self.ends, _start(self.key))[rows]

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
    mask = np.uint64((1 << bits) - 1)
    cells = _Cells(np.empty(shape, np.int32), np.ones(shape, np.float32), np.empty(shape, bool), mask)
    held = [_column(batch.column(name), name, k, columns, cells, faults) for k, name in enumerate(features)]
    if names is not None and step is None:
        for column in held:
            column.name(names, cells, faults.good)
    slots, values, there, good = cells.slots, cells.values, cells.there, faults.good
    if not good.all():
        slots, values, there = slots[good], values[good], there[good]
        labels, importance, lines = labels[good], importance[good], lines[good]
    indptr = np.zeros(lines.size + 1, np.int64)
    np.cumsum(there.sum(axis=1), out=indptr[1:])
    kept = values[there]
    if step is None:
        return assemble(indptr, slots[there], kept, labels, importance, lines, problems, file)
    rows, places = np.flatnonzero(good), np.argwhere(there)
    hashed = np.stack([column.hashes(rows) for column in held], axis=1)[there] if held else np.empty(0, np.uint64)
    kinds = np.array([step.kind(column.key) for column in held], np.int64)[places[:, 1]]
    entries = Entries(indptr, hashed, kept, kinds, lambda k: held[places[k, 1]].word(rows[places[k, 0]]))
    return crossed(entries, labels, importance, lines, step, bits, names, problems, file)


def _target(batch: Any, what: str, name: str | None, missing: float, faults: _Faults) -> NDArray[np.float32]:
    """Return the labels or importances of a batch."""
    if name is None or name not in batch.schema.names:
        return np.full(batch.num_rows, missing, np.float32)
    array = batch.column(name)
    if not _is_number(array.type):
        raise refuse(what, f"column {name} of type {array.type}", "a column of numbers")
    values, there, wide = _numbers(array)
    faults.meet(name, there & ~np.isfinite(values), wide, "a number within the range of float32")
    values[~there] = missing
    return values


def _column(array: Any, name: str, place: int, columns: Columns, cells: _Cells, faults: _Faults) -> _Column:
    """Fill one column of the cells."""
    import pyarrow as pa

    key, number = name.encode(), _is_number(array.type)
    if not number and columns.kinds.get(name) == "number":
        raise refuse("log" if name in columns.log else "bucket", f"column {name} of type {array.type}", "numbers")
    if number and name not in columns.categories:
        values, there, wide = _numbers(array)
        bad = there & ~np.isfinite(values)
        faults.meet(name, bad, wide, "a number within the range of float32, or null")
        if name not in columns.buckets:
            cells.slots[:, place] = np.uint64(_start(key)) & cells.mask
            cells.values[:, place] = logarithms(wide) if name in columns.log else values
            cells.there[:, place] = there
            return _Column(place, key)
        words, which = buckets(np.where(there & ~bad, wide, 0.0), columns.buckets[name])
        array = pa.DictionaryArray.from_arrays(pa.array(which, mask=~there), pa.array(words))
        number = False
    text, ends, there = _strings(array.cast(pa.string()) if number else array, name)
    scanner("hashing", "fill_column")(
        text, ends, there, np.uint64(_start(key)), cells.mask, cells.slots, cells.there, place
    )
    return _Column(place, key, text, ends)


@lru_cache(1 << 12)
def _start(key: bytes) -> int:
    """Return the hash of a column's name."""
    return hash_name(key) if key else START


@lru_cache(1 << 12)
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

    held = plain(array)
    wide = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) if held is None else held.astype(float)
    with np.errstate(over="ignore"):
        return wide.astype(np.float32), valid(array), wide


def _strings(array: Any, name: str) -> tuple[NDArray[np.uint8], NDArray[Any], NDArray[np.bool_]]:
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
    _, offsets, data = array.buffers()
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    ends = np.frombuffer(offsets or b"\0" * 8, np.int64 if wide else np.int32)[array.offset :][: len(array) + 1]
    # Bytes that cannot be written, as those of a buffer, so that compiled code is of one kind.
    text = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
    return text, ends, valid(array)
