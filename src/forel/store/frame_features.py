"""Frames with words: a feature for each column of numbers, and for each category of the other columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.data.values import category_of
from forel.validation import refuse

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["CATEGORY", "NUMBER", "FrameFeatures", "frame_of", "words_frame"]

NUMBER, CATEGORY = "number", "category"


def words_frame(X: Any) -> Any:
    """Return a frame that has columns of other types than numbers as a frame of narwhals; None for other data.

    >>> import pandas
    >>> words_frame(pandas.DataFrame({"age": [31]})) is None, words_frame(np.eye(2)) is None
    (True, True)
    >>> words_frame(pandas.DataFrame({"city": ["Rome"]})).columns
    ['city']
    """
    frame = frame_of(X)
    if frame is None or all(_is_number(kind) for kind in frame.schema.dtypes()):
        return None
    return frame


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
    if column.dtype == nw.Object and all(isinstance(value, str | None) for value in column.to_list()):
        return CATEGORY
    expected = "numbers, words or categories; convert the column, such as by astype(str), or leave it out"
    raise ValueError(f"X[{name!r}]: got a column of type {column.dtype}, expected {expected}")


@dataclass(frozen=True)
class FrameFeatures:
    """The features of a frame.

    Parameters
    ----------
    kinds : "number" or "category" for each column, in order
    features : column and category of each feature; None in place of the category for columns of numbers

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
            words = sorted(_dictionary(frame[name])) if kind == CATEGORY else [None]
            features += [(name, word) for word in words]
        return cls(kinds, tuple(features))

    def extended(self, frame: Any) -> "FrameFeatures":
        """Return the same features, followed by new ones for the categories that these do not have."""
        new: list[tuple[str, str | None]] = []
        for name, places in self.places.items():
            new += [(name, word) for word in sorted(_dictionary(self._column(frame, name)) - places.keys())]
        return FrameFeatures(self.kinds, (*self.features, *new)) if new else self

    @property
    def names(self) -> list[str]:
        """The name of each feature, as in models trained from files."""
        return [name if word is None else f"{name}^{word}" for name, word in self.features]

    def matrix(self, frame: Any, width: int, dtype: Any) -> "sparse.csr_array":
        """Return the rows of a frame; categories that are missing or not among the features have no entry."""
        from scipy import sparse  # slow to import

        height = len(frame)
        indices, values = np.empty((height, len(self.kinds)), np.int32), np.ones((height, len(self.kinds)), dtype)
        for k, (name, kind) in enumerate(self.kinds.items()):
            column = self._column(frame, name)
            if kind == CATEGORY:
                indices[:, k] = _codes(column, self.places[name])
                continue
            indices[:, k] = self.numbers[name]
            values[:, k] = _values(name, column, dtype)
        there = indices >= 0
        indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return sparse.csr_array((values[there], indices[there], indptr), shape=(height, width))

    def _column(self, frame: Any, name: str) -> Any:
        """Return a column of the kind that it had in ``fit``."""
        column = frame[name]
        if (found := _kind(name, column)) != self.kinds[name]:
            if found == NUMBER:  # codes, which are categories by their text
                return column
            return _parsed(name, column)
        return column

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The features of columns of numbers."""
        return {name: k for k, (name, word) in enumerate(self.features) if word is None}

    @cached_property
    def places(self) -> dict[str, dict[str, int]]:
        """The features of the categories of each column."""
        found: dict[str, dict[str, int]] = {name: {} for name, kind in self.kinds.items() if kind == CATEGORY}
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
        if not {*kinds.values()} <= {NUMBER, CATEGORY} or not all(
            kinds.get(name) == (NUMBER if word is None else CATEGORY) for name, word in features
        ):
            raise refuse("columns", packed, "the kinds and features of columns")
        return cls(kinds, features)


def _encoded(column: Any) -> tuple[list[str | None], NDArray[np.int64]]:
    """Return the distinct values of a column as text, None for those that are missing, and the code of each row."""
    import pyarrow as pa
    from pyarrow import types

    array = column.to_arrow()
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if not types.is_dictionary(array.type):
        array = array.dictionary_encode()
    words = [None if value is None else value if isinstance(value, str) else category_of(value)
             for value in array.dictionary.to_pylist()]  # fmt: skip
    codes = array.indices.fill_null(len(words)).to_numpy(zero_copy_only=False).astype(np.int64)
    return [*(word or None for word in words), None], codes


def _dictionary(column: Any) -> set[str]:
    """Return the categories of a column, declared ones that no row has among them."""
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


def _values(name: str, column: Any, dtype: Any) -> NDArray[Any]:
    values = np.asarray(column.to_numpy(), np.float64)
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        expected = "finite numbers; impute missing values, or use forel.train, which leaves them out"
        raise ValueError(f"X[{name!r}]: got {values[k]} in row {k}, expected {expected}")
    return values.astype(dtype)
