"""What connections of all protocols share: limits, and flow control."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Connection", "Limits", "Site"]

BUFFER = 1 << 20  # bytes of answers that wait for a client, before it is read from no more
UNANSWERED = 1024  # requests of a connection
PIECE = 1 << 16  # bytes that are received at a time


@dataclass(frozen=True)
class Limits:
    """What one client may use.

    Parameters
    ----------
    body : bytes of a request, and of a line of the text protocol
    rows, features : rows of a request, and features of a row
    connections : open at a time
    seconds : in which a request has to arrive, and an answer has to be taken
    """

    body: int = 4 << 20
    rows: int = 10_000
    features: int = 10_000
    connections: int = 1024
    seconds: float = 60.0


@dataclass
class Site:
    """What the connections of a server share.

    Parameters
    ----------
    handle : answers a request
    limits : of a client
    token : that requests have to bear; None for none
    hosts : names of this server that requests may use; empty for any
    """

    handle: Callable[[Any], None]
    limits: Limits
    token: str | None = None
    hosts: tuple[str, ...] = ()
    connections: set[Any] = field(default_factory=set)
    heads: dict[bytes, Any] = field(default_factory=dict)  # of HTTP requests, that were parsed and not refused
    received: bytearray = field(default_factory=lambda: bytearray(PIECE))  # by the connection that is read from

    def sweep(self) -> None:
        """Close connections whose request does not arrive, or whose answer is not taken."""
        limit = time.monotonic() - self.limits.seconds
        for one in list(self.connections):
            if one.since < limit:
                one.expire()


class Connection(asyncio.BufferedProtocol):
    """A connection, which is read from while its client takes the answers, in turns with others.

    Parameters
    ----------
    site : what it shares with others
    crowded : what is sent where there are too many
    """

    def __init__(self, site: Site, crowded: bytes) -> None:
        self.site, self._crowded = site, crowded
        self.waiting = False  # for the client to take answers
        self.closing = False
        self.unanswered = 0
        self.since = time.monotonic()

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or close it if there are too many."""
        self.transport = transport
        transport.set_write_buffer_limits(high=BUFFER)
        if len(self.site.connections) >= self.site.limits.connections:
            self.closing = True
            transport.write(self._crowded)
            transport.close()
        else:
            self.site.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        self.closing = True
        self.site.connections.discard(self)

    def get_buffer(self, hint: int) -> bytearray:
        """Return where to put received bytes."""
        return self.site.received

    def buffer_updated(self, count: int) -> None:
        """Take received bytes; where more may be there, other connections come first."""
        self.since = time.monotonic()
        self.take(bytes(memoryview(self.site.received)[:count]))
        if count == PIECE and not self.transport.is_closing():
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self.read_on)

    def take(self, data: bytes) -> None:
        """Answer what has arrived."""
        raise NotImplementedError

    def read_on(self) -> None:
        """Read on, unless the client does not take its answers, or waits for too many."""
        if not (self.waiting or self.unanswered >= UNANSWERED or self.transport.is_closing()):
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Read nothing more while the client does not take its answers."""
        self.waiting, self.since = True, time.monotonic()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on."""
        self.waiting = False
        self.read_on()

    def asked(self) -> None:
        """Count a request, and read nothing more while too many have no answer."""
        self.unanswered += 1
        if self.unanswered == UNANSWERED:
            self.transport.pause_reading()

    def answered(self, data: bytes, count: int = 1) -> None:
        """Send answers, read on, and close the connection after the last answer if nothing more comes."""
        if not self.transport.is_closing():
            self.transport.write(data)
        full, self.unanswered = self.unanswered >= UNANSWERED, self.unanswered - count
        if full:
            self.read_on()
        if self.closing and not self.unanswered:
            self.transport.close()
