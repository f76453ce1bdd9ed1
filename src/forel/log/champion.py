"""Models that learn from the same events: the champion, whose predictions are served, and challengers in its shadow.

Everything here is a function of the events in their order: the same events give the same bytes, in any batches.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.evidence import Alarms, Comparison, Coverage, NewFeatures
from forel.learner.loss_floor import LossFloor
from forel.log.records import Control, join_rows
from forel.training.metrics import label_kind, metrics_for
from forel.training.model import Model
from forel.training.statements import coverage_of
from forel.validation import refuse

__all__ = ["Change", "Contest", "Event", "Fold"]

FIRST = "initial"  # the name of the model that a server starts with


class Event(NamedTuple):
    """Packed rows whose labels are known, with the margins that were served; their last record ends at ``end``.

    ``offsets`` are those of a stream after them, from which a restarted server goes on.
    """

    end: int
    time: float
    rows: Sequence[bytes]
    labels: NDArray[np.float64]
    importance: NDArray[np.float32]
    margins: NDArray[np.float64]
    offsets: dict[str, int] | None = None


class Change(NamedTuple):
    """A change of models, whose record ends at ``end``."""

    end: int
    control: Control


class Fold:
    """A model that learns events in order, and metrics of its predictions when an outcome came, before learning it.

    Parameters
    ----------
    model : changed in place
    """

    def __init__(self, model: Model) -> None:
        self.model, self.learner = model, model.learner
        self.metrics: Any = new_metrics(model)

    def learn(self, rows: Any, labels: NDArray[Any], importance: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Learn rows, and return margins and losses from before."""
        margins = self.learner.progress(rows, labels, importance)
        own = margins if self.learner.classes is not None else margins[:, 0]
        return own, self.metrics.add(own, labels, importance).losses

    def frozen(self) -> tuple[Model, dict[str, Any]]:
        """Return copies of the model and of its metrics, which may be saved on another thread."""
        return replace(self.model, learner=self.learner.copy(whole=True)), self.metrics.pack()


