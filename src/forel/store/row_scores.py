"""Single rows as slots and values: dictionaries hold the features of each key and value, hashed once."""

import difflib
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from forel.data import ReadOptions, slot
from forel.data.features.constant import CONSTANT
from forel.data.features.dates import date_features
from forel.data.features.kinds import sign_of
from forel.data.features.transforms import buckets, signed_log1p
from forel.data.parsers.columns import Columns
from forel.data.values import category_of, parse_number

__all__ = ["NewKeys", "RowReader"]

MAX_CACHED = 1 << 16  # keys, and values of a key, whose features are kept
LARGEST = float(np.finfo(np.float32).max)


class RowReader:
    """Reads one row as slots and values, without the arrays of a block.

    Parameters
    ----------
    options : how rows are read; crosses are not supported
    new : warns of columns that training did not have; None if they are unknown

    >>> reader = RowReader(ReadOptions(label="y", bits=10))
    >>> reader.read({"age": 3, "city": "Rome", "y": 1}), reader.read({"age": [3]})
    (([600, 12], [3, 1.0]), None)
    """

    def __init__(self, options: ReadOptions, new: "NewKeys | None" = None) -> None:
        columns = Columns(options, options.kinds)
        self._constant = slot(CONSTANT, bits=options.bits) if options.constant else None

        def features(key: Any) -> _Features:
            if new is not None:
                new.check(key, stacklevel=6)
            return _Features(key, columns)

        self._keys = _Keys(features)

    def read(self, row: Any) -> tuple[list[int], list[float]] | None:
        """Return the slots and values of a dict; None if a value is not a number within float32, text or missing."""
        if type(row) is not dict and not isinstance(row, Mapping):
            return None
        slots, values, keys = list[int](), list[float](), self._keys
        for key, value in row.items():
            features = keys[key]
            kind = type(value)
            if kind is float or kind is int:
                if features.slot is not None:
                    if -LARGEST <= value <= LARGEST:
                        slots.append(features.slot)
                        values.append(value)
                    elif value == value:  # NaN is missing
                        return None
                    continue
            elif value is None:
                continue
            elif kind is not str:
                return None
            found = features[value]
            if found is None:
                return None
            for place, number in found:
                slots.append(place)
                values.append(number)
        if self._constant is not None:
            slots.append(self._constant)
            values.append(1.0)
        return (slots, values) if len(set(slots)) == len(slots) else _merged(slots, values)


def _merged(slots: list[int], values: list[float]) -> tuple[list[int], list[float]]:
    """Return the sums of values that share a slot."""
    sums = dict.fromkeys(slots, 0.0)
    for place, value in zip(slots, values, strict=True):
        sums[place] += value
    return list(sums), list(sums.values())


class NewKeys:
    """Warns of keys that the rows of training did not have, of each once.

    Parameters
    ----------
    schema : of training
    options : how rows are read

    >>> NewKeys({"age": {}, "city": {}}, ReadOptions(label="y")).check("ages", stacklevel=1)
    Traceback (most recent call last):
    UserWarning: the row differs from those of training: 'ages' is new; did you mean 'age'?
    """

    def __init__(self, schema: Collection[str], options: ReadOptions) -> None:
        self._columns, self._known = Columns(options, options.kinds), {*schema, *options.text, *options.dates}
        self._checked = {*self._known, *self._columns.kinds}

    def check(self, key: Any, stacklevel: int) -> None:
        """Warn if a key is new."""
        if not isinstance(key, str) or key in self._checked or not self._columns.uses(key):
            return
        if len(self._checked) < MAX_CACHED:
            self._checked.add(key)
        close = difflib.get_close_matches(key, self._known, 1, 0.7)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        message = f"the row differs from those of training: {key!r} is new{hint}"
        warnings.warn(message, UserWarning, stacklevel=stacklevel)


class _Keys(dict[Any, "_Features"]):
    """The features of each key, created when the key is first used."""

    def __init__(self, create: Callable[[Any], "_Features"]) -> None:
        self._create = create

    def __missing__(self, key: Any) -> "_Features":
        if len(self) >= MAX_CACHED:
            self.clear()
        self[key] = features = self._create(key)
        return features


Found = tuple[tuple[int, float], ...]


class _Features(dict[Any, "Found | None"]):
    """Slots and values by value of a key; None for a number out of range.

    ``slot`` is that of plain numbers; None if they are categories, transformed, or not used.
    """

    def __init__(self, key: Any, columns: Columns) -> None:
        self._columns, self._key, self._bits = columns, key, columns.options.bits
        self._kind = columns.kinds.get(key) or columns.known.get(key)
        self._used = isinstance(key, str) and columns.uses(key)
        self.slot: int | None = None
        if self._used:
            self._name = key.encode("utf-8", "surrogatepass")
            self._place = slot(self._name, bits=self._bits)
            changed = self._kind == "category" or columns.kinds.get(key) == "number" or key in columns.derived
            self.slot = None if changed else self._place

    def __missing__(self, value: Any) -> "Found | None":
        if not self._used:
            return () if isinstance(self._key, str) else None
        if value != value:
            return ()
        if len(self) >= MAX_CACHED:
            self.clear()
        self[value] = found = self._read(value)
        return found

    def _read(self, value: Any) -> "Found | None":
        if self._key in self._columns.options.text:
            tokens = self._columns.options.text_features.tokens(value if isinstance(value, str) else category_of(value))
            return tuple(found for token in tokens for found in self._category(token))
        if self._key in self._columns.dates:
            return self._date(value)
        number = None if isinstance(value, str) else float(value)
        sign = sign_of(self._kind)
        if isinstance(value, str) and sign is not None:
            try:
                number = parse_number(value.encode("utf-8", "surrogatepass"), sign, self._columns.options.decimal)
            except ValueError:
                return self._category(value)
            if number is None:
                return ()
        if number is None:
            return self._category(value)
        if not -LARGEST <= number <= LARGEST:
            return None
        if self._kind == "category":
            return self._category(category_of(value))
        if self._key in self._columns.log:
            return ((self._place, float(signed_log1p(number))),)
        if self._key in self._columns.buckets:
            return self._category(buckets([number], self._columns.buckets[self._key])[0][0])
        return ((self._place, number),)

    def _date(self, value: Any) -> Found:
        try:
            found = date_features(value, self._columns.dates[self._key])
        except (ValueError, OverflowError):
            return ()
        places = ((self._category(part) if part else ((self._place, 1.0),), number) for part, number in found)
        return tuple((where[0][0], float(number)) for where, number in places if where)

    def _category(self, word: str) -> Found:
        if not word:
            return ()
        return ((slot(word.encode("utf-8", "surrogatepass"), self._name, self._bits), 1.0),)
