"""Crosses: products of features of several namespaces or columns, hashed to their own slots; or features as written."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled import scanner
from forel.data.features.hashing import slots_of_hashes
from forel.data.features.names import Names
from forel.data.features.rows import Examples, block_from_entries, drop_rows
from forel.data.problems import Malformed
from forel.validation import refuse

__all__ = ["Crosses", "Entries", "SeparateFeatures", "block_of_entries", "parse_crosses"]


MOST = 1 << 20  # features of an example, crosses included
CHUNK = 1 << 16  # bytes of text per block with crosses, which multiply its size
Kind = tuple[bytes, bool]  # a name, or a prefix of names
ANY: Kind = (b"", False)
CHARACTER = 4  # maximum number of bytes of a character, which a prefix consists of
EXPECTED = "two or three letters of namespaces such as 'ab', or names such as 'city*device'"


@dataclass(frozen=True, eq=False)
class Entries:
    """The features of some rows before they are crossed and summed: their hashes, values and kinds.

    ``word(k)`` returns the namespace and the name of entry k; ``columns`` has slots of columns, if these are wanted.
    """

    indptr: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    values: NDArray[np.float32]
    kinds: NDArray[np.int64] | None
    word: Callable[[int], tuple[bytes, bytes]]
    columns: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class Crosses:
    r"""Crosses of features: every combination of each term once, in any order of the example.

    $x_{ab} = x_a x_b$ is at the hash of a name of 16 bytes, the hashes of a and of b, the smaller first; 24 bytes for
    three. A term with a namespace twice also crosses each feature with itself, as in VW.

    Parameters
    ----------
    kinds : kinds of namespaces, by a name or a prefix; the first match is used
    terms : kinds by number, equal ones next to each other

    >>> parse_crosses(["ab", "a:"])
    Crosses(kinds=((b'a', False), (b'b', False), (b'', False)), terms=((0, 1), (0, 0), (0, 2)))
    """

    kinds: tuple[Kind, ...]
    terms: tuple[tuple[int, ...], ...]

    def kind(self, name: bytes) -> int:
        """Return the kind of a namespace or column; the number of kinds if none matches."""
        names, prefixes = self._kinds_by_name
        found = names.get(name, len(self.kinds))
        # Names come first among kinds, but an object may have been made with another order.
        return min([found, *(k for k, word in prefixes if name.startswith(word))])

    def check(self, features: Iterable[str]) -> None:
        """Raise for names that no feature has."""
        available = list(features)
        existing = frozenset(available)
        for word, whole in self.kinds:
            if whole and word.decode() not in existing:
                raise refuse("interactions", word.decode(), f"one of the features {', '.join(available)}")

    def absent(self, found: Collection[int]) -> list[Kind]:
        """Return the names and prefixes that no namespace or column with features has, if ``found`` are its kinds.

        >>> parse_crosses(["ab", "city*a"]).absent([1])
        [(b'city', True), (b'b', False)]
        """
        present = {self.kinds[k] for k in found if k < len(self.kinds)}
        prefixes = {(word[:size], False) for word, _ in present for size in range(CHARACTER + 1)}
        return [part for part in self.kinds if part != ANY and part not in (present if part[1] else prefixes)]

    def width(self, features: Iterable[str]) -> int:
        """Return the number of features of a full row, crosses included."""
        kinds = np.array([self.kind(name.encode()) for name in features], np.int64)
        return int(min(self._sizes(np.array([0, kinds.size]), kinds)[0], MOST))

    def _sizes(self, indptr: NDArray[np.int64], kinds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the number of features of each row with all crosses, as floats that cannot overflow."""
        rows, width = indptr.size - 1, len(self.kinds) + 1
        cells = np.repeat(np.arange(rows), np.diff(indptr)) * width + kinds
        counts = np.bincount(cells, minlength=rows * width).reshape(rows, width).astype(float)
        total = np.diff(indptr).astype(float)
        for term in self.terms:
            combinations = np.ones(rows)
            for place, kind in enumerate(term):
                # Of n features, combinations with repetition: n, n(n + 1)/2, n(n + 1)(n + 2)/6.
                run = term[:place].count(kind)
                combinations *= (counts[:, kind] + run) / (run + 1)
            total += combinations
        rounded: NDArray[np.float64] = np.rint(total)
        return rounded

    @cached_property
    def _kinds_by_name(self) -> tuple[dict[bytes, int], list[tuple[int, bytes]]]:
        """The numbers of kinds that are names, and of those that are prefixes."""
        numbered = list(enumerate(self.kinds))
        names = {word: k for k, (word, whole) in reversed(numbered) if whole}
        return names, [(k, word) for k, (word, whole) in numbered if not whole]

    @cached_property
    def _words(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
        text = np.frombuffer(b"".join(word for word, _ in self.kinds), np.uint8)
        ends = np.cumsum([0, *(len(word) for word, _ in self.kinds)])
        return text, ends, np.array([whole for _, whole in self.kinds], bool)

    @cached_property
    def _terms(self) -> NDArray[np.int64]:
        return np.array([(*term, -1)[:3] for term in self.terms], np.int64).reshape(-1, 3)

    def kinds_of(self, text: NDArray[np.uint8], records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the kinds of features, whose namespaces a parser's records locate in the text."""
        found = np.empty(len(records), np.int64)
        scanner("crosses", "classify")(text, records, *self._words, found)
        return found

    def apply(self, entries: Entries, block: Block, bits: int, names: Names | None) -> tuple[Block, list[Malformed]]:
        """Return a block with its entries and their crosses, and a problem for each row that is left out.

        Features come from ``entries``, and everything else from ``block``.
        """
        rows, kinds = entries.indptr.size - 1, len(self.kinds)
        assert entries.kinds is not None
        sizes = self._sizes(entries.indptr, entries.kinds)
        bad = sizes > MOST
        size = int(sizes[~bad].sum())
        indptr = np.zeros(rows + 1, np.int64)
        indices, values = np.empty(size, np.int32), np.empty(size, np.float32)
        fingerprints = np.empty(0, np.uint32) if names is None else names.fingerprints
        fresh = np.empty((0 if names is None else size, 4), np.int64)
        infinite = np.zeros(rows, bool)
        found = scanner("crosses", "cross")(
            entries.indptr, entries.hashes, entries.values, entries.kinds, self._terms, kinds, bits, bad,
            int(sizes[~bad].max(initial=0)), indptr, indices, values, infinite, fingerprints, fresh,
        )  # fmt: skip
        if names is not None:
            names.add_crosses(fresh[:found], entries.word)
        end = int(indptr[-1])
        crossed = replace(block, indptr=indptr, indices=indices[:end], values=values[:end])
        wrong = np.flatnonzero(bad | infinite)
        if not wrong.size:
            return crossed, []
        problems = [self._problem(block, int(row), float(sizes[row]) if bad[row] else None) for row in wrong]
        return drop_rows(crossed, wrong), problems

    def _problem(self, block: Block, row: int, size: float | None) -> Malformed:
        line = block.line if block.lines is None else int(block.lines[row])
        if size is None:
            return Malformed(block.file, line, None, "crossed values that are too large", "finite products and sums")
        return Malformed(block.file, line, None, f"{size:.0f} features with crosses", f"at most {MOST} in an example")


def block_of_entries(
    entries: Entries, examples: Examples, transform: Crosses | None, bits: int, names: Names | None
) -> Block:
    """Return the block of some rows, which owns the arrays of its entries; names are recorded."""
    if transform is None or entries.kinds is None:
        slots = slots_of_hashes(entries.hashes, bits)
        if names is not None:
            names.add(slots, entries.hashes, lambda k: b"^".join(filter(None, entries.word(k))))
        return block_from_entries(entries.indptr, slots, entries.values, examples, entries.columns)
    empty = entries.indptr, np.empty(0, np.int32), np.empty(0, np.float32)
    block, wrong = transform.apply(entries, examples.block(empty), bits, names)
    for problem in wrong:
        examples.problems.record(problem)
    examples.problems.crossed.update(np.flatnonzero(np.bincount(entries.kinds)).tolist())
    return block


def parse_crosses(interactions: Iterable[Any]) -> Crosses | None:
    """Return the crosses that strings or tuples describe; None if there are none.

    Parameters
    ----------
    interactions : each has two or three letters, which match all namespaces or columns that begin with them, ``:`` for
        any and a space for the empty name; or names joined by ``*``; or it is a tuple of names
    """
    given = [_parts(one) for one in interactions]
    if not given:
        return None
    parts = dict.fromkeys(part for term in given for part in term)
    kinds = sorted(parts, key=lambda part: (not part[1], part == ANY))
    terms: dict[tuple[int, ...], tuple[int, ...]] = {}
    place = {kind: k for k, kind in enumerate(kinds)}
    prefixes = {part: [k for k, kind in enumerate(kinds) if _within(kind, part)] for part in parts if not part[1]}
    for term in given:
        members = [[place[part]] if part[1] else prefixes[part] for part in term]
        for combination in product(*members):
            terms.setdefault(tuple(sorted(combination)), tuple(sorted(combination, key=combination.index)))
    return Crosses(tuple(kinds), tuple(terms.values()))


def _within(kind: Kind, part: Kind) -> bool:
    """Return whether a part matches all names of a kind."""
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


class SeparateFeatures(Crosses):
    """No crosses: every feature is kept, with its namespace and name, and those of a slot are not summed.

    >>> from forel.data import read
    >>> (block,) = read([{"city": "Rome", "price": 3.0}], entry_names=True)
    >>> block.entry_names
    ((b'city', b'Rome'), (b'', b'price'))
    """

    def __init__(self) -> None:
        super().__init__((), ())

    def apply(self, entries: Entries, block: Block, bits: int, names: Names | None) -> tuple[Block, list[Malformed]]:
        """Return a block with its entries and their names."""
        slots = slots_of_hashes(entries.hashes, bits)
        pairs = tuple(entries.word(k) for k in range(slots.size))
        return replace(block, indptr=entries.indptr, indices=slots, values=entries.values, entry_names=pairs), []
