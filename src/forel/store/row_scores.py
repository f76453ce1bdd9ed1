"""Margins of single rows from fixed weights, without arrays: a dictionary holds the contribution of each value."""

import difflib
import math
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from forel.data import ReadOptions, slot
from forel.data.features.constant import CONSTANT
from forel.data.features.dates import date_features
from forel.data.features.transforms import buckets, signed_log1p
from forel.data.parsers.cell_values import category_of, parse_number
from forel.data.parsers.columns import Columns

__all__ = ["NewKeys", "RowScorer"]

MAX_CACHED = 1 << 16  # keys, and values of a key, whose contributions are kept
LARGEST = float(np.finfo(np.float32).max)


class RowScorer:
    """The margins of dicts under fixed weights.

    Parameters
    ----------
    weight : returns the weight of a slot
    bias : weight of the constant feature
    options : how rows are read; crosses are not supported
    new : warns of columns that training did not have; None if they are unknown

    >>> scorer = RowScorer(lambda slot: 2.0, 1.0, ReadOptions(label="y"))
    >>> scorer.margin({"age": 3, "city": "Rome", "y": 1}), scorer.margin({"age": [3]})
    (9.0, None)
    """

    def __init__(
        self,
        weight: Callable[[int], float],
        bias: float,
        options: ReadOptions,
        new: "NewKeys | None" = None,
    ) -> None:
        columns = Columns(options, options.kinds)
        constant = weight(slot(CONSTANT, bits=options.bits)) if options.constant else 0.0
        self._bias = bias + constant

        def contributions(key: Any) -> _Contributions:
            if new is not None:
                new.check(key, stacklevel=5)
            return _Contributions(key, columns, weight)

        self._keys = _Keys(contributions)

    def margin(self, row: Mapping[str, Any]) -> float | None:
        """Return the margin of a row; None if a value is not a number within float32, a string or missing."""
        total, keys = self._bias, self._keys
        for key, value in row.items():
            contributions = keys[key]
            kind = type(value)
            if kind is str:
                total += contributions[value]
            elif kind is float or kind is int:
                factor = contributions.factor
                if factor is None:
                    total += contributions[value]
                elif -LARGEST <= value <= LARGEST:
                    total += factor * value
                elif value == value:  # NaN is missing
                    return None
            elif value is not None:
                return None
        return total if math.isfinite(total) else None


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


class _Keys(dict[Any, "_Contributions"]):
    """The contributions of each key, created when the key is first used."""

    def __init__(self, create: Callable[[Any], "_Contributions"]) -> None:
        self._create = create

    def __missing__(self, key: Any) -> "_Contributions":
        if len(self) >= MAX_CACHED:
            self.clear()
        self[key] = contributions = self._create(key)
        return contributions


class _Contributions(dict[Any, float]):
    """The contributions of the values of a key; NaN for a number out of range.

    ``factor`` multiplies numbers; None if they are categories or transformed.
    """

    def __init__(self, key: Any, columns: Columns, weight: Callable[[int], float]) -> None:
        self._columns, self._weight = columns, weight
        self._key, self._bits = key, columns.options.bits
        self._kind = columns.kinds.get(key) or columns.known.get(key)
        self._used = isinstance(key, str) and columns.uses(key)
        self.factor: float | None = 0.0
        if self._used:
            self._name = key.encode("utf-8", "surrogatepass")
            self._number_weight = weight(slot(self._name, bits=self._bits))
            changed = self._kind == "category" or columns.kinds.get(key) == "number" or key in columns.derived
            self.factor = None if changed else self._number_weight

    def __missing__(self, value: Any) -> float:
        if not self._used:
            return 0.0 if isinstance(self._key, str) else math.nan
        if value != value:
            return 0.0
        if self._key in self._columns.options.text:
            tokens = self._columns.options.text_features.tokens(value if isinstance(value, str) else category_of(value))
            return sum(map(self._category, tokens))
        if self._key in self._columns.dates:
            return self._date(value)
        if len(self) >= MAX_CACHED:
            self.clear()
        self[value] = contribution = self._contribution(value)
        return contribution

    def _contribution(self, value: Any) -> float:
        number = None if isinstance(value, str) else float(value)
        if isinstance(value, str) and self._kind == "number":
            try:
                number = parse_number(value.encode("utf-8", "surrogatepass"))
            except ValueError:
                return self._category(value)
            if number is None:
                return 0.0
        if number is None:
            return self._category(value)
        if not -LARGEST <= number <= LARGEST:
            return math.nan
        if self._kind == "category":
            return self._category(category_of(value))
        if self._key in self._columns.log:
            return self._number_weight * float(signed_log1p(number))
        if self._key in self._columns.buckets:
            return self._category(buckets([number], self._columns.buckets[self._key])[0][0])
        return self._number_weight * number

    def _date(self, value: Any) -> float:
        try:
            found = date_features(value, self._columns.dates[self._key])
        except (ValueError, OverflowError):
            return 0.0
        return sum(number * (self._category(part) if part else self._number_weight) for part, number in found)

    def _category(self, word: str) -> float:
        if not word:
            return 0.0
        return self._weight(slot(word.encode("utf-8", "surrogatepass"), self._name, self._bits))
