"""Labels: how words, numbers and classes are interpreted, for all formats."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forel.data.values import MISSING, formatted_number
from forel.validation import refuse, whole

__all__ = [
    "CLASSES", "ClassNames", "Classes", "LabelWords", "choose_words", "class_name", "kind_of_words", "padded_names",
    "shown_names", "validated_classes", "word_sign",
]  # fmt: skip

CLASSES = "classes"  # kind of a column of labels of more than two classes
PREFIX = "labels "  # of the kind of a column of labels, before its words in JSON
POSITIVE = {
    "yes",
    "y",
    "true",
    "t",
    "on",
    "spam",
    "positive",
    "pos",
    "success",
    "click",
    "clicked",
    "fraud",
    "churn",
} | {"ja", "oui", "sí", "sì", "sim"}
NEGATIVE = {"no", "n", "false", "f", "off", "ham", "negative", "neg", "failure", "none", "normal", "ok", "nein", "non"}
Classes = int | Literal["auto"] | tuple[str, ...] | None
MOST = 1 << 16  # classes; with more, labels are numbers or identifiers
RARE, SHARE, CLOSE = 3, 0.01, 0.75  # rows and share of a class that may be misspelled, and its similarity to another


@dataclass(frozen=True)
class LabelWords:
    """The words of the negative and the positive class; None for any other word.

    >>> words = LabelWords("ham", "spam")
    >>> words.encode(" spam"), words.encode("ham"), words.encode("NA"), words.summary()
    (1.0, 0.0, None, "'spam' is positive, 'ham' is negative")
    """

    negative: str | None
    positive: str | None

    def encode(self, word: str) -> float | None:
        """Return 1 or 0 for a word, None if it is missing; raise ValueError for a word of neither class."""
        cell = word.strip()
        for same in (_same, _same_but_case):
            positive, negative = (one is not None and same(cell, one) for one in (self.positive, self.negative))
            if positive != negative:
                return float(positive)
        if cell in MISSING:
            return None
        if self.positive is None or self.negative is None:
            return float(self.positive is None)
        raise ValueError(cell)

    @property
    def expected(self) -> str:
        """The valid words, for errors."""
        others = "correct a misspelled word; classes='auto' (--classes auto) is for more than two classes"
        return f"{self.negative!r} or {self.positive!r}; {others}, positive (--positive) for one against all others"

    def summary(self) -> str:
        """Return which word is positive."""
        positive, negative = ("any other" if word is None else repr(word) for word in (self.positive, self.negative))
        return f"{positive} is positive, {negative} is negative"

    @property
    def kind(self) -> str:
        """The kind of a column with these labels, as models store it."""
        return PREFIX + json.dumps([self.negative, self.positive])

    @classmethod
    def of_kind(cls, kind: str | None) -> "LabelWords | None":
        """Return the words of a kind; None for other kinds.

        >>> LabelWords.of_kind(LabelWords("no", "yes").kind)
        LabelWords(negative='no', positive='yes')
        """
        if kind is None or not kind.startswith(PREFIX):
            return None
        words = json.loads(kind.removeprefix(PREFIX))
        if not isinstance(words, list) or len(words) != 2 or not all(isinstance(w, str | None) for w in words):
            raise refuse("kinds", kind, "the words of two classes")
        return cls(*words)


def choose_words(words: Iterable[str]) -> LabelWords:
    """Return which of the words of the first rows is positive: ``yes`` rather than ``no``, or the last in order.

    >>> choose_words(["yes", "no"]), choose_words(["<=50K", ">50K"])
    (LabelWords(negative='no', positive='yes'), LabelWords(negative='<=50K', positive='>50K'))
    >>> choose_words(["Yes", "NO", "no", "yes"])
    LabelWords(negative='no', positive='yes')
    >>> choose_words(["no"]).encode("yes")
    1.0
    """
    found = sorted(_distinct(words), key=lambda word: (word_sign(word), word))
    if len(found) == 1 and word_sign(found[0]):
        return LabelWords(None, found[0]) if word_sign(found[0]) > 0 else LabelWords(found[0], None)
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
        expected = "at least two words, or numbers; classes (--classes) names them, positive (--positive) one of them"
        raise ValueError(f"label: got {shown or 'no word'} in the first rows, expected {expected}")
    return LabelWords(*found)


def kind_of_words(words: Iterable[str]) -> str:
    """Return the kind of a column of labels: that of two words, or of several classes.

    >>> kind_of_words(["yes", "no"]), kind_of_words(["red", "green", "blue"])
    ('labels ["no", "yes"]', 'classes')
    """
    found = _distinct(words)
    for word in sorted(found):
        if (remedy := formatted_number(word)) is not None:
            raise ValueError(f"label: got {word!r} in the first rows, expected numbers or words; {remedy}")
    return CLASSES if len(found) > 2 else choose_words(found).kind


def word_sign(word: str) -> int:
    """Return 1 for a word that is positive by itself, −1 for a negative one, 0 for others."""
    lower = word.lower().rstrip(".")
    if lower in POSITIVE or lower.startswith(">"):
        return 1
    return -1 if lower in NEGATIVE or lower.startswith(("<", "not ", "not_", "no ", "no_", "non-", "non_")) else 0


def _distinct(words: Iterable[str]) -> set[str]:
    """Return the distinct words, without those that differ only in case from others if there are two classes then."""
    found = {word.strip() for word in words} - {*MISSING}
    folded = {word.casefold(): word for word in sorted(found)}  # of several spellings, the one in lower case
    two = len(folded) == 2 or (len(folded) == 1 and word_sign(next(iter(folded))) != 0)
    return {*folded.values()} if two else found


def _same_but_case(cell: str, word: str) -> bool:
    return cell.casefold() == word.strip().casefold()


def _same(cell: str, word: str) -> bool:
    if cell == word.strip():
        return True
    try:
        return float(cell) == float(word)
    except ValueError:
        return False


def validated_classes(given: object) -> Classes:
    """Return the option ``classes``: names in a tuple, a number, "auto" or None; or raise.

    >>> validated_classes(["ham", 2.0]), validated_classes(3)
    (('ham', '2'), 3)
    """
    if given is None or given == "auto":
        return "auto" if given == "auto" else None
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return whole("classes", given, low=2)
    if not isinstance(given, list | tuple):
        raise refuse("classes", given, "the number of classes, a list of their names, or 'auto'")
    names = tuple(class_name(one) for one in given)
    if len(set(names)) < len(names) or len(names) < 2 or "" in names:
        raise refuse("classes", given, "at least two names, all different")
    return names


def class_name(label: object) -> str:
    """Return the name of a class: words without surrounding whitespace, and equal numbers in one spelling.

    >>> class_name(" sports "), class_name("3.0"), class_name(np.float32(0.5))
    ('sports', '3', '0.5')
    """
    word = label.strip() if isinstance(label, str) else str(label)
    try:
        value = float(word)
    except ValueError:
        return word
    if not np.isfinite(value):
        return word
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(value)


def shown_names(names: Sequence[str], limit: int = 5) -> str:
    """Return the first names of classes, for messages.

    >>> shown_names(["b", "a", "c"], limit=2)
    "'b', 'a', ... (3 classes)"
    """
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown}, ... ({len(names)} classes)"


def padded_names(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the names of ``count`` classes, of which some have not occurred, and are named by their number.

    >>> padded_names(["ham", "spam"], 3)
    ('ham', 'spam', 'class 3')
    """
    padded = list(names[:count])
    for k in range(len(padded), count):
        name = f"class {k + 1}"
        while name in padded:
            name = f"({name})"
        padded.append(name)
    return tuple(padded)


