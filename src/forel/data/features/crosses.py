"""Crosses: products of features of several namespaces or columns, each with a slot of its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.names import Names
from forel.data.features.rows import without
from forel.data.problems import Malformed, Meeting
from forel.data.scanners import scanner
from forel.validation import refuse

__all__ = ["Crosses", "Entries", "Step", "crossed", "crosses_of"]

MOST = 1 << 20  # features that one example may have with its crosses
CHUNK = 1 << 16  # bytes of text that are read at a time where crosses make much of little
Kind = tuple[bytes, bool]  # a whole name, or what a name begins with
ANY: Kind = (b"", False)
EXPECTED = "two or three letters of namespaces such as 'ab', or names such as 'city*device'"


@dataclass(frozen=True, eq=False)
class Entries:
    """The features of some rows before they are crossed and summed: their hashes, values and kinds.

    ``word(k)`` is the namespace and the name of entry k.
    """

    indptr: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    values: NDArray[np.float32]
    kinds: NDArray[np.int64]
    word: Callable[[int], tuple[bytes, bytes]]


class Step(Protocol):
    """What is done to features before those of one slot are summed; they are told apart by the kind of namespace."""

    def kind(self, name: bytes) -> int:
        """Return the number of the kind that a namespace or column is of."""
        ...

    def check(self, features: Iterable[str]) -> None:
        """Refuse a table whose features do not suit."""
        ...

    def width(self, features: Iterable[str]) -> int:
        """Return how many features become of a row that has one of each."""
        ...

    def kinds_of(self, text: NDArray[np.uint8], records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the kinds of features whose namespaces are where a parser's records say."""
        ...

    def cross(self, entries: Entries, block: Block, bits: int, names: Names | None) -> tuple[Block, list[Malformed]]:
        """Return a block with what becomes of its entries, and a problem for each row that has to be left out."""
        ...


