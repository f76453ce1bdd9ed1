"""How the features of a model are divided among shards, and where the shards are held."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from forel.learner.feature_shard import FeatureShard
from forel.validation import whole

__all__ = ["LocalShards", "ShardHolders", "Sharding"]

SEEN_PER_ROW = 16  # rows before a batch, at least, for each of its rows
CALL_ROWS = 1 << 13  # rows that shards receive at a time, at least

Function = Callable[..., Any]


class ShardHolders(Protocol):
    """Holds the shards of a state; functions are called with each shard and the arguments for it."""

    def start(self, shards: Sequence[Callable[[], FeatureShard]]) -> None:
        """Make all shards."""
        ...

    def change(self, function: Function, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function that changes shards; the arguments are those of each shard."""
        ...

    def read(self, function: Function, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function that changes nothing."""
        ...


class LocalShards:
    """Holds all shards in this process."""

    def __init__(self) -> None:
        self.shards: list[FeatureShard] = []

    def start(self, shards: Sequence[Callable[[], FeatureShard]]) -> None:
        """Make all shards."""
        self.shards = [make() for make in shards]

    def change(self, function: Function, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function that changes shards; the arguments are those of each shard."""
        return [function(shard, *own) for shard, own in zip(self.shards, arguments, strict=True)]

    read = change


@dataclass(frozen=True)
class Sharding:
    """How the features of a model are divided, as ``forel.train(..., feature_shards=...)`` takes it.

    Parameters
    ----------
    shards : the number of shards, on which the model depends in its last bits
    batch : the number of rows of a round, after the shorter first ones
    holders : where shards are held; in this process by default

    >>> sharding = Sharding()
    >>> [sharding.batch_size(seen) for seen in (0, 100, 10_000)]
    [1, 6, 256]
    """

    shards: int = 4
    batch: int = 256
    holders: Callable[[], ShardHolders] = field(default=LocalShards, compare=False)

    def __post_init__(self) -> None:
        whole("feature_shards", self.shards, low=1)
        whole("batch", self.batch, low=1)

    def batch_size(self, seen: int) -> int:
        """Return the number of rows of the next round, after ``seen`` rows."""
        return min(self.batch, max(seen // SEEN_PER_ROW, 1))

    def call_rows(self, seen: int) -> int:
        """Return the number of rows of the next whole rounds that shards receive together, after ``seen`` rows."""
        rows = 0
        while rows < CALL_ROWS:
            rows += self.batch_size(seen + rows)
        return rows
