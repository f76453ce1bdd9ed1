"""What a server says and does about its models: changes, explanations, and what happened to an event."""

import io
import os
import warnings
from typing import Any

import numpy as np

from forel.log.folder import with_settings
from forel.log.records import unpack_rows
from forel.serve.service import Done, Service
from forel.store.explaining import Explanation, explain
from forel.training.model import Model, load
from forel.validation import refuse

__all__ = ["Models", "check_served"]

SHOWN = 12  # contributions of an explanation


def check_served(model: Model) -> None:
    """Raise for a model that cannot be served: it has to learn from rows of hashed names."""
    if model.named_rows is not None or not hasattr(model.learner, "progress"):
        raise refuse(
            "model", model._summary()[1][1], "one model that learns from hashed names, as forel train writes it"
        )


class Models:
    """The models of a service.

    Parameters
    ----------
    service : whose contest they are in
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    def change(self, asked: Any, done: Done) -> None:
        """Check and record a change, which is then applied."""
        service, contest = self.service, self.service.contest
        if asked.add is None:
            content = {"rollback": True} if asked.rollback else {"promote": asked.promote, "remove": asked.remove}
            content = {key: value for key, value in content.items() if value is not None}
            contest.check(content)
        else:
            model = self._challenger(asked.model, asked.settings)
            contest.check_challenger(asked.add, model)
            content = {"add": asked.add, "file": service.folder.save_added(asked.add, model)}
        service.control(content, done)

    def _challenger(self, file: str | None, settings: dict[str, Any] | None) -> Model:
        """Return the model of a file in the folder "incoming", or a new one with other settings."""
        if (file is None) == (settings is None):
            raise ValueError("model, settings: got both or none, expected one of them")
        if file is not None:
            incoming = self.service.folder.path / "incoming"
            if os.path.basename(file) != file or not (incoming / file).is_file():
                raise refuse("model", file, f"the name of a model file in {incoming}")
            model = load(incoming / file)
            check_served(model)
            return model
        return with_settings(self.service.model, settings or {})

    def explanation(self, given: dict[str, Any] | str) -> list[dict[str, Any]]:
        """Return the largest contributions to the margin of a row of a request."""
        model = self.service.model
        with warnings.catch_warnings():  # that keys differ from those of training
            warnings.simplefilter("ignore")
            if isinstance(given, str):
                return _parts(next(model.explain(io.BytesIO(given.encode() + b"\n"), format="vw")))
            return _parts(next(model.explain([given])))

    def event(self, name: bytes) -> dict[str, Any] | None:
        """Return what happened to an id, and the contributions of its features now; None if it is unknown."""
        service, model = self.service, self.service.model
        found = service.find(name)
        if found is None:
            return None
        settled, rows = service.index.settled.get(name), unpack_rows(found.row)
        status = "waiting" if settled is None else "dropped" if np.isnan(settled.label) else "recorded"
        label = None if settled is None or np.isnan(settled.label) else service.coding.word(settled.label)
        names, shown = service.rows.names(rows.indices), service.coding.shown(found.margins)
        event = {"id": name.decode(), "status": status, "time": found.time, "prediction": shown, "label": label}
        parts = explain(
            model.learner,
            service.coding.link,
            [rows],
            lambda place: (names.get(place, str(place)), False),
            model.classes,
        )
        return {**event, "explanation_now": _parts(next(parts))}

    def recent(self) -> list[dict[str, Any]]:
        """Return the last events that had an outcome, the latest first."""
        found = [self.event(name) for name in dict.fromkeys(reversed(self.service.recent))]
        return [event for event in found if event is not None and event["label"] is not None]


def _parts(found: Explanation) -> list[dict[str, Any]]:
    parts = [("bias", 1.0, found.bias), *((one.name, one.value, one.contribution) for one in found.contributions)]
    return [{"name": name, "value": float(value), "contribution": float(part)} for name, value, part in parts[:SHOWN]]
