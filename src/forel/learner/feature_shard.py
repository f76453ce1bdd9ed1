"""A shard of the features of a model, which learns batches of rows as one round each.

The margin of a row is the sum of the margins of all shards. A round is a batch: its loss is the sum of the losses of
its rows, whose gradient is known once all margins are. A shard returns the margins of its features for all rows of a
batch, and takes one step along the gradient of the batch when it receives the slopes of the rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.lanes import Lanes
from forel.learner.rows import Rows, index_dtype
from forel.learner.settings import Settings
from forel.learner.units import units_of
from forel.losses import Squared
from forel.validation import refuse

__all__ = ["FeatureShard", "check_shardable", "divide"]

GROUP = 64  # coordinates that are marked together when one of them occurs
SEARCHED = 1 << 12  # groups that are searched at a time


def check_shardable(settings: Settings) -> None:
    """Raise for settings whose features cannot be divided among shards.

    >>> check_shardable(Settings(algorithm="mirror"))
    Traceback (most recent call last):
    ValueError: feature_shards: got 'algorithm=mirror', expected proximal or centered
    """
    if settings.filters:
        expected = "settings without filters, such as one setting (--alpha 0.1) or a grid (--lanes 8)"
        raise refuse("feature_shards", "settings with filters, which need the variances of whole rows", expected)
    if settings.rule not in ("proximal", "centered"):
        raise refuse("feature_shards", f"algorithm={settings.rule}", "proximal or centered")
    if settings.rate == "root" or settings.penalty_weight != "once":
        got = f"rate={settings.rate}, penalty_weight={settings.penalty_weight}"
        expected = (
            "rate adagrad, scale_free or constant and penalty_weight once; others count rounds, which are batches"
        )
        raise refuse("feature_shards", got, expected)


def divide(rows: Rows, shards: int, features: int) -> list[Rows]:
    """Divide the entries of rows: feature q belongs to shard q mod S, as its feature q div S.

    >>> rows = Rows(np.array([0, 2, 3]), np.int32([4, 1, 5]), np.float32([1, 2, 3]))
    >>> [part.indices.tolist() for part in divide(rows, 2, 6)], [part.indptr.tolist() for part in divide(rows, 2, 6)]
    ([[2], [0, 2]], [[0, 1, 1], [0, 1, 2]])
    """
    from forel.learner.kernels.kernel import routine

    size, kind = int(rows.indptr[-1] - rows.indptr[0]), index_dtype(-(-features // shards))
    ends = np.zeros((shards, rows.number + 1), np.int64)
    indices, values = np.empty(size, kind), np.empty(size, rows.values.dtype)
    routine("batches", "divide_rows")(rows.indptr, rows.indices, rows.values, shards, ends, indices, values)
    stops = np.cumsum(ends[:, -1]).tolist()
    return [Rows(ends[s], indices[a:b], values[a:b]) for s, (a, b) in enumerate(zip([0, *stops], stops, strict=False))]


class FeatureShard:
    """The state of some features of all lanes, without a bias.

    Parameters
    ----------
    features : the number of its features
    settings : those of the model; its loss is not used
    lanes, dtype, certified : as in :class:`forel.learner.lanes.Lanes`

    >>> shard = FeatureShard(2, Settings(alpha=1.0), 1, np.dtype(np.float64))
    >>> shard.begin(Rows(np.array([0, 1, 3]), np.int32([0, 0, 1]), np.array([1.0, 1.0, 2.0])), np.ones(2, bool))
    >>> shard.exchange(None, 0, 2).ravel()
    array([0., 0.])
    >>> shard.finish(np.array([[0.5], [-0.5]]))
    >>> shard.lanes.weights_at(np.array([0, 1])).ravel()
    array([0. , 0.5])
    """

    def __init__(
        self, features: int, settings: Settings, lanes: int, dtype: np.dtype[Any], certified: bool = False
    ) -> None:
        # One compiled kernel for all losses, which steps along gradients do not use.
        own = replace(settings, loss=Squared(), bias=False)
        self.lanes = Lanes(features, own, lanes, dtype, certified)
        self._rows = Rows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, dtype))
        self._learned = np.ones(0, np.bool_)
        self._groups = np.zeros(-(-features // GROUP), np.bool_)  # groups of coordinates of which some occurred
        self._batch: tuple[Rows, NDArray[Any], NDArray[np.int64]] | None = None

    @property
    def nbytes(self) -> int:
        """The memory of the records that are in use, in bytes."""
        return self.lanes.layout.nbytes(self.touched().size)

    def __getstate__(self) -> dict[str, Any]:
        """Return the records that are in use, and everything else."""
        lanes, touched = self.lanes, self.touched()
        return {
            "new": (lanes.features, lanes.settings, lanes.lanes, lanes.dtype, lanes.certified),
            "touched": touched,
            "tables": {name: table[touched] for name, table in lanes.tables.items()},
            "sums": self.sums(),
            "rows": (self._rows, self._learned, self._batch),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*state["new"])  # type: ignore[misc]
        for name, rows in state["tables"].items():
            self.scatter(name, state["touched"], rows)
        self.restore(*state["sums"])
        # Copies: arrays that were sent between processes may be read-only, for which kernels are not compiled.
        rows, learned, batch = state["rows"]
        self._rows, self._learned = Rows(*map(np.array, rows)), learned
        if batch is not None:
            self._batch = Rows(*map(np.array, batch[0])), np.array(batch[1]), np.array(batch[2])

    def begin(self, rows: Rows, learned: NDArray[np.bool_]) -> None:
        """Receive the entries of the next rows in this shard, and whether each row is learned or only predicted."""
        self._rows, self._learned = rows, learned

    def exchange(self, slopes: NDArray[Any] | None, start: int, stop: int) -> NDArray[np.float64]:
        """Learn the last batch from the slopes of its rows, None if there is none; return the margins of the next one.

        Parameters
        ----------
        slopes : by row that is learned, and lane
        start, stop : the next batch, among the rows that were received last
        """
        self.finish(slopes)
        rows, learned = self._rows, self._learned[start:stop]
        first, last = rows.indptr[start], rows.indptr[stop]
        batch = Rows(rows.indptr[start : stop + 1] - first, rows.indices[first:last], rows.values[first:last])
        if learned.all():
            return self._margins(batch)
        # Scales of scale-free rates are those of rows that are learned, and of one row that is only predicted.
        out = np.empty((stop - start, self.lanes.lanes))
        out[learned] = self._margins(batch.take(learned))
        out[~learned] = self.predict(batch.take(~learned))
        return out

    def _margins(self, rows: Rows) -> NDArray[np.float64]:
        """Return the margins of a batch, and keep it until its slopes are known."""
        from forel.learner.kernels.kernel import routine

        lanes, size = self.lanes, rows.indices.size
        table = np.full(1 << (2 * size + 1).bit_length(), -1, np.int64)
        columns, places = np.empty_like(rows.indices), np.empty(size, np.int64)
        count = routine("batches", "distinct")(rows.indices, table, columns, places)
        columns = columns[:count]
        if lanes.settings.rate == "scale_free":
            sizes = np.zeros(count, lanes.dtype)
            routine("batches", "largest")(rows.values, places, sizes)
            raise_scales(lanes, columns, sizes)
        self._groups[columns // GROUP] = True
        out = np.zeros((rows.number, lanes.lanes))
        routine("batches", "add_margins")(rows.indptr, rows.values, places, lanes.weights_at(columns), out)
        self._batch = rows, columns, places
        return out

    def finish(self, slopes: NDArray[Any] | None) -> None:
        """Take the step of the last batch, one round, given the slopes of its rows; do nothing for None."""
        if slopes is None or self._batch is None:
            return
        from forel.learner.kernels.kernel import routine

        (rows, columns, places), lanes = self._batch, self.lanes
        gradients = np.zeros((columns.size, lanes.lanes))
        routine("batches", "add_gradients")(rows.indptr, rows.values, places, slopes, gradients)
        with np.errstate(over="ignore"):  # the kernel clips and counts gradients that are out of range
            narrow = gradients.astype(lanes.dtype).ravel()
        ends = np.array([0, columns.size], np.int64)
        lanes.rounds = int(lanes.kernel.feed(ends, columns, narrow, *lanes.arrays, columns.size + 1, lanes.totals))
        self._batch = None

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Return the margins of rows that do not change the state."""
        out = np.empty((rows.number, self.lanes.lanes), self.lanes.dtype)
        self.lanes.predict(rows, out)
        return out.astype(np.float64)

    def gather(self, name: str, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of one of the state's tables at some coordinates."""
        found: NDArray[Any] = self.lanes.tables[name][coordinates]
        return found

    def scatter(self, name: str, coordinates: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Set the rows of one of the state's tables at some coordinates."""
        self._groups[coordinates // GROUP] = True
        self.lanes.tables[name][coordinates] = rows

    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of coordinates, a column for each lane."""
        return self.lanes.weights_at(coordinates)

    def touched(self) -> NDArray[np.int64]:
        """Return the coordinates with any number in their records, in order.

        Only groups of coordinates that occurred are searched: reading memory that was never written takes as long as
        committing it.
        """
        groups, tables = np.flatnonzero(self._groups), list(self.lanes.tables.values())
        found = [np.empty(0, np.int64)]
        for start in range(0, groups.size, SEARCHED):
            some = (groups[start : start + SEARCHED, None] * GROUP + np.arange(GROUP)).ravel()
            some = some[: np.searchsorted(some, self.lanes.features)]
            used = [table[some].reshape(some.size, -1).any(axis=1) for table in tables]
            found.append(some[np.logical_or.reduce(used)])
        return np.concatenate(found)

    def sums(self) -> tuple[NDArray[np.float64], int]:
        """Return the sums of certificates, and the number of rounds."""
        return self.lanes.all_sums.copy(), self.lanes.rounds

    def restore(self, sums: NDArray[np.float64], rounds: int) -> None:
        """Set the sums of certificates and the number of rounds."""
        self.lanes.all_sums[:], self.lanes.rounds = sums, rounds


def raise_scales(lanes: Lanes, coordinates: NDArray[Any], sizes: NDArray[Any]) -> None:
    """Raise the scales of coordinates to the sizes of values, and convert records to the units of raised scales."""
    before = lanes.scales[coordinates]
    after = np.maximum(before, sizes)
    lanes.scales[coordinates] = after
    change = np.where(before > 0, units_of(before) / units_of(after), 1.0)
    other = np.flatnonzero(change != 1)
    if other.size:
        some, factor = coordinates[other], change[other].astype(lanes.dtype)[:, None]
        records = lanes.state[some]
        for part in range(records.shape[1]):
            records[:, part] *= factor * factor if part == 1 else factor
        lanes.state[some] = records
