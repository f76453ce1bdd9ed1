"""Byte streams of files and standard input, plain or compressed, read in chunks of whole lines."""

import codecs
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block, Position, Task, completed_task
from forel.data.buffers import Buffers
from forel.data.compiled import layout
from forel.data.problems import Malformed, Problems
from forel.data.sources.files import is_topic, open_file, standard_input
from forel.validation import refuse

__all__ = [
    "READ_ERRORS", "Chunk", "buffered", "chunk_task", "chunk_tasks", "chunks", "count", "is_plain", "open_stream",
    "skip",
]  # fmt: skip

PAD = layout.PAD + 8  # bytes allocated after the text, with a line end that may be missing
GZIP, ZSTD, ZIP, BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xef\xbb\xbf"
# Byte order marks; a stream of Arrow begins with four bytes of 255.
MARKS = (
    (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")
)  # fmt: skip
NEWLINE, BUFFER = 10, 1 << 17
PIECE = 1 << 16  # bytes that are counted at a time
Cut = Callable[[NDArray[np.uint8], int, bool], tuple[int, int]]
READ_ERRORS = (OSError, EOFError, zlib.error)  # what reading a damaged file raises
LONGEST = 1 << 26  # default maximum length of a line in bytes


@dataclass(frozen=True, eq=False)
class Chunk:
    """Complete lines of a file: the bytes of ``text`` from ``start`` to ``length``, which ends with a line end."""

    text: NDArray[np.uint8]
    length: int
    lines: int
    start: int = 0


@contextmanager
def open_stream(source: Any, encoding: str | None = None) -> Iterator[Any]:
    """Open a path, standard input or a binary file object as a decompressed stream with ``peek``.

    Text in another encoding becomes UTF-8; UTF-16 and UTF-32 are recognized by a byte order mark.

    >>> import gzip
    >>> with open_stream(io.BytesIO(gzip.compress(b"1 |a b"))) as stream:
    ...     stream.peek(3)[:3]
    b'1 |'
    >>> with open_stream(io.BytesIO("é".encode("utf-16"))) as stream:
    ...     stream.read()
    b'\xc3\xa9'
    """
    with _raw(source) as raw:
        plain, first = raw, raw.peek(4)[:4]
        if first.startswith(GZIP):
            plain = buffered(_Gunzipped(raw))
        elif first == ZSTD:
            import pyarrow as pa  # whose reader detects truncated files

            # A stream that pyarrow may read but not close, because the caller owns it.
            borrowed = SimpleNamespace(read=raw.read, closed=False, close=lambda: None)
            plain = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(borrowed, "r"), "zstd"), BUFFER)
        elif first == ZIP and (unpacked := _unpacked(raw)) is not None:
            plain = buffered(unpacked)
        found = encoding or next((name for mark, name in MARKS if _first_bytes(plain).startswith(mark)), None)
        yield plain if found is None or is_utf8(found) else buffered(_Decoded(plain.read1, found))


class _Unzipped:
    """The bytes of a file in a ZIP archive; a wrong checksum is an error of every read after it."""

    def __init__(self, read: Callable[[int], bytes], bad_file: type[Exception]) -> None:
        self._read, self._bad_file, self._wrong = read, bad_file, list[Exception]()

    def __call__(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        if self._wrong:
            raise self._wrong[0]
        try:
            return bytes(self._read(size))
        except (*READ_ERRORS, self._bad_file) as wrong:
            self._wrong.append(zlib.error(str(wrong)) if isinstance(wrong, self._bad_file) else wrong)
            raise self._wrong[0] from None


def _unpacked(raw: Any) -> Callable[[int], bytes] | None:
    """Return the bytes of a workbook's first sheet, or of the only file in a ZIP archive; None for others and pipes."""
    from zipfile import BadZipFile, ZipFile

    try:
        start = raw.tell()
        archive = ZipFile(raw)
        files = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")]
        if "xl/workbook.xml" in archive.namelist():
            from forel.data.sources.workbook import sheet_bytes

            return _Unzipped(sheet_bytes(raw), BadZipFile)
        if len(files) == 1:
            return _Unzipped(cast(Any, archive.open(files[0])).read1, BadZipFile)
    except (BadZipFile, OSError, RuntimeError):  # damaged, a pipe, or encrypted
        pass
    if raw.seekable():
        raw.seek(start)
    return None


def is_utf8(encoding: str) -> bool:
    """Return whether an encoding is UTF-8, with or without a byte order mark."""
    return codecs.lookup(encoding).name.startswith("utf-8")


def _first_bytes(stream: Any) -> bytes:
    with suppress(*READ_ERRORS):  # which reading raises again
        return bytes(stream.peek(4)[:4])
    return b""


class _Pulled(io.RawIOBase):
    """A raw stream of the bytes that a function returns, at most as many as it is asked for, until there are none.

    All bytes before an error are read.
    """

    def __init__(self, pull: Callable[[int], bytes]) -> None:
        self._pull = pull

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, memory: Any) -> int:
        """Fill the memory as far as there are bytes, and return their number."""
        data = self._pull(len(memory))
        memory[: len(data)] = data
        return len(data)


