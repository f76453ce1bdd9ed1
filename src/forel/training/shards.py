"""Training in shards: several learners continue one state on rows of their own, until their changes are merged.

Rows are numbered in the order of the source. A round takes the next rows, gives each shard as many of them, one after
the other, and merges. So the model depends on the number of shards and not on how many machines learn them. Rounds are
short at first: what a shard does not know of the rows before costs the more, the fewer there were.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from forel.learner.merge_states import StateSlice, learn_shard, merge, restore
from forel.learner.protocol import Learner
from forel.learner.rows import CoalescedRows
from forel.validation import whole

__all__ = ["InTurn", "Merging", "Shard", "ShardLearners"]

UNKNOWN = 16  # of this many rows seen, one may be in the round, whose rows shards do not know of each other
FEWEST = 32  # rows of a shard


class Shard(NamedTuple):
    """The rows that one shard learns from in a round, as :func:`forel.learner.merge_states.learn_shard` takes them."""

    rows: CoalescedRows
    labels: NDArray[Any]
    importance: NDArray[Any]
    held_out: NDArray[np.bool_] | None
    again: bool
    offset: int


class ShardLearners(Protocol):
    """Anything that learns shards from the state of a model."""

    def learn(self, model: Learner, shards: Sequence[Shard]) -> list[tuple[NDArray[Any], StateSlice]]:
        """Return the margins and the state of each shard; the model stays as it is."""
        ...

    def update(self, model: Learner, merged: StateSlice) -> None:
        """Continue from the merged state."""
        ...


@dataclass(frozen=True)
class InTurn:
    """Learns shards one after the other, in this process."""

    def learn(self, model: Learner, shards: Sequence[Shard]) -> list[tuple[NDArray[Any], StateSlice]]:
        """Return the margins and the state of each shard."""
        return [learn_shard(model, *shard) for shard in shards]

    def update(self, model: Learner, merged: StateSlice) -> None:
        """Do nothing: the model has the merged state."""


@dataclass(frozen=True)
class Merging:
    """How a stream is divided into shards, as ``forel.train(..., merge=...)`` takes it.

    Parameters
    ----------
    every : number of rows of each shard between two merges, once enough rows were seen
    shards : number of shards; it changes the model, and the number of machines does not
    learners : learn the shards; in this process by default

    >>> merging = Merging(every=1000, shards=8)
    >>> [merging.round_of(seen) for seen in (0, 10_000, 1_000_000)]
    [(32, 32), (632, 79), (8000, 1000)]
    """

    every: int = 1000
    shards: int = 4
    learners: ShardLearners = field(default_factory=InTurn)

    def __post_init__(self) -> None:
        whole("merge", self.every, low=1)
        whole("shards", self.shards, low=1)

    def round_of(self, seen: int) -> tuple[int, int]:
        """Return the number of rows of the next round, and how many of them a shard has, given the rows before."""
        wanted = min(max(seen // UNKNOWN, FEWEST), self.shards * self.every)
        shards = min(self.shards, max(1, wanted // FEWEST))
        each = -(-wanted // shards)
        return shards * each, each

    def learn(
        self, model: Learner, rows: CoalescedRows, labels: Any, importance: Any, held_out: Any, again: bool, each: int
    ) -> NDArray[Any]:
        """Learn the rows of a round, ``each`` by one shard, and return their margins, as predicted before learning."""
        shards = []
        for start in range(0, rows.number, each):
            stop = min(start + each, rows.number)
            some, first, last = slice(start, stop), rows.indptr[start], rows.indptr[stop]
            own = CoalescedRows(
                rows.indptr[start : stop + 1] - first, rows.indices[first:last], rows.values[first:last]
            )
            shards.append(
                Shard(own, labels[some], importance[some], None if held_out is None else held_out[some], again, start)
            )
        if len(shards) == 1:
            found = [learn_shard(model, *shards[0])]
            merged = found[0][1]
        else:
            found = self.learners.learn(model, shards)
            merged = merge(model, [state for _, state in found])
        restore(model, merged)
        self.learners.update(model, merged)
        return np.concatenate([margins for margins, _ in found])
