"""Decisions at a threshold: precision, recall and their trade-offs, from the histogram of margins."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.validation import number, refuse

__all__ = ["Threshold", "Thresholds", "decision_threshold"]

ABOVE = float(np.nextafter(1.0, 2.0))  # all probabilities: nothing is flagged
RULES = "f1, cost:5 (a missed positive costs 5 false alarms), or a number"


class Threshold(NamedTuple):
    """Counts of the rows whose prediction is at least a threshold; rows count by their importance.

    Parameters
    ----------
    value : the threshold
    flagged, hits : rows at or above it, and how many of them are positive
    positives, rows : how many rows are positive, and all rows

    >>> at = Threshold(0.5, flagged=4.0, hits=3.0, positives=5.0, rows=10.0)
    >>> at.precision, at.recall, round(at.f1, 3), at.false_alarms
    (0.75, 0.6, 0.667, 0.2)
    """

    value: float
    flagged: float
    hits: float
    positives: float
    rows: float

    @property
    def precision(self) -> float:
        """The part of the flagged rows that is positive; 1 if none is flagged."""
        return self.hits / self.flagged if self.flagged else 1.0

    @property
    def recall(self) -> float:
        """The part of the positive rows that is flagged."""
        return self.hits / self.positives

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.hits / (self.flagged + self.positives)

    @property
    def false_alarms(self) -> float:
        """The part of the negative rows that is flagged."""
        return (self.flagged - self.hits) / (self.rows - self.positives)


class Thresholds:
    """The trade-offs of all thresholds, at the edges of the bins of a histogram.

    Parameters
    ----------
    edges : the lower edge of each bin, as a prediction, increasing
    weights, positives : the rows of each bin, and the positive ones

    >>> found = Thresholds(np.array([0.1, 0.4, 0.8]), np.array([5.0, 3.0, 2.0]), np.array([0.0, 2.0, 2.0]))
    >>> found.best("f1").value, found.best("cost:0.2").value, found.best("0.5").flagged
    (0.4, 0.8, 2.0)
    """

    def __init__(self, edges: NDArray[Any], weights: NDArray[Any], positives: NDArray[Any]) -> None:
        self._edges = edges
        self._flagged, self._hits = (np.cumsum(part[::-1])[::-1] for part in (weights, positives))

    def _at(self, k: int) -> Threshold:
        return Threshold(
            float(self._edges[k]), float(self._flagged[k]), float(self._hits[k]), float(self._hits[0]),
            float(self._flagged[0]),
        )  # fmt: skip

    def at(self, value: float) -> Threshold:
        """Return the counts at a threshold, up to the width of a bin."""
        k = int(np.searchsorted(self._edges, value))
        found = self._at(min(k, self._edges.size - 1))
        return found._replace(value=value, **({} if k < self._edges.size else {"flagged": 0.0, "hits": 0.0}))

    def best(self, rule: str) -> Threshold:
        """Return the threshold that a rule chooses: "f1", "cost:5", where a miss costs 5 false alarms, or a number."""
        missed, alarms = self._hits[0] - self._hits, self._flagged - self._hits
        if rule == "f1":
            return self._at(int(np.argmax(self._hits / (self._flagged + self._hits[0]))))
        if (cost := cost_of(rule)) is not None:
            costs = cost * missed + alarms
            return self._at(int(np.argmin(costs))) if costs.min() <= cost * self._hits[0] else self.at(ABOVE)
        return self.at(number("threshold", rule, RULES))

    def points(self, count: int = 60) -> list[Threshold]:
        """Return thresholds that are evenly spread over recall and false alarms, the lowest first."""
        misses = self._flagged - self._hits
        place = self._hits / self._hits[0] + misses / misses[0]
        chosen = np.searchsorted(-place, -np.linspace(2.0, 0.0, count))
        return [self._at(k) for k in np.unique(chosen.clip(0, place.size - 1)).tolist()]


def cost_of(rule: str) -> float | None:
    """Return the cost of a missed positive in false alarms; None for another rule.

    >>> cost_of("cost:5"), cost_of("f1")
    (5.0, None)
    """
    name, _, value = rule.partition(":")
    return number("threshold", value, RULES, low=1e-9) if name == "cost" else None


def decision_threshold(rule: str) -> float:
    """Return the threshold to predict with where no labels are known; a cost assumes that probabilities are calibrated.

    >>> decision_threshold("cost:4"), decision_threshold("0.3")
    (0.2, 0.3)
    """
    if rule == "f1":
        raise refuse("threshold", rule, "a number or cost:5 without labels; forel evaluate --threshold f1 finds it")
    cost = cost_of(rule)
    return number("threshold", rule, RULES) if cost is None else 1 / (1 + cost)
