"""HTTP/1.1 on one event loop: requests are parsed by httptools, and answered in their order, each when it is ready."""

import hmac
import time
import traceback
from collections import deque
from functools import cache
from typing import Any, NamedTuple

import httptools
import msgspec

from forel.serve.connection import Connection, Site

__all__ = ["JSON", "MSGPACK", "Http", "Request"]

JSON, MSGPACK = "application/json", "application/msgpack"
ENCODERS = {JSON: msgspec.json.encode, MSGPACK: msgspec.msgpack.encode}
REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 409: "Conflict", 413: "Content Too Large", 415: "Unsupported Media Type",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
MORE = {401: "www-authenticate: Bearer\r\n", 405: "allow: GET, POST\r\n"}
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
OPEN = ("/", "/healthz", "/readyz")  # pages without numbers
HEADERS = 16_384  # bytes
KNOWN, SHORT = 1024, 1024  # heads that are kept, and bytes of one


class Head(NamedTuple):
    """What the first lines of a request say; ``kind`` and ``length`` are those of its body."""

    method: str = ""
    path: str = ""
    kind: str = ""
    length: int = 0
    keep: bool = False  # whether the connection stays open after it


class Request:
    """A request of a connection; :meth:`reply` answers it, once, now or later."""

    __slots__ = ("_connection", "answer", "body", "head", "started", "streams")

    def __init__(self, connection: "Http", head: Head, body: bytes) -> None:
        self.head, self.body, self._connection = head, body, connection
        self.started = time.perf_counter()
        self.answer, self.streams = b"", False
        connection.requests.append(self)
        connection.asked()

    def reply(self, status: int, content: Any, kind: str = JSON) -> None:
        """Answer with bytes, or with what is encoded as such."""
        data = content if isinstance(content, bytes) else ENCODERS[kind](content)
        self.answer = _answer(status, data, kind, not self.head.keep)
        self._connection.send()

    def stream(self) -> "Http":
        """Begin a stream of events, and return the connection that takes it."""
        self.streams = True
        self.answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\r\n"
        self._connection.send()
        return self._connection


class Http(Connection):
    """A connection."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, CROWDED)
        self.parser: Any = httptools.HttpRequestParser(self)
        self.requests = deque[Request]()
        self.streaming = self._within = False
        self._raw = b""

    def expire(self) -> None:
        """Close the connection if the client is slow, with an answer if a request has begun to arrive."""
        if self.waiting:
            self.transport.abort()
        elif not self.streaming and not self.requests:
            if self._within:
                self._refuse(408, "request: it did not arrive in time")
            self.transport.close()

    def take(self, data: bytes) -> None:
        """Parse what has arrived; heads that were parsed before are known."""
        if self.closing:
            return
        if not self._within:
            end = data.find(b"\r\n\r\n") + 4
            self._raw = data[:end] if end > 3 and data.startswith(b"POST ") else b""
            head = self.site.heads.get(self._raw)
            if head is not None and len(data) == end + head.length:
                self._handle(Request(self, head, data[end:]))
                return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "upgrade: got one, expected HTTP/1.1")
        except httptools.HttpParserError as error:
            self._refuse(400, f"request: {error}, expected HTTP/1.1")

    def eof_received(self) -> bool:
        """Keep the connection open until all answers are sent."""
        self.closing = True
        return bool(self.requests)

    # What the parser found.
    def on_message_begin(self) -> None:
        """Begin a request."""
        self._url, self._headers, self._body, self._size, self._within = b"", dict[str, str](), list[bytes](), 0, True

    def on_url(self, url: bytes) -> None:
        """Add to the target, which comes in pieces where a read ends within it."""
        self._url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._count(len(name) + len(value))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > HEADERS:
            self._refuse(431, f"headers: got more than {HEADERS:,} bytes, expected fewer")

    def on_headers_complete(self) -> None:
        """Refuse requests that are too large before their body arrives."""
        length, self._size = self._headers.get("content-length", ""), 0
        if length.isdecimal() and int(length[:18]) > self.site.limits.body:
            self._refuse_body()
        elif self._headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Add to the body."""
        self._size += len(body)
        if self._size > self.site.limits.body:
            self._refuse_body()
        elif not self.closing:
            self._body.append(body)

    def _refuse_body(self) -> None:
        self._refuse(413, f"body: got more than {self.site.limits.body:,} bytes, expected fewer; send several requests")

    def on_message_complete(self) -> None:
        """Answer a request that has arrived."""
        raw, self._raw, self._within = self._raw, b"", False
        if self.closing:
            return
        headers, path = self._headers, self._url.decode("latin-1").partition("?")[0]
        method, kind = self.parser.get_method().decode("latin-1"), headers.get("content-type", "")
        kind, keep = kind.partition(";")[0].strip().lower(), self.parser.should_keep_alive()
        self.closing = not keep
        head = Head(method, path, kind, self._size, keep)
        request, refused = Request(self, head, b"".join(self._body)), self._refusal(head)
        if refused is not None:
            request.reply(refused[0], {"error": refused[1]})
            return
        whole = keep and "content-length" in headers and not headers.keys() & {"transfer-encoding", "expect"}
        if whole and 0 < len(raw) <= SHORT and b"\n" not in raw.replace(b"\r\n", b""):
            if len(self.site.heads) >= KNOWN:
                self.site.heads.clear()
            self.site.heads[raw] = head
        self._handle(request)

    def _handle(self, request: Request) -> None:
        try:
            self.site.handle(request)
        except Exception:  # a defect: the other requests go on
            traceback.print_exc()
            request.reply(500, {"error": "request: the server failed to answer it; its log says why"})

    def _refusal(self, head: Head) -> tuple[int, str] | None:
        """Return status and reason for a request that may not be answered."""
        site, headers = self.site, self._headers
        host = headers.get("host", "")
        host = host if host.endswith("]") else host.rpartition(":")[0] or host  # without the port
        if site.hosts and host.lower() not in site.hosts:
            return 403, f"host: got {host[:80]!r}, expected {' or '.join(site.hosts)}"
        if site.token is not None and head.path not in OPEN:
            given = headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, b"Bearer " + site.token.encode()):
                return 401, "authorization: expected the server's token, as Bearer TOKEN"
        if head.method == "POST" and head.kind not in ENCODERS:
            # Pages of other sites may send forms and plain text without asking.
            return 415, f"content-type: got {head.kind[:80]!r}, expected {JSON} or {MSGPACK}"
        return None

    def _refuse(self, status: int, why: str) -> None:
        """Answer a request that was not understood, behind the others, and close the connection."""
        if not self.closing:
            self.closing = True
            Request(self, Head(), b"").reply(status, {"error": why})

    def send(self) -> None:
        """Send all answers that are ready and in order."""
        ready, requests = [], self.requests
        while requests and requests[0].answer:
            request = requests.popleft()
            ready.append(request.answer)
            if request.streams:
                self.streaming, self.unanswered = True, self.unanswered + 1  # the stream has no end
        if ready:
            self.answered(b"".join(ready), len(ready))


@cache
def _start(status: int, kind: str, close: bool) -> bytes:
    more = MORE.get(status, "") + ("connection: close\r\n" if close else "")
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: {kind}\r\n{more}x-content-type-options: nosniff\r\n"
    return f"{head}content-length: ".encode("latin-1")


def _answer(status: int, content: bytes, kind: str = JSON, close: bool = False) -> bytes:
    return b"%b%d\r\n\r\n%b" % (_start(status, kind, close), len(content), content)


CROWDED = _answer(503, b'{"error":"connections: there are too many; try again later"}', close=True)
