"""One row, learned or predicted by the kernels' functions for single rows, which take addresses of buffers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner
from forel.learner.mixers import Mixers
from forel.learner.mixture import Mixture
from forel.learner.rows import Examples, Rows
from forel.losses.margin import Mixing
from forel.validation import refuse

__all__ = ["OneRow", "not_learned", "unread", "used_lanes"]

FRONT = 3  # numbers before the values of a row


def not_learned(label: float) -> ValueError:
    """Return the error for a row whose loss is out of range, and from which the model has not learned."""
    return refuse("x", f"a row of label {label:g} whose loss is not finite", "smaller values; scale the features")


def used_lanes(learner: Learner) -> int:
    """Return the number of lanes, without those that have no class yet."""
    return learner.settings.n_settings * (learner.classes or 1)


def unread(labels: NDArray[Any], weight: NDArray[Any]) -> Examples:
    """Return labels and importances of rows that only the models of settings read."""
    rows = Rows(np.zeros(len(labels) + 1, np.int64), np.empty(0), np.empty(0))
    return Examples(rows, labels.astype(np.float64), weight.astype(np.float64))


class OneRow:
    """The slots and values of a row, its margins, and the addresses of a kernel's arguments.

    Not safe for concurrent use. ``arrays`` keeps the arrays alive whose addresses are in ``block``.

    Parameters
    ----------
    learner : which learns from the row
    capacity : the largest number of entries of a row
    """

    __slots__ = (
        "arrays", "block", "capacity", "clips", "kernel", "learner", "margins", "mixed", "numbers", "out", "places",
        "slots", "values",
    )  # fmt: skip

    def __init__(self, learner: Learner, capacity: int) -> None:
        state = learner.state
        self.learner, self.capacity = learner, capacity
        # A module, because tools that measure a model's memory would descend into functions of numba.
        self.kernel = state.kernel
        # As forel.learner.kernels.loops reads them: label, importance, shape and values; start, end and slots.
        self.numbers, self.places = np.zeros(FRONT + capacity, state.dtype), np.zeros(2 + capacity, np.int64)
        self.values: Any = self.numbers.data  # faster than arrays for few items
        self.slots: Any = self.places.data
        self.values[2] = state.shape
        self.clips = state.settings.rate == "scale_free"
        self.out = np.zeros(state.n_lanes, state.dtype)
        *tables, _, key, parameters = state.arrays
        self.arrays: Any = (self.places, self.numbers, *tables, parameters, state.totals, self.out)
        self.block = np.array([*(v for a in self.arrays for v in (a.ctypes.data, a.size)), key], np.int64)
        self.margins, mixture = self.out[None, : used_lanes(learner)], learner.mixture
        self.mixed: BayesRow | None = None
        if mixture is not None and mixture.rule is Mixing.BAYES and learner.classes is None:
            self.mixed = BayesRow(mixture, self.margins[0])

    def fill(self, slots: Any, values: Any) -> None:
        """Write the slots and values of a row."""
        count = len(values)
        self.slots[1] = count
        self.slots[2 : 2 + count] = slots
        self.values[FRONT : FRONT + count] = values

    def learn(self, label: float, weight: float) -> None:
        """Learn from the current row."""
        state, self.values[1] = self.learner.state, weight
        if not self.kernel.learn_one(self.block, state.rounds, label):
            raise not_learned(label)
        state.rounds, state.total_importance = state.rounds + 1, state.total_importance + weight
        if weight != 1:
            state.note(importance=np.array([abs(weight - 1)]))
        if self.mixed is not None:
            self.mixed.learn(label, weight)
        elif self.learner.mixture is not None:
            self.learner.mixture.learn(unread(np.array([label]), np.array([weight])), self.margins)

    def predict(self) -> Any:
        """Return the margin of the current row, the margins of several lanes, or those of the mixture."""
        state = self.learner.state
        if self.clips:
            self._clip(state.scales)
        first = self.kernel.predict_one(self.block, state.rounds)
        if self.mixed is not None:
            return self.mixed.predict()
        if self.learner.mixture is None:
            return first if self.out.size == 1 else self.out.copy()
        found = self.learner.mixture.mixed(self.margins)[0]
        return found.item() if found.size == 1 else found

    def _clip(self, scales: NDArray[Any]) -> None:
        """Clip the values of the row, as predictions of a state with these scales do."""
        end = self.slots[1]
        values, limits = self.numbers[FRONT : FRONT + end], scales[self.places[2 : 2 + end]]
        if (np.abs(values) > limits).any():
            np.clip(values, -limits, limits, out=values)


class BayesRow:
    """Mixes the margins of one row of two classes by exponential weights, in one compiled call."""

    __slots__ = ("answer", "given", "ledger", "margins", "mix", "out", "scratch")

    def __init__(self, mixture: Mixture, out: NDArray[Any]) -> None:
        from forel.learner.kernels.kernel import routine

        self.out, self.ledger = out, mixture.ledger
        self.margins, self.given, self.answer = np.zeros((1, out.size)), np.zeros(2), np.zeros(1)
        mixers = mixture.mixers or Mixers((), out.size, Mixing.BAYES)
        count = len(mixers.names)
        margins = np.zeros((1, count)), np.zeros((1, out.size + count))
        self.scratch = mixers.parameters, mixers.states, self.ledger.array, *margins
        self.mix = routine("bayes", "mix_row")

    def learn(self, label: float, weight: float) -> None:
        """Add the losses of the row to the ledger."""
        self._mixed(label, weight)
        self.ledger.rows += 1
        self.ledger.total_importance += weight

    def predict(self) -> Any:
        """Return the mixture's margin."""
        return self._mixed(0.0, -1.0)

    def _mixed(self, label: float, weight: float) -> float:
        self.margins[0] = self.out
        self.given[0], self.given[1] = label, weight
        self.mix(self.margins, self.given, *self.scratch, self.answer)
        return float(self.answer[0])
