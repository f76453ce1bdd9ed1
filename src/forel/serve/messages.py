"""What requests of the HTTP interface say, and a description of it for programs, in OpenAPI 3.1."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from forel.serve.http import JSON, MSGPACK
from forel.training.model import Model
from forel.version import __version__

__all__ = ["DECODERS", "Change", "Learn", "OneOutcome", "Predict", "Row", "description"]

Row = dict[str, Any] | str
Label = float | bool | str
Id = Annotated[str, Meta(min_length=1, max_length=256)]
Importance = Annotated[float, Meta(ge=0, le=1e6)]


class Predict(msgspec.Struct, forbid_unknown_fields=True):
    """Predict one row or many: values by column, or lines of VW text."""

    row: Row | None = None
    rows: list[Row] | None = None
    id: Id | None = None
    ids: list[Id] | None = None
    explain: bool = False
    interval: bool = False


class OneOutcome(msgspec.Struct, forbid_unknown_fields=True):
    """The label of an earlier prediction."""

    id: Id
    label: Label
    importance: Importance = 1.0


class Learn(msgspec.Struct, forbid_unknown_fields=True):
    """Record outcomes of predictions, or rows with their labels."""

    id: Id | None = None
    label: Label | None = None
    importance: Importance = 1.0
    outcomes: list[OneOutcome] | None = None
    row: Row | None = None
    rows: list[Row] | None = None
    labels: list[Label] | None = None
    importances: list[Importance] | None = None


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """Add a model of a file or with settings, promote, remove, or roll back."""

    add: str | None = None
    model: str | None = None
    settings: dict[str, Any] | None = None
    promote: str | None = None
    remove: str | None = None
    rollback: bool = False


BODIES = {"/v1/predict": Predict, "/v1/learn": Learn, "/v1/models": Change}
DECODERS = {
    (kind, each): module.Decoder(each).decode
    for kind, module in ((JSON, msgspec.json), (MSGPACK, msgspec.msgpack))
    for each in BODIES.values()
}
PAGES = {
    "/v1/model": "The models and what is known about them", "/v1/events/{id}": "What happened to an event",
    "/metrics": "Numbers for Prometheus", "/healthz": "Whether the server answers", "/readyz": "Whether it learns",
}  # fmt: skip
STATUSES = {
    "200": "Done", "400": "The request is not understood", "401": "The token is missing or another one",
    "403": "The host is another one", "404": "The id is unknown", "408": "The request did not arrive",
    "409": "The id has another row or label", "413": "The body is too large",
    "415": "The body is neither JSON nor msgpack", "431": "The headers are too large",
    "503": "The disk does not take outcomes now, or there are too many connections",
}  # fmt: skip


def description(model: Model) -> dict[str, Any]:
    """Return the description of a server."""
    schemas, components = msgspec.json.schema_components(
        tuple(BODIES.values()), ref_template="#/components/schemas/{name}"
    )
    answers = {status: {"description": text} for status, text in STATUSES.items()}
    paths: dict[str, Any] = {path: {"get": {"summary": text, "responses": answers}} for path, text in PAGES.items()}
    for (path, body), schema in zip(BODIES.items(), schemas, strict=True):
        content = {"required": True, "content": {kind: {"schema": schema} for kind in (JSON, MSGPACK)}}
        paths[path] = {"post": {"summary": body.__doc__, "requestBody": content, "responses": answers}}
    place = {"name": "id", "in": "path", "required": True, "schema": msgspec.json.schema(Id)}
    paths["/v1/events/{id}"]["get"]["parameters"] = [place]
    about = {"title": "forel serve", "version": __version__, "description": model.settings.summary}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": {"schemas": components}}
