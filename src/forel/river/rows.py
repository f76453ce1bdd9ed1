"""Rows of dicts and frames: names or hashed slots, and values that are finite numbers; targets and importances."""

from array import array
from collections.abc import Hashable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river.utils import dataframe

from forel.data.values import is_null
from forel.learner.rows import Rows
from forel.store.row_reader import RowReader
from forel.validation import number, refuse

__all__ = ["SLOT", "FrameRows", "frame_rows", "importance", "importances", "read_row", "targets"]

SLOT = np.dtype(np.int64).char
WORDS = "with bits=22, words are categories, or put river's preprocessing.OneHotEncoder before the model"


def read_row(x: Mapping[Any, Any], reader: RowReader | None, dtype: Any) -> tuple[Any, Any]:
    """Return the names, or slots, and the values of a dict without missing values; errors name the value."""
    if reader is not None:
        return _hashed_row(dict(x), reader, dtype)
    row = x if type(x) is dict else dict(x)
    names, objects = list(row), list(row.values())  # conversions may run code that changes the row
    with suppress(TypeError, ValueError, OverflowError):
        values = array(dtype.char, objects)
        if isfinite(sum(values)):  # and so are its terms
            return names, values
    items = [item for item in zip(names, objects, strict=True) if not is_null(item[1])]
    return [name for name, _ in items], array(dtype.char, [_number(name, value, dtype) for name, value in items])


def _hashed_row(row: dict[Hashable, Any], reader: RowReader, dtype: Any) -> tuple[Any, Any]:
    """Return slots and values, as :func:`forel.read` has them of dicts; names that are not text are read as text."""
    found = reader.read(row)
    if found is None:
        plain = {name if type(name) is str else str(name): _plain(name, row[name], dtype) for name in row}
        found = reader.read(plain)
    if found is None:
        raise refuse("x", row, f"numbers whose sum in a slot is within the range of {dtype}")
    return array(SLOT, found[0]), array(dtype.char, found[1])


def _plain(name: Hashable, value: Any, dtype: Any) -> Any:
    """Return a value of a hashed name as text, a number of Python or None."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_null(value):
        return None
    if isinstance(value, str | bool):
        return str(value) if isinstance(value, str) else value
    found = _number(name, value, dtype)
    return value if type(value) is int else found


def _number(name: Hashable, value: Any, dtype: Any) -> float:
    """Return a value as a float, or raise an error that names it."""
    if isinstance(value, str | bytes | bytearray):
        raise refuse(f"x[{name!r}]", value, f"a number; {WORDS}")
    try:
        found = float(value)
        fine = abs(found) <= float(np.finfo(dtype).max)
    except (TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise refuse(f"x[{name!r}]", value, f"a finite number within the range of {dtype}")
    return found


class FrameRows(NamedTuple):
    """Rows whose indices are columns, and the name of each column; None if indices are the slots of hashed names."""

    rows: Rows
    names: list[Any] | None

    def at(self, slots: Any) -> Rows:
        """Return the rows with slots of names as indices."""
        if self.names is None:
            return self.rows
        return self.rows._replace(indices=np.array(slots, np.int64)[self.rows.indices])


def frame_rows(X: Any, reader: RowReader | None, dtype: Any) -> FrameRows:
    """Return the rows of a frame of pandas, polars or Arrow.

    Every cell becomes an entry, as every value of a dict does, except missing ones and in sparse columns of pandas.
    """
    frame, sparse = dataframe.into_frame(X), getattr(X, "sparse", None)
    names: list[Any] = list(frame.columns)
    cells = np.zeros(0) if sparse is not None else np.asarray(frame.to_numpy())
    places = None if reader is None else [reader.place(name if type(name) is str else str(name)) for name in names]
    apart = places is None or (None not in places and len(set(places)) == len(places))
    if not apart or cells.dtype.kind not in "fiub":
        read = [read_row(row, reader, dtype) for row in frame.iter_rows(named=True)]
        order = {name: k for k, name in enumerate(names)}
        columns = [k if reader is not None else order[k] for found, _ in read for k in found]
        indptr = np.cumsum([0, *(len(found) for found, _ in read)], dtype=np.int64)
        values = np.concatenate([np.zeros(0, dtype), *(values for _, values in read)]).astype(dtype)
        return FrameRows(Rows(indptr, np.array(columns, np.int64), values), names if reader is None else None)
    if sparse is not None:
        matrix = sparse.to_coo().tocsr()
        indptr, indices, cells = matrix.indptr.astype(np.int64), matrix.indices, matrix.data.astype(np.float64)
    else:
        height, width = frame.shape
        indptr, indices = np.arange(height + 1, dtype=np.int64) * width, np.tile(np.arange(width), height)
        cells = cells.ravel()
    with np.errstate(over="ignore"):
        values = cells.astype(dtype)
    if not np.isfinite(values).all():
        present = ~np.isnan(values)
        indptr = np.append(0, np.cumsum(present))[indptr]
        indices, cells, values = indices[present], cells[present], values[present]
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        row = int(np.searchsorted(indptr, k, side="right")) - 1
        place = f"X[{names[indices[k]]!r}]"
        raise ValueError(f"{place}: got {cells[k]} in row {row}, expected finite numbers within the range of {dtype}")
    if places is not None:
        return FrameRows(Rows(indptr, np.array(places, np.int64)[indices], values), None)
    return FrameRows(Rows(indptr, indices, values), names)


def targets(y: Any, count: int) -> tuple[list[Any], str | None]:
    """Return the targets as Python objects, and the name of their series."""
    series = dataframe.into_series(y)
    if len(series) != count:
        raise refuse("y", f"{len(series)} targets", f"one for each of {count} rows")
    return series.to_list(), series.name


def importance(w: Any) -> float:
    """Return the weight of a row's loss."""
    if isinstance(w, str | bytes | bytearray):
        raise refuse("w", w, "a number of at least 0")
    return number("w", w, "a number of at least 0", low=0.0, high=float(np.finfo(np.float32).max))


def importances(w: Any, count: int, dtype: Any) -> NDArray[Any]:
    """Return the importance of each row, from one number or a series."""
    if np.ndim(w) == 0:
        return np.full(count, importance(w), dtype)
    weights = [importance(each) for each in dataframe.into_series(w).to_list()]
    if len(weights) != count:
        raise refuse("w", f"{len(weights)} numbers", f"one for each of {count} rows")
    return np.array(weights, dtype)
