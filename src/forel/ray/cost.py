"""How long training takes on a cluster: an estimate from a few constants that ``make bench-cluster`` measures."""

import math
from dataclasses import dataclass

from forel.learner.sharding import Sharding
from forel.training.shards import WARM_UP, Merging

__all__ = ["Costs", "Estimate"]


@dataclass(frozen=True)
class Estimate:
    """Seconds of a run, and what they are spent on: the longest of stages that run at the same time."""

    seconds: float
    stages: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """The stage that takes longest."""
        return max(self.stages, key=self.stages.__getitem__)


@dataclass(frozen=True)
class Costs:
    """Constants of a kind of rows, and of a cluster.

    Parameters
    ----------
    read, learn : processor seconds of reading and of learning one row
    slice, merge : processor seconds to copy a coordinate out of a state or into it, and to merge one of a shard
    row_bytes, coordinate_bytes : bytes of a parsed row, and of a coordinate's state
    features : features of a row
    distinct : share of distinct features among all features of a shard between two merges
    entry : processor seconds of a feature of a row, on the shard that has it
    divide : processor seconds of dividing a row among shards of features, and of its loss
    round : seconds of a round of shards of features, for calls over the network
    network : bytes per second to and from one machine
    start : seconds to start Ray and its workers

    >>> costs = Costs(read=4e-6, learn=1e-6, slice=1e-7, merge=1e-7, row_bytes=330, coordinate_bytes=200, features=39)
    >>> costs.exact(10**9, readers=4).seconds  # one process learns 10^6 rows a second
    1010.0
    >>> costs.exact(10**9, readers=2).bottleneck
    'read'
    """

    read: float
    learn: float
    slice: float
    merge: float
    row_bytes: float
    coordinate_bytes: float
    features: float
    distinct: float = 0.3
    entry: float = 4e-8
    divide: float = 6e-7
    round: float = 3e-3
    network: float = 1.25e9
    start: float = 10.0

    def alone(self, rows: int) -> Estimate:
        """Return the time on one machine, where one thread reads and another learns."""
        stages = {"read": rows * self.read, "learn": rows * self.learn}
        return Estimate(max(stages.values()), stages)

    def exact(self, rows: int, readers: int) -> Estimate:
        """Return the time of files read on a cluster and learned in order by one process."""
        stages = {
            "read": rows * self.read / readers,
            "learn": rows * self.learn,
            "network": rows * self.row_bytes / self.network,
        }
        return Estimate(self.start + max(stages.values()), stages)

    def merged(self, rows: int, readers: int, learners: int, shards: int, every: int) -> Estimate:
        """Return the time of shards on ``learners`` machines, whose changes one process merges after each round.

        The rounds at the beginning, of fewer or shorter shards, are those of :class:`forel.training.shards.Merging`.
        """
        merging, seen = Merging(every, shards), 0
        stages = {"read": rows * self.read / readers, "learn and merge": 0.0, "network": 0.0}
        while seen < rows:
            size, each = merging.round_sizes(seen)
            rounds = max((rows - seen) / size, 1.0) if size == shards * every else 1.0
            work, sent = self._round(size, each, learners)
            stages["learn and merge"] += rounds * work
            stages["network"] += rounds * sent / self.network
            seen += math.ceil(rounds * size)
        return Estimate(self.start + max(stages.values()), stages)

    def sharded(self, rows: int, readers: int, shards: int, batch: int) -> Estimate:
        """Return the time of features divided among machines, a shard each, that learn batches of rows.

        >>> costs = Costs(read=4e-6, learn=1e-6, slice=0, merge=0, row_bytes=330, coordinate_bytes=16, features=39)
        >>> costs.sharded(10**9, readers=64, shards=64, batch=256).bottleneck
        'rounds'
        """
        sharding, seen, rounds = Sharding(shards, batch), 0, 0.0
        while sharding.batch_size(seen) < batch and seen < rows:
            seen, rounds = seen + sharding.batch_size(seen), rounds + 1
        rounds += max(rows - seen, 0) / batch
        work = rows * self.features * self.entry / shards
        stages = {
            "read": rows * self.read / readers,
            "rounds": rounds * self.round + work + rows * self.divide,
            "network": 2 * rows * self.row_bytes / self.network,  # to the process that divides rows, and to shards
        }
        return Estimate(self.start + max(stages.values()), stages)

    def _round(self, size: int, each: int, learners: int) -> tuple[float, float]:
        """Return the seconds of a round in shards of ``each`` rows, and the bytes to and from the one that merges."""
        shards, coordinates = math.ceil(size / each), self.features * each * self.distinct
        changes = coordinates * self.coordinate_bytes
        update = 0.0 if learners == 1 else shards * coordinates * self.slice  # of copies of the model
        if shards == 1:
            return size * self.learn + coordinates * self.slice + update, changes
        learn = math.ceil(shards / learners) * ((each + WARM_UP) * self.learn + 3 * coordinates * self.slice)
        merge = shards * coordinates * self.merge
        # Changes of shards are received and merged changes sent; machines copy these from one another.
        sent = size * self.row_bytes + 2 * shards * changes
        return learn + merge + update, sent
