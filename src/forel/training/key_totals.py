"""Totals of each key: its rows, and the losses of its model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.keyed import KeyedModels
from forel.training.key_summary import KeySummary
from forel.training.metrics import RowScores

__all__ = ["KeyTotals"]

ROWS, SUMS = "keys.rows", "keys.sums"


@dataclass
class KeyTotals:
    """Keys in the order of their first rows, their rows so far, and sums of rows, weights and losses.

    >>> totals = KeyTotals()
    >>> [numbers.tolist() for numbers in totals.number([b"NO", b"IT", b"NO"])]
    [[0, 1, 0], [0, 0, 1]]
    """

    codes: dict[bytes, int] = field(default_factory=dict)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 3, 0)))  # of rows learned from and held out

    def number(self, values: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the codes of keys, and the number of each row among those of its key, from 0."""
        known = self.codes
        codes = np.array([known.setdefault(value, len(known)) for value in values], np.int64)
        more = len(known) - self.rows.size
        self.rows, self.sums = np.pad(self.rows, (0, more)), np.pad(self.sums, ((0, 0), (0, 0), (0, more)))
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(known)))
        numbers = np.empty(codes.size, np.int64)
        numbers[order] = np.arange(codes.size) - starts[codes[order]] + self.rows[codes[order]]
        self.rows += np.bincount(codes, minlength=len(known))
        return codes, numbers

    def add(self, held_out: bool, codes: NDArray[np.int64], scores: RowScores) -> None:
        """Add the losses of rows, one at a time, so that sums do not depend on how rows are grouped."""
        for k, column in enumerate((np.ones(codes.size), scores.weights, scores.weights * scores.losses)):
            np.add.at(self.sums[int(held_out), k], codes, column)

    def next_pass(self) -> None:
        """Begin another pass: losses are those of the first pass, and of held-out rows those of the last."""
        self.rows[:], self.sums[1] = 0, 0.0

    def summaries(self, models: KeyedModels, held_out: bool) -> Iterator[KeySummary]:
        """Yield the summary of each key."""
        for key, code in zip(models, range(len(models)), strict=True):
            (rows, weight, loss), (other_rows, other_weight, other_loss) = self.sums[:, :, code].tolist()
            mean = loss / weight if weight else None
            own: dict[str, Any] = {}
            if models.certified and rows:
                learner = models.learner.models[code].sorted().learner
                floor = learner.loss_floor(loss=(mean or 0.0) * weight).tightest()
                own = {"floor": floor.proved, "certificate": floor.summary()}
            if held_out:
                own |= {"holdout_rows": int(other_rows)}
                own |= {"holdout_loss": other_loss / other_weight} if other_weight else {}
            yield KeySummary(key, int(rows), weight, mean, **own)

    def pack(self) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
        """Return the keys, a character for each byte, and the totals as arrays."""
        keys = [key.decode("latin-1") for key in self.codes]
        return keys, {ROWS: self.rows.astype(np.float64), SUMS: self.sums.reshape(6, -1)}

    @classmethod
    def unpack(cls, keys: Sequence[str], arrays: Mapping[str, NDArray[np.float64]]) -> "KeyTotals":
        """Return the totals that :meth:`pack` returned.

        >>> totals = KeyTotals()
        >>> _ = totals.number([b"NO", b"IT", b"NO"])
        >>> KeyTotals.unpack(*totals.pack()).rows
        array([2, 1])
        """
        codes = {key.encode("latin-1"): code for code, key in enumerate(keys)}
        return cls(codes, arrays[ROWS].astype(np.int64), np.array(arrays[SUMS]).reshape(2, 3, -1))
