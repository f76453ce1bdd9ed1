"""Training in shards: several learners continue one state, each on different rows, and then merge their changes.

A round takes the next rows of the source, splits them into consecutive shards of equal size, learns each shard from the
common state, and merges. The model therefore depends on the number of shards, and not on the number of machines. Rounds
are short at first, because a shard does not know the other rows of its round, which matter most after few rows. On
streams that drift, the last rows matter most: each shard first learns the rows before its own, which only the shard
that they belong to counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from forel.learner.merge_states import StateSlice, learn_shard, merge, restore, slice_of, slots_of
from forel.learner.protocol import Learner
from forel.learner.rows import CoalescedRows
from forel.validation import whole

__all__ = ["Merging", "SequentialLearner", "Shard", "ShardLearners"]

SEEN_PER_ROW = 16  # rows learned before a round, at least, for each row of the round
WARM_UP = 128  # rows before its own that a shard learns first
MIN_SHARD_ROWS = 512  # of a round of a sixteenth of the rows seen, which bounds the number of shards


class Shard(NamedTuple):
    """The rows of one shard in a round: the arguments of :func:`forel.learner.merge_states.learn_shard`."""

    rows: CoalescedRows
    labels: NDArray[Any]
    importance: NDArray[Any]
    held_out: NDArray[np.bool_] | None
    again: bool
    offset: int
    warm_up: int = 0


class ShardLearners(Protocol):
    """Learns shards from the state of a model, in this process or on other machines."""

    def learn(self, model: Learner, shards: Sequence[Shard]) -> list[tuple[NDArray[Any], StateSlice]]:
        """Return the margins and the state of each shard; the model does not change."""
        ...

    def update(self, model: Learner, merged: StateSlice) -> None:
        """Continue from the merged state."""
        ...


@dataclass(frozen=True)
class SequentialLearner:
    """Learns shards one after the other, in this process."""

    def learn(self, model: Learner, shards: Sequence[Shard]) -> list[tuple[NDArray[Any], StateSlice]]:
        """Return the margins and the state of each shard."""
        return [learn_shard(model, *shard, verify=False) for shard in shards]

    def update(self, model: Learner, merged: StateSlice) -> None:
        """Do nothing: the model has the merged state already."""


@dataclass(frozen=True)
class Merging:
    """How a stream is divided into shards, as ``forel.train(..., merge=...)`` takes it.

    Parameters
    ----------
    every : the number of rows of each shard between two merges, after the shorter first rounds
    shards : the number of shards, on which the model depends
    learners : where shards are learned; in this process by default
    warm_up : the number of rows before its own that a shard learns first, for streams that drift; 0 for none

    >>> merging = Merging(every=1000, shards=8)
    >>> [merging.round_sizes(seen) for seen in (0, 20_000, 1_000_000)]
    [(512, 512), (1250, 625), (8000, 1000)]
    >>> [Merging(every=100, shards=8).round_sizes(seen) for seen in (0, 20_000, 1_000_000)]
    [(100, 100), (200, 100), (800, 100)]
    """

    every: int = 1000
    shards: int = 4
    learners: ShardLearners = field(default_factory=SequentialLearner)
    warm_up: int = WARM_UP

    def __post_init__(self) -> None:
        whole("merge", self.every, low=1)
        whole("shards", self.shards, low=1)
        whole("warm_up", self.warm_up)

    def round_sizes(self, seen: int) -> tuple[int, int]:
        """Return the number of rows of the next round and of each of its shards, after ``seen`` rows.

        The number of shards grows with the rows seen, also where ``every`` is small: many shards of few rows each
        disturb a model of few rows more than a few shards do.
        """
        room = max(seen // SEEN_PER_ROW, MIN_SHARD_ROWS)
        shards = min(self.shards, room // MIN_SHARD_ROWS)
        each = min(-(-room // shards), self.every)
        return shards * each, each

    def learn(
        self, model: Learner, rows: CoalescedRows, labels: Any, importance: Any, held_out: Any, again: bool, each: int
    ) -> NDArray[Any]:
        """Learn the rows of a round in shards of ``each`` rows, and return their margins before learning."""
        if rows.number <= each:
            margins = (model.relearn if again else model.progress)(rows, labels, importance, held_out)
            self.learners.update(model, slice_of(model, slots_of(model, rows)))
            return margins
        shards = []
        for start in range(0, rows.number, each):
            begin, stop = max(start - self.warm_up, 0), min(start + each, rows.number)
            some, first, last = slice(begin, stop), rows.indptr[begin], rows.indptr[stop]
            own = CoalescedRows(
                rows.indptr[begin : stop + 1] - first, rows.indices[first:last], rows.values[first:last]
            )
            own_held_out = None if held_out is None else held_out[some]
            shards.append(Shard(own, labels[some], importance[some], own_held_out, again, start, start - begin))
        found = self.learners.learn(model, shards)
        merged = merge(model, [state for _, state in found])
        restore(model, merged)
        self.learners.update(model, merged)
        return np.concatenate([margins for margins, _ in found])
