"""Labels of columns and dicts that are words or classes, as numbers."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.labels import CLASSES, LabelWords, class_name, kind_of_words
from forel.data.parsers.column_values import NumberColumn, Spans, StringColumn
from forel.data.parsers.columns import Columns
from forel.data.values import MISSING, is_null

__all__ = ["LabelCodes", "words_of"]

FIRST = 1 << 10  # dicts that decide which words there are


class LabelCodes:
    """How labels become numbers: 0 and 1 for two words, indices of ``classes``, or numbers as they are.

    Parameters
    ----------
    columns : the column of labels, and options
    kinds : known kinds of columns; those of ``columns`` if None
    """

    def __init__(self, columns: Columns, kinds: Mapping[str, str] | None = None) -> None:
        options, kind = columns.options, (columns.known if kinds is None else kinds).get(str(columns.label))
        self.key, self.optional = columns.label, options.unlabelled
        self.words: LabelWords | None = None
        self.classes: dict[str, int] | None = None  # names in the order of their indices
        if options.classes is not None or kind == CLASSES:
            self.classes = {}
        elif self.key is not None:
            self.words = LabelWords.of_kind(kind) if options.positive is None else LabelWords(None, options.positive)

    @property
    def worded(self) -> bool:
        """Whether labels are words or classes."""
        return self.words is not None or self.classes is not None

    @property
    def undecided(self) -> bool:
        """Whether the first labels decide if they are words."""
        return not (self.worded or self.optional)

    def decide(self, values: Iterator[Any]) -> str | None:
        """Decide by the first labels whether they are words, unless it is known, and return the kind of these words."""
        if not self.undecided:
            return None
        first = next((value for value in values if not is_null(value)), None)
        if not isinstance(first, str):
            return None  # words after a number are malformed
        kind = kind_of_words([first, *(one for one in islice(values, FIRST - 1) if isinstance(one, str))])
        self.words, self.classes = LabelWords.of_kind(kind), {} if kind == CLASSES else None
        return kind

    @property
    def expected(self) -> str:
        """The valid labels, for errors."""
        return "a number" if self.words is None else self.words.expected

    def of(self, item: Any) -> Any:
        """Return the label of a dict, None where it has none."""
        return item.get(self.key) if type(item) is dict or isinstance(item, Mapping) else None

    def number(self, value: Any) -> float | None:
        """Return the number of a word or a class, None if it is missing; raise ValueError for another word."""
        if self.classes is not None:
            name = class_name(value)
            return None if name in MISSING else self.classes.setdefault(name, len(self.classes))
        if self.words is None:  # a word in place of an optional number
            return None
        return self.words.encode(value if isinstance(value, str) else f"{value:.17g}")

    def encode(self, item: Any) -> Any:
        """Return a dict with a number as its label, or an :class:`OddLabel`; other items as they are."""
        value = self.of(item)
        if is_null(value) or not (self.worded or (self.optional and isinstance(value, str))):
            return item
        if self.classes is not None and not isinstance(value, str | int | float | np.number | np.bool_):
            return item
        try:
            return {**item, self.key: self.number(value)}
        except (ValueError, TypeError, OverflowError):  # another word, an object or list, or too large a number
            return {**item, self.key: None if self.optional else OddLabel(value, self.expected)}

    def encode_all(self, items: Iterable[tuple[int, Any]], found: dict[str, str]) -> Iterator[tuple[int, Any]]:
        """Yield numbered dicts with numbers as labels; ``found`` receives the kind that the first ones decide."""
        rest = iter(items)
        for line, item in rest:
            if is_null(self.of(item)):
                yield line, item
                continue
            first = [(line, item)]
            if isinstance(self.of(item), str):
                first += islice(rest, FIRST - 1)
            if (kind := self.decide(self.of(one) for _, one in first)) is not None:
                found[str(self.key)] = kind
            rest = chain(first, rest)
            break
        yield from rest if self.undecided else ((line, self.encode(item)) for line, item in rest)

    def column(self, cells: Spans, present: NDArray[np.bool_] | None = None) -> NumberColumn:
        """Return a column of words as labels: other words are its ``non_numbers``, and words of no kind absent."""
        _, first, which = np.unique(cells.hashes(b"", np.arange(cells.starts.size)), True, True)
        values, wrong = np.full(first.size, np.nan), np.zeros(first.size, bool)
        for k, row in enumerate(first.tolist()):
            try:
                number = self.number(_decoded(cells[row]))
                values[k] = np.nan if number is None else number
            except ValueError:
                wrong[k] = True
        mask = np.ones(which.size, bool) if present is None else present
        wide, odd = values[which], wrong[which] & mask
        others = StringColumn(cells, odd) if odd.any() else None
        words = None if self.classes is None else tuple(self.classes)
        return NumberColumn(wide.astype(np.float32), ~np.isnan(wide) & mask, wide, others, self.expected, words)


def words_of(cells: Spans, present: NDArray[np.bool_] | None = None) -> list[str]:
    """Return the distinct words of a column."""
    rows = np.arange(cells.starts.size) if present is None else np.flatnonzero(present)
    _, first = np.unique(cells.hashes(b"", rows), return_index=True)
    return [_decoded(cells[rows[k]]) for k in first.tolist()]


class OddLabel(str):
    """A label that is neither of two words, and what was expected."""

    expected: str

    def __new__(cls, value: Any, expected: str) -> "OddLabel":
        """Return the label as text."""
        found = super().__new__(cls, value)
        found.expected = expected
        return found


def _decoded(word: bytes) -> str:
    return word.decode("utf-8", "backslashreplace")
