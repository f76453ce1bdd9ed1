"""The HTTP interface: paths, their bodies, and answers."""

import math
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np

from forel.learner.rows import CoalescedRows
from forel.log.records import pack_each
from forel.serve.http import JSON, MSGPACK, Limits, Request
from forel.serve.models import Models
from forel.serve.openapi import description
from forel.serve.service import Service
from forel.serve.status import metrics_text, status

__all__ = ["Api"]

LONGEST_ID = 256
Row = dict[str, Any] | str


class Predict(msgspec.Struct, forbid_unknown_fields=True):
    """A request for predictions: of one row, or of many."""

    row: Row | None = None
    rows: list[Row] | None = None
    id: str | None = None
    ids: list[str] | None = None
    explain: bool = False


class OneOutcome(msgspec.Struct, forbid_unknown_fields=True):
    """The label of an earlier prediction."""

    id: str
    label: float | bool | str
    importance: float = 1.0


class Learn(msgspec.Struct, forbid_unknown_fields=True):
    """What happened: outcomes of predictions, or rows with their labels."""

    id: str | None = None
    label: float | bool | str | None = None
    importance: float = 1.0
    outcomes: list[OneOutcome] | None = None
    row: Row | None = None
    rows: list[Row] | None = None
    labels: list[float | bool | str] | None = None
    importances: list[float] | None = None


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """A change of the models: add the model of a file, promote, remove, or roll back."""

    add: str | None = None
    model: str | None = None
    settings: dict[str, Any] | None = None
    promote: str | None = None
    remove: str | None = None
    rollback: bool = False


