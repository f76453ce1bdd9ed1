"""Experts on curves and pairs of columns: the settings that plain features have, and filters with all covariances.

All are linear in the features of :class:`forel.data.features.curves.Curves`. Filters learn while multiplications are
left, of which every row adds some: from which rows they learn depends on counts. They learn at the same time, each on a
thread, from the same rows: none depends on another.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from copy import copy
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.features.curves import Curves
from forel.learner.experts import Inputs
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.learner.state import State
from forel.validation import refuse

__all__ = ["FILTERS", "CurveExperts", "CurveFilter", "pack_state", "unpack_state"]

Array = NDArray[np.float64]
CHUNK = 256  # rows that are expanded at a time
LIMITS = 5e9, 5e3, 0.1  # multiplications of a filter at the start, more for each row, and the threshold of information
PENDING = 8  # rows that are subtracted from covariances at a time
CONSTANT = 100.0  # prior variance of the constant


class CurveFilter(NamedTuple):
    """A Gaussian filter with all covariances of curves and pairs.

    Parameters
    ----------
    curves, pairs : prior variances of weights; for squared loss relative to that of residuals. A filter with a variance
        of 0 has no such features: without any it is the mean of the labels, for tables that say nothing about them

    >>> CurveFilter(10.0, 1.0).name, CurveFilter(0.0, 0.0).name
    ('curve filter, variance=10, pairs=1', 'base rate')
    """

    curves: float
    pairs: float

    @property
    def name(self) -> str:
        """The name in tables of experts."""
        return f"curve filter, variance={self.curves:g}, pairs={self.pairs:g}" if self.curves else "base rate"


FILTERS = CurveFilter(3.0, 3.0), CurveFilter(0.1, 0.01), CurveFilter(3.0, 0.0), CurveFilter(0.0, 0.0)


class FilterState(NamedTuple):
    """The state of a filter: arguments of :func:`forel.learner.kernels.curve_filter.learn`."""

    counts: Array
    mean: Array
    covariance: NDArray[Any]
    vectors: NDArray[Any]

    @classmethod
    def of(cls, given: CurveFilter, curves: Curves, dtype: Any) -> "FilterState":
        """Return the state before the first row."""
        width = curves.width if given.pairs else curves.single if given.curves else 1
        prior = np.full(width, given.pairs)
        prior[1 : curves.single], prior[0] = given.curves, CONSTANT
        return cls(np.zeros(4), np.zeros(width), np.diag(prior).astype(dtype), np.zeros((PENDING, width), dtype))

    def pack(self) -> list[Array]:
        """Return the state as arrays, with the lower triangle of covariances."""
        lower = self.covariance[np.tril_indices(self.mean.size)]
        return [np.asarray(one, np.float64).ravel() for one in (self.counts, self.mean, self.vectors, lower)]

    def unpack(self, array: Array) -> Array:
        """Set the state to what an array begins with, and return the rest of it."""
        rows, columns = np.tril_indices(self.mean.size)
        sizes = self.counts.size, self.mean.size, self.vectors.size, rows.size
        if array.size < sum(sizes):
            raise refuse(CurveExperts.key, array.size, "the length of a packed state")
        self.counts[:], self.mean[:], vectors, lower, rest = np.split(array, np.cumsum(sizes))
        self.vectors[:] = vectors.reshape(self.vectors.shape)
        self.covariance[rows, columns] = self.covariance[columns, rows] = lower
        return rest


class CurveExperts:
    """The states of all experts on curves and pairs.

    Parameters
    ----------
    curves : the features
    settings : of the experts with rates, and diagonal filters, which have no pairs
    logistic : whether the loss is log-loss, and not half the squared error
    dtype : of their state
    filters : prior variances of each filter with covariances

    >>> rows = Rows(np.arange(5), np.full(4, 7), np.float32([0, 1, 2, 3]))
    >>> experts = CurveExperts(Curves.of(rows, [7]), Settings("squared", alpha=(1.0, 2.0)), False)
    >>> experts.learn(Examples(rows, np.array([0.0, 1.0, 4.0, 9.0]), np.ones(4)), None)[:, 2:].round(2).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.5..., 0.5, 0.5], [2.21, 1.74, 1.66]]
    """

    kind: ClassVar[str] = "curve"
    key: ClassVar[str] = "curve_experts"
    stacked: ClassVar[bool] = False

    def __init__(
        self,
        curves: Curves,
        settings: Settings,
        logistic: bool,
        dtype: Any = np.float32,
        filters: tuple[CurveFilter, ...] = FILTERS,
    ) -> None:
        self.curves, self.settings, self.logistic = curves, settings, logistic
        self.filters = tuple(one for one in filters if one.pairs or not one.curves or curves.width > curves.single)
        self.state = State(curves.features, settings, settings.n_settings, dtype)
        if settings.rate == "scale_free":
            self.state.scales[: curves.width] = 1  # no value of curves and pairs is larger
        self.filtered = tuple(FilterState.of(one, curves, self.state.dtype) for one in self.filters)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts."""
        return (*(f"curves, {name}" for name in self.settings.names), *(one.name for one in self.filters))

    def learn(self, given: Examples, inputs: Inputs) -> Array:
        """Learn each row in turn, and return margins from before, a column for each expert."""
        from forel.learner.kernels.kernel import routine

        learn, lanes = routine("curve_filter", "learn"), self.state.n_lanes

        def learn_chunk(chunk: slice, rows: Rows, number: int | None) -> None:
            labels, importance = given.labels[chunk], given.importance[chunk]
            if number is not None:
                limits, own = np.array(LIMITS), np.empty(rows.number)
                learn(*rows, labels, importance, self.logistic, limits, *self.filtered[number], own)
                out[chunk, lanes + number] = own
                return
            own_rows = Examples(self._without_pairs(rows), labels, importance)
            out[chunk, :lanes] = self.state.progress(own_rows, chunk.start)

        out, parts = self._empty(given.rows), [*range(len(self.filtered)), None]
        alone = given.rows.number < CHUNK or os.cpu_count() == 1
        with nullcontext() if alone else ThreadPoolExecutor(len(parts)) as pool:
            for chunk, expanded in self._chunks(given.rows):
                run = map if pool is None else pool.map
                list(run(partial(learn_chunk, chunk, expanded), parts))
        return out

    def predict(self, rows: Rows, inputs: Inputs) -> Array:
        """Return the margins of rows, a column for each expert."""
        from forel.learner.kernels.kernel import routine

        state, out = self.state, self._empty(rows)
        for chunk, expanded in self._chunks(rows):
            out[chunk, : state.n_lanes] = state.predict(self._without_pairs(expanded))
            for number, one in enumerate(self.filtered):
                own = np.empty(expanded.number)
                routine("curve_filter", "predict")(*expanded, self.logistic, one.mean, own)
                out[chunk, state.n_lanes + number] = own
        return out

    def _without_pairs(self, rows: Rows) -> Rows:
        """Return rows without features of pairs, of which rates and diagonal filters learn less than they lose."""
        keep = (rows.indices < self.curves.single) | (rows.indices >= self.curves.width)
        return Rows(np.append(0, np.cumsum(keep))[rows.indptr], rows.indices[keep], rows.values[keep])

    def _empty(self, rows: Rows) -> Array:
        return np.empty((rows.number, self.state.n_lanes + len(self.filters)))

    def _chunks(self, rows: Rows) -> Iterator[tuple[slice, Rows]]:
        """Yield the features of some rows at a time, and which rows they are."""
        for start in range(0, rows.number, CHUNK):
            stop = min(start + CHUNK, rows.number)
            ends = rows.indptr[start : stop + 1]
            own = slice(ends[0], ends[-1])
            indptr, indices, values = self.curves.expand(ends - ends[0], rows.indices[own], rows.values[own])
            yield slice(start, stop), Rows(indptr, indices, values.astype(self.state.dtype, copy=False))

    def weights_at(self, features: NDArray[np.int64]) -> Array:
        """Return the weights of features of curves, a column for each expert."""
        columns = [self.state.weights_at(features).astype(np.float64)]
        for one in self.filtered:
            known = features < one.mean.size
            columns.append(np.where(known, one.mean[np.where(known, features, 0)], 0.0)[:, None])
        return np.hstack(columns)

    def without_inputs(self, first: int, count: int) -> "CurveExperts":
        """Return the experts themselves, which have no inputs."""
        return self

    def copy(self) -> "CurveExperts":
        """Return a copy."""
        new = copy(self)
        new.state = self.state.copied()
        new.filtered = tuple(FilterState(*(array.copy() for array in one)) for one in self.filtered)
        return new

    def pack(self) -> Array:
        """Return the state as one array: filters, records that are not 0, and sums."""
        state = self.state
        touched = np.flatnonzero(_bits(state.records.reshape(state.features + 1, -1)).any(axis=1))
        return np.concatenate([*(one for state in self.filtered for one in state.pack()), pack_state(state, touched)])

    def unpack(self, array: Array) -> None:
        """Set the state to a packed array."""
        for one in self.filtered:
            array = one.unpack(array)
        unpack_state(self.key, self.state, array)


