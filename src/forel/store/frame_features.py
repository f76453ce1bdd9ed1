"""Frames with words, dates or missing numbers: features for columns of numbers, categories and parts of dates.

A missing value has no feature, as in models that are trained from files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.data.features.dates import date_features
from forel.data.values import category_of
from forel.validation import refuse

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["CATEGORY", "DATE", "NUMBER", "FrameFeatures", "array_frame", "frame_of", "present", "words_frame"]

NUMBER, CATEGORY, DATE = "number", "category", "date"


def present(X: Any) -> Any:
    """Return an array or sparse matrix with 0 in place of NaN, which adds nothing to a margin.

    >>> present(np.array([[1.0, np.nan]]))
    array([[1., 0.]])
    """
    values = X if isinstance(X, np.ndarray) else getattr(X, "data", None)
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or not np.isnan(values).any():
        return X
    if values is X:
        return np.where(np.isnan(values), 0, values)
    copy = X.copy()
    copy.data[np.isnan(values)] = 0
    return copy


def array_frame(X: Any, names: Sequence[str] | None = None) -> Any:
    """Return the columns of rows of numbers as a frame of narwhals, named x0, x1, ... without names; None for others.

    >>> array_frame(np.eye(2)).columns, array_frame(["no numbers"])
    (['x0', 'x1'], None)
    """
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if dense.ndim != 2 or dense.dtype.kind not in "biuf" or (names is not None and len(names) != dense.shape[1]):
        return None
    import pyarrow as pa

    own = [f"x{k}" for k in range(dense.shape[1])] if names is None else names
    return frame_of(pa.table({name: dense[:, k] for k, name in enumerate(own)}))


def words_frame(X: Any, missing: bool = True) -> Any:
    """Return data that have words, dates or, if wanted, missing values as a frame of narwhals; None for other data.

    >>> import pandas
    >>> words_frame(pandas.DataFrame({"age": [31]})) is None, words_frame(np.eye(2)) is None
    (True, True)
    >>> words_frame(pandas.DataFrame({"city": ["Rome"]})).columns
    ['city']
    """
    if missing and isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f" and np.isnan(X).any():
        return array_frame(X)
    frame = frame_of(X)
    if frame is None or not all(map(_is_number, frame.schema.dtypes())):
        return frame
    return frame if missing and any(_has_missing(frame[name]) for name in frame.columns) else None


def _has_missing(column: Any) -> bool:
    return bool(column.is_null().any() or (column.dtype.is_float() and column.is_nan().any()))


def frame_of(X: Any) -> Any:
    """Return a frame with text as names of columns as a frame of narwhals; None for other data."""
    if not hasattr(type(X), "columns") or not all(isinstance(name, str) for name in _names(X)):
        return None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _names(X: Any) -> list[Any]:
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def _is_number(kind: Any) -> bool:
    import narwhals.stable.v2 as nw

    return bool(kind.is_numeric() or kind == nw.Boolean)


def _kind(name: str, column: Any) -> str:
    """Return the kind of a column by its type: words and declared categories are categories."""
    import narwhals.stable.v2 as nw

    if _is_number(column.dtype):
        return NUMBER
    if column.dtype in (nw.String, nw.Categorical, nw.Enum):
        return CATEGORY
    if column.dtype in (nw.Datetime, nw.Date):
        return DATE
    if column.dtype == nw.Object and all(isinstance(value, str | None) for value in column.to_list()):
        return CATEGORY
    expected = "numbers, words, categories or dates; convert the column, such as by astype(str), or leave it out"
    raise ValueError(f"X[{name!r}]: got a column of type {column.dtype}, expected {expected}")


@dataclass(frozen=True)
class FrameFeatures:
    """The features of a frame.

    Parameters
    ----------
    kinds : "number", "category" or "date" for each column, in order
    features : column and category of each feature; None in place of the category for columns of numbers, and for the
        number of years of a date, whose hour, weekday and month are categories

    >>> import pandas
    >>> frame = words_frame(pandas.DataFrame({"city": ["Rome", "Oslo", None], "age": [31, 17, 52]}))
    >>> features = FrameFeatures.of(frame)
    >>> features.names
    ['city^Oslo', 'city^Rome', 'age']
    >>> features.matrix(frame, 3, np.float32).toarray().tolist()
    [[0.0, 1.0, 31.0], [1.0, 0.0, 17.0], [0.0, 0.0, 52.0]]
    """

    kinds: Mapping[str, str]
    features: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def of(cls, frame: Any) -> "FrameFeatures":
        """Return the features of a frame."""
        kinds = {name: _kind(name, frame[name]) for name in frame.columns}
        features: list[tuple[str, str | None]] = []
        for name, kind in kinds.items():
            words = [] if kind == NUMBER else sorted(_dictionary(frame[name], kind))
            features += [(name, word) for word in ([] if kind == CATEGORY else [None]) + words]
        return cls(kinds, tuple(features))

    def extended(self, frame: Any) -> "FrameFeatures":
        """Return the same features, followed by new ones for the categories that these do not have."""
        new: list[tuple[str, str | None]] = []
        for name, places in self.places.items():
            known = _dictionary(self._column(frame, name), self.kinds[name])
            new += [(name, word) for word in sorted(known - places.keys())]
        return FrameFeatures(self.kinds, (*self.features, *new)) if new else self

    @property
    def names(self) -> list[str]:
        """The name of each feature, as in models trained from files."""
        return [name if word is None else f"{name}^{word}" for name, word in self.features]

    def matrix(self, frame: Any, width: int, dtype: Any) -> "sparse.csr_array":
        """Return the rows of a frame; values that are missing or not among the features have no entry."""
        from scipy import sparse  # slow to import

        entries = [entry for name in self.kinds for entry in self._entries(name, self._column(frame, name))]
        indices = np.stack([places for places, _ in entries], axis=1)
        values = np.stack([np.broadcast_to(numbers, len(frame)) for _, numbers in entries], axis=1).astype(dtype)
        there = indices >= 0
        indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return sparse.csr_array((values[there], indices[there], indptr), shape=(len(frame), width))

    def _entries(self, name: str, column: Any) -> Iterator[tuple[NDArray[Any], Any]]:
        """Yield the feature of each row of a column, −1 for none, and its value; several of these for dates."""
        kind = self.kinds[name]
        if kind == CATEGORY:
            yield _codes(column, self.places[name]), 1.0
        elif kind == NUMBER:
            values = _values(name, column)
            yield np.where(np.isnan(values), -1, self.numbers[name]), np.nan_to_num(values)
        else:
            distinct, codes = _distinct(column)
            dates = [self.date_entries(name, date) for date in distinct]
            for k in range(4):  # hour, weekday, month and years
                places = np.array([one[k][0] if k < len(one) else -1 for one in dates], np.int32)
                yield places[codes], np.array([one[k][1] if k < len(one) else 0.0 for one in dates])[codes]

    def date_entries(self, name: str, date: Any) -> list[tuple[int, float]]:
        """Return the features and values of a date, as in models that are trained from files; none if it is missing."""
        found = [] if date is None else date_features(date)
        places = {**self.places[name], "": self.numbers[name]}
        return [(places[word], value) for word, value in found if word in places]

    def _column(self, frame: Any, name: str) -> Any:
        """Return a column of the kind that it had in ``fit``."""
        column, kind = frame[name], self.kinds[name]
        found = _kind(name, column)
        if found == kind or (found == NUMBER and kind == CATEGORY):  # codes, which are categories by their text
            return column
        if DATE in (found, kind):
            raise ValueError(f"X[{name!r}]: got a column of type {column.dtype}, expected a {kind}, as in fit")
        return _parsed(name, column)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The features of columns of numbers, and of the years of dates."""
        return {name: k for k, (name, word) in enumerate(self.features) if word is None}

    @cached_property
    def places(self) -> dict[str, dict[str, int]]:
        """The features of the categories of each column, and of the parts of dates."""
        found: dict[str, dict[str, int]] = {name: {} for name, kind in self.kinds.items() if kind != NUMBER}
        for k, (name, word) in enumerate(self.features):
            if word is not None:
                found[name][word] = k
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the features as JSON, as model files store them."""
        return {"kinds": [[name, kind] for name, kind in self.kinds.items()], "features": [*map(list, self.features)]}

    @classmethod
    def from_json(cls, packed: Any) -> "FrameFeatures":
        """Return the features of a model file."""
        kinds, features = dict(packed["kinds"]), tuple((name, word) for name, word in packed["features"])
        if not {*kinds.values()} <= {NUMBER, CATEGORY, DATE} or not all(
            kinds.get(name) in (DATE, NUMBER if word is None else CATEGORY) for name, word in features
        ):
            raise refuse("columns", packed, "the kinds and features of columns")
        return cls(kinds, features)


def _distinct(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct values of a column, None for those that are missing, and the code of each row."""
    import pyarrow as pa
    from pyarrow import types

    array = column.to_arrow()
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)  # datetime has no nanoseconds
    if not types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = [*array.dictionary.to_pylist(), None]
    codes = array.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
    return values, codes


