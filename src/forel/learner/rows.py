"""Rows, labels and importances, validated for the kernels in one place."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from forel.data.block import Block
from forel.losses import Interval, Labels
from forel.validation import all_finite, real, refuse

__all__ = ["CoalescedRows", "Examples", "Rows", "as_writeable", "examples_of", "index_dtype", "not_finite", "rows_of"]

# Dense arrays with at most this many numbers are converted without scipy.
SMALL, SMALL_TYPES = 1 << 13, frozenset(map(np.dtype, (np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_)))


class Rows(NamedTuple):
    """Sparse rows in CSR form."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]

    @property
    def number(self) -> int:
        """The number of rows."""
        return self.indptr.size - 1

    @property
    def longest(self) -> int:
        """The largest number of non-zeros in a row."""
        return int(np.diff(self.indptr).max(initial=0))

    @property
    def offsets(self) -> NDArray[Any]:
        """``indptr`` in the type of indices, if it fits: scipy copies both to the larger type otherwise."""
        kind = self.indices.dtype
        return self.indptr.astype(kind) if self.indices.size <= np.iinfo(kind).max else self.indptr

    def take(self, which: NDArray[Any]) -> "Rows":
        """Return some rows, selected by their numbers or a mask.

        >>> rows_of([[0.0, 2.0], [3.0, 0.0]], 2, np.float64).take(np.array([1, 0])).indices
        array([0, 1], dtype=int32)
        """
        from scipy import sparse  # slow to import

        width = int(self.indices.max(initial=0)) + 1
        some = sparse.csr_array((self.values, self.indices, self.offsets), shape=(self.number, width))[which]
        # Keep the types: kernels are compiled for types of arguments.
        return type(self)(some.indptr.astype(np.int64, copy=False), some.indices.astype(self.indices.dtype), some.data)


class CoalescedRows(Rows):
    """Rows without repeated indices, as readers produce them; they are not checked again."""


def rows_of(X: Any, features: int, dtype: DTypeLike) -> Rows:
    """Return an array, a sparse matrix or a block as validated rows, without a copy where it has the right type.

    Repeated indices of a row are one, with the sum of their values: kernels gather a whole row before they scatter it.
    For :class:`CoalescedRows` and blocks only the range of indices is checked.

    >>> rows_of([[0.0, 2.0], [3.0, 0.0]], 2, np.float64).indices
    array([1, 0], dtype=int32)
    """
    if isinstance(X, Block):
        X = CoalescedRows(*X.rows)
    if isinstance(X, CoalescedRows):
        if X.indptr[-1] > min(X.indices.size, X.values.size):
            raise ValueError("X: got fewer indices or values than indptr counts, expected arrays of the same rows")
        _check_range(X.indices, features)
        return _for_kernels(CoalescedRows(X.indptr, X.indices, X.values.astype(dtype, copy=False)), features)
    if isinstance(X, Rows):
        from scipy import sparse  # slow to import

        matrix = sparse.csr_array((X.number, features))
        matrix.indptr, matrix.indices, matrix.data = X  # validated below, unlike arguments of the constructor
        X = matrix
    given = real("X", X)
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.size <= SMALL and given.dtype in SMALL_TYPES:
        width, (indptr, indices, entries) = given.shape[1], _nonzeros(np.asarray(given))
    else:
        matrix = _csr(given)
        used = int(matrix.indptr[-1])
        width, indptr, indices, entries = matrix.shape[1], matrix.indptr, matrix.indices[:used], matrix.data[:used]
    if width != features:
        raise ValueError(f"X: got {width} features, expected {features}, as when the model was created")
    values = _finite(entries, indptr, indices, dtype)
    return _for_kernels(CoalescedRows(indptr, indices, values), features)


class Examples(NamedTuple):
    """Validated rows with a label and an importance each.

    Parameters
    ----------
    rows : the rows
    labels, importance : in float64; the importance of a row that is held out, or has importance 0, is −1
    """

    rows: Rows
    labels: NDArray[np.float64]
    importance: NDArray[np.float64]


def examples_of(
    X: Any,
    y: ArrayLike | None,
    importance: ArrayLike | None,
    held_out: NDArray[np.bool_] | None,
    features: int,
    dtype: np.dtype[Any],
    domain: Labels,
) -> Examples:
    """Return rows to learn from; those of a block have its labels and importances if these are None.

    Parameters
    ----------
    X, y, importance, held_out : as in :meth:`forel.learner.learner.Learner.progress`
    features, dtype : of the model
    domain : domain of the labels

    >>> examples_of([[0.0, 2.0]], [1], None, None, 2, np.dtype(np.float32), Interval(0, 1)).importance
    array([1.])
    """
    if isinstance(X, Block):
        y, importance = X.labels if y is None else y, X.importance if importance is None else importance
    elif y is None:
        raise ValueError("y: got None, expected a label for each row; only blocks of forel.read have their own")
    rows = rows_of(X, features, dtype)
    labels = labels_of(y, rows.number, domain, dtype)
    weights = importances_of(importance, rows.number, dtype)
    predicted = weights == 0 if held_out is None else held_out | (weights == 0)
    if predicted.any():
        weights = np.where(predicted, -1.0, weights)
    return Examples(rows, labels, weights)


