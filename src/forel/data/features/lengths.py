"""Lengths of sequences of words: one number, or one for each namespace by its first letter, as in Vowpal Wabbit."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from forel.data.features.text import TextFeatures
from forel.validation import refuse, whole

__all__ = ["LETTERS", "Lengths", "Sequences", "group_sequences", "validated_lengths"]

Lengths = int | tuple[str, ...]
LETTERS = 256  # values of the first byte of a namespace


def validated_lengths(name: str, given: Any) -> Lengths:
    """Return a number, or items such as "a2", of which later ones take precedence; a number among them is for all.

    >>> validated_lengths("ngram", 2), validated_lengths("ngram", "2"), validated_lengths("ngram", ["2", "a3"])
    (2, 2, ('2', 'a3'))
    >>> validated_lengths("ngram", "ab2")
    Traceback (most recent call last):
    ValueError: ngram: got 'ab2', expected a number, or the first letter of a namespace and a number, such as a2
    """
    several = isinstance(given, Iterable) and not isinstance(given, str)
    items = list(given) if several else [given]
    for item in items:
        text = str(item) if isinstance(item, int) and not isinstance(item, bool) else item
        if not isinstance(text, str) or not re.fullmatch(r"[^\s\d]?[0-9]+", text) or not text.isascii():
            expected = "a number, or the first letter of a namespace and a number, such as a2"
            raise refuse(name, item, expected)
    if not items:
        raise refuse(name, given, "a number")
    return int(items[0]) if len(items) == 1 and str(items[0]).isdecimal() else tuple(map(str, items))


@dataclass(frozen=True)
class Sequences:
    """The sequences of words of the namespaces of VW text.

    Parameters
    ----------
    groups : lengths of sequences, and the first letters of the namespaces that have them, as numbers
    """

    groups: tuple[tuple[TextFeatures, tuple[int, ...]], ...]


def group_sequences(ngram: Lengths, skips: Lengths) -> Sequences | None:
    """Return the sequences of each namespace; None for none.

    >>> [(each.ngram, each.skips, len(letters)) for each, letters in group_sequences(("2", "a3"), 1).groups]
    [(2, 1, 255), (3, 1, 1)]
    """
    words, left_out = _by_letter("ngram", ngram, 1), _by_letter("skips", skips, 0)
    for number in {*words}:
        TextFeatures(number)
    groups: dict[TextFeatures, list[int]] = {}
    for letter, (count, skipped) in enumerate(zip(words, left_out, strict=True)):
        if count > 1:
            groups.setdefault(TextFeatures(count, skipped), []).append(letter)
    if any(left_out) and not any(each.skips for each in groups):
        raise refuse("skips", skips if isinstance(skips, int) else " ".join(skips), "0 without ngram of at least 2")
    return Sequences(tuple((each, tuple(letters)) for each, letters in groups.items())) if groups else None


def _by_letter(name: str, lengths: Lengths, usual: int) -> list[int]:
    """Return the length for each first letter."""
    found = [usual] * LETTERS
    for item in (str(lengths),) if isinstance(lengths, int) else lengths:
        if item.isdecimal():
            found = [int(item)] * LETTERS
        else:
            found[ord(item[0])] = whole(name, int(item[1:]))
    return found
