"""The HTTP interface: paths, their bodies, and answers."""

import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import msgspec
import numpy as np

from forel.learner.rows import CoalescedRows
from forel.log.records import pack_each
from forel.serve.connection import Limits
from forel.serve.http import Http, Request
from forel.serve.messages import DECODERS, Change, Learn, Predict, description
from forel.serve.models import Models
from forel.serve.service import Done, Service
from forel.serve.status import metrics_text, status

__all__ = ["Api"]

NAMES = {"recorded": 200, "duplicate": 200, "contradicting": 409, "late": 409, "unknown": 404}
WHY = {
    "contradicting": "label: another one was recorded for this id",
    "late": "id: its prediction waited too long, and was dropped",
    "unknown": "id: got one that was not predicted, or long ago",
}
SHARE = 20  # times that it took, until the status is published again
FULL = "outcomes: the disk does not take them now ({why}); predictions go on"


class Conflict(ValueError):
    """An id that another row has."""


class Api:
    """Answers requests.

    Parameters
    ----------
    service : what predicts and learns
    limits : of a request
    """

    def __init__(self, service: Service, limits: Limits) -> None:
        self.service, self.limits, self.models = service, limits, Models(service)
        self.page = files("forel.serve").joinpath("dashboard.html").read_bytes()
        self.streams, self._next = list[Http](), 0.0
        self.routes: dict[str, dict[str, Callable[[Request], None]]] = {
            "/v1/predict": {"POST": self.predict},
            "/v1/learn": {"POST": self.learn},
            "/v1/model": {"GET": lambda request: request.reply(200, status(service))},
            "/v1/models": {"POST": self.change},
            "/metrics": {"GET": lambda request: request.reply(200, metrics_text(service), "text/plain; version=0.0.4")},
            "/healthz": {"GET": self.health},
            "/readyz": {"GET": self.health},
            "/openapi.json": {"GET": lambda request: request.reply(200, description(service.model))},
            "/events": {"GET": self.subscribe},
            "/": {"GET": lambda request: request.reply(200, self.page, "text/html; charset=utf-8")},
        }

    def handle(self, request: Request) -> None:
        """Answer a request, now or later."""
        path = request.head.path
        if path.startswith("/v1/events/") and len(path) > len("/v1/events/"):
            found: dict[str, Callable[[Request], None]] | None = {"GET": self.event}
        else:
            found = self.routes.get(path)
        if found is None:
            request.reply(404, {"error": f"path: got {path[:200]!r}, expected one of {', '.join(self.routes)}"})
            return
        method = found.get(request.head.method)
        if method is None:
            request.reply(405, {"error": f"method: got {request.head.method}, expected {' or '.join(found)}"})
            return
        try:
            method(request)
        except (ValueError, TypeError, OverflowError, msgspec.MsgspecError, RecursionError) as error:
            self._refused(request, str(error).partition(" (--")[0], 409 if isinstance(error, Conflict) else 400)

    def _refused(self, request: Request, why: str, status: int = 400) -> None:
        self.service.counts["requests refused"] += 1
        request.reply(status, {"error": why[:1000]})

    def _decoded(self, request: Request, kind: Any) -> Any:
        return DECODERS[request.head.kind, kind](request.body)

    # Predictions.
    def predict(self, request: Request) -> None:
        """Predict one row or many; those with an id wait for their outcome."""
        asked: Predict = self._decoded(request, Predict)
        service, many = self.service, asked.rows is not None
        if (asked.row is None) != many:
            raise ValueError("row, rows: got both or none, expected one of them")
        if many and (asked.id is not None or asked.explain):
            raise ValueError("id, explain: got one with many rows, expected ids, or one row")
        if not many and asked.ids is not None:
            raise ValueError("ids: got some with one row, expected id")
        if asked.interval and service.contest.coverage is None:
            raise ValueError("interval: got true, expected false: intervals are for predicted numbers, not classes")
        ids = asked.ids if many else None if asked.id is None else [asked.id]
        names = None if ids is None else [one.encode() for one in ids]
        if isinstance(asked.row, str) and not asked.explain and (names is None or not service.knows(names[0])):
            if "\n" in asked.row:
                raise ValueError("row: got several lines, expected one; rows takes a list of them")
            done = partial(self._line_done, request, asked)
            service.predict_line(asked.row.encode(), names[0] if names else None, done)
            return
        given: Any = asked.rows if many else [asked.row]
        if names is not None and len(names) != len(given):
            raise ValueError(f"ids: got {len(names)}, expected one for each of {len(given)} rows")
        rows = self._rows(given, request)
        service.flush()
        margins, recorded = service.margins(rows), False
        if names is not None:
            margins, recorded = self._remember(names, pack_each(rows), margins)
        answer = self._answer(asked, margins, recorded)
        if asked.explain:
            answer["explanation"] = self.models.explanation(asked.row or {})
        self._predicted(request, answer, len(margins))

    def _answer(self, asked: Predict, margins: Any, recorded: bool) -> dict[str, Any]:
        """Return what is said of the rows of a request, or of its only one."""
        coding, many = self.service.coding, asked.rows is not None
        if coding.classes is None:
            columns: dict[str, Any] = {"prediction": np.asarray(coding.predictions(margins)).tolist()}
        else:
            columns = {"prediction": [coding.shown(one) for one in margins]}
            columns["probabilities"] = [coding.probabilities(one) for one in margins]
        if asked.interval:
            columns["interval"] = [self.service.interval(one) for one in columns["prediction"]]
        answer = {name + "s" * (many and name[-1] != "s"): each if many else each[0] for name, each in columns.items()}
        if asked.ids is not None or asked.id is not None:
            answer |= {"ids" if many else "id": asked.ids or asked.id, "recorded": recorded}
        return answer

    def _line_done(self, request: Request, asked: Predict, margins: Any, wrong: str | None, recorded: bool) -> None:
        if wrong is None:
            self._predicted(request, self._answer(asked, margins[None], recorded))
        else:
            self._refused(request, f"row: {wrong}")

    def _predicted(self, request: Request, answer: Any, count: int = 1) -> None:
        self.service.counts["predictions"] += count
        self.service.predicted.add(time.perf_counter() - request.started)
        request.reply(200, answer, request.head.kind)

    def _remember(self, names: list[bytes], packed: list[bytes], margins: Any) -> tuple[Any, bool]:
        """Record new predictions; those whose id is known keep their first answer."""
        if len(set(names)) < len(names):
            raise ValueError("ids: got one twice, expected different ones")
        found = {k: before for k, name in enumerate(names) if (before := self.service.find(name)) is not None}
        for k, before in found.items():
            if before.row != packed[k]:
                raise Conflict(f"id: got {names[k].decode()!r}, which another row has, expected a new one")
        new = [k for k in range(len(names)) if k not in found]
        recorded = not new or self.service.remember([names[k] for k in new], [packed[k] for k in new], margins[new])
        self.service.counts["predictions repeated"] += len(found)
        shown = margins.copy()
        for k, before in found.items():
            shown[k] = before.margins
        return shown, recorded

    def _rows(self, given: list[Any], request: Request) -> CoalescedRows:
        """Return the rows of a request, which are all dicts or all lines."""
        if len(given) > self.limits.rows:
            raise ValueError(f"rows: got {len(given):,}, expected at most {self.limits.rows:,}; send several requests")
        if not any(isinstance(row, str) for row in given):
            return self.service.rows.of_dicts(given, len(request.body))
        if not all(isinstance(row, str) and "\n" not in row for row in given):
            raise ValueError("rows: got dicts and lines, or several lines in one, expected all dicts or one line each")
        parsed = self.service.rows.of_lines("".join([row + "\n" for row in given]).encode())
        if parsed.errors:
            number = min(parsed.errors)
            raise ValueError(f"row {number}: {parsed.errors[number]}")
        if parsed.labels.size < len(given):
            raise ValueError("rows: got an empty line, expected features in each")
        return CoalescedRows(*parsed[:3])

    # Outcomes.
    def learn(self, request: Request) -> None:
        """Record outcomes, of predictions by id or of rows in the request."""
        asked: Learn = self._decoded(request, Learn)
        of_rows, many = asked.row is not None or asked.rows is not None, asked.row is None and asked.id is None
        if [asked.row, asked.rows, asked.outcomes, None if of_rows else asked.id].count(None) != 3:
            raise ValueError("id, row, rows, outcomes: got none or several, expected one of them, or a row with its id")
        if asked.rows is not None and asked.id is not None:
            raise ValueError("id: got one with many rows, expected one row, or outcomes with ids")
        if asked.rows is None and (asked.labels is not None or asked.importances is not None):
            raise ValueError("labels, importances: got some without rows, expected label and importance")
        if not many and asked.label is None:
            raise ValueError(f"label: got none, expected {self.service.coding.expected}")
        done = partial(self._settled, request, many)
        if of_rows:
            self._learn_rows(request, asked, done)
            return
        given: Any = asked.outcomes if many else [asked]
        if len(given) > self.limits.rows:
            raise ValueError(f"outcomes: got {len(given):,}, expected at most {self.limits.rows:,}")
        outcomes = [(one.id.encode(), self.service.coding.label(one.label), one.importance) for one in given]
        if not self._refuse_if_failed(request):
            self.service.settle(outcomes, done)

    def _learn_rows(self, request: Request, asked: Learn, done: Done) -> None:
        one = asked.rows is None
        given: Any = [asked.row] if one else asked.rows
        labels: Any = [asked.label] if one else asked.labels
        weights = [asked.importance] if one else asked.importances or [1.0] * len(given)
        if labels is None or len(labels) != len(given) or len(weights) != len(given):
            raise ValueError(f"labels, importances: expected one for each of {len(given):,} rows")
        coded, importance = (
            np.array([self.service.coding.label(label) for label in labels], np.float64),
            np.array(weights, np.float32),
        )
        rows = self._rows(given, request)
        if self._refuse_if_failed(request):
            return
        self.service.flush()
        margins = self.service.margins(rows)
        if asked.id is None:
            self.service.learn_rows(rows, coded, importance, margins, done)
        elif self._remember([asked.id.encode()], pack_each(rows), margins)[1]:
            self.service.settle([(asked.id.encode(), float(coded[0]), float(importance[0]))], done)
        else:
            done(None)

    def _refuse_if_failed(self, request: Request) -> bool:
        service = self.service
        why = service.log.failed or service.broken
        if why is not None:
            service.counts["outcomes refused"] += 1
            request.reply(503, {"error": FULL.format(why=why)})
        return why is not None

    def _settled(self, request: Request, many: bool, statuses: list[str] | None) -> None:
        if statuses is None:
            self.service.counts["outcomes refused"] += 1
            request.reply(503, {"error": FULL.format(why=self.service.failure)})
        elif many:
            request.reply(200, {"statuses": statuses}, request.head.kind)
        else:
            name = statuses[0]
            content = {"status": name} | ({"error": WHY[name]} if name in WHY else {})
            request.reply(NAMES[name], content, request.head.kind)

    # Others.
    def change(self, request: Request) -> None:
        """Add, promote, remove or roll back a model."""
        asked: Change = self._decoded(request, Change)
        chosen = [asked.add is not None, asked.promote is not None, asked.remove is not None, asked.rollback]
        if sum(chosen) != 1:
            raise ValueError("add, promote, remove, rollback: got none or several, expected one of them")
        self.models.change(asked, partial(self._settled, request, False))

    def event(self, request: Request) -> None:
        """Say what happened to an id."""
        name = unquote(request.head.path.removeprefix("/v1/events/"), errors="strict").encode()
        found = self.models.event(name)
        request.reply(*((404, {"error": WHY["unknown"]}) if found is None else (200, found)))

    def health(self, request: Request) -> None:
        """Say whether the server answers, and whether it learns."""
        why = self.service.problem
        ready = request.head.path == "/healthz" or why is None
        content = {"status": "ok" if why is None else "predictions only", **({} if why is None else {"why": why})}
        request.reply(200 if ready else 503, content)

    def subscribe(self, request: Request) -> None:
        """Send the status once a second from now on."""
        self.streams.append(request.stream())

    def publish(self) -> None:
        """Send the status to all who subscribed; those who do not take it are left out, and it takes little time."""
        self.streams = [one for one in self.streams if not one.closing and not one.transport.is_closing()]
        if self.streams and time.monotonic() >= self._next:
            started = time.thread_time()
            text = b"data: " + msgspec.json.encode(status(self.service)) + b"\n\n"
            for one in self.streams:
                if not one.waiting:
                    one.transport.write(text)
            self._next = time.monotonic() + SHARE * (time.thread_time() - started)
