"""Columns of labels that are words, as numbers."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.labels import CLASSES, LabelWords, class_name, kind_of_words
from forel.data.parsers.cells import Spans
from forel.data.parsers.column_values import NumberColumn, StringColumn
from forel.data.parsers.columns import Columns
from forel.data.values import MISSING, is_null

__all__ = ["dicts_with_numbers", "encode_label", "given_words", "has_classes", "labels_of", "words_of"]

FIRST = 1 << 10  # dicts that decide which words there are


def given_words(columns: Columns, kinds: Mapping[str, str]) -> LabelWords | None:
    """Return the words of the column of labels that are known: those of an option, or of earlier rows."""
    if columns.label is None:
        return None
    if columns.options.positive is not None:
        return LabelWords(None, columns.options.positive)
    return LabelWords.of_kind(kinds.get(columns.label))


def has_classes(columns: Columns, kinds: Mapping[str, str]) -> bool:
    """Return whether labels are known to be classes, which the reader numbers."""
    return columns.options.classes is not None or kinds.get(str(columns.label)) == CLASSES


def words_of(cells: Spans, present: NDArray[np.bool_] | None = None) -> list[str]:
    """Return the distinct words of a column."""
    rows = np.arange(cells.starts.size) if present is None else np.flatnonzero(present)
    _, first = np.unique(cells.hashes(b"", rows), return_index=True)
    return [_decoded(cells[rows[k]]) for k in first.tolist()]


def labels_of(
    cells: Spans, columns: Columns, kinds: Mapping[str, str], present: NDArray[np.bool_] | None = None
) -> NumberColumn:
    """Return a column of words as labels: 0 and 1, or indices of the words of several classes.

    Words of neither of two classes are ``non_numbers``. Without known words there are no labels.
    """
    n, words = cells.starts.size, None if has_classes(columns, kinds) else given_words(columns, kinds)
    _, first, which = np.unique(cells.hashes(b"", np.arange(n)), return_index=True, return_inverse=True)
    found = tuple(_decoded(cells[row]) for row in first.tolist())
    mask = np.ones(n, bool) if present is None else present
    if has_classes(columns, kinds):
        there = np.array([word.strip() not in MISSING for word in found], bool)[which]
        wide = which.astype(np.float64)
        return NumberColumn(wide.astype(np.float32), there & mask, wide, words=found)
    values, there, wrong = np.zeros(first.size), np.zeros(first.size, bool), np.zeros(first.size, bool)
    for k, word in enumerate(found):
        try:
            value = None if words is None else words.encode(word)
            values[k], there[k] = value or 0.0, value is not None
        except ValueError:
            wrong[k] = True
    wide, odd = values[which], wrong[which] & mask
    others = StringColumn(cells, odd) if odd.any() else None
    expected = "a number" if words is None else words.expected
    return NumberColumn(wide.astype(np.float32), there[which] & mask, wide, others, expected)


def dicts_with_numbers(
    items: Iterable[tuple[int, Any]], columns: Columns, found: dict[str, str], classes: list[str]
) -> Iterator[tuple[int, Any]]:
    """Yield numbered dicts with numbers in place of labels that are words; the first dicts decide which is positive.

    ``found`` receives the kind of the labels. Labels that are numbers, and words of neither class, stay as they are.
    Labels of several classes become indices of ``classes``, to which new ones are added.
    """
    if has_classes(columns, columns.known):
        yield from _with_class_indices(items, str(columns.label), classes)
        return
    label, optional = columns.label, columns.options.unlabelled
    words, rest = given_words(columns, columns.known), iter(items)
    for line, item in rest:
        mapping = type(item) is dict or isinstance(item, Mapping)
        value = item.get(label) if mapping and label is not None else None
        if words is None and not isinstance(value, str):
            yield line, item
            if not is_null(value) and not optional:  # labels are numbers; words in later rows are malformed
                yield from rest
                return
            continue
        if isinstance(value, str) and words is None and not optional:
            first = [(line, item), *islice(rest, FIRST - 1)]
            labels = (one.get(label) for _, one in first if isinstance(one, Mapping))
            rest = chain(first, rest)
            found[str(label)] = kind = kind_of_words(word for word in labels if isinstance(word, str))
            words = LabelWords.of_kind(kind)
            if words is None:
                yield from _with_class_indices(rest, str(label), classes)
                return
            yield from ((number, encode_label(one, str(label), words, optional)) for number, one in rest)
            return
        yield line, item if value is None else encode_label(item, str(label), words, optional)


def _with_class_indices(items: Iterable[tuple[int, Any]], label: str, classes: list[str]) -> Iterator[tuple[int, Any]]:
    """Yield numbered dicts with labels as indices of classes; labels that name no class stay as they are."""
    indices = {name: k for k, name in enumerate(classes)}
    for line, item in items:
        value = item.get(label) if isinstance(item, Mapping) else None
        if not isinstance(value, str | int | float | np.number | np.bool_) or value != value:
            yield line, item
            continue
        name = class_name(value)
        if name not in MISSING and name not in indices:
            indices[name] = len(classes)
            classes.append(name)
        yield line, {**item, label: indices.get(name)}


def encode_label(item: Any, label: str, words: LabelWords | None, optional: bool) -> Any:
    """Return a dict with a number as its label, None where it has none or an optional one cannot be read."""
    if not isinstance(item, Mapping):
        return item
    value = item.get(label)
    if value is None or (words is None and not isinstance(value, str)):
        return item
    if words is None:
        return {**item, label: None} if optional else item
    try:
        return {**item, label: words.encode(value if isinstance(value, str) else f"{value:g}")}
    except (ValueError, TypeError, OverflowError):  # another word, an object or list, or too large a number
        return {**item, label: None if optional else OddLabel(value, words.expected)}


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
