"""The files of an event log: append-only segments of records with checksums.

A record is a mark, its length, a checksum, its kind and a payload. The checksum covers the place of the record, so that
bytes of a row are not taken for a record. Places are offsets in all segments together, which are named by their first.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from forel.log.records import KINDS, NUMBERS, Prediction, Record
from forel.validation import refuse

__all__ = ["Log", "LogDamaged", "LogFailed", "Stored"]

HEAD, PLACED, MARK = struct.Struct("<2sIIB"), struct.Struct("<QIB"), b"\xf0\x1e"
FILE_HEAD = b"forel log 1\n"
PIECE = 1 << 22  # bytes read at a time
LARGEST = 1 << 28  # bytes of a record


class LogDamaged(ValueError):
    """A log with a damaged record before others that are intact."""


class LogFailed(OSError):
    """A log that cannot be written."""


class Stored(NamedTuple):
    """A record, where it begins, and where it ends."""

    place: int
    end: int
    record: Record


class _Segment(NamedTuple):
    start: int
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size


class Log:
    """An event log in a folder, for one writer.

    Parameters
    ----------
    folder : of the segments, created if it does not exist
    segment_bytes : size from which a new segment is begun
    write : False to read the log of another process, up to where it is written

    Opening recovers: a record at the end that was not completely written is cut off (``cut`` has its bytes). A damaged
    record before others that are intact raises :class:`LogDamaged`.

    >>> import tempfile
    >>> from forel.log.records import Left
    >>> log = Log(tempfile.mkdtemp())
    >>> places = log.append([Left(1.0, 7), Left(2.0, 8)])
    >>> log.sync() == log.end, [stored.record.place for stored in log.records()]
    (True, [7, 8])
    """

    def __init__(self, folder: str | os.PathLike[str], segment_bytes: int = 1 << 26, write: bool = True) -> None:
        self.folder, self.segment_bytes, self.write = Path(folder), segment_bytes, write
        self.failed: str | None = None  # why nothing can be made durable any more
        self.cut = 0
        if write:
            self.folder.mkdir(parents=True, exist_ok=True)
        found = sorted(self.folder.glob("*.log"))
        self._segments = [_Segment(int(path.stem), path) for path in found]
        self._open: dict[int, int] = {}
        if not self._segments:
            if not write:
                raise refuse("log", str(folder), "the folder of a log, which forel serve has written")
            self.end = 0
            self._begin_segment()
        self.start = self._segments[0].start
        try:
            self.durable = self.end = self._recovered_end()
        except BaseException:
            self.close()
            raise
        if write:
            last = self._segments[-1]
            self.cut = last.start + last.size - self.end
            os.ftruncate(self._file(last), self.end - last.start)
            os.fsync(self._file(last))

    def _begin_segment(self) -> None:
        path = self.folder / f"{self.end:020d}.log"
        segment = _Segment(self.end, path)
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_EXCL, 0o600)
        try:
            if os.write(handle, FILE_HEAD) != len(FILE_HEAD):
                raise OSError("a new segment could not be written; free some space")
            os.fsync(handle)
        except OSError:
            os.close(handle)
            path.unlink()
            raise
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._segments.append(segment)
        self._open[segment.start] = handle
        self.end += len(FILE_HEAD)

    def _file(self, segment: _Segment) -> int:
        if segment.start not in self._open:
            flags = os.O_RDWR | os.O_APPEND if self.write else os.O_RDONLY
            self._open[segment.start] = os.open(segment.path, flags)
        return self._open[segment.start]

    def _recovered_end(self) -> int:
        """Return the end of the last whole record, or raise where intact records follow one that is not."""
        end = self.start
        for number, segment in enumerate(self._segments):
            last, size = number == len(self._segments) - 1, segment.size
            if segment.start != end:
                raise self._damaged(end, f"the segment before {segment.path.name} ends at {end}")
            if os.pread(self._file(segment), len(FILE_HEAD), 0) != FILE_HEAD:
                if last and size < len(FILE_HEAD) and self.write:  # killed while it was begun
                    os.ftruncate(self._file(segment), 0)
                    os.write(self._file(segment), FILE_HEAD)
                    return segment.start + len(FILE_HEAD)
                raise self._damaged(end, "no log of this version begins there")
            end += len(FILE_HEAD)
            for _, end, _, _ in self._payloads(segment, len(FILE_HEAD)):  # noqa: B007
                pass
            if end != segment.start + size and (not last or self._intact_after(segment, end)):
                raise self._damaged(end, f"{segment.path.name} has a damaged record at byte {end - segment.start}")
        return end

    def _damaged(self, place: int, why: str) -> LogDamaged:
        return LogDamaged(
            f"{self.folder}: the log is damaged at {place:,}: {why}, expected intact records up to its end; restore "
            f"the folder from a copy, or give up what follows: forel log DIR --give-up-after {place}"
        )

    def _intact_after(self, segment: _Segment, place: int) -> bool:
        """Return whether any whole record begins after a place."""
        data = os.pread(self._file(segment), segment.size, place - segment.start)
        at = data.find(MARK, 1)
        while at >= 0:
            if _whole(data, at, place + at) is not None:
                return True
            at = data.find(MARK, at + 1)
        return False

    def _payloads(self, segment: _Segment, start: int) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield place, end, kind and payload of the whole records from an offset in a segment on."""
        rest, at, offset = b"", 0, start
        while True:
            piece = os.pread(self._file(segment), PIECE, offset + len(rest))
            rest += piece
            while (found := _whole(rest, at, segment.start + offset)) is not None:
                kind, stop = found
                place, offset = segment.start + offset, offset + stop - at
                yield place, segment.start + offset, kind, rest[at + HEAD.size : stop]
                at = stop
            rest, at = rest[at:], 0
            if not piece:
                return

    def records(self, start: int = 0) -> Iterator[Stored]:
        """Yield the records that begin at a place or after it, in order."""
        for segment, after in zip(self._segments, [*(one.start for one in self._segments[1:]), self.end], strict=True):
            if after > start:
                offset = max(len(FILE_HEAD), start - segment.start)
                for place, end, kind, payload in self._payloads(segment, offset):
                    if place >= self.end:
                        return
                    yield Stored(place, end, KINDS[kind].unpack(payload))

    def read(self, place: int) -> Record:
        """Return the record that begins at a place."""
        segment = next(one for one in reversed(self._segments) if one.start <= place)
        offset, file = place - segment.start, self._file(segment)
        data = os.pread(file, 1024, offset)
        size = HEAD.size + HEAD.unpack_from(data)[1]
        data = data if size <= len(data) else os.pread(file, size, offset)
        found = _whole(data, 0, place)
        if found is None:
            raise self._damaged(place, "the record there has changed since the log was opened")
        record: Record = KINDS[found[0]].unpack(data[HEAD.size : found[1]])
        return record

    def prediction(self, place: int) -> Prediction:
        """Return the prediction whose record begins at a place."""
        found = self.read(place)
        assert isinstance(found, Prediction)
        return found

    def append(self, records: Sequence[Record]) -> list[int]:
        """Write records behind the others in one call, and return their places; they survive the end of the process.

        Raises :class:`LogFailed` where they cannot be written; the log is then as before.
        """
        if self.failed is not None:
            raise LogFailed(self.failed)
        try:
            if self.end - self._segments[-1].start >= self.segment_bytes:
                self.sync()
                self._begin_segment()
            places, parts, end = list[int](), list[bytes](), self.end
            for record in records:
                payload, kind = record.pack(), NUMBERS[type(record)]
                places.append(end)
                parts += HEAD.pack(MARK, len(payload), _checksum(payload, kind, end), kind), payload
                end += HEAD.size + len(payload)
            file, data = self._file(self._segments[-1]), b"".join(parts)
            if (written := os.write(file, data)) != len(data):
                os.ftruncate(file, self.end - self._segments[-1].start)
                raise OSError(f"{written} of {len(data)} bytes were written; free some space")
        except LogFailed:
            raise
        except OSError as error:
            raise LogFailed(f"{self.folder}: {error.strerror or error}") from error
        self.end = end
        return places

    def sync(self) -> int:
        """Make everything durable that was appended before, and return the place up to which it is.

        May be called on another thread. After an error the system may have lost what was written: the log has to be
        opened again.
        """
        if self.failed is not None:
            raise LogFailed(self.failed)
        end = self.end
        try:
            os.fdatasync(self._file(self._segments[-1]))
        except OSError as error:
            self.failed = f"{self.folder}: {error.strerror or error}; start again once the disk is writable"
            raise LogFailed(self.failed) from error
        self.durable = max(self.durable, end)
        return end

    @property
    def segments(self) -> list[int]:
        """The first place of each segment."""
        return [segment.start for segment in self._segments]

    def drop_before(self, place: int) -> int:
        """Delete segments that end at a place or before it, and return their number."""
        gone = 0
        while len(self._segments) > 1 and self._segments[1].start <= place:
            segment = self._segments.pop(0)
            if (handle := self._open.pop(segment.start, None)) is not None:
                os.close(handle)
            segment.path.unlink()
            gone += 1
        self.start = self._segments[0].start
        return gone

    def close(self) -> None:
        """Close the files."""
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()


def give_up_after(folder: str | os.PathLike[str], place: int) -> int:
    """Cut a damaged log at a place; what was behind it is kept beside it. Return the number of bytes."""
    gone = 0
    for path in sorted(Path(folder).glob("*.log")):
        start, size = int(path.stem), path.stat().st_size
        if start + size > place:
            kept = max(0, place - start)
            path.with_suffix(".damaged").write_bytes(path.read_bytes()[kept:])
            gone += size - kept
            if kept:
                os.truncate(path, kept)
            else:
                path.unlink()
    return gone


def _whole(data: bytes, at: int, place: int) -> tuple[int, int] | None:
    """Return kind and end of the record at an offset of some bytes; None if it is not whole."""
    if at + HEAD.size > len(data):
        return None
    mark, length, checksum, kind = HEAD.unpack_from(data, at)
    stop = at + HEAD.size + length
    if mark != MARK or stop > len(data) or kind not in KINDS:
        return None
    return (kind, stop) if _checksum(data[at + HEAD.size : stop], kind, place) == checksum else None


def _checksum(payload: bytes, kind: int, place: int) -> int:
    return zlib.crc32(payload, zlib.crc32(PLACED.pack(place, len(payload), kind)))
