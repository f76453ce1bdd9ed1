"""Clients of a server, for programs that wait and for those that run on an event loop.

Requests are repeated where that is safe: predictions, and outcomes by id, which a server records once.
"""

import asyncio
import http.client
import json
import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self
from urllib.parse import quote, urlsplit

__all__ = ["AsyncClient", "Client", "ServerError"]

Row = dict[str, Any] | str
Label = float | bool | str
BATCH = 1000  # rows of a request
BREAKS = (ConnectionError, http.client.HTTPException, asyncio.IncompleteReadError, TimeoutError)


class ServerError(ValueError):
    """A request that the server refused, with its status.

    >>> ServerError(404, "id: got one that was not predicted").status
    404
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class _Requests:
    """The bodies of requests, and what their answers mean."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 30.0, retries: int = 5) -> None:
        address = urlsplit(url)
        self.secure, self.host = address.scheme == "https", address.hostname or "127.0.0.1"
        self.port = address.port or (443 if self.secure else 80)
        self.timeout, self.retries = timeout, retries
        self.headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})

    @staticmethod
    def answer(status: int, body: bytes, accepted: tuple[int, ...] = (200,)) -> Any:
        """Return the content of an answer, or raise."""
        content = json.loads(body) if body else {}
        if status not in accepted:
            raise ServerError(status, content.get("error", f"status {status}"))
        return content

    @staticmethod
    def batches(rows: Sequence[Row], ids: Sequence[str] | None) -> Iterator[dict[str, Any]]:
        """Yield bodies of requests for many rows."""
        if ids is not None and len(ids) != len(rows):
            raise ValueError(f"ids: got {len(ids)}, expected one for each of {len(rows)} rows")
        for start in range(0, len(rows), BATCH):
            part = slice(start, start + BATCH)
            yield {"rows": list(rows[part])} | ({} if ids is None else {"ids": list(ids[part])})

    @staticmethod
    def outcomes(given: Iterable[tuple[str, Label]]) -> Iterator[dict[str, Any]]:
        """Yield bodies of requests for many outcomes."""
        every = [{"id": name, "label": label} for name, label in given]
        for start in range(0, len(every), BATCH):
            yield {"outcomes": every[start : start + BATCH]}

    def pause(self, attempt: int) -> float:
        """Return how long to wait before another attempt; raise nothing."""
        return min(2.0, 0.05 * 2.0**attempt)


def _one(row: Row, id: str | None) -> dict[str, Any]:
    return {"row": row} | ({} if id is None else {"id": id})


LEARNED = (200, 404, 409)  # answers with a status of the outcome


