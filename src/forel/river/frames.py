"""Frames as rows: the arguments of ``learn_many`` and ``predict_many``, from pandas, polars or Arrow."""

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from river.utils import dataframe

from forel.data.compiled import scanner
from forel.data.features.hashing import slot
from forel.learner.rows import Rows
from forel.river.arguments import WORDS, importance
from forel.river.rows import Hashing, read_row
from forel.validation import finite, refuse

__all__ = ["Columns", "columns_of", "importances", "targets"]


class Columns(NamedTuple):
    """Rows whose indices are columns, and the name of each column; None if indices are the slots of hashed names."""

    rows: Rows
    names: list[Any] | None

    def at(self, slots: Any) -> Rows:
        """Return the rows with slots of names as indices."""
        if self.names is None:
            return self.rows
        return self.rows._replace(indices=np.array(slots, np.int64)[self.rows.indices])


def columns_of(X: Any, hashing: Hashing | None, dtype: Any) -> Columns:
    """Return the rows of a frame, with a feature for each column.

    Every cell becomes an entry, as every value of a dict does, except missing ones and in sparse columns of pandas. If
    names are hashed, strings are categories.
    """
    frame = dataframe.into_frame(X)
    names = list(frame.columns)
    sparse = getattr(X, "sparse", None)
    if sparse is not None:
        matrix = sparse.to_coo().tocsr()
        indptr, columns, cells = matrix.indptr.astype(np.int64), matrix.indices, matrix.data.astype(np.float64)
    else:
        cells = np.asarray(frame.to_numpy())
        # Columns of one numeric dtype are not inspected one by one, which would take longer than learning.
        kinds = () if cells.dtype.kind in "fiub" else frame.schema.items()
        texts = any(kind in (nw.String, nw.Categorical, nw.Enum) for _, kind in kinds)
        if hashing is not None and (texts or "category" in hashing.kinds.values()):
            return _read_rows(frame, hashing, dtype)
        for name, kind in kinds:
            if not (kind.is_numeric() or kind == nw.Boolean):
                raise ValueError(f"X[{name!r}]: got a column of type {kind}, expected numbers; {WORDS}")
        height, width = frame.shape
        indptr, columns = np.arange(height + 1, dtype=np.int64) * width, np.tile(np.arange(width), height)
        cells = (dataframe.to_numpy(frame) if kinds else cells.astype(np.float64, copy=False)).ravel()
    with np.errstate(over="ignore"):
        values = cells.astype(dtype)
    if not np.isfinite(values).all():
        present = ~np.isnan(values)
        indptr = np.append(0, np.cumsum(present))[indptr]
        columns, cells, values = columns[present], cells[present], values[present]
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(indptr, k, side="right")) - 1
        place = f"X[{names[columns[k]]!r}]"
        raise ValueError(f"{place}: got {cells[k]} in row {row}, expected finite numbers within the range of {dtype}")
    if hashing is None:
        return Columns(Rows(indptr, columns, values), names)
    slots = np.array([slot(str(name), bits=hashing.bits) for name in names], np.int64)
    return _coalesced(indptr, slots[columns], values)


def _coalesced(indptr: NDArray[np.int64], slots: NDArray[np.int64], values: NDArray[Any]) -> Columns:
    """Return rows in which values that share a slot are added up, as in rows that are read one at a time."""
    scanner("merge", "merge_rows")(indptr, slots, values)
    end = int(indptr[-1])
    finite("X", values[:end])
    return Columns(Rows(indptr, slots[:end], values[:end]), None)


def _read_rows(frame: Any, hashing: Hashing, dtype: Any) -> Columns:
    """Return the rows of a frame with categories, each read as a dict."""
    rows = [read_row(row, hashing, dtype) for row in frame.iter_rows(named=True)]
    indptr = np.cumsum([0, *(len(slots) for slots, _ in rows)], dtype=np.int64)
    slots = np.array([slot for slots, _ in rows for slot in slots], np.int64)
    values = np.concatenate([values for _, values in rows] or [np.zeros(0, dtype)])
    return Columns(Rows(indptr, slots, values), None)


def targets(y: Any, count: int) -> tuple[list[Any], str | None]:
    """Return the targets as Python objects, and the name of their series."""
    series = dataframe.into_series(y)
    if len(series) != count:
        raise refuse("y", f"{len(series)} targets", f"one for each of {count} rows")
    return series.to_list(), series.name


def importances(w: Any, count: int, dtype: Any) -> NDArray[Any]:
    """Return the importance of each row, from one number or a series."""
    if np.ndim(w) == 0:
        return np.full(count, importance(w), dtype)
    weights = [importance(each) for each in dataframe.into_series(w).to_list()]
    if len(weights) != count:
        raise refuse("w", f"{len(weights)} numbers", f"one for each of {count} rows")
    return np.array(weights, dtype)
