"""HTTP/1.1 on one event loop: requests are parsed by httptools, and answered in their order, each when it is ready."""

import asyncio
import hmac
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httptools

__all__ = ["JSON", "MSGPACK", "Http", "Limits", "Request", "Site"]

JSON, MSGPACK = "application/json", "application/msgpack"
REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 409: "Conflict", 413: "Content Too Large", 415: "Unsupported Media Type",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
HEADERS, UNANSWERED, BUFFER = 16_384, 1024, 1 << 20


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
class Request:
    """A request; :attr:`reply` answers it, once, now or later."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    reply: Callable[..., None]
    started: float = field(default_factory=time.perf_counter)


@dataclass
class Site:
    """What the connections of a server share.

    Parameters
    ----------
    handle : answers a request
    limits : of a client
    token : that requests have to bear; None for none
    hosts : names of this server that requests may use; empty for any
    subscribe : called with a transport that takes the stream of events from now on
    """

    handle: Callable[[Request], None]
    limits: Limits
    token: str | None = None
    hosts: tuple[str, ...] = LOOPBACK
    connections: set[Any] = field(default_factory=set)

    def sweep(self) -> None:
        """Close connections whose request does not arrive, or whose answer is not taken."""
        limit = time.monotonic() - self.limits.seconds
        for one in list(self.connections):
            if one.since < limit:
                one.expire()


class Http(asyncio.Protocol):
    """A connection."""

    def __init__(self, site: Site) -> None:
        self.site, self.parser = site, httptools.HttpRequestParser(self)
        self.slots = deque[list[bytes]]()
        self.waiting = False  # for the client to take answers
        self.closing = self.streaming = self.full = False
        self.since = time.monotonic()
        self._reset()

    def _reset(self) -> None:
        self.url, self.headers, self.body, self.size, self.head = b"", dict[str, str](), list[bytes](), 0, 0
        self.refused: tuple[int, str] | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or close it if there are too many."""
        self.transport = transport
        transport.set_write_buffer_limits(high=BUFFER)
        if len(self.site.connections) >= self.site.limits.connections:
            self.closing = True
            transport.write(_answer(503, b'{"error":"connections: there are too many; try again later"}', close=True))
            transport.close()
            return
        self.site.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        self.closing = True
        self.site.connections.discard(self)

    def expire(self) -> None:
        """Close the connection, with an answer if a request has begun to arrive."""
        if self.streaming and not self.waiting:
            return
        if self.slots and not self.waiting:
            return  # the server is slow, not the client
        if self.waiting:
            self.transport.abort()
        else:
            if self.url:
                self._refuse(408, "request: it did not arrive in time")
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived."""
        if self.closing:
            return
        self.since = time.monotonic()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "upgrade: got one, expected HTTP/1.1")
        except httptools.HttpParserError as error:
            if not self.closing:
                self._refuse(400, f"request: {error}, expected HTTP/1.1")

    def eof_received(self) -> bool:
        """Keep the connection open until all answers are sent."""
        self.closing = True
        return bool(self.slots)

    # What the parser found.
    def on_message_begin(self) -> None:
        """Begin a request."""
        self._reset()

    def on_url(self, url: bytes) -> None:
        """Add to the target, which comes in pieces where a read ends within it."""
        self.url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header."""
        self._count_head(len(name) + len(value))
        key = name.decode("latin-1").lower()
        self.headers[key] = value.decode("latin-1")
        length = self.headers[key] if key == "content-length" else ""
        if length.isdigit() and int(length[:18]) > self.site.limits.body:
            self._too_large()

    def _count_head(self, size: int) -> None:
        self.head += size
        if self.head > HEADERS and self.refused is None:
            self.refused = 431, f"headers: got more than {HEADERS:,} bytes, expected fewer"

    def on_headers_complete(self) -> None:
        """Refuse requests that are too large before their body arrives."""
        if self.refused is not None:
            self._refuse(*self.refused)
        elif self.headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Add to the body."""
        self.size += len(body)
        if self.size > self.site.limits.body and self.refused is None:
            self._too_large()
            self._refuse(*self.refused)  # type: ignore[misc]
        if not self.closing:
            self.body.append(body)

    def _too_large(self) -> None:
        self.refused = (
            413,
            f"body: got more than {self.site.limits.body:,} bytes, expected fewer; send several requests",
        )

    def on_message_complete(self) -> None:
        """Answer a request that has arrived."""
        if self.closing:
            return
        slot, site = list[bytes](), self.site
        self.slots.append(slot)
        keep = self.parser.should_keep_alive()
        method, path = self.parser.get_method().decode("latin-1"), self.url.decode("latin-1").partition("?")[0]
        request = Request(method, path, self.headers, b"".join(self.body), _Reply(self, slot, keep))
        self.body = []
        self.url = b""
        if len(self.slots) >= UNANSWERED:
            self.full = True
            self.transport.pause_reading()
        try:
            refused = self._refusal(request)
            if refused is None:
                site.handle(request)
            else:
                request.reply(*refused)
        except Exception:  # a defect: the other requests go on
            traceback.print_exc()
            request.reply(500, {"error": "request: the server failed to answer it; its log says why"})
        if not keep:
            self.closing = True

    def _refusal(self, request: Request) -> tuple[int, Any] | None:
        """Return status and reason for a request that may not be answered."""
        site, headers = self.site, request.headers
        host = (
            headers.get("host", "").rpartition(":")[0]
            if _has_port(headers.get("host", ""))
            else headers.get("host", "")
        )
        if site.hosts and host.lower() not in site.hosts:
            return 403, {"error": f"host: got {host[:80]!r}, expected {' or '.join(site.hosts)}"}
        if site.token is not None and request.path not in OPEN:
            given = headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, b"Bearer " + site.token.encode()):
                return 401, {"error": "authorization: expected the server's token, as Bearer TOKEN"}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method == "POST" and kind not in (JSON, MSGPACK):
            # Pages of other sites may send forms and plain text without asking.
            return 415, {"error": f"content-type: got {kind[:80]!r}, expected {JSON} or {MSGPACK}"}
        return None

    def _refuse(self, status: int, why: str) -> None:
        """Answer a request that was not understood, behind the others, and close the connection."""
        import msgspec

        slot = list[bytes]()
        self.slots.append(slot)
        self.closing = True
        slot.append(_answer(status, msgspec.json.encode({"error": why}), close=True))
        self.send()

    def send(self) -> None:
        """Send all answers that are ready and in order."""
        ready = []
        while self.slots and self.slots[0]:
            ready += self.slots.popleft()
        if ready and not self.transport.is_closing():
            self.transport.write(b"".join(ready))
            if self.full and len(self.slots) <= UNANSWERED // 2:
                self.full = False
                self.transport.resume_reading()
        if self.closing and not self.slots and not self.streaming:
            self.transport.close()

    def pause_writing(self) -> None:
        """Read nothing more while the client does not take its answers."""
        self.waiting, self.since = True, time.monotonic()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on."""
        self.waiting = False
        if not self.full:
            self.transport.resume_reading()


