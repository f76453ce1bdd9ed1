"""A cache of parsed rows: blocks of arrays in one file, which later passes read instead of parsing text again.

After sixteen bytes that name the format come the arrays of each block, one after the other, then a JSON text that
describes every block, and a trailer that says where that text is. Every byte is covered by a checksum, which is
compared before anything is made of what was read; then numbers are validated as those of any other source. The file is
read and not mapped: one that is cut or changed meanwhile is an error, where memory would be gone.
"""

import json
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.position import Position
from forel.data.problems import Malformed, Problems
from forel.data.tasks import Task, found
from forel.validation import all_finite

__all__ = ["HEAD", "Cache", "Writer", "begins_cache", "cache_in"]

FORMAT = b"\x93forel cache "
MAGIC = FORMAT + b"2\0\0"
HEAD = len(MAGIC)  # bytes that tell a cache from other files
TRAILER = struct.Struct("<QQL16s")  # where the text begins, its length, its checksum, and the magic once more
ORDER = {"indptr": np.int64, "indices": np.int32, "values": np.float32, "labels": np.float32, "importance": np.float32}


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
        self._file, self._told = file, dict(told)
        self._blocks: list[dict[str, Any]] = []
        self._place = 0
        self.rows = self.entries = self.bytes = 0
        self._write(MAGIC)

    def add(self, block: Block) -> None:
        """Write a block."""
        start, check = self._place, 0
        for name, kind in ORDER.items():
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

    def close(self, problems: Problems, kinds: Mapping[str, str] | None = None) -> None:
        """Write the end, with what could not be read, and what columns turned out to hold."""
        totals = {
            "rows": self.rows, "entries": self.entries, "bytes": self.bytes, "kinds": dict(kinds or {}),
            "problems": {"count": problems.count, "messages": problems.messages},
        }  # fmt: skip
        start = self._place
        text = json.dumps({"told": self._told, "totals": totals, "blocks": self._blocks}).encode()
        self._write(text)
        self._write(TRAILER.pack(start, len(text), _text_check(text, start), MAGIC))

    def _write(self, memory: Any) -> None:
        """Write all of it; a file without a buffer may take less at a time."""
        rest = memoryview(memory)
        while len(rest):
            taken = self._file.write(rest)
            self._place += taken
            rest = rest[taken:]


@dataclass(frozen=True, eq=False)
class Cache:
    """A cache whose end is whole: what it is of, what it holds, and its blocks when they are asked for.

    Parameters
    ----------
    file : its name
    told : what it is of, as its writer was told
    totals : rows, entries, bytes of text, and problems that were met
    """

    file: str
    told: dict[str, Any]
    totals: dict[str, Any]
    index: list[dict[str, Any]] = field(repr=False)
    stored: "_Stored" = field(repr=False)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def problems(self) -> Problems:
        """What was met when the cache was written."""
        met = self.totals["problems"]
        return Problems("skip", count=met["count"], messages=list(met["messages"]))

    @property
    def kinds(self) -> dict[str, str]:
        """What columns turned out to hold when the cache was written."""
        return dict(self.totals["kinds"])

    def find(self, place: Position) -> int:
        """Return the number of the first block after a place of the source."""
        return bisect_right(self.index, place, key=lambda known: Position(*known["after"]))

    def tasks(self, first: int = 0, file: int | None = None) -> Iterator[Task]:
        """Yield the work for each block from the ``first`` on.

        Places are those of the source, or of the cache as the given ``file`` of a source.
        """
        for k in range(first, len(self)):
            yield partial(self._task, k, file)
        yield found(None, self.problems)

    def _task(self, k: int, file: int | None) -> tuple[Block, Problems]:
        known = self.index[k]
        try:
            memory: Any = np.empty(_size(known), np.uint8)
            self.stored.read_into(memory, known["start"])
            if zlib.crc32(memory) != known["check"]:
                raise ValueError("numbers that are not those that were written")
            arrays: dict[str, Any] = _arrays(memory, known["rows"], known["entries"])
            _validate(arrays, 1 << self.told["options"]["bits"])
        except (ValueError, OSError, MemoryError) as wrong:
            raise _broken(self.file, wrong) from None
        after = known["after"] if file is None else (file, k + 1)
        place = None if after is None else Position(*after)
        return Block(**arrays, file=known["file"], line=known["line"], size=known["size"], after=place), Problems(
            "skip"
        )


