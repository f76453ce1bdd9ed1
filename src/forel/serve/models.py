"""What a server says and does about its models: changes, explanations, and what happened to an event."""

import io
import os
import warnings
from typing import Any

import numpy as np

from forel.data import slot
from forel.learner.rows import CoalescedRows
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

    def _of_hashed(self, rows: CoalescedRows) -> list[dict[str, Any]]:
        """Return the largest contributions to the margin of a row of the log, whose names are known in part."""
        model, options = self.service.model, self.service.rows.options
        names, columns = model.names, {slot(name, bits=options.bits): name for name in model.extra.get("schema") or ()}

        def name(place: int) -> tuple[str, bool]:
            if names is not None and place in names:
                return names[place], names.is_shared(place)
            return columns.get(place, str(place)), False

        return _parts(next(explain(model.learner, self.service.coding.link, [rows], name, model.classes)))

    def event(self, name: bytes) -> dict[str, Any] | None:
        """Return what happened to an id; None if it is unknown."""
        service = self.service
        found = service.find(name)
        if found is None:
            return None
        settled = service.index.settled.get(name)
        status = "waiting" if settled is None else "dropped" if np.isnan(settled.label) else "recorded"
        label = None if settled is None or np.isnan(settled.label) else service.coding.word(settled.label)
        now = self._of_hashed(unpack_rows(found.row))
        shown = service.coding.shown(found.margins)
        event = {"id": name.decode(), "status": status, "time": found.time, "prediction": shown, "label": label}
        return {**event, "explanation_now": now}


def _parts(found: Explanation) -> list[dict[str, Any]]:
    parts = [("bias", 1.0, found.bias), *((one.name, one.value, one.contribution) for one in found.contributions)]
    return [{"name": name, "value": float(value), "contribution": float(part)} for name, value, part in parts[:SHOWN]]
