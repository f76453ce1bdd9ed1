"""Models that learn from the same events: the champion, whose predictions are served, and challengers in its shadow.

Everything here is a function of the events in their order: the same events give the same bytes, in any batches.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.evidence import Alarms, Comparison
from forel.log.records import Control, join_rows
from forel.training.classes import metrics_for
from forel.training.labels import label_kind
from forel.training.model import Model
from forel.validation import refuse

__all__ = ["Change", "Contest", "Event", "Fold"]

MOST_SLOTS = 1 << 26  # for which a byte each is kept
FIRST = "initial"  # the name of the model that a server starts with


class Event(NamedTuple):
    """Rows whose labels are known, with the margins that were served; their record ends at ``end``."""

    end: int
    time: float
    rows: bytes
    labels: NDArray[np.float64]
    importance: NDArray[np.float32]
    margins: NDArray[np.float64]


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

    def frozen(self) -> "Fold":
        """Return a copy that may be saved on another thread."""
        copy = Fold.__new__(Fold)
        copy.learner = self.learner.copy(whole=True)
        copy.model, copy.metrics = replace(self.model, learner=copy.learner), _packed(self.metrics)
        return copy


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
        self.comparisons: dict[str, Comparison] = {}
        self.alarms = Alarms(numbers=label_kind(model.settings) != "probability")
        slots = model.learner.features
        self.seen = np.zeros(slots if slots <= MOST_SLOTS else 0, np.bool_)  # slots that occurred in rows

    @property
    def model(self) -> Model:
        """The model that is served."""
        return self.folds[self.champion].model

    @property
    def rows(self) -> int:
        """The number of rows learned from since the log began."""
        return int(self.served.running.total.rows)

    def learn(self, events: Sequence[Event]) -> None:
        """Let all models learn events."""
        rows = join_rows([event.rows for event in events])
        labels = np.concatenate([event.labels for event in events])
        importance = np.concatenate([event.importance for event in events])
        margins = np.concatenate([event.margins for event in events])
        served = margins if self.model.learner.classes is not None else np.ascontiguousarray(margins[:, 0])
        found = self.served.add(served, labels, importance)
        one_probability = getattr(self.served, "kind", None) == "probability"
        errors = found.labels - found.predictions if one_probability else None
        self.alarms.add(found.losses, errors, self._unseen(rows))
        own, best = self.folds[self.champion].learn(rows, labels, importance)
        self.fresh.add(own, labels, importance)
        for name, fold in self.folds.items():
            if name != self.champion:
                losses = fold.learn(rows, labels, importance)[1]
                self.comparisons[name].add(best, losses)
        self.position, self.time = events[-1].end, events[-1].time

    def _unseen(self, rows: Any) -> NDArray[np.float64] | None:
        """Return the share of features of each row that no row before had, and note them."""
        if not self.seen.size:
            return None
        new = ~self.seen[rows.indices]
        places = np.flatnonzero(new)
        _, first = np.unique(rows.indices[places], return_index=True)
        new[:] = False
        new[places[first]] = True
        self.seen[rows.indices] = True
        counts = np.concatenate(([0], np.cumsum(new)))[rows.indptr]
        return np.asarray((counts[1:] - counts[:-1]) / np.maximum(np.diff(rows.indptr), 1))

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

    def promote(self, name: str) -> None:
        """Serve another model; the one that was served continues as a challenger."""
        self.check_known(name)
        if name != self.champion:
            self.history.append(self.champion)
            self.champion = name
            self._restart()

    def rollback(self) -> None:
        """Serve the model again that was served before the last promotion."""
        self.check_rollback()
        self.champion = self.history.pop()
        self._restart()

    def remove(self, name: str) -> None:
        """Drop a challenger."""
        self.check_removable(name)
        del self.folds[name], self.comparisons[name]
        self.history = [one for one in self.history if one != name]

    def check_known(self, name: str) -> None:
        """Raise for the name of no model."""
        if name not in self.folds:
            raise refuse("name", name, f"one of {', '.join(self.folds)}")

    def check_removable(self, name: str) -> None:
        """Raise for the model that is served, or none."""
        self.check_known(name)
        if name == self.champion:
            raise refuse("name", name, "a challenger; this model is served: promote another one first")

    def check_rollback(self) -> None:
        """Raise if there was no promotion."""
        if not self.history:
            raise ValueError("rollback: no model was promoted before this one, expected a promotion to undo")

    def _restart(self) -> None:
        others = [name for name in self.folds if name != self.champion]
        self.comparisons = {name: new_comparison(self.model, self.level) for name in others}

    def apply(self, control: Control, end: int, load: Any) -> None:
        """Apply a change whose record ends at a position; ``load`` returns the model of a file."""
        content, self.position = control.content, end
        if "add" in content:
            self.add(content["add"], load(content["file"]))
        elif "promote" in content:
            self.promote(content["promote"])
        elif "rollback" in content:
            self.rollback()
        elif "remove" in content:
            self.remove(content["remove"])
        elif "level" in content:
            self.level = content["level"]
            self._restart()

    @property
    def delay_cost(self) -> float:
        """How much larger the average loss is as served than with the model when the outcome came."""
        return float(self.served.report().loss - self.fresh.report().loss) if self.rows else math.nan

    def certificate(self) -> str | None:
        """Return how much better any fixed model could have predicted what was served; None without a certificate.

        Floors of the loss of fixed models need the slopes of the losses at the points where rows were learned, and hold
        under any delay.
        """
        learner = self.model.learner
        if not learner.certified or learner.rounds != self.rows or not self.rows:
            return None
        report = self.served.report()
        return str(learner.summary(loss=report.loss * report.weight))

    # The state beside the models, for checkpoints.
    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state beside the models, as JSON and arrays."""
        content = {
            "champion": self.champion, "history": self.history, "models": list(self.folds), "position": self.position,
            "time": self.time, "level": self.level,
        }  # fmt: skip
        arrays: dict[str, NDArray[Any]] = {f"served.{key}": value for key, value in self.served.pack().items()}
        arrays |= {f"fresh.{key}": value for key, value in self.fresh.pack().items()}
        arrays |= {"alarms": self.alarms.state.copy(), "seen": np.packbits(self.seen)}
        return content, arrays | {f"against.{name}": one.state.copy() for name, one in self.comparisons.items()}

    @classmethod
    def unpack(cls, content: dict[str, Any], arrays: dict[str, Any], folds: dict[str, Fold]) -> "Contest":
        """Return a contest from what :meth:`pack` returned, and its models."""
        new = cls(folds[content["champion"]].model, content["level"])
        new.folds, new.champion, new.history = folds, content["champion"], list(content["history"])
        new.position, new.time = content["position"], content["time"]
        for prefix, metrics in (("served.", new.served), ("fresh.", new.fresh)):
            metrics.unpack({key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)})
        new.alarms.state[...] = arrays["alarms"]
        new.seen[:] = np.unpackbits(arrays["seen"], count=new.seen.size)
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


class _Packed(dict[str, Any]):
    def pack(self) -> dict[str, Any]:
        return self


def _packed(metrics: Any) -> _Packed:
    """Return the totals of metrics, which do not change any more."""
    return _Packed(metrics.pack())