def pack_state(state: State, touched: NDArray[np.int64]) -> Array:
    """Return a state as one array: the records of some coordinates, and sums."""
    tables = [table[touched].astype(np.float64).ravel() for table in state.tables.values()]
    sums = state.totals, np.array([state.rounds, state.total_importance])
    return np.concatenate((np.array([float(touched.size)]), touched.astype(np.float64), *tables, *sums))


def unpack_state(name: str, state: State, array: Array) -> None:
    """Set a new state to a packed array."""
    tables, count = state.tables, int(array[0]) if array.size else -1
    sizes = [count, *(count * table[0].size for table in tables.values()), state.totals.size, 2]
    if count < 0 or array.size != 1 + sum(sizes):
        raise refuse(name, array.size, "the length of a packed state")
    touched, *parts = np.split(array[1:], np.cumsum(sizes)[:-1])
    places = touched.astype(np.int64)
    if places.size and not 0 <= places.min() <= places.max() <= state.features:
        raise refuse(name, places.max(), f"features up to {state.features}")
    for table, part in zip(tables.values(), parts, strict=False):
        table[places] = part.reshape(count, *table.shape[1:]).astype(table.dtype)
    state.totals[:], (rounds, importance) = parts[-2], parts[-1].tolist()
    state.rounds, state.total_importance = int(rounds), importance


def _bits(table: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of floats, which are not 0 for −0."""
    return table.view(f"u{table.itemsize}")
