"""A cache of parsed blocks: one Arrow file, which later passes map into memory instead of parsing text again.

A record batch is a block, with its labels, its importances, and its rows as lists of slots and values; what else a
block knows, and a checksum, is in the batch's metadata. A batch without rows ends the file, and sums it up: where it is
missing, the file is not whole.
"""

import json
import mmap
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.formats.block import Block
from forel.formats.place import Place
from forel.formats.problems import Malformed, Problems
from forel.formats.tasks import Task, found

__all__ = ["Cache", "Writer", "begins_cache", "cache_in"]

KEY, CHECK, VERSION = b"forel.cache", b"check", 1
HEAD = 1 << 20  # bytes that the key is looked for in
TYPES = np.float32, np.float32, np.int64, np.int32, np.float32  # of what an array of a block is kept as


def _arrays(block: Block) -> tuple[NDArray[Any], ...]:
    return block.labels, block.importance, block.indptr, block.indices, block.values


def _check(text: bytes, arrays: tuple[NDArray[Any], ...] = ()) -> bytes:
    check = zlib.crc32(text)
    for array in arrays:
        memory: Any = array.view(np.uint8)
        check = zlib.crc32(memory, check)
    return b"%d" % check


class Writer:
    """A cache that is being written to a binary file object.

    Parameters
    ----------
    file : opened for writing
    told : what the cache is of, as JSON holds it

    >>> import io
    >>> writer = Writer(io.BytesIO(), {"bits": 3})
    >>> writer.add(Block(np.array([0, 1]), np.int32([4]), np.float32([1]), np.float32([1])))
    >>> writer.close(Problems())
    >>> writer.rows
    1
    """

    def __init__(self, file: Any, told: Mapping[str, Any]) -> None:
        import pyarrow as pa

        self._pa, self._blocks = pa, 0
        self.rows = self.entries = self.bytes = 0
        pair = pa.struct([("slot", pa.int32()), ("value", pa.float32())])
        fields = [("label", pa.float32()), ("importance", pa.float32()), ("features", pa.large_list(pair))]
        self._header = json.dumps({"version": VERSION, **told}).encode()
        self._schema = pa.schema(fields, metadata={KEY: self._header})
        self._writer = pa.ipc.new_file(pa.PythonFile(file, "w"), self._schema)

    def add(self, block: Block) -> None:
        """Write a block."""
        arrays = tuple(np.ascontiguousarray(a, t) for a, t in zip(_arrays(block), TYPES, strict=True))
        known = {
            "number": self._blocks, "rows": len(block), "entries": block.indices.size, "file": block.file,
            "line": block.line, "size": block.size, "after": None if block.after is None else list(block.after),
        }  # fmt: skip
        text = json.dumps(known).encode()
        self._write(arrays, text, _check(text, arrays))
        self._blocks += 1
        self.rows += len(block)
        self.entries += block.indices.size
        self.bytes += block.size

    def close(self, problems: Problems, kinds: Mapping[str, str] | None = None) -> None:
        """Write the end, with what could not be read, and what columns turned out to hold."""
        met = {"count": problems.count, "messages": problems.messages}
        sums = {"rows": self.rows, "entries": self.entries, "bytes": self.bytes, "blocks": self._blocks}
        text = json.dumps({**sums, "problems": met, "kinds": dict(kinds or {})}).encode()
        empty = tuple(np.zeros(int(kind is np.int64), kind) for kind in TYPES)
        self._write(empty, text, _check(self._header + text))
        self._writer.close()

    def _write(self, arrays: tuple[NDArray[Any], ...], text: bytes, check: bytes) -> None:
        pa, (labels, importance, indptr, slots, values) = self._pa, arrays
        kind = self._schema.field("features").type
        pairs = pa.StructArray.from_arrays([pa.array(slots), pa.array(values)], fields=list(kind.value_type))
        lists = pa.LargeListArray.from_arrays(pa.array(indptr), pairs)
        batch = pa.RecordBatch.from_arrays([pa.array(labels), pa.array(importance), lists], schema=self._schema)
        self._writer.write_batch(batch, custom_metadata={KEY: text, CHECK: check})


