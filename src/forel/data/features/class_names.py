"""Labels of several classes: words or numbers, numbered in the order of their first appearance."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forel.data.features.label_words import MISSING
from forel.validation import refuse, whole

__all__ = ["ClassNames", "Classes", "class_name", "padded_names", "shown_names", "validated_classes"]

Classes = int | Literal["auto"] | tuple[str, ...] | None
MOST = 1 << 16  # classes; with more, labels are numbers or identifiers


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
    array([ 0.,  1., nan,  0.], dtype=float32)
    >>> classes.names
    ['7', '3']
    """

    def __init__(self, given: Classes = None) -> None:
        self.complete = isinstance(given, tuple)
        self.names: list[str] = list(given) if isinstance(given, tuple) else []
        self._numbers = {name: k for k, name in enumerate(self.names)}

    def restore(self, names: Sequence[str]) -> None:
        """Continue with the classes that an earlier reader has found."""
        self.names[:] = names
        self._numbers = {name: k for k, name in enumerate(self.names)}

    def number(self, labels: NDArray[np.float32], words: tuple[str, ...] | None = None) -> NDArray[np.float32]:
        """Return the numbers of classes; NaN where a label is missing, −1 where its class is unknown.

        Parameters
        ----------
        labels : numbers, or indices of ``words``; NaN where one is missing
        words : the words that labels are indices of; None if labels are numbers
        """
        known = ~np.isnan(labels)
        found, first, which = np.unique(labels[known], return_index=True, return_inverse=True)
        numbers = np.empty(found.size, np.float32)
        for k in np.argsort(first, kind="stable").tolist():
            numbers[k] = self._number(class_name(found[k] if words is None else words[int(found[k])]))
        result = np.full(labels.size, np.nan, np.float32)
        result[known] = numbers[which]
        return result

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
