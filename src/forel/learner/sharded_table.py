"""Tables of a state whose rows are on several shards: some rows can be read or set."""

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.feature_shard import FeatureShard

__all__ = ["Column", "Part", "ShardedTable"]


class ShardedState(Protocol):
    """A state whose features are divided among shards."""

    @property
    def features(self) -> int:
        """The number of features; one more coordinate is the bias."""
        ...

    def gathered(self, function: Any, coordinates: Any, row: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return what a function of a shard and coordinates returns for coordinates of all shards and the bias."""
        ...

    def scatter(self, name: str, coordinates: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Set the rows of a table at coordinates."""
        ...


class ShardedTable:
    """A table of the state, a row for each coordinate, of which some rows can be read or set."""

    def __init__(self, state: ShardedState, name: str, dtype: np.dtype[Any], row: tuple[int, ...]) -> None:
        self._state, self._name, self.dtype = state, name, dtype
        self.shape = (state.features + 1, *row)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """The number of numbers."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """The bytes of a table of all coordinates."""
        return self.size * self.dtype.itemsize

    def __getitem__(self, coordinates: NDArray[np.int64] | slice) -> NDArray[Any]:
        if isinstance(coordinates, slice):
            coordinates = np.arange(*coordinates.indices(len(self)))
        return self._state.gathered(partial(_gather, self._name), coordinates, self.shape[1:], self.dtype)

    def __setitem__(self, coordinates: NDArray[np.int64], rows: NDArray[Any]) -> None:
        self._state.scatter(self._name, np.asarray(coordinates, np.int64), np.asarray(rows))


class Column:
    """The only column of a table."""

    def __init__(self, table: ShardedTable) -> None:
        self._table, self.size = table, len(table)

    def __getitem__(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        return self._table[coordinates][:, 0]


class Part:
    """One part of records."""

    def __init__(self, table: ShardedTable, part: int) -> None:
        self._table, self._part = table, part

    def __getitem__(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        return self._table[coordinates][:, self._part]


def _gather(name: str, shard: FeatureShard, coordinates: NDArray[np.int64]) -> NDArray[Any]:
    return shard.gather(name, coordinates)
