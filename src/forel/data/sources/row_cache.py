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
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from forel.data.block import MOST_BITS, Block, Position, Task, completed_task
from forel.data.problems import Malformed, Problems
from forel.validation import all_finite

__all__ = ["HEAD", "CacheWriter", "RowCache", "has_cache_header", "open_cache"]

FORMAT = b"\x93forel cache "
MAGIC = FORMAT + b"4\0\0"
HEAD = len(MAGIC)  # bytes that identify a cache
TRAILER = struct.Struct("<QQL16s")  # offset, length and checksum of the description, and the magic bytes
NAMES = ("indptr", "labels", "indices", "values", "importance")  # the widest first, so that views are aligned
KINDS = tuple(map(np.dtype, (np.int64, np.float64, np.int32, np.float32, np.float32)))


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
    >>> writer.rows
    1
    """

    def __init__(self, file: Any, key: Mapping[str, Any]) -> None:
        self._file, self._key = file, dict(key)
        self._blocks: list[dict[str, Any]] = []
        self._offset = 0
        self.rows = self.entries = self.bytes = 0
        self._write(MAGIC)

    def add(self, block: Block) -> None:
        """Write a block."""
        start, check = self._offset, 0
        for name, kind in zip(NAMES, KINDS, strict=True):
            array: Any = np.ascontiguousarray(getattr(block, name), kind)
            memory = memoryview(array).cast("B")
            check = zlib.crc32(memory, check)
            self._write(memory)
        after = None if block.after is None else list(block.after)
        self._blocks.append(
            {
                "start": start, "rows": len(block), "entries": block.indices.size, "check": check,
                "file": block.file, "line": block.line, "size": block.size, "after": after,
            }
        )  # fmt: skip
        self.rows += len(block)
        self.entries += block.indices.size
        self.bytes += block.size

    def close(
        self, problems: Problems, kinds: Mapping[str, str] | None = None, classes: Sequence[str] | None = None
    ) -> None:
        """Write the description, with the problems of reading, the kinds of columns, and the names of classes."""
        totals = {
            "rows": self.rows, "entries": self.entries, "bytes": self.bytes, "kinds": dict(kinds or {}),
            "problems": {"count": problems.count, "messages": problems.messages},
            **({"classes": list(classes)} if classes else {}),
        }  # fmt: skip
        start = self._offset
        text = json.dumps({"key": self._key, "totals": totals, "blocks": self._blocks}).encode()
        self._write(text)
        self._write(TRAILER.pack(start, len(text), _text_check(text, start), MAGIC))

    def _write(self, memory: Any) -> None:
        """Write all bytes; unbuffered files may write fewer at a time."""
        rest = memoryview(memory)
        while len(rest):
            taken = self._file.write(rest)
            self._offset += taken
            rest = rest[taken:]


@dataclass(frozen=True, eq=False)
class RowCache:
    """A cache with a valid description; blocks are read on demand.

    Parameters
    ----------
    file : its name
    key : options and sources that the rows depend on
    totals : rows, entries, bytes of text, kinds of columns, problems of reading, and names of classes if labels are
    """

    file: str
    key: dict[str, Any]
    totals: dict[str, Any]
    index: list[dict[str, Any]] = field(repr=False)
    stored: "_Stored" = field(repr=False)

    def __len__(self) -> int:
        return len(self.index)

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
        return tuple(self.totals["classes"]) if self.totals.get("classes") else None

    def find(self, position: Position) -> int:
        """Return the number of the first block after a position in the source."""
        return bisect_right(self.index, position, key=lambda known: Position(*known["after"]))

    def tasks(self, first: int = 0, file: int | None = None) -> Iterator[Task]:
        """Yield a task for each block from ``first`` on.

        Positions of blocks are those in the source, or in the cache as the given ``file`` of a source.
        """
        for k in range(first, len(self)):
            yield partial(self._task, k, file)
        yield completed_task(None, self.problems)

    def _task(self, k: int, file: int | None) -> tuple[Block, Problems]:
        known = self.index[k]
        try:
            bits = self.key["options"]["bits"]
            memory: Any = np.empty(_size(known), np.uint8)
            self.stored.read_into(memory, known["start"])
            if zlib.crc32(memory) != known["check"]:
                raise ValueError("a wrong checksum")
            arrays: dict[str, Any] = _arrays(memory, known["rows"], known["entries"])
            _validate(arrays, 1 << bits)
        except (ValueError, OSError, MemoryError) as wrong:
            raise _broken(self.file, wrong) from None
        after = known["after"] if file is None else (file, k + 1)
        position = None if after is None else Position(*after)
        labels = arrays["labels"]
        if self.classes is not None and not (np.isnan(labels) | np.isin(labels, np.arange(len(self.classes)))).all():
            raise _broken(self.file, "a label that is not the place of a class")
        block = Block(
            **arrays, file=known["file"], line=known["line"], size=known["size"], after=position,
            label_words=self.classes,
        )  # fmt: skip
        return block, Problems("skip")


def has_cache_header(beginning: bytes) -> bool:
    """Return whether the first bytes of a file are those of a cache, complete or not."""
    return beginning.startswith(FORMAT)


def open_cache(stream: Any, file: str) -> RowCache | None:
    """Return the cache in a file that is open for reading; None if it is something else.

    An incomplete cache, or one of another version, raises ``Malformed``.
    """
    beginning = stream.peek(HEAD)[:HEAD] if hasattr(stream, "peek") else b""
    try:
        stored = _Stored(stream)
    except (OSError, ValueError):  # not a file on a disk
        stored = None
    first = b"" if stored is None else stored.beginning
    if stored is None or not has_cache_header(first):
        if has_cache_header(beginning):
            raise Malformed(file, 1, None, "a cache in a stream or compressed", "it as a file, as it was written")
        return None
    if first != MAGIC and len(first) == HEAD:
        raise Malformed(file, 1, None, "a cache of another version", "one that this version of forel wrote")
    try:
        content = json.loads(stored.text())
        return RowCache(file, content["key"], content["totals"], _checked(content, stored.end), stored)
    except (KeyError, TypeError, AttributeError):
        raise _broken(file, "a cache without the description of its source") from None
    except (ValueError, OSError, MemoryError, RecursionError) as wrong:
        raise _broken(file, wrong) from None


class _Stored:
    """Positioned reads of a file by any thread; it is closed with the last reference."""

    def __init__(self, stream: Any) -> None:
        self._handle = os.dup(stream.fileno())
        finalize(self, os.close, self._handle)
        self.size = os.fstat(self._handle).st_size
        self.end = 0
        self.beginning = os.pread(self._handle, HEAD, 0)

    def read_into(self, memory: Any, start: int) -> None:
        """Fill the memory with bytes from an offset on."""
        rest = memoryview(memory)
        while len(rest):
            got = os.preadv(self._handle, [rest], start)
            if got == 0:
                raise ValueError("a cache without its end")
            start, rest = start + got, rest[got:]

    def text(self) -> bytes:
        """Return the description of the blocks, if it is complete and nothing follows it."""
        trailer = bytearray(TRAILER.size)
        if self.size < HEAD + TRAILER.size:
            raise ValueError("a cache without its end")
        self.read_into(trailer, self.size - TRAILER.size)
        start, length, check, magic = TRAILER.unpack(trailer)
        if magic != MAGIC or start < HEAD or start + length + TRAILER.size != self.size:
            raise ValueError("a cache without its end")
        memory = bytearray(length)
        self.read_into(memory, start)
        text = bytes(memory)
        if _text_check(text, start) != check:
            raise ValueError("a description that is not the one that was written")
        self.end = start
        return text


def _checked(content: dict[str, Any], end: int) -> list[dict[str, Any]]:
    """Return the descriptions of blocks, if they are contiguous and complete."""
    offset, problems, bits = HEAD, content["totals"]["problems"], content["key"]["options"]["bits"]
    if type(bits) is not int or not 1 <= bits <= MOST_BITS:
        raise ValueError("a cache without the description of its source")
    numbers: list[Any] = [content["totals"][name] for name in ("rows", "entries", "bytes")] + [problems["count"]]
    for known in content["blocks"]:
        numbers += [known[name] for name in ("start", "rows", "entries", "check", "line", "size")]
        numbers += () if known["after"] is None else Position(*known["after"])
        if known["start"] != offset or not isinstance(known["file"], str):
            raise ValueError("blocks that do not follow one another")
        offset += _size(known)
    if any(type(one) is not int or not 0 <= one < 1 << 62 for one in numbers) or offset != end:
        raise ValueError("blocks that do not follow one another")
    classes = content["totals"].get("classes", [])
    plain = isinstance(content["totals"]["kinds"], dict) and isinstance(problems["messages"], list)
    plain = plain and isinstance(classes, list) and all(isinstance(name, str) for name in classes)
    if not plain:
        raise ValueError("a cache without the description of its source")
    blocks: list[dict[str, Any]] = content["blocks"]
    return blocks


def _size(known: Mapping[str, Any]) -> int:
    return sum(size * kind.itemsize for size, kind in zip(_sizes(known["rows"], known["entries"]), KINDS, strict=True))


def _sizes(rows: int, entries: int) -> tuple[int, ...]:
    """Return the numbers of elements of the arrays of a block."""
    return rows + 1, rows, entries, entries, rows


def _arrays(memory: NDArray[np.uint8], rows: int, entries: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a block as views."""
    arrays, start = dict[str, NDArray[Any]](), 0
    for name, kind, size in zip(NAMES, KINDS, _sizes(rows, entries), strict=True):
        stop = start + size * kind.itemsize
        arrays[name], start = memory[start:stop].view(kind), stop
    return arrays


def _validate(arrays: dict[str, NDArray[Any]], slots: int) -> None:
    """Raise for numbers that no source has, because kernels do not check them."""
    indptr, indices, values, labels, importance = (
        arrays[name] for name in ("indptr", "indices", "values", "labels", "importance")
    )  # fmt: skip
    if indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("rows that do not follow one another")
    if indices.size and (indices.min() < 0 or indices.max() >= slots):
        wrong = indices[(indices < 0) | (indices >= slots)][0]
        raise ValueError(f"a slot of {wrong} where there are {slots}")
    for name, array, bad in (
        ("a value", values, None if all_finite(values) else ~np.isfinite(values)),
        ("a label", labels, np.isinf(labels)),
        ("an importance", importance, ~(np.isfinite(importance) & (importance >= 0))),
    ):
        if bad is not None and bad.any():
            raise ValueError(f"{name} of {array[bad][0]:g}")


def _text_check(text: bytes, start: int) -> int:
    return zlib.crc32(text, zlib.crc32(b"%d %d" % (start, len(text))))


def _broken(file: str, got: Any) -> Malformed:
    message = (str(got) or type(got).__name__).splitlines()[0].rstrip(".")
    return Malformed(file, 1, None, message, "a whole cache; make it again, or read what it was made from")
