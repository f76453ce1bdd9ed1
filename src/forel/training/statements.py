"""What a run or an evaluation can say at any moment: the mean loss, coverage of intervals, and alarms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.evidence import Alarms, Coverage, MeanSequence, NewFeatures
from forel.evidence.alarms import LARGEST
from forel.learner.settings import Settings
from forel.training.metrics import Measures, RowScores, label_kind
from forel.training.run import Observer, Step
from forel.validation import refuse

__all__ = ["Statements", "coverage_of", "stored_coverage"]


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


class Statements(Observer):
    """What is said of consecutive predictions; in a run, those of the rows that its first pass learns from.

    Parameters
    ----------
    settings, several : of the model, and whether it has several classes
    coverage : intervals around predicted numbers; None for none
    ordered : whether rows come in the order of their source, so that a change has a place
    slots : the number of slots of features, for alarms of those that are new; 0 without
    measures : of the same run, which come before; None for :meth:`add` alone

    >>> found = Statements(Settings("squared"), False, Coverage(0.9))
    >>> row = np.arange(3000.0)
    >>> found.add(RowScores(0 * row, np.sin(row), 1 + 0 * row, np.sin(row) ** 2, 0 * row))
    >>> found.sentences()
    ['intervals of level 90 %, adapted after each row, covered 90.0... % of 2,999 labels; on any with ... 90 % ± ...']
    """

    name = "statements"

    def __init__(
        self,
        settings: Settings,
        several: bool,
        coverage: Coverage | None = None,
        ordered: bool = True,
        slots: int = 0,
        measures: Measures | None = None,
    ) -> None:
        self._measures = measures
        self.kind = "class" if several else label_kind(settings)
        if coverage is not None and self.kind != "number":
            expected = "none: intervals are for predicted numbers, as with the loss squared"
            raise refuse("interval", coverage.level, expected)
        self.coverage = coverage
        self.log = settings.loss_function.link.probabilities
        self.loss = MeanSequence(0.0, LARGEST) if self.log else None
        self.alarms = Alarms(numbers=not self.log) if ordered else None
        self.new_features = NewFeatures(slots if ordered else 0)

    def add(self, scores: RowScores, block: Block | None = None, rows: Any = slice(None)) -> None:
        """Add the scores of some rows of a block; those of importance 0 do not count."""
        some: Any = scores.weights > 0
        some = slice(None) if np.all(some) else some
        new = None if block is None else self.new_features.add(block.indptr, block.indices)
        losses, labels = (np.asarray(each[some], np.float64) for each in (scores.losses, scores.labels))
        predictions = np.asarray(scores.predictions[some], np.float64)
        if self.kind == "number":
            losses = np.abs(predictions - labels)
        if self.coverage is not None:
            self.coverage.add(predictions, labels)
        if self.loss is not None:
            self.loss.add(np.minimum(losses, LARGEST), weights=scores.weights[some])
        if self.alarms is not None:
            errors = labels - predictions if self.kind == "probability" else None
            # Of the source, also where rows are held out or have no label.
            numbers = None if block is None or block.numbers is None else block.numbers[rows][some] + 1
            self.alarms.add(losses, errors, None if new is None else new[rows][some], numbers)

    def after_block(self, step: Step) -> None:
        """Add the rows of a block."""
        if step.place.pass_number == 1 and self._measures is not None and self._measures.scores is not None:
            self.add(self._measures.scores, step.block, step.learned)

    def extra(self) -> dict[str, Any]:
        """Return the intervals, which predictions need."""
        return stored_coverage(self.coverage)

    def _states(self) -> dict[str, NDArray[np.float64]]:
        parts = {"coverage": self.coverage, "loss": self.loss, "alarms": self.alarms}
        return {name: part.state for name, part in parts.items() if part is not None}

    def pack(self) -> tuple[Any, Mapping[str, NDArray[Any]]]:
        """Return the states, and the slots that occurred."""
        seen = np.flatnonzero(self.new_features.seen).astype(np.float64)
        return None, {"seen": seen, **{name: state.copy() for name, state in self._states().items()}}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue with other states."""
        for name, state in self._states().items():
            state[:] = arrays[name].reshape(state.shape)
        self.new_features.seen[arrays["seen"].astype(np.int64)] = True

    def sentences(self) -> list[str]:
        """Return the sentences that are worth a line."""
        found = [None if one is None else one.sentence() for one in (self.coverage, self.alarms)]
        return [one for one in found if one is not None]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        found: dict[str, Any] = {}
        if self.loss is not None and self.loss.sums.rows[0]:
            low, high = self.loss.interval()
            found["mean_loss"] = {"level": self.loss.level, "low": float(low[0]), "high": float(high[0])}
        if self.coverage is not None:
            found["interval"] = self.coverage.to_json()
        if self.alarms is not None and self.alarms.count:
            each = [{"row": one.row, "since": one.since, "what": one.what} for one in self.alarms.found]
            found["alarms"] = {"count": self.alarms.count, "every": self.alarms.every, "last": each}
        return found