def begins_cache(beginning: bytes) -> bool:
    """Tell whether a file begins as a cache does, be it whole or not."""
    return beginning.startswith(FORMAT)


def cache_in(stream: Any, file: str) -> Cache | None:
    """Return the cache in a file that was opened for reading; None where it is something else.

    A cache that is not whole is a ``Malformed``, and so is one of another version.
    """
    beginning = stream.peek(HEAD)[:HEAD] if hasattr(stream, "peek") else b""
    try:
        stored = _Stored(stream)
    except (OSError, ValueError):  # not a file on a disk
        stored = None
    held = b"" if stored is None else stored.beginning
    if stored is None or not begins_cache(held):
        if begins_cache(beginning):
            raise Malformed(file, 1, None, "a cache in a stream or compressed", "it as a file, as it was written")
        return None
    if held != MAGIC and len(held) == HEAD:
        raise Malformed(file, 1, None, "a cache of another version", "one that this version of forel wrote")
    try:
        content = json.loads(stored.text())
        return Cache(file, content["told"], content["totals"], _checked(content, stored.end), stored)
    except (KeyError, TypeError, AttributeError):
        raise _broken(file, "a cache that does not say how it was made") from None
    except (ValueError, OSError, MemoryError, RecursionError) as wrong:
        raise _broken(file, wrong) from None


class _Stored:
    """The bytes of a file, read at a place, by any thread; it is closed when nobody has it any more."""

    def __init__(self, stream: Any) -> None:
        self._handle = os.dup(stream.fileno())
        finalize(self, os.close, self._handle)
        self.size = os.fstat(self._handle).st_size
        self.end = 0
        self.beginning = os.pread(self._handle, HEAD, 0)

    def read_into(self, memory: Any, start: int) -> None:
        """Fill the memory from a place on."""
        rest = memoryview(memory)
        while len(rest):
            got = os.preadv(self._handle, [rest], start)
            if got == 0:
                raise ValueError("a cache without its end")
            start, rest = start + got, rest[got:]

    def text(self) -> bytes:
        """Return the text that describes the blocks, if it is whole and nothing comes after it."""
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
    """Return what is known of blocks, if they follow one another to the end, and all is there that is asked for."""
    place, met = HEAD, content["totals"]["problems"]
    numbers: list[Any] = [content["totals"][name] for name in ("rows", "entries", "bytes")] + [met["count"]]
    for known in content["blocks"]:
        numbers += [known[name] for name in ("start", "rows", "entries", "check", "line", "size")]
        numbers += () if known["after"] is None else Position(*known["after"])
        if known["start"] != place or not isinstance(known["file"], str):
            raise ValueError("blocks that do not follow one another")
        place += _size(known)
    if any(type(one) is not int or not 0 <= one < 1 << 62 for one in numbers) or place != end:
        raise ValueError("blocks that do not follow one another")
    bits = content["told"]["options"]["bits"]
    plain = isinstance(content["totals"]["kinds"], dict) and isinstance(met["messages"], list)
    if type(bits) is not int or not 1 <= bits <= 31 or not plain:
        raise ValueError("a cache that does not say how it was made")
    blocks: list[dict[str, Any]] = content["blocks"]
    return blocks


def _size(known: Mapping[str, Any]) -> int:
    rows, entries = known["rows"], known["entries"]
    return int(8 * (rows + 1) + 8 * entries + 8 * rows)


def _arrays(memory: NDArray[np.uint8], rows: int, entries: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a block as views, aligned because those with the widest numbers come first."""
    sizes, arrays, start = (rows + 1, entries, entries, rows, rows), {}, 0
    for (name, kind), size in zip(ORDER.items(), sizes, strict=True):
        stop = start + size * np.dtype(kind).itemsize
        arrays[name], start = memory[start:stop].view(kind), stop
    return arrays


def _validate(arrays: dict[str, NDArray[Any]], slots: int) -> None:
    """Refuse numbers that no source gives, because kernels look at nothing again."""
    indptr, indices, values, labels, importance = arrays.values()
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
    said = (str(got) or type(got).__name__).splitlines()[0].rstrip(".")
    return Malformed(file, 1, None, said, "a whole cache; make it again, or read what it was made from")