@dataclass(frozen=True, eq=False)
class Cache:
    """A whole cache: what it is of, what it holds, and its blocks as views of the file.

    Parameters
    ----------
    file : its name
    told : what it is of, as its writer was told
    totals : rows, entries, bytes of text, and problems that were met
    """

    file: str
    told: dict[str, Any]
    totals: dict[str, Any]
    reader: Any = field(repr=False)
    memory: Any = field(repr=False)

    def __len__(self) -> int:
        return int(self.reader.num_record_batches) - 1

    @property
    def problems(self) -> Problems:
        """What was met when the cache was written."""
        met = self.totals["problems"]
        return Problems("skip", count=met["count"], messages=list(met["messages"]))

    @property
    def kinds(self) -> dict[str, str]:
        """What columns turned out to hold when the cache was written."""
        return dict(self.totals.get("kinds", {}))

    def find(self, place: Place) -> int:
        """Return the number of the first block after a place of the source."""

        def after(k: int) -> Place:
            return Place(*json.loads(_batch(self.reader, k, self.file)[1])["after"])

        return bisect_right(range(len(self)), place, key=after)

    def tasks(self, first: int = 0, file: int | None = None) -> Iterator[Task]:
        """Yield the work for each block from the ``first`` on.

        Places are those of the source, or of the cache as the given ``file`` of a source.
        """
        for k in range(first, len(self)):
            yield partial(self._task, k, *_batch(self.reader, k, self.file), file)
        yield found(None, self.problems)

    def _task(self, k: int, batch: Any, text: bytes, check: bytes, file: int | None) -> tuple[Block, Problems]:
        try:
            known = json.loads(text)
            views = self._views(batch)
            labels, importance, indptr, slots, values = views
            if (known["number"], known["rows"], known["entries"]) != (k, labels.size, slots.size):
                raise ValueError(f"another block than number {k}")
            if check != _check(text, views):
                raise ValueError("numbers that are not those that were written")
            after = known["after"] if file is None else (file, k + 1)
            place = known["file"], known["line"], known["size"], None if after is None else Place(*after)
            return Block(indptr, slots, values, labels, importance, None, *place), Problems("skip")
        except Exception as wrong:  # whatever a damaged file leads to
            raise _broken(self.file, wrong) from None

    def _views(self, batch: Any) -> tuple[NDArray[Any], ...]:
        # Not pyarrow's arrays: those may not be written to, and kernels are compiled for arrays that may.
        features, rows = batch.column(2), batch.num_rows
        pairs = features.values
        held = batch.column(0), batch.column(1), features, pairs.field(0), pairs.field(1)
        sizes = rows, rows, rows + 1, len(pairs), len(pairs)
        start = np.frombuffer(self.memory, np.uint8).ctypes.data
        return tuple(
            np.frombuffer(self.memory, kind, size, array.buffers()[1].address - start) if size else np.empty(0, kind)
            for array, kind, size in zip(held, TYPES, sizes, strict=True)
        )


def begins_cache(beginning: bytes) -> bool:
    """Tell whether a file begins as a cache does, be it whole or not."""
    return beginning.startswith(b"ARROW1") and KEY in beginning


def cache_in(stream: Any, file: str) -> Cache | None:
    """Return the cache in a file that was opened for reading; None where it is something else.

    A cache that is not whole is a ``Malformed``, one of another version too.
    """
    try:
        memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):  # not a file on a disk, or an empty one
        return None
    if not begins_cache(memory[:HEAD]):
        return None
    import pyarrow as pa

    try:
        reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(memory)))
        header = reader.schema.metadata[KEY]
        told = json.loads(header)
    except Exception as wrong:  # whatever a damaged file leads to
        raise _broken(file, wrong) from None
    if told.pop("version", None) != VERSION:
        raise Malformed(file, 1, None, "a cache of another version", "one that this version of forel wrote")
    _, text, check = _batch(reader, reader.num_record_batches - 1, file)
    totals = json.loads(text) if check == _check(header + text) else {}
    if totals.get("blocks") != reader.num_record_batches - 1:
        raise _broken(file, "a cache without its end")
    return Cache(file, told, totals, reader, memory)


def _batch(reader: Any, k: int, file: str) -> tuple[Any, bytes, bytes]:
    """Return a batch with what is known of it, and the checksum of both."""
    try:
        read = reader.get_batch_with_custom_metadata(k)
        return read.batch, read.custom_metadata[KEY], read.custom_metadata[CHECK]
    except Exception as wrong:
        raise _broken(file, wrong) from None


def _broken(file: str, got: Any) -> Malformed:
    said = (str(got) or type(got).__name__).splitlines()[0].rstrip(".")
    return Malformed(file, 1, None, said, "a whole cache; make it again, or read what it was made from")