def labels_of(y: ArrayLike, count: int, domain: Labels, dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Return one label for each row, or raise for those outside the domain or the range of the model's dtype.

    >>> labels_of([0, 1], 2, Interval(0, 1), np.dtype(np.float32))
    array([0., 1.])
    """
    labels = np.asarray(real("y", y))
    if labels.shape != (count,):
        raise ValueError(f"y: got shape {labels.shape}, expected one label for each of {count} rows")
    if labels.dtype.kind not in "fiub":
        raise refuse("y", labels.dtype, "numbers; encode classes as numbers first")
    exact = labels.astype(np.float64)
    if not (isinstance(domain, Interval) and _within(exact, domain.low, domain.high)):
        exact = domain.check("y", labels).astype(np.float64)
    return _in_range("y", exact, dtype)


def importances_of(importance: ArrayLike | None, count: int, dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Return the importance of each row, 1 by default, or raise for negative ones.

    >>> importances_of(None, 2, np.dtype(np.float32))
    array([1., 1.])
    """
    if importance is None:
        return np.ones(count)
    given = np.asarray(real("importance", importance))
    if given.shape != (count,):
        raise ValueError(f"importance: got shape {given.shape}, expected one number for each of {count} rows")
    exact = given.astype(np.float64)
    if not _within(exact, 0.0, np.inf):
        k = int(np.argmax(~(exact >= 0) | ~np.isfinite(exact)))
        raise ValueError(f"importance: got {exact[k]} in row {k}, expected finite numbers of at least 0")
    return _in_range("importance", exact, dtype)


def _within(given: NDArray[np.float64], low: float, high: float) -> bool:
    """Return whether all numbers are finite and in [low, high]."""
    return all_finite(given) and (not given.size or bool(given.min() >= low and given.max() <= high))


def _in_range(name: str, exact: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Return numbers, or raise for the first that is not finite in the dtype of the model."""
    if exact.size and not max(exact.max(), -exact.min()) <= np.finfo(dtype).max:
        with np.errstate(over="ignore"):
            k = int(np.argmin(np.isfinite(exact.astype(dtype))))
        raise ValueError(f"{name}: got {exact[k]} in row {k}, expected numbers within the range of {dtype}")
    return exact


def not_finite(row: int, label: float) -> ValueError:
    """Return the error for a row whose loss is not finite."""
    return ValueError(
        f"loss: got a value or slope that is not finite in row {row}, whose label is {label:g}, "
        "expected finite numbers; the rows before it were learned from"
    )


def _nonzeros(dense: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the arrays of scipy's CSR matrix; for small arrays scipy's checks take several times as long."""
    owners, indices = dense.nonzero()
    return owners.searchsorted(np.arange(len(dense) + 1)), indices, dense[owners, indices]


def _csr(given: Any) -> Any:
    """Return an array or sparse matrix as a validated CSR matrix without repeated entries."""
    from scipy import sparse  # slow to import

    if not sparse.issparse(given):
        dense = np.asarray(given)
        if dense.ndim != 2:
            raise ValueError(f"X: got shape {dense.shape}, expected two dimensions, one row per example")
        return sparse.csr_array(dense)
    matrix = given if given.format == "csr" else given.tocsr()
    _check_structure(matrix)
    if not matrix.has_canonical_format:
        # Keep the order of features unless some are repeated: it determines the rounding of margins.
        summed = matrix.copy()
        summed.sum_duplicates()
        matrix = summed if summed.nnz < matrix.nnz else matrix
    return matrix


def index_dtype(features: int) -> np.dtype[Any]:
    """Return the dtype of indices in kernels: int32 where the bias, the last coordinate, fits into it."""
    return np.dtype(np.int32 if features <= np.iinfo(np.int32).max else np.int64)


def _for_kernels(rows: Rows, features: int) -> Rows:
    """Return rows in the one form for which kernels are compiled: numba compiles again for every other type."""
    indptr, indices = rows.indptr.astype(np.int64, copy=False), rows.indices.astype(index_dtype(features), copy=False)
    return type(rows)(*(as_writeable(np.ascontiguousarray(array)) for array in (indptr, indices, rows.values)))


class _Alias:
    """The memory of an array as if it could be written to, in numpy's array interface."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array  # keeps the memory alive
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def as_writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array, or a writeable view of one that is read-only, which numba treats as another type.

    Kernels only read rows.
    """
    return array if array.flags.writeable else np.asarray(_Alias(array))


def _finite(given: NDArray[Any], indptr: Any, indices: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return values in the dtype of the model, or raise for the first that is not finite in it."""
    with np.errstate(over="ignore"):
        values: NDArray[Any] = given.astype(dtype, copy=False)
    if not all_finite(values):
        k = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(indptr, k, side="right")) - 1
        expected = f"finite numbers within the range of {np.dtype(dtype)}"
        raise ValueError(f"X: got {given[k]} in row {row}, column {indices[k]}, expected {expected}")
    return values


def _check_structure(matrix: Any) -> None:
    """Raise for an inconsistent sparse matrix; scipy does not validate arrays that are assigned to it."""
    indptr, indices = matrix.indptr, matrix.indices
    if indptr.size != matrix.shape[0] + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise ValueError("X: got an indptr that does not increase from 0, expected a valid CSR matrix")
    if indptr[-1] > indices.size or indices.size != matrix.data.size:
        raise ValueError("X: got indices and data whose lengths do not match indptr, expected a valid CSR matrix")
    _check_range(indices[: indptr[-1]], matrix.shape[1])


def _check_range(indices: NDArray[Any], features: int) -> None:
    # As unsigned integers, negative indices are too large.
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= features:
        bad = int(low if (low := indices.min()) < 0 else indices.max())
        raise ValueError(f"X: got the column index {bad}, expected 0 to {features - 1}")
