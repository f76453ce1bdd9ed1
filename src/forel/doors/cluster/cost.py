"""How long training takes on a cluster: an estimate from a few constants that ``make bench-cluster`` measures."""

import math
from dataclasses import dataclass

from forel.training.shards import MIN_SHARD_ROWS, SEEN_PER_ROW, WARM_UP

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
    slice, merge : processor seconds to copy a coordinate out of a state, and to merge one of a shard
    row_bytes, coordinate_bytes : bytes of a parsed row, and of a coordinate's state
    features : features of a row
    distinct : share of distinct features among all features of a shard between two merges
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

        The shorter rounds at the beginning are counted as well.
        """
        coordinates = self.features * every * self.distinct
        shards_each = math.ceil(shards / learners)
        learn = shards_each * ((every + WARM_UP) * self.learn + 3 * coordinates * self.slice)
        merge = shards * coordinates * (self.merge + self.slice)
        changes = coordinates * self.coordinate_bytes * (shards + learners)
        sent = shards * every * self.row_bytes + changes
        rounds = rows / (shards * every) + self._short_rounds(shards, every)
        stages = {
            "read": rows * self.read / readers,
            "learn and merge": rounds * (learn + merge),
            "network": rounds * sent / self.network,
        }
        return Estimate(self.start + max(stages.values()), stages)

    @staticmethod
    def _short_rounds(shards: int, every: int) -> float:
        """Return about how many rounds there are before they have their full length."""
        # The number of rows seen grows by a factor of 1 + 1/SEEN_PER_ROW in each round until rounds are full.
        growth = max(shards * every / min(MIN_SHARD_ROWS, every), 1.0)
        return math.log(growth) / math.log1p(1 / SEEN_PER_ROW) + SEEN_PER_ROW