class Client(_Requests):
    """A client that waits for answers, for one thread.

    Parameters
    ----------
    url : of the server, such as http://127.0.0.1:8080
    token : that the server asks for
    timeout : seconds to wait for an answer
    retries : how often a request is repeated where the connection breaks or the server is not ready

    >>> client = Client("http://127.0.0.1:8080")
    >>> client.host, client.port
    ('127.0.0.1', 8080)
    """

    _connection: Any = None

    def _send(self, method: str, path: str, body: Any = None, repeat: bool = True) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(self.retries + 1):
            try:
                if self._connection is None:
                    kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
                    self._connection = kind(self.host, self.port, timeout=self.timeout)
                self._connection.request(method, path, data, self.headers)
                found = self._connection.getresponse()
                content = found.read()
                if found.status != 503 or attempt == self.retries:
                    return found.status, content
            except BREAKS:
                self.close()
                if not repeat or attempt == self.retries:
                    raise
            time.sleep(self.pause(attempt))
        raise AssertionError

    def predict(self, row: Row, id: str | None = None) -> float | str:
        """Return the prediction of a row; with an id, its outcome can be learned later."""
        found: float | str = self.answer(*self._send("POST", "/v1/predict", _one(row, id)))["prediction"]
        return found

    def predict_many(self, rows: Sequence[Row], ids: Sequence[str] | None = None) -> list[float | str]:
        """Return the predictions of rows."""
        bodies = self.batches(rows, ids)
        return [one for body in bodies for one in self.answer(*self._send("POST", "/v1/predict", body))["predictions"]]

    def learn(self, id: str, label: Label, importance: float = 1.0) -> str:
        """Report the outcome of a prediction; return "recorded", "duplicate", "contradicting", "late" or "unknown"."""
        body = {"id": id, "label": label, "importance": importance}
        return str(self.answer(*self._send("POST", "/v1/learn", body), LEARNED)["status"])

    def learn_many(self, outcomes: Iterable[tuple[str, Label]]) -> list[str]:
        """Report outcomes, pairs of an id and a label."""
        bodies = self.outcomes(outcomes)
        return [one for body in bodies for one in self.answer(*self._send("POST", "/v1/learn", body))["statuses"]]

    def learn_rows(self, rows: Sequence[Row], labels: Sequence[Label]) -> None:
        """Let the server learn rows with labels; not repeated, because they have no ids."""
        for start in range(0, len(rows), BATCH):
            part = slice(start, start + BATCH)
            body = {"rows": list(rows[part]), "labels": list(labels[part])}
            self.answer(*self._send("POST", "/v1/learn", body, repeat=False))

    def model(self) -> dict[str, Any]:
        """Return what is known about the models."""
        return dict(self.answer(*self._send("GET", "/v1/model")))

    def event(self, id: str) -> dict[str, Any]:
        """Return what happened to an event."""
        return dict(self.answer(*self._send("GET", f"/v1/events/{quote(id, safe='')}")))

    def change(self, **asked: Any) -> None:
        """Change the models: ``add`` with ``model`` or ``settings``, ``promote``, ``remove`` or ``rollback``."""
        self.answer(*self._send("POST", "/v1/models", asked, repeat=False))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient(_Requests):
    """A client on an event loop, with one connection: several requests at a time take their turns.

    Parameters are those of :class:`Client`, and its methods, to be awaited.
    """

    _streams: Any = None
    _turn: Any = None

    async def _send(self, method: str, path: str, body: Any = None, repeat: bool = True) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        text = f"{method} {path} HTTP/1.1\r\nhost: {self.host}\r\n{head}content-length: {len(data)}\r\n\r\n".encode()
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:
            for attempt in range(self.retries + 1):
                try:
                    status, content = await asyncio.wait_for(self._exchange(text + data), self.timeout)
                    if status != 503 or attempt == self.retries:
                        return status, content
                except BREAKS:
                    await self.close()
                    if not repeat or attempt == self.retries:
                        raise
                await asyncio.sleep(self.pause(attempt))
        raise AssertionError

    async def _exchange(self, text: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            tls = ssl.create_default_context() if self.secure else None
            self._streams = await asyncio.open_connection(self.host, self.port, ssl=tls)
        reader, writer = self._streams
        writer.write(text)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = int(head.partition("content-length:")[2].partition("\r\n")[0])
        content = await reader.readexactly(size)
        if "connection: close" in head:
            await self.close()
        return int(head[9:12]), content

    async def predict(self, row: Row, id: str | None = None) -> float | str:
        """Return the prediction of a row."""
        found: float | str = self.answer(*await self._send("POST", "/v1/predict", _one(row, id)))["prediction"]
        return found

    async def predict_many(self, rows: Sequence[Row], ids: Sequence[str] | None = None) -> list[float | str]:
        """Return the predictions of rows."""
        found = list[float | str]()
        for body in self.batches(rows, ids):
            found += self.answer(*await self._send("POST", "/v1/predict", body))["predictions"]
        return found

    async def learn(self, id: str, label: Label, importance: float = 1.0) -> str:
        """Report the outcome of a prediction, and return its status."""
        body = {"id": id, "label": label, "importance": importance}
        return str(self.answer(*await self._send("POST", "/v1/learn", body), LEARNED)["status"])

    async def learn_many(self, outcomes: Iterable[tuple[str, Label]]) -> list[str]:
        """Report outcomes, pairs of an id and a label."""
        found = list[str]()
        for body in self.outcomes(outcomes):
            found += self.answer(*await self._send("POST", "/v1/learn", body))["statuses"]
        return found

    async def model(self) -> dict[str, Any]:
        """Return what is known about the models."""
        return dict(self.answer(*await self._send("GET", "/v1/model")))

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