class ClassNames:
    """The classes of a source's labels, which are numbered while it is read, in order.

    Parameters
    ----------
    given : the option ``classes``: names are complete, and any other class is unknown; with "auto" or a number, classes
        are added when they first appear; None if labels are classes only where parsers find more than two words

    >>> classes = ClassNames("auto")
    >>> classes.number(np.float32([7, 3, np.nan, 7]))
    array([ 0.,  1., nan,  0.])
    >>> classes.names
    ['7', '3']
    """

    def __init__(self, given: Classes = None) -> None:
        self.complete = isinstance(given, tuple)
        self.names: list[str] = list(given) if isinstance(given, tuple) else []
        self._numbers = {name: k for k, name in enumerate(self.names)}
        self._rows = Counter[str]()

    def pack(self) -> dict[str, Any]:
        """Return the classes, and the rows of each, as JSON."""
        return {"names": list(self.names), "rows": dict(self._rows)}

    def restore(self, names: Sequence[str], rows: Mapping[str, int]) -> None:
        """Continue with what another object's :meth:`pack` returned."""
        self.names[:] = names
        self._numbers = {name: k for k, name in enumerate(self.names)}
        self._rows = Counter(rows)

    def number(self, labels: NDArray[Any], words: tuple[str, ...] | None = None) -> NDArray[np.float64]:
        """Return the numbers of classes; NaN where a label is missing, −1 where its class is unknown.

        Parameters
        ----------
        labels : numbers, or indices of ``words``; NaN where one is missing
        words : the words that labels are indices of; None if labels are numbers
        """
        known = ~np.isnan(labels)
        found, first, which, rows = np.unique(labels[known], True, True, True)
        numbers = np.empty(found.size)
        for k in np.argsort(first, kind="stable").tolist():
            name = class_name(found[k] if words is None else words[int(found[k])])
            numbers[k] = self._number(name)
            self._rows[name] += int(rows[k])
        result = np.full(labels.size, np.nan)
        result[known] = numbers[which]
        return result

    def misspelled(self) -> dict[str, str]:
        """Return the classes of very few rows that are words close to the name of another, with that name.

        >>> classes = ClassNames("auto")
        >>> _ = classes.number(np.float32([0, 1] * 1000 + [2]), ("yes", "no", "nno"))
        >>> classes.misspelled()
        {'nno': 'no'}
        """
        if self.complete:
            return {}
        total, found = self._rows.total(), dict[str, str]()
        for name, rows in self._rows.items():
            if rows < RARE and rows <= SHARE * total and not name.replace(".", "").isdecimal():
                others = [other for other, more in self._rows.items() if more >= RARE]
                if close := get_close_matches(name, others, 1, CLOSE):
                    found[name] = close[0]
        return found

    def _number(self, name: str) -> float:
        if name in MISSING:
            return np.nan
        number = self._numbers.get(name)
        if number is None and not self.complete:
            if len(self.names) >= MOST:
                raise refuse(
                    "label", f"more than {MOST:,} classes", "fewer; --loss squared is for labels of any number"
                )
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return -1 if number is None else number
