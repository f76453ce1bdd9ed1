"""What a run or an evaluation can say at any moment: the mean loss, coverage of intervals, and alarms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.evidence import Alarms, Coverage, MeanSequence
from forel.evidence.alarms import LARGEST
from forel.learner.settings import Settings
from forel.training.labels import label_kind
from forel.training.measures import Measures
from forel.training.metrics import RowScores
from forel.training.run import Observer, Step
from forel.validation import refuse

__all__ = ["Statements", "StatementsOfRun", "coverage_of", "stored_coverage"]


def coverage_of(extra: Mapping[str, Any], level: float | None = None) -> Coverage | None:
    """Return the intervals that are stored with a model; None without any, or if they are of another level."""
    stored = extra.get("interval")
    if stored is None or level not in (None, stored["level"]):
        return None
    found = Coverage(stored["level"])
    found.state[:] = stored["state"]
    return found


def stored_coverage(coverage: Coverage | None) -> dict[str, Any]:
    """Return what a model stores of intervals."""
    return {} if coverage is None else {"interval": {**coverage.to_json(), "state": coverage.state.tolist()}}


class Statements:
    """What is said of consecutive predictions.

    Parameters
    ----------
    settings, several : of the model, and whether it has several classes
    coverage : intervals around predicted numbers; None for none
    ordered : whether rows come in the order of their source, so that a change has a place

    >>> found = Statements(Settings("squared"), False, Coverage(0.9))
    >>> row = np.arange(3000.0)
    >>> found.add(RowScores(0 * row, np.sin(row), 1 + 0 * row, np.sin(row) ** 2, 0 * row))
    >>> found.sentences()
    ['intervals of level 90 %, adapted after each row, covered 90.0... % of 2,999 labels; on any with ... 90 % ± ...']
    """

    def __init__(
        self, settings: Settings, several: bool, coverage: Coverage | None = None, ordered: bool = True
    ) -> None:
        self.kind = "class" if several else label_kind(settings)
        if coverage is not None and self.kind != "number":
            expected = "none: intervals are for predicted numbers, as with the loss squared"
            raise refuse("interval", coverage.level, expected)
        self.coverage = coverage
        self.log = settings.loss_function.link.probabilities
        self.loss = MeanSequence(0.0, LARGEST) if self.log else None
        self.alarms = Alarms(numbers=not self.log) if ordered else None

    def add(self, scores: RowScores) -> None:
        """Add the scores of rows; those of importance 0 do not count."""
        some: Any = scores.weights > 0
        some = slice(None) if np.all(some) else some
        losses, labels = (np.asarray(each[some], np.float64) for each in (scores.losses, scores.labels))
        predictions = np.asarray(scores.predictions[some], np.float64)
        if self.kind == "number":
            losses = np.abs(predictions - labels)
        if self.coverage is not None:
            self.coverage.add(predictions, labels)
        if self.loss is not None:
            self.loss.add(np.minimum(losses, LARGEST))
        if self.alarms is not None:
            self.alarms.add(losses, labels - predictions if self.kind == "probability" else None)

    @property
    def extra(self) -> dict[str, Any]:
        """What a model stores: the intervals."""
        return stored_coverage(self.coverage)

    def sentences(self) -> list[str]:
        """Return the sentences that are worth a line."""
        found = [None if one is None else one.sentence() for one in (self.coverage, self.alarms)]
        return [one for one in found if one is not None]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        found: dict[str, Any] = {}
        if self.loss is not None and self.loss.rows[0]:
            low, high = self.loss.interval()
            found["mean_loss"] = {"level": self.loss.level, "low": float(low[0]), "high": float(high[0])}
        if self.coverage is not None:
            found["interval"] = self.coverage.to_json()
        if self.alarms is not None and self.alarms.count:
            each = [{"row": one.row, "since": one.since, "what": one.what} for one in self.alarms.found]
            found["alarms"] = {"count": self.alarms.count, "every": self.alarms.every, "last": each}
        return found


class StatementsOfRun(Observer):
    """The statements of the rows that the first pass learns from, each predicted before.

    Parameters
    ----------
    measures : of the same run, which come before
    statements : what is said
    """

    name = "statements"

    def __init__(self, measures: Measures, statements: Statements) -> None:
        self._measures, self.statements, self._first = measures, statements, True

    def begin(self, pass_number: int) -> None:
        """Learn whether rows were seen before."""
        self._first = pass_number == 1

    def after_block(self, step: Step) -> None:
        """Add the rows of a block."""
        if self._first and self._measures.scores is not None:
            self.statements.add(self._measures.scores)

    def extra(self) -> dict[str, Any]:
        """Return the intervals, which predictions need."""
        return self.statements.extra

    def _states(self) -> dict[str, NDArray[np.float64]]:
        parts = {"coverage": self.statements.coverage, "loss": self.statements.loss, "alarms": self.statements.alarms}
        return {name: part.state for name, part in parts.items() if part is not None}

    def pack(self) -> tuple[Any, Mapping[str, NDArray[Any]]]:
        """Return the states."""
        return None, {name: state.copy() for name, state in self._states().items()}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue with other states."""
        for name, state in self._states().items():
            state[:] = arrays[name].reshape(state.shape)
