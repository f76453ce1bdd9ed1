"""Scratch buffers for one row, in the form that a kernel's functions for one row take them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lanes import Lanes
from forel.validation import refuse

__all__ = ["RowBuffers", "unlearned"]


def unlearned(label: float) -> ValueError:
    """Return the refusal of a row whose loss left the range of the model's numbers; it was not learned from."""
    return refuse("x", f"a row of label {label:g} whose loss is not finite", "smaller values; scale the features")


class RowBuffers:
    """A row's places and numbers, the margins, and the addresses of all that a kernel takes, for each part of a model.

    One call at a time uses them. They hold every array whose address is in a block, so that none goes away meanwhile.

    Parameters
    ----------
    parts : the states that learn from the row
    room : how many entries a row may have
    row : numbers and places to use, None for new ones
    """

    __slots__ = (
        "arrays", "block", "kernel", "lanes", "numbers", "others", "out", "parts", "places", "room",
    )  # fmt: skip

    def __init__(
        self, parts: tuple[Lanes, ...], room: int, row: tuple[NDArray[Any], NDArray[np.int64]] | None = None
    ) -> None:
        from forel.learner.kernels import dicts

        self.parts, self.room, self.lanes = parts, room, parts[0]
        # A module, because whoever counts a model's memory goes on into functions of numba's.
        self.kernel = getattr(self.lanes.kernel, "module", self.lanes.kernel)
        if row is None:
            row = np.zeros(room + dicts.FRONT, self.lanes.dtype), np.zeros(2 + room + dicts.CELLS, np.int64)
            row[0][2], row[1][-dicts.CELLS :] = self.lanes.shape, dicts.ADDRESSES
        self.numbers, self.places = row
        width = self.lanes.lanes
        self.out = np.zeros(width * len(parts), self.lanes.dtype)
        self.arrays: list[tuple[NDArray[Any], ...]] = []
        blocks = []
        for k, lanes in enumerate(parts):
            *state, _, key, parameters = lanes.arrays
            out = self.out[k * width : (k + 1) * width]
            held: tuple[NDArray[Any], ...] = (self.places, self.numbers, *state, parameters, lanes.totals, out)
            self.arrays.append(held)
            blocks.append(np.array([*(v for a in held for v in (a.ctypes.data, a.size)), key], np.int64))
        # Most models have one part, which is spared a loop.
        self.block, self.others = blocks[0], tuple(zip(parts, blocks, strict=True))[1:]

    def on(self, parts: tuple[Lanes, ...]) -> "RowBuffers":
        """Return the same row for other parts."""
        return RowBuffers(parts, self.room, (self.numbers, self.places))

    def learn(self, label: float, weight: float) -> None:
        """Learn from the row that was written, in every part; each has the labels of its own lanes from 0 on."""
        rounds, width = self.lanes.rounds, self.lanes.lanes
        for k, (part, block) in enumerate(((self.lanes, self.block), *self.others)):
            after = self.kernel.learn_one(block, rounds, label - k * width)
            if after < 0:
                raise unlearned(label)
            part.rounds, part.weight = after, part.weight + weight

    def predict(self) -> NDArray[Any]:
        """Return the margin of every lane for that row."""
        rounds = self.lanes.rounds
        self.kernel.predict_one(self.block, rounds)
        for _, block in self.others:
            self.kernel.predict_one(block, rounds)
        return self.out.copy()
