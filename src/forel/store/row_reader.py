"""Single rows as slots and values: dictionaries hold the features of each key and value, hashed once."""

import difflib
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from forel.data import ReadOptions, slot
from forel.data.features.dates import date_features
from forel.data.features.kinds import sign_of
from forel.data.features.rows import CONSTANT
from forel.data.parsers.columns import Columns
from forel.data.values import category_of, parse_number, signed_log1p

__all__ = ["NewKeys", "RowReader"]

MAX_CACHED = 1 << 16  # keys, and values of a key, whose features are kept


class RowReader:
    """Reads one row as slots and values, without the arrays of a block.

    Parameters
    ----------
    options : how rows are read; crosses are not supported
    new : warns of columns that training did not have; None if they are unknown
    dtype : of values, in which those that share a slot are summed, as in blocks

    ``slots`` has the slots of the last names, and their namespaces.

    >>> reader = RowReader(ReadOptions(label="y", bits=10))
    >>> reader.read({"age": 3, "city": "Rome", "y": 1}), reader.read({"age": [3]})
    (([600, 12], [3, 1.0]), None)
    """

    def __init__(self, options: ReadOptions, new: "NewKeys | None" = None, dtype: DTypeLike = np.float32) -> None:
        self.columns, self.bits = Columns(options, options.kinds), options.bits
        self.dtype, self.largest = dtype, float(np.finfo(dtype).max)
        categories = [name for name, kind in options.kinds.items() if kind == "category"]
        unused = (options.label, options.importance, *options.ignore)
        self._special = {*categories, *self.columns.kinds, *self.columns.derived, *unused}
        self._kept = None if options.keep is None else {*options.keep}
        self._constant = slot(CONSTANT, bits=options.bits) if options.constant else None

        self._new = new
        self.slots: dict[tuple[str, str], int] = _Keys(self._slot)
        self._places, self._features = _Keys(self.place), _Keys(self._features_of)

    def _slot(self, name: tuple[str, str]) -> int:
        return slot(name[0].encode("utf-8", "surrogatepass"), name[1].encode("utf-8", "surrogatepass"), self.bits)

    def place(self, key: Any) -> int | None:
        """Return the slot of plain numbers of a key; None if they are categories, transformed, or not used."""
        self._check(key)
        if not isinstance(key, str) or key in self._special or (self._kept is not None and key not in self._kept):
            return None
        return self.slots[key, ""]

    def _features_of(self, key: Any) -> "_Features":
        self._check(key)
        return _Features(key, self)

    def _check(self, key: Any) -> None:
        if self._new is not None:
            self._new.check(key, stacklevel=7)

    def read(self, row: Any) -> tuple[list[int], list[float]] | None:
        """Return the slots and values of a dict; None if a value is not a number in range, text or missing."""
        if type(row) is not dict and not isinstance(row, Mapping):
            return None
        slots, values, places, largest = list[int](), list[float](), self._places, self.largest
        for key, value in row.items():
            kind = type(value)
            if kind is float or kind is int or kind is bool:
                if (place := places[key]) is not None:
                    if -largest <= value <= largest:
                        slots.append(place)
                        values.append(value)
                    elif value == value:  # NaN is missing
                        return None
                    continue
            elif value is None:
                continue
            elif kind is not str:
                return None
            features = self._features[key]
            found = features.read(value) if kind is bool else features[value]  # True == 1 is another category
            if found is None:
                return None
            for place, number in found:
                slots.append(place)
                values.append(number)
        if self._constant is not None:
            slots.append(self._constant)
            values.append(1.0)
        return (slots, values) if len(set(slots)) == len(slots) else self._merged(slots, values)

    def _merged(self, slots: list[int], values: list[float]) -> tuple[list[int], list[float]] | None:
        """Return the sums of values that share a slot; None if one is out of range."""
        places = {place: k for k, place in enumerate(dict.fromkeys(slots))}
        sums = np.zeros(len(places), self.dtype)
        with np.errstate(over="ignore"):
            np.add.at(sums, [places[place] for place in slots], np.array(values, self.dtype))
        return (list(places), sums.tolist()) if np.isfinite(sums).all() else None


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


class _Keys(dict[Any, Any]):
    """What is known of each key, created when the key is first used."""

    def __init__(self, create: Callable[[Any], Any]) -> None:
        self._create = create

    def __missing__(self, key: Any) -> Any:
        if len(self) >= MAX_CACHED:
            self.clear()
        self[key] = created = self._create(key)
        return created


Found = tuple[tuple[int, float], ...]


class _Features(dict[Any, "Found | None"]):
    """Slots and values by value of a key; None for a number out of range."""

    __slots__ = ("_key", "_reader", "_used")

    def __init__(self, key: Any, reader: RowReader) -> None:
        self._key, self._reader = key, reader
        self._used = isinstance(key, str) and reader.columns.uses(key)

    def __missing__(self, value: Any) -> "Found | None":
        if len(self) >= MAX_CACHED:
            self.clear()
        self[value] = found = self.read(value)
        return found

    def read(self, value: Any) -> "Found | None":
        """Return the slots and values of a value, which are not kept."""
        if not self._used:
            return () if isinstance(self._key, str) else None
        if value != value:
            return ()
        columns, key = self._reader.columns, self._key
        if key in columns.options.text:
            tokens = columns.options.text_features.tokens(value if isinstance(value, str) else category_of(value))
            return tuple(found for token in tokens for found in self._category(token))
        if key in columns.dates:
            return self._date(value, columns.dates[key])
        kind = columns.kinds.get(key) or columns.known.get(key)
        if not isinstance(value, str):
            number = float(value)
        elif (sign := sign_of(kind)) is None:
            return self._category(value)
        else:
            try:
                parsed = parse_number(value.encode("utf-8", "surrogatepass"), sign, columns.options.decimal)
            except ValueError:
                return self._category(value)
            if parsed is None:
                return ()
            number = parsed
        if not -self._reader.largest <= number <= self._reader.largest:
            return None
        if kind == "category":
            return self._category(category_of(value))
        if key in columns.log:
            return ((self._place, float(signed_log1p(number))),)
        return ((self._place, number),)

    @property
    def _place(self) -> int:
        return self._reader.slots[self._key, ""]

    def _date(self, value: Any, order: str) -> Found:
        try:
            found = date_features(value, order)
        except (ValueError, OverflowError):
            return ()
        places = ((self._category(part) if part else ((self._place, 1.0),), number) for part, number in found)
        return tuple((where[0][0], float(number)) for where, number in places if where)

    def _category(self, word: str) -> Found:
        if not word:
            return ()
        return ((self._reader.slots[word, self._key], 1.0),)