class Contest:
    """The models of a log, which of them is served, and what is known about its predictions.

    Parameters
    ----------
    model : the first champion
    level : of statements about which model is better: the probability that one of them is ever false

    ``served`` are metrics of predictions as they were served, ``fresh`` of the predictions that the champion would have
    made when the outcome came: their difference is the cost of delay.
    """

    def __init__(self, model: Model, level: float = 0.05) -> None:
        self.folds = {FIRST: Fold(model)}
        self.champion, self.history, self.level = FIRST, list[str](), level
        self.served: Any = new_metrics(model)
        self.fresh: Any = new_metrics(model)
        self.position, self.time = 0, 0.0
        self.offsets: dict[str, int] = {}  # of streams that rows came from
        self.comparisons: dict[str, Comparison] = {}
        self.alarms = Alarms(numbers=label_kind(model.settings) != "probability")
        self.new_features = NewFeatures(model.learner.features)
        numbers = label_kind(model.settings) == "number" and model.learner.classes is None
        self.coverage = coverage_of(model.extra) or Coverage() if numbers else None  # intervals as served

    @property
    def model(self) -> Model:
        """The model that is served."""
        return self.folds[self.champion].model

    @property
    def rows(self) -> int:
        """The number of rows learned from since the log began."""
        return int(self.served.total.rows)

    def learn(self, events: Sequence[Event]) -> None:
        """Let all models learn events."""
        if any(event.labels.size for event in events):
            self._learn(events)
        for event in events:
            self.offsets = self.offsets if event.offsets is None else event.offsets
        self.position, self.time = events[-1].end, events[-1].time

    def _learn(self, events: Sequence[Event]) -> None:
        rows = join_rows([packed for event in events for packed in event.rows])
        labels = np.concatenate([event.labels for event in events])
        importance = np.concatenate([event.importance for event in events])
        margins = np.concatenate([event.margins for event in events])
        served = margins if self.model.learner.classes is not None else np.ascontiguousarray(margins[:, 0])
        found = self.served.add(served, labels, importance)
        one_probability = getattr(self.served, "kind", None) == "probability"
        errors = found.labels - found.predictions if one_probability else None
        self.alarms.add(found.losses, errors, self.new_features.add(rows.indptr, rows.indices))
        if self.coverage is not None:
            counted = found.weights > 0
            self.coverage.add(found.predictions[counted], found.labels[counted])
        own, best = self.folds[self.champion].learn(rows, labels, importance)
        self.fresh.add(own, labels, importance)
        for name, fold in self.folds.items():
            if name != self.champion:
                losses = fold.learn(rows, labels, importance)[1]
                self.comparisons[name].add(best, losses, importance)

    def check_challenger(self, name: str, model: Model) -> None:
        """Raise for a model that cannot learn from the same events, or a name that is taken."""
        if not name.isidentifier() or len(name) > 64:
            raise refuse("name", name, "a name of letters, digits and _, of at most 64")
        if name in self.folds:
            raise refuse("name", name, f"another than {', '.join(self.folds)}")
        mine, other = self.model, model
        facts = [
            ("slots", mine.learner.features, other.learner.features),
            ("classes", mine.learner.classes, other.learner.classes),
            ("loss", mine.settings.loss, other.settings.loss),
        ]
        for what, expected, got in facts:
            if got != expected:
                raise refuse(what, got, f"{expected}, as the model that is served has")

    def add(self, name: str, model: Model) -> None:
        """Let a challenger learn from here on."""
        self.check_challenger(name, model)
        self.folds[name] = Fold(model)
        self.comparisons[name] = new_comparison(self.model, self.level)

    def check(self, content: dict[str, Any]) -> None:
        """Raise for a promotion, a removal or a rollback that cannot be made."""
        name = content.get("promote", content.get("remove"))
        if name is not None and name not in self.folds:
            raise refuse("name", name, f"one of {', '.join(self.folds)}")
        if content.get("remove") == self.champion:
            raise refuse("name", name, "a challenger; this model is served: promote another one first")
        if "rollback" in content and not self.history:
            raise ValueError("rollback: no model was promoted before this one, expected a promotion to undo")

    def _restart(self) -> None:
        others = [name for name in self.folds if name != self.champion]
        self.comparisons = {name: new_comparison(self.model, self.level) for name in others}

    def apply(self, control: Control, end: int, load: Callable[[str], Model]) -> None:
        """Apply a change whose record ends at a position; ``load`` returns the model of a file.

        A model is added to learn from here on, or removed. A promoted one is served, and the one before continues as a
        challenger; a rollback serves that one again. ``level`` is that of comparisons, which begin again.
        """
        content, self.position = control.content, end
        self.check(content)
        if "add" in content:
            self.add(content["add"], load(content["file"]))
        elif "remove" in content:
            del self.folds[content["remove"]], self.comparisons[content["remove"]]
            self.history = [one for one in self.history if one != content["remove"]]
        elif content.get("promote") != self.champion:
            if "promote" in content:
                self.history.append(self.champion)
                self.champion = content["promote"]
            elif "rollback" in content:
                self.champion = self.history.pop()
            self.level = content.get("level", self.level)
            self._restart()

    @property
    def delay_cost(self) -> float:
        """How much larger the average loss is as served than with the model when the outcome came."""
        return float(self.served.report().loss - self.fresh.report().loss) if self.rows else math.nan

    def certificate(self) -> LossFloor | None:
        """Return how much better any fixed model could have predicted what was served; None without a certificate.

        Floors of the loss of fixed models need the slopes of the losses at the points where rows were learned, and hold
        under any delay. Those of any model that learned all rows will do; those of the champion come first.
        """
        report = self.served.report()
        for name in sorted(self.folds, key=lambda name: name != self.champion):
            learner = self.folds[name].learner
            one_loss = learner.classes is None or learner.joint  # as is served; otherwise each class has its own
            if learner.certified and one_loss and learner.rounds == self.rows > 0:
                floor: LossFloor = learner.loss_floor(loss=report.loss * report.weight)
                whose = f"{floor.setting} of {name}" if floor.setting else f"the model {name}"
                floor = floor.of_hashed_features(learner.features, learner.used_slots)
                return replace(floor, learner="what was served", setting=whose)
        return None

    # The state beside the models, for checkpoints.
    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state beside the models, as JSON and arrays."""
        content = {
            "champion": self.champion, "history": self.history, "models": list(self.folds), "position": self.position,
            "time": self.time, "level": self.level, "offsets": self.offsets,
            "interval": None if self.coverage is None else self.coverage.level,
        }  # fmt: skip
        arrays: dict[str, NDArray[Any]] = {f"served.{key}": value for key, value in self.served.pack().items()}
        arrays |= {f"fresh.{key}": value for key, value in self.fresh.pack().items()}
        if self.coverage is not None:
            arrays["coverage"] = self.coverage.state.copy()
        arrays |= {"alarms": self.alarms.state.copy(), "seen": np.packbits(self.new_features.seen)}
        return content, arrays | {f"against.{name}": one.state.copy() for name, one in self.comparisons.items()}

    @classmethod
    def unpack(cls, content: dict[str, Any], arrays: dict[str, Any], folds: dict[str, Fold]) -> "Contest":
        """Return a contest from what :meth:`pack` returned, and its models."""
        new = cls(folds[content["champion"]].model, content["level"])
        new.folds, new.champion, new.history = folds, content["champion"], list(content["history"])
        new.position, new.time = content["position"], content["time"]
        new.offsets = content["offsets"]
        for prefix, metrics in (("served.", new.served), ("fresh.", new.fresh)):
            metrics.unpack({key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)})
        new.alarms.state[...] = arrays["alarms"]
        if "coverage" in arrays:
            new.coverage = Coverage(content["interval"])
            new.coverage.state[...] = arrays["coverage"]
        seen = new.new_features.seen
        seen[:] = np.unpackbits(arrays["seen"], count=seen.size)
        new._restart()
        for name, one in new.comparisons.items():
            one.state[...] = arrays[f"against.{name}"]
        return new


def new_metrics(model: Model) -> Any:
    """Return empty metrics of a model's predictions."""
    return metrics_for(model.settings, model.learner, model.classes or ())


def new_comparison(model: Model, level: float) -> Comparison:
    """Return an empty comparison of two models."""
    return Comparison("log" if label_kind(model.settings) == "probability" else "relative", level)
