"""A description of the HTTP interface for programs, in OpenAPI 3.1."""

from typing import Any

from forel.serve.http import Limits
from forel.training.model import Model
from forel.version import __version__

__all__ = ["description"]

TEXT: dict[str, Any] = {"type": "string"}
ID = {"type": "string", "minLength": 1, "maxLength": 64}
NUMBER, BOOL = {"type": "number"}, {"type": "boolean"}
LABEL = {"type": ["number", "boolean", "string"]}
IMPORTANCE = {"type": "number", "minimum": 0, "maximum": 1e6}


def _object(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


def _array(of: Any, most: int) -> dict[str, Any]:
    return {"type": "array", "items": of, "maxItems": most}


def _answer(text: str, schema: Any = None, kind: str = "application/json") -> dict[str, Any]:
    return {"description": text} | ({} if schema is None else {"content": {kind: {"schema": schema}}})


def description(model: Model, limits: Limits) -> dict[str, Any]:
    """Return the description of a server."""
    row = {"type": ["object", "string"], "description": "Values by column, or a line of VW text"}
    outcome = _object(("id", "label"), id=ID, label=LABEL, importance=IMPORTANCE)
    error = _object(("error",), error=TEXT)
    status = {"type": "object", "properties": {"status": TEXT, "error": TEXT}}
    most = limits.rows
    predict = _object(row=row, rows=_array(row, most), id=ID, ids=_array(ID, most), explain=BOOL)
    learn = _object(
        id=ID, label=LABEL, importance=IMPORTANCE, outcomes=_array(outcome, most), row=row, rows=_array(row, most),
        labels=_array(LABEL, most), importances=_array(IMPORTANCE, most),
    )  # fmt: skip
    change = _object(add=ID, model=TEXT, settings={"type": "object"}, promote=TEXT, remove=TEXT, rollback=BOOL)
    refused = {
        str(code): _answer(text, error)
        for code, text in (
            (400, "The request is not understood"), (401, "The token is missing or another one"),
            (403, "The host is another one"), (408, "The request did not arrive"), (413, "The body is too large"),
            (415, "The body is neither JSON nor msgpack"), (431, "The headers are too large"),
        )
    }  # fmt: skip
    full = {"503": _answer("The disk does not take outcomes now, or there are too many connections", error)}

    def post(summary: str, body: Any, answer: Any, **more: Any) -> dict[str, Any]:
        content = {"required": True, "content": {"application/json": {"schema": body}}}
        responses = {"200": _answer("Done", answer), **refused, **full, **more}
        return {"post": {"summary": summary, "requestBody": content, "responses": responses}}

    def get(summary: str, answer: Any, more: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
        return {"get": {"summary": summary, "responses": {"200": _answer("Done", answer, kind), **refused, **more}}}

    anything = {"type": "object"}
    known = {"404": _answer("The id is unknown", status), "409": _answer("The id has another row or label", status)}
    event = get("What happened to an event", anything, known)
    event["get"]["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": ID}]
    return {
        "openapi": "3.1.0",
        "info": {"title": "forel serve", "version": __version__, "description": model.settings.summary},
        "paths": {
            "/v1/predict": post("Predict one row or many", predict, anything, **known),
            "/v1/learn": post("Record outcomes, or rows with labels", learn, status, **known),
            "/v1/models": post("Add, promote, remove or roll back a model", change, status),
            "/v1/model": get("The models and what is known about them", anything, {}),
            "/v1/events/{id}": event,
            "/metrics": get("Numbers for Prometheus", TEXT, {}, "text/plain"),
            "/healthz": get("Whether the server answers", anything, {}),
            "/readyz": get("Whether it learns", anything, full),
        },
    }
