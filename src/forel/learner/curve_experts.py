"""Experts on curves and pairs of columns: the settings that plain features have, and filters with all covariances.

All are linear in the features of :class:`forel.data.features.curves.Curves`. Filters with all covariances learn from
each row while multiplications are left, of which every row adds some: from which rows they learn depends on counts.
"""

from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.features.curves import Curves
from forel.learner.experts import Inputs
from forel.learner.rows import Examples, Rows, not_finite
from forel.learner.settings import Settings
from forel.learner.state import State
from forel.validation import refuse

__all__ = ["FILTERS", "CurveExperts", "CurveFilter", "pack_state", "unpack_state"]

Array = NDArray[np.float64]
CHUNK = 256  # rows that are expanded at a time
ALLOWANCE = 1e10, 1e4  # multiplications of filters at the start, and more for each row
PENDING = 8  # rows that are subtracted from covariances at a time
CONSTANT = 100.0  # prior variance of the constant


class CurveFilter(NamedTuple):
    """A Gaussian filter with all covariances of curves and pairs.

    Parameters
    ----------
    curves, pairs : prior variances of weights; for squared loss relative to that of residuals

    >>> CurveFilter(10.0, 1.0).name
    'curve filter, variance=10, pairs=1'
    """

    curves: float
    pairs: float

    @property
    def name(self) -> str:
        """The name in tables of experts."""
        return f"curve filter, variance={self.curves:g}, pairs={self.pairs:g}"


FILTERS = CurveFilter(3.0, 3.0), CurveFilter(0.1, 0.01)


class CurveExperts:
    """The states of all experts on curves and pairs.

    Parameters
    ----------
    curves : the features
    settings : of the experts with rates, and diagonal filters
    logistic : whether the loss is log-loss, and not half the squared error
    dtype : of their state
    filters : prior variances of each filter with covariances

    >>> rows = Rows(np.arange(5), np.full(4, 7), np.float32([0, 1, 2, 3]))
    >>> experts = CurveExperts(Curves.of(rows, [7]), Settings("squared", alpha=(1.0, 2.0)), False)
    >>> experts.learn(Examples(rows, np.array([0.0, 1.0, 4.0, 9.0]), np.ones(4)), None)[:, 2:].round(2).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.5..., 0.5], [2.21, 1.74]]
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
        self.curves, self.settings, self.logistic, self.filters = curves, settings, logistic, filters
        self.state = State(curves.features, settings, settings.n_settings, dtype)
        if settings.rate == "scale_free":
            self.state.scales[: curves.width] = 1  # no value of curves and pairs is larger
        width, count = curves.width, len(filters)
        self.counts, self.means = np.zeros(3), np.zeros((count, width))
        self.covariances = np.zeros((count, width, width))
        self.vectors = np.zeros((count, PENDING, width))
        for one, covariance in zip(filters, self.covariances, strict=True):
            prior = np.full(width, one.pairs)
            prior[: curves.single], prior[0] = one.curves, CONSTANT
            np.fill_diagonal(covariance, prior)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts."""
        return (*(f"curves, {name}" for name in self.settings.names), *(one.name for one in self.filters))

    def learn(self, given: Examples, inputs: Inputs) -> Array:
        """Learn each row in turn, and return margins from before, a column for each expert."""
        from forel.learner.kernels.kernel import routine

        state, out = self.state, self._empty(given.rows)
        for chunk, rows in self._chunks(given.rows):
            labels, importance = given.labels[chunk], given.importance[chunk]
            margins = np.empty((rows.number, state.n_lanes), state.dtype)
            own = labels.astype(state.dtype), importance.astype(state.dtype)
            if (row := state.learn(rows, *own, margins)) < rows.number:
                raise not_finite(chunk.start + row, labels[row])
            filtered = np.empty((rows.number, len(self.filters)))
            arrays = self.counts, self.means, self.covariances, self.vectors
            routine("curve_filter", "learn")(
                *rows, labels, importance, self.logistic, np.array(ALLOWANCE), *arrays, filtered
            )
            out[chunk, : state.n_lanes], out[chunk, state.n_lanes :] = margins, filtered
        return out

    def predict(self, rows: Rows, inputs: Inputs) -> Array:
        """Return the margins of rows, a column for each expert."""
        from forel.learner.kernels.kernel import routine

        state, out = self.state, self._empty(rows)
        for chunk, expanded in self._chunks(rows):
            margins = np.empty((expanded.number, state.n_lanes), state.dtype)
            state.predict(expanded, margins)
            filtered = np.empty((expanded.number, len(self.filters)))
            routine("curve_filter", "predict")(*expanded, self.logistic, self.means, filtered)
            out[chunk, : state.n_lanes], out[chunk, state.n_lanes :] = margins, filtered
        return out

    def _empty(self, rows: Rows) -> Array:
        return np.empty((rows.number, self.state.n_lanes + len(self.filters)))

    def _chunks(self, rows: Rows) -> Any:
        """Yield the features of some rows at a time, and which rows they are."""
        for start in range(0, rows.number, CHUNK):
            stop = min(start + CHUNK, rows.number)
            ends = rows.indptr[start : stop + 1]
            own = slice(ends[0], ends[-1])
            indptr, indices, values = self.curves.expand(ends - ends[0], rows.indices[own], rows.values[own])
            yield slice(start, stop), Rows(indptr, indices, values.astype(self.state.dtype, copy=False))

    def weights_at(self, features: NDArray[np.int64]) -> Array:
        """Return the weights of features of curves, a column for each expert."""
        known = (features < self.curves.width)[:, None]
        filtered = np.where(known, self.means.T[np.minimum(features, self.curves.width - 1)], 0.0)
        return np.hstack([self.state.weights_at(features).astype(np.float64), filtered])

    def without_inputs(self, first: int, count: int) -> "CurveExperts":
        """Return the experts themselves, which have no inputs."""
        return self

    def copy(self) -> "CurveExperts":
        """Return a copy."""
        new = copy(self)
        new.state = self.state.copied()
        for name in ("counts", "means", "covariances", "vectors"):
            setattr(new, name, getattr(self, name).copy())
        return new

    def pack(self) -> Array:
        """Return the state as one array: records that are not 0, sums, and filters with lower triangles."""
        state, rows, columns = self.state, *np.tril_indices(self.curves.width)
        touched = np.flatnonzero(_bits(state.records.reshape(state.features + 1, -1)).any(axis=1))
        filters = self.counts, self.means.ravel(), self.vectors.ravel(), self.covariances[:, rows, columns].ravel()
        return np.concatenate((*filters, pack_state(state, touched)))

    def unpack(self, array: Array) -> None:
        """Set the state to a packed array."""
        rows, columns = np.tril_indices(self.curves.width)
        sizes = [self.counts.size, self.means.size, self.vectors.size, len(self.filters) * rows.size]
        if array.size < sum(sizes):
            raise refuse(self.key, array.size, "the length of a packed state")
        self.counts[:], means, vectors, lower, packed = np.split(array, np.cumsum(sizes))
        self.means[:], self.vectors[:] = means.reshape(self.means.shape), vectors.reshape(self.vectors.shape)
        lower = lower.reshape(len(self.filters), -1)
        self.covariances[:, rows, columns] = self.covariances[:, columns, rows] = lower
        unpack_state(self.key, self.state, packed)


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