DECODERS = {
    (kind, each): module.Decoder(each).decode
    for kind, module in ((JSON, msgspec.json), (MSGPACK, msgspec.msgpack))
    for each in (Predict, Learn, Change)
}
NAMES = {"recorded": 200, "duplicate": 200, "contradicting": 409, "late": 409, "unknown": 404}
WHY = {
    "contradicting": "label: another one was recorded for this id",
    "late": "id: its prediction waited too long, and was dropped",
    "unknown": "id: got one that was not predicted, or long ago",
}
FULL = "outcomes: the disk does not take them now ({why}); predictions go on"


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
        self.streams: list[Any] = []
        self.routes: dict[str, dict[str, Callable[[Request], None]]] = {
            "/v1/predict": {"POST": self.predict},
            "/v1/learn": {"POST": self.learn},
            "/v1/model": {"GET": lambda request: self._json(request, status(service))},
            "/v1/models": {"POST": self.change},
            "/metrics": {"GET": lambda request: request.reply(200, metrics_text(service), "text/plain; version=0.0.4")},
            "/healthz": {"GET": self.health},
            "/readyz": {"GET": self.health},
            "/openapi.json": {"GET": lambda request: self._json(request, description(service.model, limits))},
            "/events": {"GET": self.subscribe},
            "/": {"GET": lambda request: request.reply(200, self.page, "text/html; charset=utf-8")},
        }

    def handle(self, request: Request) -> None:
        """Answer a request, now or later."""
        path = request.path
        if path.startswith("/v1/events/") and len(path) > len("/v1/events/"):
            found: dict[str, Callable[[Request], None]] | None = {"GET": self.event}
        else:
            found = self.routes.get(path)
        if found is None:
            request.reply(404, {"error": f"path: got {path[:200]!r}, expected one of {', '.join(self.routes)}"})
            return
        method = found.get(request.method)
        if method is None:
            request.reply(405, {"error": f"method: got {request.method}, expected {' or '.join(found)}"})
            return
        try:
            method(request)
            return
        except (ValueError, TypeError, OverflowError, msgspec.MsgspecError, RecursionError) as error:
            self.service.counts["requests refused"] += 1
            request.reply(400, {"error": str(error).partition(" (--")[0][:1000]})
            return

    def _decoded(self, request: Request, kind: Any) -> tuple[Any, str]:
        form = request.headers["content-type"].partition(";")[0].strip().lower()
        return DECODERS[form, kind](request.body), form

    def _json(self, request: Request, content: Any) -> None:
        request.reply(200, content)

    # Predictions.
    def predict(self, request: Request) -> None:
        """Predict one row or many; those with an id wait for their outcome."""
        asked, form = self._decoded(request, Predict)
        if (asked.row is None) == (asked.rows is None):
            raise ValueError("row, rows: got both or none, expected one of them")
        if asked.rows is None:
            if asked.ids is not None:
                raise ValueError("ids: got some with one row, expected id")
            self._predict_one(request, asked, form)
            return
        if asked.id is not None or asked.explain:
            raise ValueError("id, explain: got one with many rows, expected ids, or one row")
        if asked.ids is not None and len(asked.ids) != len(asked.rows):
            raise ValueError(f"ids: got {len(asked.ids)}, expected one for each of {len(asked.rows)} rows")
        rows = self._rows(asked.rows)
        service = self.service
        service.flush()
        margins = service.margins(rows)
        names = None if asked.ids is None else [_name(one) for one in asked.ids]
        recorded, shown = None, margins
        if names is not None:
            packed = pack_each(rows)
            shown, recorded = self._remember(names, packed, margins)
        service.counts["predictions"] += len(shown)
        coding = service.coding
        answer: dict[str, Any] = {"predictions": self._shown(shown)}
        if coding.classes is not None:
            answer["probabilities"] = [coding.probabilities(one) for one in shown]
        if names is not None:
            answer |= {"ids": asked.ids, "recorded": recorded}
        self._predicted(request, answer, form)

    def _shown(self, margins: Any) -> list[Any]:
        coding = self.service.coding
        if coding.classes is not None:
            return [coding.shown(one) for one in margins]
        return list(np.asarray(coding.predictions(margins)).tolist())

    def _remember(self, names: list[bytes], packed: list[bytes], margins: Any) -> tuple[Any, bool]:
        """Record new predictions; those whose id is known keep their first answer."""
        if len(set(names)) < len(names):
            raise ValueError("ids: got one twice, expected different ones")
        found = {k: before for k, name in enumerate(names) if (before := self.service.find(name)) is not None}
        for k, before in found.items():
            if before.row != packed[k]:
                raise ValueError(f"ids: got {names[k].decode()!r}, which another row has, expected a new one")
        new = [k for k in range(len(names)) if k not in found]
        recorded = not new or self.service.remember([names[k] for k in new], [packed[k] for k in new], margins[new])
        self.service.counts["predictions repeated"] += len(found)
        shown = margins.copy()
        for k, before in found.items():
            shown[k] = before.margins
        return shown, recorded

    def _predict_one(self, request: Request, asked: Predict, form: str) -> None:
        service, name = self.service, None if asked.id is None else _name(asked.id)
        if isinstance(asked.row, str) and not asked.explain and (name is None or self._is_new(name)):
            line = asked.row.encode("utf-8", "surrogatepass")
            if b"\n" in line:
                raise ValueError("row: got several lines, expected one; rows takes a list of them")
            service.predict_line(line, name, partial(self._line_done, request, form, asked.id))
            return
        service.flush()
        rows = self._rows([asked.row])
        margins, recorded = service.margins(rows), None
        if name is not None:
            before = service.find(name)
            packed = pack_each(rows)
            if before is not None and before.row != packed[0]:
                request.reply(409, {"error": f"id: got {asked.id!r}, which another row has, expected a new one"})
                return
            margins, recorded = self._remember([name], packed, margins)
        service.counts["predictions"] += 1
        answer = self._answer(margins[0])
        if name is not None:
            answer |= {"id": asked.id, "recorded": recorded}
        if asked.explain:
            answer["explanation"] = self.models.explanation(asked.row or {})
        self._predicted(request, answer, form)

    def _is_new(self, name: bytes) -> bool:
        service = self.service
        return name not in service.named and name not in service.index.waiting and name not in service.index.settled

    def _line_done(
        self, request: Request, form: str, name: str | None, margins: Any, wrong: str | None, recorded: bool
    ) -> None:
        if wrong is not None:
            self.service.counts["requests refused"] += 1
            request.reply(400, {"error": f"row: {wrong}"})
            return
        self.service.counts["predictions"] += 1
        named = {} if name is None else {"id": name, "recorded": recorded}
        self._predicted(request, self._answer(margins) | named, form)

    def _answer(self, margins: Any) -> dict[str, Any]:
        coding = self.service.coding
        answer: dict[str, Any] = {"prediction": coding.shown(margins)}
        if (probabilities := coding.probabilities(margins)) is not None:
            answer["probabilities"] = probabilities
        return answer

    def _predicted(self, request: Request, answer: Any, form: str) -> None:
        self.service.predicted.add(time.perf_counter() - request.started)
        request.reply(200, answer, form)

    def _rows(self, given: list[Any]) -> CoalescedRows:
        """Return the rows of a request, which are all dicts or all lines."""
        if len(given) > self.limits.rows:
            raise ValueError(f"rows: got {len(given):,}, expected at most {self.limits.rows:,}; send several requests")
        if not any(isinstance(row, str) for row in given):
            return self.service.rows.of_dicts(given)
        if not all(isinstance(row, str) and "\n" not in row for row in given):
            raise ValueError("rows: got dicts and lines, or several lines in one, expected all dicts or one line each")
        lines = [row.encode("utf-8", "surrogatepass") for row in given if isinstance(row, str)]
        parsed = self.service.rows.of_lines(b"".join(line + b"\n" for line in lines))
        for number in range(len(lines)):
            if number in parsed.errors:
                raise ValueError(f"row {number}: {parsed.errors[number]}")
        if parsed.labels.size < len(lines):
            raise ValueError("rows: got an empty line, expected features in each")
        return CoalescedRows(*parsed[:3])

    # Outcomes.
    def learn(self, request: Request) -> None:
        """Record outcomes, of predictions by id or of rows in the request."""
        asked, form = self._decoded(request, Learn)
        if asked.row is not None or asked.rows is not None:
            self._learn_rows(request, asked, form)
            return
        if asked.labels is not None or asked.importances is not None:
            raise ValueError("labels, importances: got some without rows, expected rows, or outcomes with ids")
        many = asked.outcomes is not None
        if many == (asked.id is not None):
            raise ValueError("id, outcomes, rows: got none or several, expected one of them")
        if not many and asked.label is None:
            raise ValueError(f"label: got none, expected {self.service.coding.expected}")
        given: Any = asked.outcomes if many else [OneOutcome(asked.id, asked.label, asked.importance)]
        if len(given) > self.limits.rows:
            raise ValueError(f"outcomes: got {len(given):,}, expected at most {self.limits.rows:,}")
        outcomes = [(_name(one.id), self._label(one.label), _importance(one.importance)) for one in given]
        if not self._refuse_if_failed(request):
            self.service.settle(outcomes, partial(self._settled, request, form, many))

    def _learn_rows(self, request: Request, asked: Learn, form: str) -> None:
        one = asked.row is not None
        if one == (asked.rows is not None) or asked.outcomes is not None:
            raise ValueError("row, rows, outcomes: got several, expected one of them")
        if one and (asked.labels is not None or asked.importances is not None):
            raise ValueError("labels, importances: got some with one row, expected label and importance")
        if not one and asked.id is not None:
            raise ValueError("id: got one with many rows, expected one row, or outcomes with ids")
        given: Any = [asked.row] if one else asked.rows
        labels: Any = [asked.label] if one else asked.labels
        weights = [asked.importance] if one else asked.importances or [1.0] * len(given)
        if labels is None or None in labels or len(labels) != len(given) or len(weights) != len(given):
            raise ValueError(f"labels, importances: expected one for each of {len(given):,} rows")
        coded = np.array([self._label(label) for label in labels], np.float64)
        importance = np.array([_importance(weight) for weight in weights], np.float32)
        rows = self._rows(given)
        if self._refuse_if_failed(request):
            return
        self.service.flush()
        margins, done = self.service.margins(rows), partial(self._settled, request, form, not one)
        if one and asked.id is not None:
            name = _name(asked.id)
            try:
                recorded = self._remember([name], pack_each(rows), margins)[1]
            except ValueError as error:
                request.reply(409, {"error": str(error)})
                return
            if recorded:
                self.service.settle([(name, float(coded[0]), float(importance[0]))], done)
                return
            done(None)
            return
        self.service.learn_rows(rows, coded, importance, margins, done)

    def _label(self, given: Any) -> float:
        return self.service.coding.label(given)

    def _refuse_if_failed(self, request: Request) -> bool:
        service = self.service
        why = service.log.failed or service.broken
        if why is not None:
            service.counts["outcomes refused"] += 1
            request.reply(503, {"error": FULL.format(why=why)})
        return why is not None

    def _settled(self, request: Request, form: str, many: bool, statuses: list[str] | None) -> None:
        if statuses is None:
            self.service.counts["outcomes refused"] += 1
            request.reply(503, {"error": FULL.format(why=self.service.failure)})
        elif many:
            request.reply(200, {"statuses": statuses}, form)
        else:
            name = statuses[0]
            content = {"status": name} | ({"error": WHY[name]} if name in WHY else {})
            request.reply(NAMES[name], content, form)

    # Others.
    def change(self, request: Request) -> None:
        """Add, promote, remove or roll back a model."""
        asked, form = self._decoded(request, Change)
        chosen = [asked.add is not None, asked.promote is not None, asked.remove is not None, asked.rollback]
        if sum(chosen) != 1:
            raise ValueError("add, promote, remove, rollback: got none or several, expected one of them")
        self.models.change(asked, partial(self._settled, request, form, False))

    def event(self, request: Request) -> None:
        """Say what happened to an id."""
        from urllib.parse import unquote

        name = _name(unquote(request.path.removeprefix("/v1/events/"), errors="strict"))
        found = self.models.event(name)
        if found is None:
            request.reply(404, {"error": WHY["unknown"]})
        else:
            request.reply(200, found)

    def health(self, request: Request) -> None:
        """Say whether the server answers, and whether it learns."""
        why = self.service.failure or self.service.broken
        ready = request.path == "/healthz" or why is None
        content = {"status": "ok" if why is None else "predictions only", **({} if why is None else {"why": why})}
        request.reply(200 if ready else 503, content)

    def subscribe(self, request: Request) -> None:
        """Send the status once a second from now on."""
        self.streams.append(request.reply.stream())  # type: ignore[attr-defined]

    def publish(self) -> None:
        """Send the status to all who subscribed; those who do not take it are left out."""
        self.streams = [one for one in self.streams if not one.closing and not one.transport.is_closing()]
        if self.streams:
            text = b"data: " + msgspec.json.encode(status(self.service)) + b"\n\n"
            for one in self.streams:
                if not one.waiting:
                    one.transport.write(text)


def _name(given: str) -> bytes:
    name = given.encode("utf-8", "strict")
    if not 0 < len(name) <= LONGEST_ID:
        raise ValueError(f"id: got one of {len(name):,} bytes, expected 1 to {LONGEST_ID}")
    return name


def _importance(given: float) -> float:
    if not (math.isfinite(given) and 0 <= given <= 1e6):
        raise ValueError(f"importance: got {given}, expected a number from 0 to 1,000,000")
    return given
