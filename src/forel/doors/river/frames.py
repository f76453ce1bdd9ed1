"""Frames as rows: what river hands to ``learn_many`` and ``predict_many``, from pandas, polars or Arrow."""

from itertools import pairwise
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from river.utils import dataframe

from forel.doors.river.arguments import importance
from forel.doors.river.slots import hashed
from forel.learner.rows import Rows
from forel.validation import finite, refuse

__all__ = ["Columns", "columns_of", "importances", "targets"]


class Columns(NamedTuple):
    """Rows whose indices are columns, and what each column stands for: names, or slots where names are hashed."""

    rows: Rows
    names: list[Any]

    def at(self, slots: list[int]) -> Rows:
        """Return the rows with the slots of the names for indices."""
        return self.rows._replace(indices=np.array(slots, np.int64)[self.rows.indices])


def columns_of(X: Any, bits: int | None, dtype: Any) -> Columns:
    """Return the rows of a frame, a column a name.

    Every cell is kept, as every value of a dict is, unless pandas holds the frame as sparse columns.
    """
    frame = dataframe.into_frame(X)
    names = list(frame.columns)
    sparse = getattr(X, "sparse", None)
    if sparse is not None:
        matrix = sparse.to_coo().tocsr()
        indptr, columns, cells = matrix.indptr.astype(np.int64), matrix.indices, matrix.data.astype(np.float64)
    else:
        cells = np.asarray(frame.to_numpy())
        # One type of number for all says enough; asking every column for its own takes longer than learning does.
        kinds = () if cells.dtype.kind in "fiub" else frame.schema.items()
        for name, kind in kinds:
            if not (kind.is_numeric() or kind == nw.Boolean):
                remedy = "numbers; convert them, or put river's preprocessing.OneHotEncoder before the model"
                raise ValueError(f"X[{name!r}]: got a column of type {kind}, expected {remedy}")
        height, width = frame.shape
        indptr, columns = np.arange(height + 1, dtype=np.int64) * width, np.tile(np.arange(width), height)
        cells = (dataframe.to_numpy(frame) if kinds else cells.astype(np.float64, copy=False)).ravel()
    with np.errstate(over="ignore"):
        values = cells.astype(dtype)
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(indptr, k, side="right")) - 1
        place = f"X[{names[columns[k]]!r}]"
        raise ValueError(f"{place}: got {cells[k]} in row {row}, expected finite numbers within the range of {dtype}")
    if bits is not None:
        return _merged(indptr, columns, cells, names, bits, dtype)
    return Columns(Rows(indptr, columns, values), names)


def _merged(indptr: Any, columns: Any, values: Any, names: list[Any], bits: int, dtype: Any) -> Columns:
    """Return rows in which names that share a slot are one entry, as in rows that come one at a time."""
    slots = [next(iter(hashed([(name, 1.0)], bits))) for name in names]
    found: list[int] = []
    kept: list[float] = []
    ends = [0]
    for lo, hi in pairwise(indptr.tolist()):
        sums: dict[int, float] = {}
        for column, value in zip(columns[lo:hi].tolist(), values[lo:hi].tolist(), strict=True):
            slot = slots[column]
            sums[slot] = sums[slot] + value if slot in sums else value
        found += sums.keys()
        kept += sums.values()
        ends.append(len(found))
    with np.errstate(over="ignore"):
        merged = np.array(kept, np.float64).astype(dtype)
    finite("X", merged)
    used = sorted(set(found))
    places = np.searchsorted(used, found) if found else np.zeros(0, np.int64)
    return Columns(Rows(np.array(ends, np.int64), places, merged), used)


def targets(y: Any, count: int) -> tuple[list[Any], str | None]:
    """Return the targets as Python objects, one a row, and the name of their series."""
    series = dataframe.into_series(y)
    if len(series) != count:
        raise refuse("y", f"{len(series)} targets", f"one for each of {count} rows")
    return series.to_list(), series.name


def importances(w: Any, count: int, dtype: Any) -> NDArray[Any]:
    """Return what multiplies each row's loss, from one number or a series."""
    if np.ndim(w) == 0:
        return np.full(count, importance(w), dtype)
    held = [importance(each) for each in dataframe.into_series(w).to_list()]
    if len(held) != count:
        raise refuse("w", f"{len(held)} numbers", f"one for each of {count} rows")
    return np.array(held, dtype)
