"""Bytes of a pipe as they arrive, so that a reader can answer before the pipe is closed."""

import os
import select
import stat
from typing import Any

__all__ = ["Arriving", "arriving"]

WAIT = 0.02  # seconds without a byte after which complete lines are parsed


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


def arriving(stream: Any) -> Any:
    """Return the stream, wrapped in :class:`Arriving` if it is a pipe, socket or terminal."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # no file of the system
        return stream
    waits = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)
    return Arriving(stream) if waits else stream