OPEN = ("/", "/healthz", "/readyz")  # pages without numbers


class _Reply:
    """Answers one request of a connection."""

    __slots__ = ("connection", "keep", "slot")

    def __init__(self, connection: Http, slot: list[bytes], keep: bool) -> None:
        self.connection, self.slot, self.keep = connection, slot, keep

    def __call__(self, status: int, content: Any, kind: str = JSON) -> None:
        import msgspec

        if not isinstance(content, bytes):
            content = (msgspec.msgpack if kind == MSGPACK else msgspec.json).encode(content)
        self.slot.append(_answer(status, content, kind, not self.keep))
        if not self.keep:
            self.connection.closing = True
        self.connection.send()

    def stream(self) -> Any:
        """Begin a stream of events, and return the transport that takes it."""
        self.connection.streaming = True
        self.slot.append(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\r\n")
        self.connection.send()
        return self.connection


def _answer(status: int, content: bytes, kind: str = JSON, close: bool = False) -> bytes:
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n"
    more = "connection: close\r\n" if close else ""
    allow = "allow: GET, POST\r\n" if status == 405 else ""
    ask = "www-authenticate: Bearer\r\n" if status == 401 else ""
    return f"{head}{more}{allow}{ask}x-content-type-options: nosniff\r\n\r\n".encode("latin-1") + content


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() and not host.endswith("]") and (host.count(":") == 1 or "]:" in host)
