"""Scratch buffers for one row, as the kernels' functions for single rows take them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.river.model import Model
from forel.validation import refuse

__all__ = ["RowBuffers", "not_learned"]

FRONT = 3  # numbers before the values of a row


def not_learned(label: float) -> ValueError:
    """Return the error for a row whose loss is out of range, and from which the model has not learned."""
    return refuse("x", f"a row of label {label:g} whose loss is not finite", "smaller values; scale the features")


class RowBuffers:
    """The slots and values of a row, its margins, and the addresses of a kernel's arguments for each part of a model.

    Not safe for concurrent use. A reference to every array whose address is in a block keeps it alive.

    Parameters
    ----------
    model : the parts that learn from the row, and how their margins are mixed
    capacity : the largest number of entries of a row
    """

    __slots__ = (
        "arrays",
        "blocks",
        "capacity",
        "clips",
        "kernel",
        "lanes",
        "mixed",
        "model",
        "numbers",
        "out",
        "places",
        "slots",
        "values",
    )

    def __init__(self, model: Model, capacity: int) -> None:
        parts = model.parts
        self.model, self.capacity, self.lanes = model, capacity, parts[0]
        # A module, because tools that measure a model's memory would descend into functions of numba.
        self.kernel = getattr(self.lanes.kernel, "module", self.lanes.kernel)
        # As forel.learner.kernels.one_row reads them: label, importance, shape and values; start, end and slots.
        self.numbers, self.places = np.zeros(FRONT + capacity, self.lanes.dtype), np.zeros(2 + capacity, np.int64)
        self.values: Any = self.numbers.data  # faster than arrays for few items
        self.slots: Any = self.places.data
        self.values[2] = self.lanes.shape
        self.clips = self.lanes.settings.rate == "scale_free"
        width = self.lanes.n_lanes
        self.out = np.zeros(width * len(parts), self.lanes.dtype)
        self.mixed = None if model.experts is None else model.experts.row(self.out)
        self.arrays: list[tuple[NDArray[Any], ...]] = []
        blocks = []
        for k, lanes in enumerate(parts):
            *state, _, key, parameters = lanes.arrays
            out = self.out[k * width : (k + 1) * width]
            arguments: tuple[NDArray[Any], ...] = (self.places, self.numbers, *state, parameters, lanes.totals, out)
            self.arrays.append(arguments)
            blocks.append(np.array([*(v for a in arguments for v in (a.ctypes.data, a.size)), key], np.int64))
        self.blocks = tuple(blocks)

    def fill(self, slots: Any, values: Any) -> None:
        """Write the slots and values of a row."""
        count = len(values)
        self.slots[1] = count
        self.slots[2 : 2 + count] = slots
        self.values[FRONT : FRONT + count] = values

    def learn(self, label: float, weight: float) -> None:
        """Learn from the current row in every part; labels of a part count from its first class."""
        rounds, width, self.values[1] = self.lanes.rounds, self.model.width, weight
        for k, (part, block) in enumerate(zip(self.model.parts, self.blocks, strict=True)):
            if not self.kernel.learn_one(block, rounds, label - k * width):
                raise not_learned(label)
            part.rounds, part.total_importance = rounds + 1, part.total_importance + weight
            if weight != 1:
                part.note(importance=np.array([abs(weight - 1)]))
        if self.mixed is not None:
            self.mixed.learn(label, weight)

    def predict(self) -> Any:
        """Return the margin of the current row, the margins of several lanes, or those of the mixture."""
        for part, block in zip(self.model.parts, self.blocks, strict=True):
            if self.clips:
                self._clip(part.scales)
            first = self.kernel.predict_one(block, self.lanes.rounds)
        if self.mixed is not None:
            return self.mixed.predict()
        return first if self.out.size == 1 else self.out.copy()

    def _clip(self, scales: NDArray[Any]) -> None:
        """Clip the values of the row, as predictions of a state with these scales do."""
        end = self.slots[1]
        values, limits = self.numbers[FRONT : FRONT + end], scales[self.places[2 : 2 + end]]
        if (np.abs(values) > limits).any():
            np.clip(values, -limits, limits, out=values)
