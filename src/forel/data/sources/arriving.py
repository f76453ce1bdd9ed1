"""Streams whose bytes arrive while they are read: pipes that pause, and files that others append to."""

import fcntl
import io
import os
import select
import signal
import stat
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

from forel.data.sources.files import is_file, open_file, standard_input
from forel.data.sources.streams import BUFFER, LONGEST, buffered, is_plain
from forel.validation import refuse

__all__ = ["Arriving", "Growing", "arriving", "ended_by_signals", "follow"]

WAIT = 0.02  # seconds without a byte after which complete lines of a pipe are parsed
POLL = 0.2  # seconds until the end of a file is read again


class Arriving:
    """A buffered stream whose ``paused`` is true after a read if no further bytes have arrived for a moment.

    Parameters
    ----------
    stream : a buffered reader of a pipe, socket or terminal
    wait : seconds to wait for more bytes

    >>> read, write = os.pipe()
    >>> with os.fdopen(read, "rb") as pipe, os.fdopen(write, "wb", 0) as other:
    ...     stream, _ = Arriving(pipe), other.write(b"1 |a x")
    ...     stream.readinto(bytearray(100)), stream.paused
    (6, True)
    """

    def __init__(self, stream: Any, wait: float = WAIT) -> None:
        self._stream, self._wait = stream, wait
        self.paused = False

    def readinto(self, memory: Any) -> int:
        """Wait for bytes, and return the number of those that have arrived; 0 at the end."""
        # Not by readinto1, which waits for further bytes where the buffer is smaller than the memory.
        got = min(len(self._stream.peek(1)), len(memory))
        memory[:got] = self._stream.read(got)
        self.paused = got > 0 and not select.select([self._stream], [], [], self._wait)[0]
        return got

    readinto1 = readinto

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Growing:
    """The complete lines of a file that others append to, or of a pipe; at the end, it waits for more.

    Parameters
    ----------
    raw : the file, unbuffered
    ended : when it is set, no more lines are awaited, and what is left of an incomplete one is dropped
    idle : seconds without a line after which none are awaited
    reopened : whether another writer may open the pipe after one has closed it
    """

    def __init__(self, raw: io.FileIO, ended: threading.Event, idle: float = inf, reopened: bool = True) -> None:
        self._raw, self._ended, self._idle, self._reopened = raw, ended, idle, reopened
        self._regular = stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
        self._lines, self._rest = b"", bytearray()  # complete lines, and the beginning of the next one
        self._stream = buffered(self._pull)
        self.paused = False

    def _pull(self, size: int) -> bytes:
        """Return some bytes of complete lines, when there are any."""
        last = monotonic()
        while not self._lines and not self._ended.is_set() and monotonic() - last < self._idle:
            if data := self._arrived():
                last, end = monotonic(), data.rfind(b"\n") + 1
                if end or len(self._rest) > LONGEST:  # which is refused where lines are counted
                    self._lines, self._rest = bytes(self._rest) + data[:end], bytearray()
                self._rest += data[end:]
        found, self._lines = self._lines[:size], self._lines[size:]
        return found

    def _arrived(self) -> bytes:
        """Return bytes that have arrived; none if there are none for a moment."""
        if not select.select([self._raw], [], [], POLL)[0]:
            return b""
        data = self._raw.read(BUFFER)
        if data == b"":
            if not (self._reopened or self._regular):
                self._ended.set()
            self._ended.wait(POLL)
        return data or b""

    def _more(self) -> bool:
        return bool(self._lines) or self._waiting() or (not self._ended.wait(WAIT) and self._waiting())

    def _waiting(self) -> bool:
        """Return whether bytes have arrived; a pipe without a writer is ready to be read, and has none."""
        return any(fcntl.ioctl(self._raw, termios.FIONREAD, bytes(4)))

    def readinto(self, memory: Any) -> int:
        """Wait for complete lines, and return the number of their bytes; 0 at the end."""
        got: int = self._stream.readinto1(memory)
        self.paused = got > 0 and not self._more()
        return got

    readinto1 = readinto

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def follow(source: str, ended: threading.Event, idle: float | None = None) -> Iterator[Growing]:
    """Open a growing file, a pipe or standard input, as :class:`Growing` reads it."""
    if is_file(source):
        with open_file(source) as file:
            if not is_plain(file.read(4)):
                raise refuse("follow", source, "plain text in UTF-8, which lines are appended to")
    # A pipe without a writer would otherwise block until there is one.
    raw = standard_input().detach() if source == "-" else io.FileIO(os.open(source, os.O_RDONLY | os.O_NONBLOCK))
    with raw:
        yield Growing(raw, ended, inf if idle is None else idle, reopened=source != "-")


@contextmanager
def ended_by_signals(ended: threading.Event) -> Iterator[None]:
    """Let the first SIGINT or SIGTERM set an event; the next one has its usual effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def end(*_: object) -> None:
        restore()
        ended.set()

    for number in usual:
        signal.signal(number, end)
    try:
        yield
    finally:
        restore()


def arriving(stream: Any) -> Any:
    """Return a stream that tells when it pauses, so that a reader can answer, if it is a pipe, socket or terminal."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # no file of the system
        return stream
    waits = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)
    return Arriving(stream) if waits else stream
