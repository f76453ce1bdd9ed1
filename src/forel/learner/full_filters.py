"""Gaussian filters with all covariances of the weights, as experts of a mixture while there are few features."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.learner.experts import FullFilter, Inputs
from forel.learner.layout import units_of
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.learner.state import State
from forel.validation import refuse

__all__ = ["MOST", "FullFilters"]

Array = NDArray[np.float64]
MOST = 128  # features with the constant: a row takes time in proportion to their square


class FullFilters:
    """The states of all full-covariance filters of a mixture, which share the features they have seen.

    Parameters
    ----------
    filters : prior and memory of each
    logistic : whether the loss is log-loss, and not half the squared error
    bias : whether there is a constant feature

    >>> rows = Rows(np.array([0, 1, 2]), np.int32([7, 7]), np.float32([1.0, 2.0]))
    >>> filters = FullFilters((FullFilter(1.0),), logistic=False)
    >>> filters.progress(rows, np.array([1.0, 2.0]), np.ones(2))  # margins before learning, and rows learned from
    (array([[0.   ],
           [0.666...]]), 2)
    """

    __slots__ = ("_arrays", "bias", "filters", "logistic")
    kind: ClassVar[str] = "full filter"
    key: ClassVar[str] = "full_filters"
    stacked: ClassVar[bool] = False

    def __init__(self, filters: tuple[FullFilter, ...], logistic: bool, bias: bool = True) -> None:
        self.filters, self.logistic, self.bias = filters, logistic, bias
        number = len(filters)
        self._arrays = (
            np.ones(1, np.int64), np.full(MOST, -1, np.int64), np.zeros(MOST, np.int64), np.zeros(MOST),
            np.zeros((number, MOST)), np.zeros((number, MOST, MOST)),
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the filters."""
        return tuple(one.name for one in self.filters)

    def learn(self, given: Examples, inputs: Inputs) -> Array:
        """Learn each row in turn, and return margins from before, up to the first row with too many features."""
        margins, count = self.progress(given.rows, given.labels, given.importance)
        return margins[:count]

    def predict(self, rows: Rows, inputs: Inputs) -> Array:
        """Return the margins of rows, a column for each filter."""
        return self.margins(rows)

    def without_inputs(self, first: int, count: int) -> "FullFilters":
        """Return the filters themselves, which have no inputs."""
        return self

    @property
    def size(self) -> int:
        """The number of features that have occurred, the constant among them."""
        return int(self._arrays[0][0])

    @property
    def slots(self) -> NDArray[np.int64]:
        """The features that have occurred, in order, without the constant."""
        slots: NDArray[np.int64] = self._arrays[1][: self.size]
        return slots[slots >= 0]

    def progress(self, rows: Rows, labels: NDArray[Any], importance: Array) -> tuple[Array, int]:
        """Learn each row in turn; return the margins from before, and the number of rows before too many features.

        Rows of negative importance are only predicted. Margins from the first row with too many features on have no
        meaning.
        """
        from forel.learner.kernels.kernel import routine

        out = np.zeros((rows.number, len(self.filters)))
        parameters, labels = np.array(self.filters, np.float64), np.asarray(labels, np.float64)
        learn = routine("full_filter", "learn")
        own = float(self.bias), labels, importance, self.logistic, parameters
        return out, int(learn(*rows, *own, *self._arrays, out))

    def margins(self, rows: Rows) -> Array:
        """Return the margins of every row, a column for each filter."""
        from forel.learner.kernels.kernel import routine

        out = np.zeros((rows.number, len(self.filters)))
        *known, _ = self._arrays
        routine("full_filter", "predict")(*rows, float(self.bias), self.logistic, *known, out)
        return out

    def weights_at(self, coordinates: NDArray[np.int64], features: int) -> Array:
        """Return the means of weights, a column for each filter; the bias is ``features``."""
        at, known = self._find(np.where(coordinates == features, -1, coordinates))
        found: Array = np.where(known, self._arrays[4][:, at], 0.0).T
        return found

    def scales_at(self, slots: NDArray[np.int64]) -> Array:
        """Return the scales of features, 0 for those that have not occurred; the constant is −1."""
        at, known = self._find(slots)
        found: Array = np.where(known, self._arrays[3][at], 0.0)
        return found

    def _find(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the places of features, and which of them have occurred."""
        _, own, places, *_ = self._arrays
        at = np.minimum(np.searchsorted(own[: self.size], slots), self.size - 1)
        return places[at], own[at] == slots

    def diagonal(self, filter_number: int, mixed: Settings, features: int, dtype: DTypeLike) -> State:
        """Return a diagonal filter with the means and variances of one of the filters of a mixture.

        Parameters
        ----------
        filter_number : of the filter
        mixed : the settings of the mixture
        features, dtype : of the new state
        """
        prior = self.filters[filter_number].variance
        settings = Settings(mixed.loss, "filter", alpha=prior, beta=0, bias=mixed.bias, seed=mixed.seed)
        state, n = State(features, settings, 1, dtype), self.size
        _, slots, places, scales, means, covariances = self._arrays
        by_place = slots[np.argsort(places[:n])]
        own, scale = np.where(by_place < 0, features, by_place), scales[:n].astype(state.dtype)
        variances = covariances[filter_number].diagonal()[:n]
        with np.errstate(divide="ignore"):
            information = 1 / variances - scales[:n] ** 2 / prior
        known = (variances > 0) & (information > 0)
        units = units_of(scale)
        largest = np.finfo(state.dtype).max
        state.scales[own] = scale
        state.numbers[own, 0, 0] = np.clip(means[filter_number, :n] * units, -largest, largest)
        state.numbers[own, 1, 0] = np.where(known, np.minimum(information / units**2, largest), 0)
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.filters, self.logistic, self.bias, self.pack())  # memory for the features that occurred

    def copy(self) -> "FullFilters":
        """Return a copy."""
        return _restored(self.filters, self.logistic, self.bias, self.pack())

    def renumber(self, places: NDArray[Any]) -> None:
        """Change the numbers of features: the first ones become the given ones.

        >>> filters = FullFilters((FullFilter(1.0),), logistic=False)
        >>> _ = filters.progress(Rows(np.array([0, 2]), np.int32([0, 1]), np.float32([1, 2])), np.ones(1), np.ones(1))
        >>> filters.renumber(np.array([9, 4]))
        >>> filters.weights_at(np.array([4, 9]), 16).ravel().round(3)
        array([0.125, 0.25 ])
        """
        n = self.size
        _, slots, own_places, *_ = self._arrays
        changed = np.append(places, -1)[slots[:n]]  # the constant, -1, stays
        order = np.argsort(changed)
        slots[:n], own_places[:n] = changed[order], own_places[:n][order]

    def pack(self) -> Array:
        """Return slots, scales, means and the lower triangles of covariances in one array.

        >>> FullFilters((FullFilter(1.0),), logistic=True).pack()
        array([-1.,  0.,  0.,  0.])
        """
        n = self.size
        _, slots, places, scales, means, covariances = self._arrays
        by_place = slots[np.argsort(places[:n])]
        rows, columns = np.tril_indices(n)
        lower = covariances[:, rows, columns]
        return np.concatenate((by_place, scales[:n], means[:, :n].ravel(), lower.ravel()))

    def unpack(self, array: Array) -> None:
        """Set the state to a packed array."""
        count = len(self.filters)
        n = next((n for n in range(1, MOST + 1) if self.packed_size(n, count) == array.size), 0)
        if not n:
            raise refuse("full_filters", array.size, "the length of a packed state")
        sizes, slots, places, scales, means, covariances = self._arrays
        own, of_scales, of_means, lower = np.split(array, np.cumsum((n, n, count * n)))
        sizes[0], scales[:n], means[:, :n] = n, of_scales, of_means.reshape(count, n)
        places[:n] = np.argsort(own)
        slots[:n] = own[places[:n]]
        rows, columns = np.tril_indices(n)
        covariances[:, rows, columns] = covariances[:, columns, rows] = lower.reshape(count, -1)

    @staticmethod
    def packed_size(features: int, filters: int) -> int:
        """Return the length of a packed state."""
        return features * (2 + filters) + filters * features * (features + 1) // 2


def _restored(filters: tuple[FullFilter, ...], logistic: bool, bias: bool, packed: Array) -> FullFilters:
    """Return the filters of a packed state."""
    restored = FullFilters(filters, logistic, bias)
    restored.unpack(packed)
    return restored
