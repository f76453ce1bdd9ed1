"""The row cache: blocks of arrays in one file, which later passes read instead of parsing text again.

A file has sixteen bytes that identify the format, the arrays of all blocks, a JSON description of the blocks, and a
trailer that locates the description. Checksums cover every byte and are verified before use; then numbers are validated
like those of any other source. The file is read rather than memory-mapped, so that truncation is an error and not a
crash.
"""

import json
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np

from forel.data.block import MOST_BITS, Block, Position, Task, completed_task
from forel.data.problems import Malformed, Problems
from forel.validation import all_finite

__all__ = ["HEAD", "CacheWriter", "RowCache", "has_cache_header", "open_cache"]

FORMAT = b"\x93forel cache "
MAGIC = FORMAT + b"6\0\0"
HEAD = len(MAGIC)  # bytes that identify a cache
TRAILER = struct.Struct("<QQL16s")  # offset, length and checksum of the description, and the magic bytes
TOTALS = {"rows": "rows", "entries": "entries", "bytes": "size"}  # of a cache, from those of its blocks
WORD = (1 << 32) - 1
NO_END = "a cache without its end"
# The arrays of a block, the widest first, so that views are aligned; lines are counted from the block's, 0 if unknown.
ARRAYS = {
    "indptr": np.int64, "labels": np.float64, "indices": np.int32, "values": np.float32, "importance": np.float32,
    "lines": np.int32,
}  # fmt: skip


class CacheWriter:
    """Writes a cache to a binary file object.

    Parameters
    ----------
    file : open for writing
    key : options and sources that the rows depend on, as JSON

    >>> import io
    >>> writer = CacheWriter(io.BytesIO(), {"bits": 3})
    >>> writer.add(Block(np.array([0, 1]), np.int32([4]), np.float32([1]), np.float32([1])))
    >>> writer.close(Problems())
    """

    def __init__(self, file: Any, key: Mapping[str, Any]) -> None:
        self._file, self._key = file, dict(key)
        self._blocks: list[dict[str, Any]] = []
        self._offset = 0
        self._write(MAGIC)

    def add(self, block: Block) -> None:
        """Write a block."""
        start, check = self._offset, 0
        lines = np.zeros(len(block), np.int32) if block.lines is None else block.lines - (block.line - 1)
        for name, kind in _kinds(block.columns is not None).items():
            array: Any = np.ascontiguousarray(lines if name == "lines" else getattr(block, name), kind)
            memory = memoryview(array).cast("B")
            check = zlib.crc32(memory, check)
            self._write(memory)
        known = {
            "start": start,
            "rows": len(block),
            "entries": block.indices.size,
            "check": check,
            "columns": block.columns is not None,
        }
        place = {"file": block.file, "line": block.line, "size": block.size, "after": block.after}
        self._blocks.append(known | place)

    def close(
        self, problems: Problems, kinds: Mapping[str, str] | None = None, classes: Sequence[str] | None = None
    ) -> None:
        """Write the description, with the problems of reading, the kinds of columns, and the names of classes."""
        totals = {total: sum(known[one] for known in self._blocks) for total, one in TOTALS.items()}
        found = {"kinds": dict(kinds or {}), "problems": {"count": problems.count, "messages": problems.messages}}
        content = {"key": self._key, "totals": {**totals, **found, "classes": classes}, "blocks": self._blocks}
        start, text = self._offset, json.dumps(content).encode()
        self._write(text)
        self._write(TRAILER.pack(start, len(text), zlib.crc32(text, start & WORD), MAGIC))

    def _write(self, memory: Any) -> None:
        """Write all bytes; unbuffered files may write fewer at a time."""
        rest = memoryview(memory)
        while len(rest):
            taken = self._file.write(rest)
            self._offset += taken
            rest = rest[taken:]


