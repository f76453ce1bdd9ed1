"""Rows for models without hashed names: of scikit-learn estimators, whose columns are known, and of river models."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forel.data import Names
from forel.data.values import category_of, is_null
from forel.learner.rows import Rows, rows_of
from forel.store.frame_features import CATEGORY, DATE, NUMBER, FrameFeatures, array_frame, frame_of, present
from forel.validation import refuse

__all__ = ["NamedRows", "named_rows", "slots_of_names", "unpack_value"]


@dataclass(frozen=True)
class NamedRows:
    """How rows of names and values become rows of features.

    Parameters
    ----------
    features : the number of features of the model
    columns : the columns of an estimator; None if they have no names, and for river models
    slots : the feature of each name of a river model; None for estimators
    classes : the classes, in the order of the model's; empty for numbers

    >>> columns = FrameFeatures({"age": "number", "city": "category"}, (("age", None), ("city", "Rome")))
    >>> rows = NamedRows(2, columns).read([{"city": "Rome", "age": 31}, {"age": 17, "city": "Oslo"}], np.float32)
    >>> rows.indices, rows.values
    (array([0, 1, 0], dtype=int32), array([31.,  1., 17.], dtype=float32))
    """

    features: int
    columns: FrameFeatures | None = None
    slots: Mapping[Hashable, int] | None = None
    classes: tuple[Any, ...] = ()

    def read(self, rows: Any, dtype: Any) -> Rows:
        """Return the rows of a frame, of an array, or of a list of dicts."""
        frame = frame_of(rows)
        if frame is not None and self.columns is not None:
            self._check_columns(frame.columns)
            return rows_of(self.columns.matrix(frame, self.features, dtype), self.features, dtype)
        if frame is not None:
            rows = list(frame.iter_rows(named=True))
        if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
            entries = [self._entries(row) for row in rows]
            indptr = np.cumsum([0, *map(len, entries)])
            indices = np.array([k for row in entries for k, _ in row], np.int64)
            values = np.array([value for row in entries for _, value in row], np.float64)
            return rows_of(Rows(indptr, indices, values), self.features, dtype)
        if self.slots is not None or (self.columns is not None and {CATEGORY, DATE} & {*self.columns.kinds.values()}):
            raise refuse("rows", type(rows).__name__, "a frame or a list of dicts, with the names of training")
        columns = None if self.columns is None else array_frame(rows, list(self.columns.kinds))
        if self.columns is None or columns is None:
            return rows_of(present(rows), self.features, dtype)
        return rows_of(self.columns.matrix(columns, self.features, dtype), self.features, dtype)

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of features."""
        named = {} if self.columns is None else dict(enumerate(self.columns.names))
        return named if self.slots is None else {slot: str(name) for name, slot in self.slots.items()}

    def name(self, feature: int) -> str:
        """Return the name of a feature; its number if it has none."""
        return self.names.get(feature, str(feature))

    def _entries(self, row: Mapping[Any, Any]) -> list[tuple[int, float]]:
        """Return the features and values of a dict; names that the model does not know are ignored."""
        if self.slots is not None:
            known = ((name, value) for name, value in row.items() if name in self.slots and not is_null(value))
            return [(self.slots[name], _number(name, value)) for name, value in known]
        if self.columns is None:
            expected = f"an array with {self.features} columns, as in fit, which had no names"
            raise refuse("rows", "dicts", expected)
        self._check_columns(row)
        found = []
        for name, kind in self.columns.kinds.items():
            value = row[name]
            if is_null(value):
                continue
            if kind == NUMBER:
                found.append((self.columns.numbers[name], _number(name, value)))
            elif kind == DATE:
                found += self.columns.date_entries(name, value)
            else:
                text = value if isinstance(value, str) else category_of(value)
                place = self.columns.places[name].get(text)
                found += [] if place is None else [(place, 1.0)]
        return found

    def _check_columns(self, given: Any) -> None:
        assert self.columns is not None
        missing = [name for name in self.columns.kinds if name not in given]
        if missing:
            raise ValueError(f"rows: got no {missing[0]!r}, expected the columns {', '.join(self.columns.kinds)}")


def _number(name: Any, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise refuse(f"row[{name!r}]", value, "a finite number, as in training")
    return number


def named_rows(
    features: int, estimator: Mapping[str, Any] | None, reading: Any, names: Names | None
) -> NamedRows | None:
    """Return how rows of a stored estimator or river model are read; None for a model of hashed names.

    Parameters
    ----------
    features : the number of features of the model
    estimator : its attributes in the file
    reading : read options in the file; None if there are none
    names : of features, in the file
    """
    if estimator is None or (reading is not None and not reading.get("named")):
        return None
    classes = estimator.get("classes") or ()
    if reading is not None:
        ordered = sorted(classes, key=lambda one: float(one[1]))
        return NamedRows(
            features, None, slots_of_names(estimator, names), tuple(unpack_value(one[0]) for one in ordered)
        )
    known = tuple(np.array(classes["values"], dtype=classes["dtype"]).tolist()) if classes else ()
    columns = None
    if estimator.get("columns") is not None:
        columns = FrameFeatures.from_json(estimator["columns"])
    elif estimator.get("feature_names"):
        words = estimator["feature_names"]
        columns = FrameFeatures(dict.fromkeys(words, NUMBER), tuple((word, None) for word in words))
    return NamedRows(features, columns, None, known)


def slots_of_names(estimator: Mapping[str, Any], names: Names | None) -> dict[Hashable, int]:
    """Return the slots of the names of a river model, in the order in which they first occurred."""
    others = {int(slot): unpack_value(name) for slot, name in estimator["other_names"]}
    found = {slot: names[slot] for slot in names} if names is not None else {}
    slots = {**found, **others}
    if sorted(slots) != list(range(1, len(slots) + 1)):
        raise refuse("stored", "slots of names with gaps", "a file of a river model; take another copy")
    return {slots[slot]: slot for slot in sorted(slots)}


def unpack_value(packed: Any) -> Any:
    """Return a class or a name of a river model, which may be a tuple, from JSON."""
    return tuple(map(unpack_value, packed["tuple"])) if isinstance(packed, dict) else packed
