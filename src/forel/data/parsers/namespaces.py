"""Namespaces of VW text that are left out, by the first letter of their names, as in Vowpal Wabbit."""

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["kept_initials", "without_namespaces"]

BAR, COLON, END, SPACE = (ord(c) for c in "|:\n ")
ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")  # as in \x20, the namespace without a name


def kept_initials(keep: Iterable[str] | None, ignore: Iterable[str]) -> NDArray[np.bool_] | None:
    r"""Return which first bytes of namespaces are kept; None for all.

    Every letter of ``keep`` or ``ignore`` is the first one of namespaces. With ``keep``, the others are left out,
    whatever ``ignore`` is. A space, or ``\x20``, is the namespace without a name.

    >>> np.flatnonzero(kept_initials(["ab"], ["a"])), np.flatnonzero(~kept_initials(None, ["x", r"\x20"]))
    (array([97, 98]), array([ 32, 120]))
    """
    if keep is None and not ignore:
        return None
    initials = np.full(256, keep is None)
    for letters in ignore if keep is None else keep:
        decoded = ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), letters.encode())
        initials[list(decoded)] = keep is not None
    return initials


def without_namespaces(
    text: NDArray[np.uint8], start: int, length: int, kept: NDArray[np.bool_]
) -> NDArray[np.uint8]:  # fmt: skip
    r"""Return a copy of lines, with spaces in place of the names and features of namespaces that are not kept.

    >>> text = np.frombuffer(b"1 |a x y:2 |b z | w\n", np.uint8)
    >>> without_namespaces(text, 0, text.size, kept_initials(["b"], [])).tobytes()
    b'1 |        |b z |  \n'
    """
    part = text[start:length]
    marks = np.flatnonzero((part == BAR) | (part == END))
    bars = np.flatnonzero(part[marks[:-1]] == BAR)  # the last mark is the end of a line
    first = part[marks[bars] + 1]
    first = np.where((first <= SPACE) | (first == COLON) | (first == BAR), SPACE, first)
    left_out = bars[~kept[first]]
    edges = np.zeros(part.size, np.int8)
    edges[marks[left_out] + 1] = 1
    edges[marks[left_out + 1]] -= 1
    copy = text.copy()
    copy[start:length][np.add.accumulate(edges, dtype=np.int8).view(bool)] = SPACE
    return copy
