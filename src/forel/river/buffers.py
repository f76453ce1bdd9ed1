"""Scratch buffers for one row, as the kernels' functions for single rows take them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.river.model import Model
from forel.validation import refuse

__all__ = ["RowBuffers", "not_learned"]


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
    row : arrays of values and slots to reuse; None for new ones
    """

    __slots__ = (
        "arrays", "block", "capacity", "kernel", "lanes", "mixed", "model", "numbers", "others", "out", "places",
    )  # fmt: skip

    def __init__(self, model: Model, capacity: int, row: tuple[NDArray[Any], NDArray[np.int64]] | None = None) -> None:
        from forel.learner.kernels import dicts

        parts = model.parts
        self.model, self.capacity, self.lanes = model, capacity, parts[0]
        # A module, because tools that measure a model's memory would descend into functions of numba.
        self.kernel = getattr(self.lanes.kernel, "module", self.lanes.kernel)
        if row is None:
            row = np.zeros(capacity + dicts.FRONT, self.lanes.dtype), np.zeros(2 + capacity + dicts.CELLS, np.int64)
            row[0][2], row[1][-dicts.CELLS :] = self.lanes.shape, dicts.ADDRESSES
        self.numbers, self.places = row
        width = self.lanes.lanes
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
        # Most models have one part, and need no loop.
        self.block, self.others = blocks[0], tuple(zip(parts, blocks, strict=True))[1:]

    def for_model(self, model: Model) -> "RowBuffers":
        """Return the same row for another model."""
        return RowBuffers(model, self.capacity, (self.numbers, self.places))

    def learn(self, label: float, weight: float) -> None:
        """Learn from the current row in every part; labels of a part count from its first class."""
        rounds, width = self.lanes.rounds, self.model.width
        for k, (part, block) in enumerate(((self.lanes, self.block), *self.others)):
            if not self.kernel.learn_one(block, rounds, label - k * width):
                raise not_learned(label)
            part.rounds, part.weight = rounds + 1, part.weight + weight

    def predict(self) -> Any:
        """Return the margins of every lane for the current row, or of the mixture."""
        rounds = self.lanes.rounds
        self.kernel.predict_one(self.block, rounds)
        for _, block in self.others:
            self.kernel.predict_one(block, rounds)
        return self.out.copy() if self.mixed is None else self.mixed.predict()