def buffered(pull: Callable[[int], bytes]) -> io.BufferedReader:
    """Return a buffered stream of the bytes that a function returns."""
    return io.BufferedReader(_Pulled(pull), BUFFER)


class _EncodingError(OSError):
    """Bytes are not text in the encoding that was given or found."""


class _Decoded:
    """Text in some encoding as UTF-8."""

    def __init__(self, read: Callable[[int], bytes], encoding: str) -> None:
        self._read, self._encoding, self._rest = read, encoding, b""
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def __call__(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        while not self._rest:
            data = self._read(size)
            try:
                self._rest = self._decoder.decode(data, final=not data).encode("utf-8", "surrogatepass")
            except UnicodeDecodeError as wrong:
                bytes_of = wrong.object[wrong.start : wrong.end].hex(" ")
                raise _EncodingError(f"the bytes {bytes_of}, which are not {self._encoding}") from None
            if not data:
                break
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def is_plain(beginning: bytes) -> bool:
    """Return whether the first bytes of a file show neither a compressed file nor a byte order mark of UTF-16 or 32."""
    return not beginning.startswith((GZIP, ZSTD, ZIP, *(mark for mark, _ in MARKS)))


class _Gunzipped:
    """The decompressed bytes of a gzip file: by ISA-L, if it is installed, several times as fast as zlib."""

    def __init__(self, raw: Any) -> None:
        self._raw, self._rest = raw, b""
        try:
            self._zlib: Any = import_module("isal.isal_zlib")
        except ImportError:
            self._zlib = zlib
        self._member = self._zlib.decompressobj(wbits=31)

    def __call__(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end, and EOFError where it is missing."""
        while True:
            data = self._rest or self._raw.read1(BUFFER)
            if self._member.eof:  # zeros or another member may follow
                self._rest = data.lstrip(b"\0")
                if not data:
                    return b""
                if self._rest:
                    self._member = self._zlib.decompressobj(wbits=31)
                continue
            if not data:
                raise EOFError("the end of the compressed file is missing")
            try:
                found = bytes(self._member.decompress(data, size))
            except self._zlib.error as wrong:
                raise zlib.error(str(wrong)) from None
            self._rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if found:
                return found


@contextmanager
def _raw(source: Any) -> Iterator[Any]:
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if path == "-":
            yield standard_input()
        elif is_topic(path):
            from forel.data.sources.kafka import topic_lines

            yield buffered(topic_lines(path))
        else:
            with open_file(path) as file:
                yield file
    elif hasattr(source, "peek"):
        yield source
    elif hasattr(source, "readinto"):
        lent = io.BufferedReader(source, BUFFER)
        try:
            yield lent
        finally:
            with suppress(ValueError):  # already closed
                lent.detach()  # keeps the caller's file open
    elif hasattr(source, "buffer"):
        yield source.buffer
    else:
        raise refuse("source", type(source).__name__, "a file object opened for reading bytes")


def chunk_tasks(
    chunks: Iterable[Chunk], start: Position, problems: Problems, parse: Callable[[Chunk, int, int, Problems], Block]
) -> Iterator[Task]:
    """Yield a task for each chunk after a position, and at the end the problems of reading chunks.

    ``parse`` receives a chunk, its number from 0 on, the number of its first line, and an object for its problems.
    """
    position = start
    for number, chunk in enumerate(chunks):
        after = position._replace(bytes=position.bytes + chunk.length, line=position.line + chunk.lines)
        yield partial(chunk_task, partial(parse, chunk, number, position.line), chunk, problems.on_error, after)
        position = after
    yield completed_task(None, problems)


def chunk_task(
    parse: Callable[[Problems], Block], chunk: Chunk, on_error: Literal["raise", "skip", "later"], after: Position
) -> tuple[Block, Problems]:
    """Return the block of a chunk, and its problems in the order of lines."""
    problems, gathered = Problems(on_error), Problems("later")
    block = parse(gathered)
    problems.absorb(gathered)
    return replace(block, size=chunk.length, after=after), problems


def skip(stream: Any, size: int) -> None:
    """Skip ``size`` bytes of a stream: by seeking in a plain file, by reading in a compressed one."""
    if hasattr(stream, "raw") and stream.seekable():
        stream.seek(size, os.SEEK_CUR)
        return
    while size > 0 and (got := len(stream.read(min(size, 1 << 20)))):
        size -= got


def whole_lines(text: NDArray[np.uint8], length: int, ended: bool = False) -> tuple[int, int]:
    """Return the offset after the last line end of a text, and the number of lines before it."""
    end = last_line_end(text, length)
    return end, count(text, end, NEWLINE)


def count(text: NDArray[np.uint8], end: int, wanted: int) -> int:
    """Count the occurrences of a byte before ``end``.

    >>> count(np.frombuffer(b"a, bc, def, ghij", np.uint8), 11, ord(","))
    3
    """
    # In pieces, because large temporary arrays cost page faults.
    return sum(int(np.count_nonzero(text[at : min(end, at + PIECE)] == wanted)) for at in range(0, end, PIECE))


def chunks(
    stream: Any, size: int, problems: Problems, file: str = "", line: int = 1, cut: Cut | None = None,
    limit: int = LONGEST,
) -> Iterator[Chunk]:  # fmt: skip
    r"""Read a stream in chunks of about ``size`` bytes and complete lines of at most ``limit`` bytes.

    Complete lines before damaged bytes are yielded first, and then the problem is recorded.

    Parameters
    ----------
    line : number of the first line
    cut : returns the end of the last line of a text, and the number of lines; it receives the text, its length, and
        whether the stream has ended

    >>> [bytes(c.text[: c.length]) for c in chunks(io.BytesIO(b"one\ntwo\nthree"), 8, Problems())]
    [b'one\ntwo\n', b'three\n']
    """
    rest, cut, buffers = np.empty(0, np.uint8), cut or whole_lines, Buffers()
    start = -1 if line == 1 else 0  # only the first line of a file may have a byte order mark
    while True:
        # For a long line the buffer doubles, so that reading it takes linear time.
        room = rest.size + max(size, min(rest.size, limit + 1 - rest.size))
        text = buffers.empty(room + PAD, np.uint8)
        text[: rest.size] = rest
        n, problem = _fill(stream, memoryview(text.data)[:room], rest.size)
        ended = n < room and not getattr(stream, "paused", False)
        if ended and problem is None and n and text[n - 1] != NEWLINE:
            text[n] = NEWLINE
            n += 1
        text[n : n + 8] = 0
        if start < 0:
            start = len(BOM) if text[:3].tobytes() == BOM else 0
        end, lines = cut(text, n, ended and problem is None)
        if ended and problem is None and end < n:  # a last line without an end
            end, lines = n, lines + 1
        if end > limit and (long := _longer(text, end, limit)) is not None:
            raise too_long(file, line + long, "text", limit)
        if end:
            rest = text[end:n].copy()
            yield Chunk(text, end, lines, start)
            start, line = 0, line + lines
        else:
            rest = text[:n]
        if rest.size > limit:
            raise too_long(file, line, "text", limit)
        if problem is not None:
            problems.record(broken_file(file, line, problem))
        if ended:
            return


def broken_file(file: str, line: int, problem: Exception) -> Malformed:
    """Return the error about a file that cannot be read to its end."""
    wrong = isinstance(problem, _EncodingError)
    expected = "text of this encoding; give another one (--encoding)" if wrong else "a whole file; copy it again"
    return Malformed(file, line, None, str(problem).rstrip("."), expected)


def _longer(text: NDArray[np.uint8], end: int, limit: int) -> int | None:
    """Return the number of the first line that is longer than the limit, if any."""
    stops = np.flatnonzero(text[:end] == NEWLINE)
    found = np.flatnonzero(np.diff(stops, prepend=-1) > limit + 1)
    return int(found[0]) if found.size else None


def too_long(file: str, line: int, what: str, limit: int) -> Malformed:
    """Return the error about a line that exceeds the limit; the file may not be text."""
    expected = "a line end before; for longer lines, increase line_limit (--line-limit)"
    return Malformed(file, line, None, f"{what} of more than {limit:,} bytes without a line end", expected)


def read_some(stream: Any, memory: Any) -> int:
    """Read bytes into the memory, and return their number.

    One read at most, and of no more bytes than a buffer has: bytes before an error would be lost otherwise.
    """
    return int((stream.readinto1 if hasattr(stream, "readinto1") else stream.readinto)(memory[:BUFFER]))


def _fill(stream: Any, view: memoryview, n: int) -> tuple[int, Exception | None]:
    """Read until the view is full, or the stream ends or pauses; return the number of bytes, and an exception."""
    try:
        while n < len(view):
            got = read_some(stream, view[n:])
            if not got:
                break
            n += got
            if getattr(stream, "paused", False) and last_line_end(np.frombuffer(view, np.uint8), n):
                break  # the writer may wait for the answer to these lines
    except READ_ERRORS as problem:
        return n, problem
    return n, None


def last_line_end(text: NDArray[np.uint8], stop: int) -> int:
    """Return the position after the last line end before ``stop``; 0 without one."""
    width = 1024
    while stop > 0:
        low = max(0, stop - width)
        found = text[low:stop].tobytes().rfind(b"\n")
        if found >= 0:
            return low + found + 1
        stop, width = low, width * 4
    return 0


def next_line(text: NDArray[np.uint8], start: int, length: int) -> int:
    """Return the position after the next line end from ``start`` on."""
    width = 1024
    while start < length:
        found = text[start : start + width].tobytes().find(b"\n")
        if found >= 0:
            return start + found + 1
        start, width = start + width, width * 4
    return length
