"""Arrays and frames as sources: numpy arrays, scipy sparse arrays and matrices, and frames that narwhals knows.

The columns of an array are named c1, c2, ... as those of a file without a header, and so have the same slots.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled import scanner
from forel.data.features.hashing import START, hash_names, slots_of_hashes
from forel.data.features.names import Names
from forel.data.features.rows import drop_rows
from forel.data.options import COLUMNS, ReadOptions
from forel.data.parsers.columns import Columns
from forel.data.problems import Malformed, Problems
from forel.validation import refuse

__all__ = ["Arrays", "arrays_of", "conversion_errors", "frame_of", "is_pandas", "with_features"]

ROWS = 1 << 14  # rows of a batch
LABEL, IMPORTANCE = "y", "w"  # names of columns without another one


@dataclass(frozen=True, eq=False)
class Arrays:
    """Examples in arrays: X, with labels and importances if there are any.

    Parameters
    ----------
    X : numpy array of two dimensions, or a sparse array or matrix of scipy, or a table with the Arrow interface
    y, w : arrays or series of one dimension, or None
    """

    X: Any
    y: Any = None
    w: Any = None

    @property
    def sparse(self) -> bool:
        """Whether X is a sparse array or matrix."""
        return _is_sparse(self.X)

    @property
    def nan_as_null(self) -> bool:
        """Whether a null importance may have been NaN."""
        return self.w is not None or is_pandas(self.X)

    def named(self, columns: Columns) -> Columns:
        """Return the roles of columns, with names for labels and importances."""
        options = columns.options
        label = options.label or (LABEL if self.y is not None else None)
        importance = options.importance or (IMPORTANCE if self.w is not None else None)
        return replace(columns, options=replace(options, label=label, importance=importance))

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Yield record batches of all columns; of sparse arrays only labels and importances."""
        import pyarrow as pa

        X = self.X
        if not (self.sparse or isinstance(X, np.ndarray)):
            with conversion_errors(X):
                table = pa.table(X)
            for name, values in ((columns.label, self.y), (columns.importance, self.w)):
                table = table if values is None else table.append_column(name, _checked(name, values, table.num_rows))
            yield from table.to_batches(max_chunksize=ROWS)
            return
        if X.ndim != 2:
            raise ValueError(f"X: got an array of shape {X.shape}, expected two dimensions, one row per example")
        beside = {
            str(name): _checked(str(name), values, X.shape[0])
            for name, values in ((columns.label, self.y), (columns.importance, self.w))
            if values is not None
        }
        for start in range(0, X.shape[0], ROWS):
            part = slice(start, start + ROWS)
            cells = {} if self.sparse else {f"c{k + 1}": _array(X[part, k]) for k in range(X.shape[1])}
            some = {name: values.slice(start, ROWS) for name, values in beside.items()}
            count = min(ROWS, X.shape[0] - start)
            # A batch without columns would have no rows.
            yield pa.record_batch({**cells, **some} or {IMPORTANCE: _array(np.ones(count))})


def arrays_of(source: Any) -> Arrays | None:
    """Return a source as arrays, if it is one, or a tuple (X, y) or (X, y, importance).

    >>> arrays_of((np.eye(2), [1, 0])).y, arrays_of("file.csv")
    ([1, 0], None)
    """
    parts = source if type(source) is tuple else (source,)
    if not 1 <= len(parts) <= 3:
        return None
    array = isinstance(parts[0], np.ndarray) or _is_sparse(parts[0])
    table = len(parts) > 1 and hasattr(parts[0], "__arrow_c_stream__")
    return Arrays(*parts) if array or table else None


def is_pandas(source: Any) -> bool:
    """Return whether a source is an object of pandas, whose NaN become nulls in Arrow.

    >>> import pandas
    >>> is_pandas(pandas.DataFrame()), is_pandas(np.ones(1))
    (True, False)
    """
    return any(base.__module__.partition(".")[0] == "pandas" for base in type(source).__mro__)


def frame_of(source: Any) -> Any:
    """Return a frame that narwhals knows, such as a lazy frame of polars, as an Arrow table; None for other sources."""
    if not hasattr(type(source), "columns") or find_spec("narwhals") is None:
        return None
    import narwhals.stable.v2 as nw

    frame: Any = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame.to_arrow() if isinstance(frame, nw.DataFrame) else None