@dataclass(frozen=True)
class Crosses:
    r"""Which features are multiplied: of each term every combination, once, whatever the order in the example.

    $x_{ab} = x_a x_b$ is at the hash of a name of 16 bytes, the hashes of a and of b, the smaller first; 24 bytes for
    three. A feature meets itself too where a term takes two of its namespace, as in VW.

    Parameters
    ----------
    kinds : what tells namespaces apart, the first that fits: a whole name, or what a name begins with
    terms : numbers of kinds, equal ones next to each other

    >>> crosses_of(["ab", "a:"])
    Crosses(kinds=((b'a', False), (b'b', False), (b'', False)), terms=((0, 1), (0, 0), (0, 2)))
    """

    kinds: tuple[Kind, ...]
    terms: tuple[tuple[int, ...], ...]

    def kind(self, name: bytes) -> int:
        """Return the number of the kind that a namespace or column is of; one beyond the last where it is of none."""
        fits = (
            k for k, (word, whole) in enumerate(self.kinds) if name == word or (not whole and name.startswith(word))
        )
        return next(fits, len(self.kinds))

    def check(self, features: Iterable[str]) -> None:
        """Refuse whole names that no feature has."""
        there = list(features)
        for word, whole in self.kinds:
            if whole and word.decode() not in there:
                raise refuse("interactions", word.decode(), f"one of the features {', '.join(there)}")

    def width(self, features: Iterable[str]) -> int:
        """Return how many features a row has that has one of each, crosses included."""
        kinds = np.array([self.kind(name.encode()) for name in features], np.int64)
        sizes = np.empty(1)
        scanner("crosses", "count")(np.array([0, kinds.size]), kinds, self._terms, len(self.kinds), sizes)
        return int(min(sizes[0], MOST))

    @cached_property
    def _words(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
        text = np.frombuffer(b"".join(word for word, _ in self.kinds), np.uint8)
        ends = np.cumsum([0, *(len(word) for word, _ in self.kinds)])
        return text, ends, np.array([whole for _, whole in self.kinds])

    @cached_property
    def _terms(self) -> NDArray[np.int64]:
        return np.array([(*term, -1)[:3] for term in self.terms], np.int64)

    def kinds_of(self, text: NDArray[np.uint8], records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the kinds of features whose namespaces are where a parser's records say."""
        found = np.empty(len(records), np.int64)
        scanner("crosses", "classify")(text, records, *self._words, found)
        return found

    def cross(self, entries: Entries, block: Block, bits: int, names: Names | None) -> tuple[Block, list[Malformed]]:
        """Return a block with its entries and their crosses, and a problem for each row that has to be left out.

        Of ``block`` only what is not its features is used; its ``lines`` say where problems are.
        """
        rows, kinds = entries.indptr.size - 1, len(self.kinds)
        sizes = np.empty(rows)
        scanner("crosses", "count")(entries.indptr, entries.kinds, self._terms, kinds, sizes)
        bad = sizes > MOST
        room = int(sizes[~bad].sum())
        indptr = np.zeros(rows + 1, np.int64)
        indices, values = np.empty(room, np.int32), np.empty(room, np.float32)
        prints = np.empty(0, np.uint32) if names is None else names.prints
        fresh = np.empty((0 if names is None else room, 4), np.int64)
        infinite = np.zeros(rows, bool)
        found = scanner("crosses", "cross")(
            entries.indptr, entries.hashes, entries.values, entries.kinds, self._terms, kinds, bits, bad,
            int(sizes[~bad].max(initial=0)), indptr, indices, values, infinite, prints, fresh,
        )  # fmt: skip
        if names is not None:
            names.crossed(fresh[:found], entries.word)
        end = int(indptr[-1])
        made = replace(block, indptr=indptr, indices=indices[:end], values=values[:end])
        wrong = np.flatnonzero(bad | infinite)
        if not wrong.size:
            return made, []
        problems = [self._problem(block, int(row), float(sizes[row]) if bad[row] else None) for row in wrong]
        return without(made, wrong), problems

    def _problem(self, block: Block, row: int, size: float | None) -> Malformed:
        line = block.line if block.lines is None else int(block.lines[row])
        if size is None:
            return Malformed(block.file, line, None, "crossed values that are too large", "finite products and sums")
        return Malformed(block.file, line, None, f"{size:.0f} features with crosses", f"at most {MOST} in an example")


def crossed(
    entries: Entries, labels: NDArray[np.float32], importance: NDArray[np.float32], lines: NDArray[np.int64],
    step: Step, bits: int, names: Names | None, problems: Meeting, file: str,
) -> Block:  # fmt: skip
    """Return the block of some rows after a step; ``lines`` says where each row is from."""
    line = int(lines[0]) if lines.size else 1
    empty = np.empty(0, np.int32), np.empty(0, np.float32)
    rows = Block(entries.indptr, *empty, labels, importance, None, file, line, lines=lines)
    block, wrong = step.cross(entries, rows, bits, names)
    for problem in wrong:
        problems.meet(problem)
    return block


def crosses_of(interactions: Iterable[Any]) -> Crosses | None:
    """Return what crosses were asked for; None for none.

    Parameters
    ----------
    interactions : each two or three letters, which stand for all namespaces or columns that begin with them, ``:`` for
        any and a space for the one without a name; or whole names joined by ``*``; or a tuple of whole names
    """
    asked = [_parts(one) for one in interactions]
    if not asked:
        return None
    parts = dict.fromkeys(part for term in asked for part in term)
    kinds = sorted(parts, key=lambda part: (not part[1], part == ANY))
    terms: dict[tuple[int, ...], tuple[int, ...]] = {}
    for term in asked:
        members = [[k for k, kind in enumerate(kinds) if _within(kind, part)] for part in term]
        for combination in product(*members):
            terms.setdefault(tuple(sorted(combination)), tuple(sorted(combination, key=combination.index)))
    return Crosses(tuple(kinds), tuple(terms.values()))


def _within(kind: Kind, part: Kind) -> bool:
    """Tell whether all names of a kind are among those that a part stands for."""
    return kind == part or (not part[1] and kind[0].startswith(part[0]))


def _parts(given: Any) -> tuple[Kind, ...]:
    if isinstance(given, str) and "*" not in given:
        parts = tuple(ANY if c == ":" else (c.strip().encode(), c != c.strip()) for c in given)
    else:
        names = given.split("*") if isinstance(given, str) else given
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise refuse("interactions", given, EXPECTED)
        if isinstance(given, str) and not all(names):
            raise refuse("interactions", given, "a name before and after each '*'")
        parts = tuple(ANY if name == ":" else (name.encode(), True) for name in names)
    if not 2 <= len(parts) <= 3:
        raise refuse("interactions", given, EXPECTED)
    return parts
