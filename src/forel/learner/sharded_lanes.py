r"""A state whose features are divided among shards, in this process or on several machines.

Feature q belongs to shard q mod S, so that a state of more features than fit into the memory of one machine can be
learned. A round is a batch of B rows, $f_t(x) = \sum_{r \in B_t} \ell_r(x)$: all of its rows are predicted with $x_t$,
whose margins are sums over shards, and each shard takes one step along its part of the gradient. The survey's results
apply to these rounds as they are. Sums over shards are added in the order of shards, so that the result depends on
their number, and not on the number of machines. The first rounds have fewer rows: at most a sixteenth of those before.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.feature_shard import FeatureShard, check_shardable, divide
from forel.learner.lanes import BLOCK, Labels, Lanes, summed
from forel.learner.layout import SUMS, Layout
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.learner.sharded_table import Column, Part, ShardedTable
from forel.learner.sharding import Function, Sharding
from forel.learner.units import units_of
from forel.validation import whole

__all__ = ["ShardedLanes"]

SQUARES, CLIPPED, SCALED = 4, 5, SUMS  # sums of certificates that shards have


class ShardedLanes:
    """The state of several models whose features are divided, with the interface of :class:`Lanes`.

    Parameters
    ----------
    features, settings, lanes, dtype, certified, labels : as in :class:`forel.learner.lanes.Lanes`
    sharding : the number of shards, rows of a round, and where shards are held

    >>> from forel.learner.linear import Linear
    >>> model = Linear.from_lanes(ShardedLanes(1 << 20, Settings(alpha=1.0), 1, sharding=Sharding(3, batch=2)))
    >>> rows = Rows(np.arange(5), np.int32([7, 8, 7, 8]), np.ones(4, np.float32))
    >>> model.progress(rows, [1, 0, 1, 0]).ravel().round(2)
    array([ 0.  ,  0.33,  0.34, -0.14], dtype=float32)

    Survey: section 3.4
    """

    def __init__(
        self,
        features: int,
        settings: Settings,
        lanes: int,
        dtype: DTypeLike = np.float32,
        certified: bool = False,
        labels: Labels = "shared",
        sharding: Sharding | None = None,
    ) -> None:
        check_shardable(settings)
        self.sharding = Sharding() if sharding is None else sharding
        self.features, self.settings = whole("features", features, low=self.sharding.shards), settings
        # Computes losses and slopes, and has the sums of rows.
        self.row_lanes = Lanes(1, settings, lanes, dtype, certified, labels)
        self.lanes, self.dtype, self.certified, self.labels = lanes, self.row_lanes.dtype, certified, labels
        self.shape, self.parameters = self.row_lanes.shape, self.row_lanes.parameters
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first row."""
        self.row_lanes.reset()
        self.rounds, self.weight, self.seen_rows = 0, 0.0, 0
        count, common = self.sharding.shards, (self.settings, self.lanes, self.dtype, self.certified)
        self._holders = self.sharding.holders()
        self._holders.start([partial(FeatureShard, size, *common) for size in self._sizes])
        free = replace(self.settings, l1=0.0, l2=0.0)  # the bias has no penalty
        self._bias = FeatureShard(1, free, self.lanes, self.dtype, self.certified) if self.settings.bias else None
        self._none = [()] * count

    @property
    def _sizes(self) -> list[int]:
        """The number of features of each shard."""
        count = self.sharding.shards
        return [(self.features - s + count - 1) // count for s in range(count)]

    @property
    def layout(self) -> Layout:
        """Which sums certificates have, and the records of shards."""
        return self.row_lanes.layout

    @property
    def totals(self) -> NDArray[np.float64]:
        """The sums of rows; those of shards are 0."""
        return self.row_lanes.totals

    def learn(self, rows: Rows, labels: NDArray[Any], importance: NDArray[Any], out: NDArray[Any]) -> int:
        """Learn rows in batches; return the number of rows before the first loss that is not finite.

        Margins before learning are written to ``out``, unless it is empty. Rows of negative importance are held out.
        """
        learned = importance >= 0
        parts = divide(rows, self.sharding.shards, self.features)
        self._holders.change(FeatureShard.begin, [(part, learned) for part in parts])
        slopes: NDArray[Any] | None = None
        done = 0
        for start, stop in self._batches(rows.number):
            margins = self._exchange(slopes, start, stop, learned)
            given = labels[start:stop], importance[start:stop]
            count, slopes = self._losses(margins, *given)
            if len(out):
                out[start:stop] = margins
            used = importance[start : start + count][learned[start : start + count]]
            self.rounds, self.weight = self.rounds + used.size, summed(self.weight, used)
            done, slopes = start + count, slopes[learned[start:stop]]
            if count < stop - start:
                break
        self._holders.change(FeatureShard.finish, [(slopes,)] * self.sharding.shards)
        if self._bias is not None:
            self._bias.finish(slopes)
        self.seen_rows += done
        return done

    def rows_of_rounds(self) -> int:
        """Return the number of rows of the next whole rounds."""
        return self.sharding.call_rows(self.seen_rows)

    def _batches(self, rows: int) -> Iterator[tuple[int, int]]:
        start = 0
        while start < rows:
            stop = min(start + self.sharding.batch_size(self.seen_rows + start), rows)
            yield start, stop
            start = stop

    def _exchange(self, slopes: NDArray[Any] | None, start: int, stop: int, learned: NDArray[np.bool_]) -> NDArray[Any]:
        """Return the margins of a batch, after the step of the one before."""
        parts = self._holders.change(FeatureShard.exchange, [(slopes, start, stop)] * self.sharding.shards)
        if self._bias is not None:
            count = stop - start
            constant = Rows(np.arange(count + 1), np.zeros(count, np.int32), np.ones(count, self.dtype))
            self._bias.finish(slopes)
            self._bias.begin(constant, learned[start:stop])
            parts = [*parts, self._bias.exchange(None, 0, count)]
        return self._summed(parts)

    def _summed(self, parts: list[NDArray[np.float64]]) -> NDArray[Any]:
        """Return the sum of margins in the order of shards."""
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        with np.errstate(over="ignore"):
            return total.astype(self.dtype)

    def _losses(
        self, margins: NDArray[Any], labels: NDArray[Any], importance: NDArray[Any]
    ) -> tuple[int, NDArray[Any]]:
        """Return the number of rows before the first loss that is not finite, and the slopes of all rows."""
        rows, slopes = self.row_lanes, np.zeros((len(labels), self.lanes), self.dtype)
        count = rows.kernel.losses(
            margins.ravel(), labels, importance, *rows.arrays, rows.shape, rows.totals, slopes.ravel()
        )
        return int(count), slopes

    def predict(self, rows: Rows, out: NDArray[Any]) -> None:
        """Write the margin of every row and lane."""
        parts = divide(rows, self.sharding.shards, self.features)
        found = self._holders.read(FeatureShard.predict, [(part,) for part in parts])
        if self._bias is not None:
            found.append(
                np.repeat(self._bias.weights_at(np.zeros(1, np.int64)).astype(np.float64), rows.number, axis=0)
            )
        out[:] = self._summed(found)

    @property
    def all_sums(self) -> NDArray[np.float64]:
        """A copy of the running sums, of rows and of all shards."""
        sums = self.row_lanes.all_sums.copy()
        if self.certified:
            own, _ = self.shard_sums()
            for part in (SQUARES, SCALED):
                sums[part] += own[:, part].sum(axis=0)
            sums[CLIPPED] += own[:, CLIPPED].max(axis=0)
        return sums

    @property
    def sums(self) -> NDArray[np.float64]:
        """A copy of the running sums that every learner has."""
        return self.all_sums[:SUMS]

    @property
    def dual_sums(self) -> NDArray[np.float64]:
        """A copy of the further sums of certificates."""
        return self.all_sums[SUMS:]

    @property
    def clipped(self) -> NDArray[np.float64]:
        """The number of rows or rounds of each lane in which a number was clipped; 0 without a certificate."""
        rows: NDArray[np.float64] = self.sums[CLIPPED]
        return rows

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of records, by their names in files."""
        return {
            name: ShardedTable(self, name, table.dtype, table.shape[1:])
            for name, table in self._template.tables.items()
        }

    @property
    def _template(self) -> Lanes:
        """A state with the tables of a shard."""
        return FeatureShard(1, self.settings, self.lanes, self.dtype, self.certified).lanes

    @property
    def state(self) -> ShardedTable:
        """The records by coordinate, part and lane, the bias last."""
        table: ShardedTable = self.tables["state"]
        return table

    @property
    def scales(self) -> Any:
        """The scale of every coordinate for scale-free rates; one number for others."""
        return Column(self.tables["reach"]) if self.settings.rate == "scale_free" else self.row_lanes.scales

    @property
    def gradients(self) -> Any:
        """The sums of gradients g_{1:t} by coordinate, a column for each lane, in units."""
        return Part(self.state, self.layout.gradient_part)

    def units(self, coordinates: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the units in which z, n and g_{1:t} of coordinates are kept; 1 for rates without scales."""
        return units_of(self.scales[coordinates]) if self.settings.rate == "scale_free" else np.ones(1)

    def gathered(self, function: Function, coordinates: Any, row: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return what a function of a shard and coordinates returns for coordinates of all shards and the bias."""
        coordinates = np.asarray(coordinates, np.int64)
        out = np.zeros((coordinates.size, *row), dtype)
        places = self._places(coordinates)
        found = self._holders.read(function, [(coordinates[at] // self.sharding.shards,) for at in places])
        for at, rows in zip(places, found, strict=True):
            out[at] = rows
        if self._bias is not None:
            at = np.flatnonzero(coordinates == self.features)
            out[at] = function(self._bias, np.zeros(at.size, np.int64))
        return out

    def scatter(self, name: str, coordinates: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Set the rows of a table at coordinates."""
        places, count = self._places(coordinates), self.sharding.shards
        self._holders.change(FeatureShard.scatter, [(name, coordinates[at] // count, rows[at]) for at in places])
        at = np.flatnonzero(coordinates == self.features)
        if self._bias is not None and at.size:
            self._bias.scatter(name, np.zeros(at.size, np.int64), rows[at])

    def _places(self, coordinates: NDArray[np.int64]) -> list[NDArray[np.intp]]:
        """Return where the coordinates of each shard are."""
        owners = np.where(coordinates < self.features, coordinates % self.sharding.shards, -1)
        return [np.flatnonzero(owners == s) for s in range(self.sharding.shards)]

    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of coordinates, a column for each lane."""
        return self.gathered(FeatureShard.weights_at, coordinates, (self.lanes,), self.dtype)

    def weights(self, first: int, count: int) -> NDArray[Any]:
        """Return the weights of ``count`` coordinates from ``first`` on, a column for each lane."""
        return self.weights_at(np.arange(first, first + count))

    def blocks(self, first: int, count: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the weights of the coordinates that occurred, in blocks, each with its first coordinate."""
        touched = self.touched()
        touched = touched[(touched >= first) & (touched < first + count)]
        for start in range(0, touched.size, BLOCK):
            some = touched[start : start + BLOCK]
            yield int(some[0]), self.weights_at(some)

    def touched(self) -> NDArray[np.int64]:
        """Return the coordinates with any nonzero bit in their records, in order."""
        count, found = self.sharding.shards, self._holders.read(FeatureShard.touched, self._none)
        owned = (own * count + s for s, own in enumerate(found))
        bias = [self.features] if self._bias is not None and self._bias.touched().size else []
        return np.sort(np.concatenate([*owned, np.array(bias, np.int64)]), kind="stable")

    @property
    def seen(self) -> NDArray[np.int64]:
        """The coordinates whose records are not zero, in order: those of the features that occurred in rows."""
        return self.touched()

    def take(self, other: "ShardedLanes", lanes: slice) -> None:
        """Copy some lanes of another state with the same features, coordinates that occurred only."""
        touched = other.touched()
        for name, table in self.tables.items():
            for start in range(0, touched.size, BLOCK):
                some = touched[start : start + BLOCK]
                rows = other.tables[name][some]
                table[some] = rows[..., lanes] if name == "state" else rows
        sums, rounds = other.shard_sums()
        self.row_lanes.all_sums[:] = other.row_lanes.all_sums[: len(self.row_lanes.all_sums), lanes]
        self.restore(sums[:, :, lanes], rounds, other.seen_rows)
        self.rounds, self.weight = other.rounds, other.weight

    def copied(self) -> "ShardedLanes":
        """Return a copy, with shards of its own."""
        new = copy(self)
        new.row_lanes = self.row_lanes.like()
        new.reset()
        new.take(self, slice(None))
        return new

    def shard_sums(self) -> tuple[NDArray[np.float64], int]:
        """Return the sums of certificates of all shards, that of the bias last, and the number of rounds."""
        found = self._holders.read(FeatureShard.sums, self._none)
        found = found if self._bias is None else [*found, self._bias.sums()]
        return np.array([sums for sums, _ in found]), found[0][1]

    def restore(self, sums: NDArray[np.float64], rounds: int, seen_rows: int) -> None:
        """Set the sums of certificates of all shards, and the numbers of rounds and of rows."""
        size = len(self._template.all_sums)
        own = [(each[:size], rounds) for each in sums]
        self._holders.change(FeatureShard.restore, own[: self.sharding.shards])
        if self._bias is not None:
            self._bias.restore(*own[-1])
        self.seen_rows = seen_rows