class RowCache:
    """A cache in an open file, whose blocks any thread reads on demand.

    Parameters
    ----------
    handle : of the file, which is closed with the last reference to the cache
    file : its name

    ``key`` has the options and sources that the rows depend on; ``totals``, rows, entries, bytes of text, kinds of
    columns, problems of reading, and names of classes, if labels are these.
    """

    def __init__(self, handle: int, file: str) -> None:
        self.file, self._handle = file, handle
        finalize(self, os.close, handle)
        content = self._description()
        self.key, self.totals, self._blocks = content["key"], content["totals"], content["blocks"]
        self._slots = 1 << self.key["options"]["bits"]
        if not 1 < self._slots <= 1 << MOST_BITS:
            raise KeyError("bits")

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def problems(self) -> Problems:
        """The problems of reading when the cache was written."""
        problems = self.totals["problems"]
        return Problems("skip", count=problems["count"], messages=list(problems["messages"]))

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of columns when the cache was written."""
        return dict(self.totals["kinds"])

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of classes, whose indices are the labels; None if labels are numbers."""
        return tuple(self.totals["classes"]) if self.totals["classes"] else None

    def find(self, position: Position) -> int:
        """Return the number of the first block after a position in the source."""
        return bisect_right(self._blocks, position, key=lambda known: Position(*known["after"]))

    def tasks(self, first: int = 0, file: int | None = None) -> Iterator[Task]:
        """Yield a task for each block from ``first`` on.

        Positions of blocks are those in the source, or in the cache as the given ``file`` of a source.
        """
        for k in range(first, len(self)):
            yield partial(self._task, k, file)
        yield completed_task(None, self.problems)

    def _task(self, k: int, file: int | None) -> tuple[Block, Problems]:
        block = self.block(k)
        return block if file is None else replace(block, after=Position(file, k + 1)), Problems("skip")

    def block(self, number: int) -> Block:
        """Return a block by its number."""
        known = self._blocks[number]
        try:
            arrays = self._arrays(**{name: known[name] for name in ("start", "rows", "entries", "check", "columns")})
            _validate(self._slots, len(self.classes or ()), **arrays)
        except (ValueError, OSError, MemoryError) as wrong:
            raise _broken(self.file, wrong) from None
        lines = arrays["lines"]
        arrays["lines"] = lines + np.int64(known["line"] - 1) if lines.any() else None
        after = None if known["after"] is None else Position(*known["after"])
        place = {name: known[name] for name in ("file", "line", "size")}
        return Block(**arrays, **place, after=after, label_words=self.classes)

    def _arrays(self, start: int, rows: int, entries: int, check: int, columns: bool) -> dict[str, Any]:
        """Return the arrays of a block as views of the bytes from ``start`` on."""
        sizes, kinds = {"indptr": rows + 1, "indices": entries, "values": entries, "columns": entries}, _kinds(columns)
        ends = np.cumsum([sizes.get(name, rows) * np.dtype(kind).itemsize for name, kind in kinds.items()])
        memory: Any = np.empty(ends[-1], np.uint8)
        if zlib.crc32(self._read_into(memory, start)) != check:
            raise ValueError("a wrong checksum")
        parts = zip(kinds.items(), np.split(memory, ends[:-1]), strict=True)
        return {name: part.view(kind) for (name, kind), part in parts}

    def _description(self) -> Any:
        """Return the description of the blocks, if it is complete and nothing follows it."""
        size = os.fstat(self._handle).st_size
        if size < HEAD + TRAILER.size:
            raise ValueError(NO_END)
        start, length, check, magic = TRAILER.unpack(self._read_into(bytearray(TRAILER.size), size - TRAILER.size))
        if magic != MAGIC or start + length + TRAILER.size != size:
            raise ValueError(NO_END)
        text = self._read_into(bytearray(length), start)
        if zlib.crc32(text, start & WORD) != check:
            raise ValueError("a description that is not the one that was written")
        return json.loads(text)

    def _read_into(self, memory: Any, start: int) -> Any:
        """Fill the memory with bytes from an offset on, and return it."""
        rest = memoryview(memory)
        while len(rest):
            got = os.preadv(self._handle, [rest], start)
            if got == 0:
                raise ValueError(NO_END)
            start, rest = start + got, rest[got:]
        return memory


def _kinds(columns: bool) -> dict[str, Any]:
    """Return the dtypes of the arrays of a block."""
    return {**ARRAYS, "columns": np.int32} if columns else ARRAYS


def has_cache_header(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are those of a cache, complete or not."""
    return beginning.startswith(FORMAT)


def open_cache(stream: Any, file: str) -> RowCache | None:
    """Return the cache in a file that is open for reading; None if it is something else.

    An incomplete cache, or one of another version, raises ``Malformed``.
    """
    beginning = stream.peek(HEAD)[:HEAD] if hasattr(stream, "peek") else b""
    try:
        first = os.pread(stream.fileno(), HEAD, 0)
    except (OSError, ValueError):  # not a file on a disk
        first = b""
    if not has_cache_header(first):
        if has_cache_header(beginning):
            raise Malformed(file, 1, None, "a cache in a stream or compressed", "it as a file, as it was written")
        return None
    if first != MAGIC and len(first) == HEAD:
        raise Malformed(file, 1, None, "a cache of another version", "one that this version of forel wrote")
    try:
        return RowCache(os.dup(stream.fileno()), file)
    except (KeyError, TypeError):
        raise _broken(file, "a cache without the description of its source") from None
    except (ValueError, OSError, MemoryError, RecursionError) as wrong:
        raise _broken(file, wrong) from None


def _validate(
    slots: int,
    classes: int,
    indptr: Any,
    labels: Any,
    indices: Any,
    values: Any,
    importance: Any,
    lines: Any,
    columns: Any = None,
) -> None:
    """Raise for numbers that no source has, because kernels do not check them."""
    if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("rows that do not follow one another")
    for found, least in ((indices, 0), (indices if columns is None else columns, -1)):
        if found.size and (found.min() < least or found.max() >= slots):
            wrong = found[(found < least) | (found >= slots)][0]
            raise ValueError(f"a slot of {wrong} where there are {slots}")
    for name, array, bad in (
        ("a value", values, () if all_finite(values) else ~np.isfinite(values)),
        ("a label", labels, np.isinf(labels)),
        ("an importance", importance, ~(np.isfinite(importance) & (importance >= 0))),
    ):
        if np.any(bad):
            raise ValueError(f"{name} of {array[bad][0]:g}")
    if classes and not (np.isnan(labels) | np.isin(labels, np.arange(classes))).all():
        raise ValueError("a label that is not the place of a class")


def _broken(file: str, got: Any) -> Malformed:
    message = (str(got) or type(got).__name__).splitlines()[0].rstrip(".")
    return Malformed(file, 1, None, message, "a whole cache; make it again, or read what it was made from")
