"""Labels of columns and dicts that are words or classes, as numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, tee
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from forel.data.labels import CLASSES, LabelWords, class_name, kind_of_words
from forel.data.parsers.column_values import NumberColumn, Spans, StringColumn
from forel.data.parsers.columns import Columns
from forel.data.values import MISSING, is_null

__all__ = ["LabelCodes"]

T = TypeVar("T")
FIRST, MOST = 1 << 10, 1 << 14  # labels that decide which words there are; more while all are one word, at most MOST


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
        return self.key is not None and not (self.worded or self.optional)

    def decided(
        self, parts: Iterable[T], labels_of: Callable[[T], Iterable[Any]], found: dict[str, str],
        is_word: Callable[[Any], bool] = lambda label: isinstance(label, str),
    ) -> Iterator[T]:  # fmt: skip
        """Yield the parts of a source; before the first with a label, decide whether labels are words.

        As many labels decide in every format, however long its parts are.

        Parameters
        ----------
        labels_of : returns the labels of a part, None or another missing value where there is none
        found : receives the kind of labels that are words
        is_word : whether the first label is one
        """
        rest = iter(parts)
        for part in rest if self.undecided else ():
            labels = filter(_is_label, labels_of(part))
            if (first := next(labels, None)) is None:
                yield part
                continue
            if is_word(first):  # otherwise, words are malformed
                rest, ahead = tee(rest)
                later = chain.from_iterable(map(labels_of, ahead))
                found[str(self.key)] = kind = kind_of_words(_first_words(chain([first], labels, later)))
                self.words, self.classes = LabelWords.of_kind(kind), {} if kind == CLASSES else None
                del ahead, later  # which would keep all parts
            yield part
            break
        yield from rest

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
        if self.words is None:  # a word in place of a number
            if self.optional:
                return None
            raise ValueError(value)
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
        for line, item in self.decided(items, lambda numbered: (self.of(numbered[1]),), found):
            yield line, item if self.undecided else self.encode(item)

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


def _is_label(value: Any) -> bool:
    return not (value.strip() in MISSING if isinstance(value, str) else is_null(value))


def _first_words(labels: Iterable[Any]) -> set[str]:
    """Return the words of the first labels; numbers among them, in formats that have these, are malformed."""
    found = set[str]()
    for count, label in enumerate(filter(_is_label, labels), 1):
        if isinstance(label, str):
            found.add(label)
        if count == MOST or (count >= FIRST and len(found) > 1):
            break
    return found


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