def _encoded(column: Any) -> tuple[list[str | None], NDArray[np.int64]]:
    """Return the distinct values of a column as text, None for those that are missing, and the code of each row."""
    values, codes = _distinct(column)
    return [value or None if value is None or isinstance(value, str) else category_of(value) for value in values], codes


def _dictionary(column: Any, kind: str) -> set[str]:
    """Return the categories of a column, declared ones that no row has among them, or the parts of its dates."""
    if kind == DATE:
        return {word for date in _distinct(column)[0] if date is not None for word, _ in date_features(date) if word}
    return {word for word in _encoded(column)[0] if word is not None}


def _codes(column: Any, places: Mapping[str, int]) -> NDArray[np.int32]:
    """Return the feature of each row; −1 for none."""
    words, codes = _encoded(column)
    table = np.array([-1 if word is None else places.get(word, -1) for word in words], np.int32)
    found: NDArray[np.int32] = table[codes]
    return found


def _parsed(name: str, column: Any) -> Any:
    """Return text as numbers."""
    import narwhals.stable.v2 as nw

    try:
        return column.cast(nw.String).cast(nw.Float64)
    except Exception:  # each library has its own
        expected = "numbers as in fit; convert the column to numbers"
        raise ValueError(f"X[{name!r}]: got words, expected {expected}") from None


def _values(name: str, column: Any) -> NDArray[np.float64]:
    """Return numbers, NaN for those that are missing."""
    import narwhals.stable.v2 as nw

    values = np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
    if (endless := np.isinf(values)).any():
        k = int(np.argmax(endless))
        raise ValueError(f"X[{name!r}]: got {values[k]} in row {k}, expected finite numbers")
    return values
