"""Labels that are words: which of two words is the positive class."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from forel.validation import refuse

__all__ = ["CLASSES", "MISSING", "LabelWords", "choose_words", "kind_of_words", "word_sign"]

CLASSES = "classes"  # kind of a column of labels of more than two classes
PREFIX = "labels "  # of the kind of a column of labels, before its words in JSON
# Missing values of numeric columns and labels; a category is missing only if the cell is empty.
MISSING = ("", "NA", "N/A", "NULL", "null", "None", "nan", "NaN", "?")
POSITIVE = {"yes", "y", "true", "t", "on", "spam", "positive", "pos", "success", "click", "clicked", "fraud", "churn"}
NEGATIVE = {"no", "n", "false", "f", "off", "ham", "negative", "neg", "failure", "none", "normal"}


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
        others = "classes (--classes) has more than two, positive (--positive) names one class against all others"
        return f"{self.negative!r} or {self.positive!r}; {others}"

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