def with_features(
    blocks: Iterator[Block], X: Any, options: ReadOptions, problems: Problems, names: Names | None
) -> Iterator[Block]:
    """Yield blocks of labels with the features of a sparse array in their rows."""
    usual = ReadOptions()
    for name in COLUMNS:
        if name not in ("label", "importance") and getattr(options, name) != getattr(usual, name):
            raise refuse(name, getattr(options, name), "none for sparse arrays, whose columns have no names")
    if options.transform is not None:
        raise refuse("interactions", "crosses", "none for sparse arrays, which have no namespaces")
    matrix = X.tocsr()
    words = [b"c%d" % (k + 1) for k in range(matrix.shape[1])]
    hashes = hash_names(words, np.full(len(words), START, np.uint64))
    slots = slots_of_hashes(hashes, options.bits)
    for block in blocks:
        if block.lines is None:
            raise TypeError("lines: got None, expected the number of each row")
        part = matrix[block.lines - 1]
        with np.errstate(over="ignore"):
            values: NDArray[np.float32] = part.data.astype(np.float32)
        lost = _not_finite(values, part, block, problems)
        columns, indptr = part.indices, part.indptr.astype(np.int64)
        indices: NDArray[Any] = slots[columns]
        bad = scanner("merge", "merge_rows")(indptr, indices, values)
        if bad >= 0 and not lost.size:
            raise refuse("X", f"values of one slot that are too large together in row {bad}", "a finite sum")
        if names is not None:
            first = np.unique(columns)
            names.add(slots[first].astype(np.int64), hashes[first], [words[int(k)] for k in first].__getitem__)
        end = int(indptr[-1])
        whole = replace(block, indptr=indptr, indices=indices[:end], values=values[:end])
        yield drop_rows(whole, lost) if lost.size else whole


def _not_finite(values: NDArray[np.float32], part: Any, block: Block, problems: Problems) -> NDArray[np.intp]:
    """Record values that are not finite, and return their rows."""
    places = np.flatnonzero(~np.isfinite(values))
    rows = np.searchsorted(part.indptr, places, side="right") - 1
    for place, row in zip(places.tolist(), rows.tolist(), strict=True):
        line = block.line if block.lines is None else int(block.lines[row])
        expected = "a number within the range of float32"
        problems.record(Malformed(block.file, line, f"c{part.indices[place] + 1}", str(part.data[place]), expected))
    return np.unique(rows)


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def _array(values: Any) -> Any:
    """Return a column as an Arrow array; NaN is missing, as an empty cell of a file is."""
    import pyarrow as pa

    return pa.array(values, from_pandas=True)


@contextmanager
def conversion_errors(source: Any) -> Iterator[None]:
    """Raise errors of converting a frame to Arrow as a ValueError that names the column and a remedy.

    >>> import pandas
    >>> with conversion_errors(frame := pandas.DataFrame({"d": [1, "a"]})):
    ...     _ = frame.__arrow_c_stream__()
    Traceback (most recent call last):
    ValueError: column d: got values that are not of one type (Could not convert 'a' with type str: tried to convert to
    int64), expected numbers or words; astype(str) makes words, and to_dict('records') rows of both
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as wrong:
        reason = str(wrong.args[0]).rstrip()
        if "non-struct" in reason:
            row = "a row is frame.iloc[[0]] or [row.to_dict()], and a column is frame[['name']]"
            raise refuse("source", type(source).__name__, f"a table; of a frame, {row}") from None
        column = re.search(r"for column (.*) with type", " ".join(map(str, wrong.args)))
        name = "source" if column is None else f"column {column[1]}"
        remedy = "astype(str) makes words, and to_dict('records') rows of both"
        raise ValueError(
            f"{name}: got values that are not of one type ({reason}), expected numbers or words; {remedy}"
        ) from None


def _checked(name: str | None, values: Any, rows: int) -> Any:
    import pyarrow as pa

    if len(shape := getattr(values, "shape", ())) > 1:
        raise refuse(str(name), f"an array of shape {shape}", "one dimension, such as y.ravel() or frame['y']")
    exported = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    column = pa.chunked_array(values).combine_chunks() if exported else _array(values)
    if len(column) != rows:
        raise refuse(str(name), f"{len(column)} values", f"one for each of {rows} rows")
    return column
