"""Clients of a server, for programs that wait and for those that run on an event loop.

Requests are repeated where that is safe: predictions, and outcomes by id, which a server records once.
"""

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote, urlsplit

__all__ = ["AsyncClient", "Client", "ServerError"]

Row = dict[str, Any] | str
Label = float | bool | str
T = TypeVar("T")
BATCH = 1000  # rows of a request
BREAKS = (ConnectionError, http.client.HTTPException, TimeoutError)


class ServerError(ValueError):
    """A request that the server refused, with its status.

    >>> ServerError(404, "id: got one that was not predicted").status
    404
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


def _answer(found: tuple[int, bytes], accepted: tuple[int, ...] = (200,)) -> Any:
    """Return the content of an answer, or raise."""
    status, body = found
    content = json.loads(body) if body else {}
    if status not in accepted:
        raise ServerError(status, content.get("error", f"status {status}"))
    return content


LEARNED = (200, 404, 409)  # answers with a status of the outcome


class Client:
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

    def __init__(self, url: str, token: str | None = None, timeout: float = 30.0, retries: int = 5) -> None:
        address = urlsplit(url)
        self.secure, self.host = address.scheme == "https", address.hostname or "127.0.0.1"
        self.port = address.port or (443 if self.secure else 80)
        self.timeout, self.retries = timeout, retries
        self._connection: Any = None
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})

    def _send(self, method: str, path: str, body: Any = None, repeat: bool = True) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(self.retries + 1):
            try:
                if self._connection is None:
                    kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
                    self._connection = kind(self.host, self.port, timeout=self.timeout)
                self._connection.request(method, path, data, self._headers)
                found = self._connection.getresponse()
                content = found.read()
                if found.status != 503 or attempt == self.retries:
                    return found.status, content
            except BREAKS:
                self.close()
                if not repeat or attempt == self.retries:
                    raise
            time.sleep(min(2.0, 0.05 * 2.0**attempt))
        raise AssertionError

    def predict(self, row: Row, id: str | None = None) -> float | str:
        """Return the prediction of a row; with an id, its outcome can be learned later."""
        body = {"row": row} | ({} if id is None else {"id": id})
        found: float | str = _answer(self._send("POST", "/v1/predict", body))["prediction"]
        return found

    def predict_many(self, rows: Sequence[Row], ids: Sequence[str] | None = None) -> list[float | str]:
        """Return the predictions of rows."""
        found = list[float | str]()
        for start in range(0, len(rows), BATCH):
            part = slice(start, start + BATCH)
            body = {"rows": list(rows[part])} | ({} if ids is None else {"ids": list(ids[part])})
            found += _answer(self._send("POST", "/v1/predict", body))["predictions"]
        return found

    def learn(self, id: str, label: Label, importance: float = 1.0) -> str:
        """Report the outcome of a prediction; return "recorded", "duplicate", "contradicting", "late" or "unknown"."""
        body = {"id": id, "label": label, "importance": importance}
        return str(_answer(self._send("POST", "/v1/learn", body), LEARNED)["status"])

    def learn_many(self, outcomes: Iterable[tuple[str, Label]]) -> list[str]:
        """Report outcomes, pairs of an id and a label."""
        every, found = [{"id": name, "label": label} for name, label in outcomes], list[str]()
        for start in range(0, len(every), BATCH):
            body = {"outcomes": every[start : start + BATCH]}
            found += _answer(self._send("POST", "/v1/learn", body))["statuses"]
        return found

    def learn_rows(self, rows: Sequence[Row], labels: Sequence[Label]) -> None:
        """Let the server learn rows with labels; not repeated, because they have no ids."""
        for start in range(0, len(rows), BATCH):
            part = slice(start, start + BATCH)
            body = {"rows": list(rows[part]), "labels": list(labels[part])}
            _answer(self._send("POST", "/v1/learn", body, repeat=False))

    def model(self) -> dict[str, Any]:
        """Return what is known about the models."""
        return dict(_answer(self._send("GET", "/v1/model")))

    def event(self, id: str) -> dict[str, Any]:
        """Return what happened to an event."""
        return dict(_answer(self._send("GET", f"/v1/events/{quote(id, safe='')}")))

    def change(self, /, **asked: Any) -> None:
        """Change the models: ``add`` with ``model`` or ``settings``, ``promote``, ``remove`` or ``rollback``."""
        _answer(self._send("POST", "/v1/models", asked, repeat=False))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


P = ParamSpec("P")


def _awaited(method: Callable[Concatenate[Client, P], T]) -> Callable[Concatenate["AsyncClient", P], Awaitable[T]]:
    """Return a method of a client as one to be awaited."""

    async def call(self: "AsyncClient", /, *arguments: P.args, **more: P.kwargs) -> T:
        async with self._turn:
            return await asyncio.to_thread(method, self.client, *arguments, **more)

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class AsyncClient:
    """A client on an event loop, with one connection: several requests at a time take their turns, on a thread.

    Parameters are those of :class:`Client`, and its methods, to be awaited.

    >>> AsyncClient("http://127.0.0.1:8080").client.port
    8080
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 30.0, retries: int = 5) -> None:
        self.client, self._turn = Client(url, token, timeout, retries), asyncio.Lock()

    predict, predict_many = _awaited(Client.predict), _awaited(Client.predict_many)
    learn, learn_many, learn_rows = _awaited(Client.learn), _awaited(Client.learn_many), _awaited(Client.learn_rows)
    model, event, change = _awaited(Client.model), _awaited(Client.event), _awaited(Client.change)
    close = _awaited(Client.close)
