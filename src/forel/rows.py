"""Sparse rows: what kernels are given, checked first."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forel.checks import all_finite

__all__ = ["Rows", "rows_of"]


class Rows(NamedTuple):
    """Validated sparse rows: what a kernel may be given."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]

    @property
    def number(self) -> int:
        """How many rows there are."""
        return self.indptr.size - 1

    @property
    def longest(self) -> int:
        """The most non-zeros of a row."""
        return int(np.diff(self.indptr).max(initial=0))


def rows_of(X: Any, features: int, dtype: DTypeLike) -> Rows:
    """Return an array or sparse matrix as rows, checked, and without a copy where it has the right type already.

    Rows are taken as they are, but for their indices: those of another number of bits would lie outside the memory.

    >>> rows_of([[0.0, 2.0], [3.0, 0.0]], 2, np.float64).indices
    array([1, 0], dtype=int32)
    """
    if isinstance(X, Rows):
        if X.indptr[-1] > min(X.indices.size, X.values.size):
            raise ValueError("X: got fewer indices or values than indptr says, expected rows of one source")
        _within(X.indices, features)
        return X
    from scipy import sparse  # not before it is needed: importing it takes a while

    if sparse.issparse(X):
        matrix = X if X.format == "csr" else X.tocsr()
        _structure(matrix)
        if not matrix.has_canonical_format:
            # Features of a row stay in their order unless some are there twice: margins are summed, and rounded, in it.
            summed = matrix.copy()
            summed.sum_duplicates()
            matrix = summed if summed.nnz < matrix.nnz else matrix
    else:
        dense = np.asarray(X)
        if dense.ndim != 2:
            raise ValueError(f"X: got shape {dense.shape}, expected two dimensions, a row an example")
        matrix = sparse.csr_array(dense)
    if matrix.shape[1] != features:
        raise ValueError(f"X: got {matrix.shape[1]} features, expected {features}, as at the start")
    used = int(matrix.indptr[-1])
    with np.errstate(over="ignore"):
        values = matrix.data[:used].astype(dtype, copy=False)
    if not all_finite(values):
        k = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise ValueError(f"X: got {matrix.data[k]} in row {row}, column {matrix.indices[k]}, expected finite numbers")
    return Rows(matrix.indptr.astype(np.int64, copy=False), matrix.indices[:used], values)


def _structure(matrix: Any) -> None:
    """Refuse a sparse matrix whose parts do not fit together; scipy lets them be set by hand."""
    indptr, indices = matrix.indptr, matrix.indices
    if indptr.size != matrix.shape[0] + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise ValueError("X: got an indptr that does not rise from 0, expected a valid CSR matrix")
    if indptr[-1] > indices.size or indices.size != matrix.data.size:
        raise ValueError("X: got indices and data of other lengths than indptr says, expected a valid CSR matrix")
    _within(indices[: indptr[-1]], matrix.shape[1])


def _within(indices: NDArray[Any], features: int) -> None:
    # Unsigned, what is negative is too large.
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= features:
        bad = int(low if (low := indices.min()) < 0 else indices.max())
        raise ValueError(f"X: got the column index {bad}, expected 0 to {features - 1}")
