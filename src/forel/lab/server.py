"""The page's server: the standard library's, on loopback alone, for pages that it sent itself."""

import importlib.resources
import json
import sys
import threading
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from forel.lab.game import answer
from forel.lab.parts import GROUPS, NUMBERS
from forel.validation import refuse

__all__ = ["LabServer", "serve"]

HOSTS = ("localhost", "127.0.0.1")
LONGEST = 16_384  # of a query
FIELDS = 64
AT_ONCE, OPEN = 2, 32  # games, and threads of this process
SECONDS = 10  # in which a request has to arrive
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
)
POLICY += "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class LabServer(ThreadingHTTPServer):
    """Answers ``/``, the page, ``/parts``, what games have, and ``/play?…``, a game.

    Parameters
    ----------
    port : on loopback; 0 for any that is free
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__((HOSTS[1], port), Handler)
        self.page = importlib.resources.files("forel.lab").joinpath("page.html").read_bytes()
        groups = {name: asdict(group) for name, group in GROUPS.items()}
        self.parts = _encoded({"groups": groups, "numbers": [asdict(about) for about in NUMBERS]})
        self.free = threading.BoundedSemaphore(AT_ONCE)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there are few enough connections to take one more."""
        return threading.active_count() <= OPEN

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print errors, but not that a client has gone."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOSTS[1]}:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: LabServer
    timeout = SECONDS
    server_version, sys_version = "forel", ""

    def do_GET(self) -> None:
        """Answer a request, if it names this server as a page of its own would."""
        url = urlsplit(self.path)
        name, _, port = self.headers.get("Host", "").rpartition(":")
        foreign = self.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site")
        if name not in HOSTS or port != str(self.server.server_address[1]) or (foreign and url.path != "/"):
            self._refuse(403, f"host: this server is only {self.server.url}")
        elif url.path == "/":
            self._send(200, "text/html; charset=utf-8", self.server.page)
        elif url.path == "/parts":
            self._send(200, "application/json", self.server.parts)
        elif url.path == "/play":
            self._play(url.query)
        else:
            self._refuse(404, "path: there are /, /parts and /play")

    def _play(self, query: str) -> None:
        try:
            if len(query) > LONGEST:
                raise refuse("query", f"{len(query)} characters", f"at most {LONGEST}")
            given = parse_qsl(query, keep_blank_values=True, max_num_fields=FIELDS)
            if len(dict(given)) < len(given):
                raise refuse("query", query, "each parameter once")
            if not self.server.free.acquire(timeout=SECONDS):
                return self._refuse(503, "games: there are too many; try again later")
            try:
                found = _encoded(answer(dict(given)))
            finally:
                self.server.free.release()
        except (ValueError, ArithmeticError) as error:
            return self._refuse(400, str(error))
        return self._send(200, "application/json", found)

    def _refuse(self, status: int, sentence: str) -> None:
        self._send(status, "application/json", _encoded({"error": sentence}))

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY}
        headers |= {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""


def _encoded(found: Any) -> bytes:
    """Return JSON; raise ValueError for what is not finite."""
    return json.dumps(found, ensure_ascii=False, allow_nan=False).encode()


def serve(port: int, ready: Any) -> None:
    """Answer requests until interrupted; ``ready`` is called with the server once it listens."""
    try:
        server = LabServer(port)
    except OSError as error:
        raise refuse("port", port, f"one that can be opened, or 0 for any ({error.strerror})") from None
    with server:
        ready(server)
        server.serve_forever()
