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

KEY, VERSION = b"forel.cache", 1
HEAD = 1 << 20  # bytes that the key is looked for in
TYPES = np.float32, np.float32, np.int64, np.int32, np.float32  # of what an array of a block is kept as


def _arrays(block: Block) -> tuple[NDArray[Any], ...]:
    return block.labels, block.importance, block.indptr, block.indices, block.values


def _check(arrays: tuple[NDArray[Any], ...]) -> int:
    check = 0
    for array in arrays:
        memory: Any = array.view(np.uint8)
        check = zlib.crc32(memory, check)
    return check


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

        self._pa, self.rows, self.entries, self.bytes = pa, 0, 0, 0
        pair = pa.struct([("slot", pa.int32()), ("value", pa.float32())])
        fields = [("label", pa.float32()), ("importance", pa.float32()), ("features", pa.large_list(pair))]
        header = json.dumps({"version": VERSION, **told}, sort_keys=True)
        self._schema = pa.schema(fields, metadata={KEY: header.encode()})
        self._writer = pa.ipc.new_file(pa.PythonFile(file, "w"), self._schema)

    def add(self, block: Block) -> None:
        """Write a block."""
        arrays = tuple(np.ascontiguousarray(a, t) for a, t in zip(_arrays(block), TYPES, strict=True))
        after = None if block.after is None else list(block.after)
        known = {"after": after, "file": block.file, "line": block.line, "size": block.size, "check": _check(arrays)}
        self._write(arrays, known)
        self.rows, self.entries, self.bytes = (
            self.rows + len(block), self.entries + block.indices.size, self.bytes + block.size,
        )  # fmt: skip

    def close(self, problems: Problems) -> None:
        """Write the end, with what could not be read."""
        met = {"count": problems.count, "messages": problems.messages}
        empty = tuple(np.zeros(int(t is np.int64), t) for t in TYPES)
        self._write(empty, {"rows": self.rows, "entries": self.entries, "bytes": self.bytes, "problems": met})
        self._writer.close()

    def _write(self, arrays: tuple[NDArray[Any], ...], known: dict[str, Any]) -> None:
        pa, (labels, importance, indptr, slots, values) = self._pa, arrays
        kind = self._schema.field("features").type
        pairs = pa.StructArray.from_arrays([pa.array(slots), pa.array(values)], fields=list(kind.value_type))
        lists = pa.LargeListArray.from_arrays(pa.array(indptr), pairs)
        batch = pa.RecordBatch.from_arrays([pa.array(labels), pa.array(importance), lists], schema=self._schema)
        self._writer.write_batch(batch, custom_metadata={KEY: json.dumps(known)})


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

    def find(self, place: Place) -> int:
        """Return the number of the first block after a place of the source."""
        return bisect_right(range(len(self)), place, key=lambda k: Place(*self._batch(k)[1]["after"]))

    def tasks(self, first: int = 0, file: int | None = None) -> Iterator[Task]:
        """Yield the work for each block from the ``first`` on.

        Places are those of the source, or of the cache as the given ``file`` of a source.
        """
        for k in range(first, len(self)):
            batch, known = self._batch(k)
            after = Place(file, k + 1) if file is not None else Place(*known["after"]) if known["after"] else None
            yield partial(self._task, batch, known, after)
        yield found(None, self.problems)

    def _batch(self, k: int) -> tuple[Any, dict[str, Any]]:
        return _batch(self.reader, k, self.file)

    def _task(self, batch: Any, known: dict[str, Any], after: Place | None) -> tuple[Block, Problems]:
        features, n = batch.column(2), batch.num_rows
        pairs = features.values
        size = len(pairs)
        held = batch.column(0), batch.column(1), features, pairs.field(0), pairs.field(1)
        try:
            views = tuple(
                self._view(array.buffers()[1], kind, count)
                for array, kind, count in zip(held, TYPES, (n, n, n + 1, size, size), strict=True)
            )
        except (ValueError, AttributeError):
            views = ()
        if not views or _check(views) != known["check"]:
            raise _broken(self.file, "a block that is not the one that was written")
        labels, importance, indptr, slots, values = views
        block = Block(
            indptr, slots, values, labels, importance, None, known["file"], known["line"], known["size"], after
        )  # fmt: skip
        return block, Problems("skip")

    def _view(self, buffer: Any, kind: Any, count: int) -> NDArray[Any]:
        # Not pyarrow's arrays: those may not be written to, and kernels are compiled for arrays that may.
        start = np.frombuffer(self.memory, np.uint8).ctypes.data
        view: NDArray[Any] = np.frombuffer(self.memory, kind, count, buffer.address - start)
        return view


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
        told = json.loads(reader.schema.metadata[KEY])
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as wrong:
        raise _broken(file, str(wrong).splitlines()[0].rstrip(".")) from None
    if told.pop("version", None) != VERSION:
        raise Malformed(file, 1, None, "a cache of another version", "one that this version of forel wrote")
    totals = _batch(reader, reader.num_record_batches - 1, file)[1]
    if not {"rows", "entries", "bytes", "problems"} <= set(totals):
        raise _broken(file, "a cache without its end")
    return Cache(file, told, totals, reader, memory)


def _batch(reader: Any, k: int, file: str) -> tuple[Any, dict[str, Any]]:
    import pyarrow as pa

    try:
        found = reader.get_batch_with_custom_metadata(k)
        return found.batch, json.loads(found.custom_metadata[KEY])
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as wrong:
        raise _broken(file, str(wrong).splitlines()[0].rstrip(".")) from None


def _broken(file: str, got: str) -> Malformed:
    return Malformed(file, 1, None, got, "a whole cache; make it again, or read what it was made from")
