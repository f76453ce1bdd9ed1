"""From the columns of some rows of a table to a block, wherever the columns come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.crosses import Entries, Step, crossed
from forel.data.features.hashing import START, hash_name, hash_spans
from forel.data.features.names import Names
from forel.data.features.rows import Cells, packed
from forel.data.problems import Malformed, Meeting

__all__ = ["Column", "Faults", "Words", "block_of", "start_of"]


@lru_cache(1 << 12)
def start_of(key: bytes) -> int:
    """Return the hash of a column's name, after which its words are hashed."""
    return hash_name(key) if key else START


@dataclass(frozen=True, eq=False)
class Words:
    """Some words as spans of bytes of a text."""

    text: NDArray[np.uint8]
    starts: NDArray[Any]
    stops: NDArray[Any]

    def __getitem__(self, k: int) -> bytes:
        return self.text[self.starts[k] : self.stops[k]].tobytes()

    def hashes(self, key: bytes, which: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the whole hashes of some words of a column, of which slots are the last bits."""
        return hash_spans(self.text, self.starts[which], self.stops[which], start_of(key))


@dataclass(frozen=True, eq=False)
class Column:
    """A feature by the name of its column: row r has word ``codes[r]``, or r without codes; without words, a number.

    Rows that ``spelled`` marks have a word of ``others`` instead.
    """

    key: bytes
    words: Words | None = None
    codes: NDArray[Any] | None = None
    others: Words | None = None
    spelled: NDArray[np.bool_] | None = None

    def meet(self, names: Names, slots: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        """Keep the names of some rows, whose slots these are."""
        if self.words is None:
            spelled = np.zeros(rows.size, bool) if self.spelled is None else self.spelled[rows]
            rows = np.concatenate([rows[~spelled][:1], rows[spelled]])
        names.meet(slots[rows], self.hashes(rows), lambda k: b"^".join(filter(None, self.word(rows[k]))))

    def hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the whole hashes of some rows."""
        if self.words is None:
            found = np.full(rows.size, start_of(self.key), np.uint64)
        else:
            found = self.words.hashes(self.key, rows if self.codes is None else self.codes[rows])
        if self.others is not None and self.spelled is not None:
            found = np.where(self.spelled[rows], self.others.hashes(self.key, rows), found)
        return found

    def word(self, row: int) -> tuple[bytes, bytes]:
        """Return the namespace and the name of a row's feature."""
        if self.others is not None and self.spelled is not None and self.spelled[row]:
            return self.key, self.others[row]
        if self.words is None:
            return b"", self.key
        return self.key, self.words[row if self.codes is None else self.codes[row]]


class Faults:
    """The rows of a table that are good, and what to do with those that are not."""

    def __init__(self, lines: NDArray[np.int64], problems: Meeting, file: str) -> None:
        self.lines, self.problems, self.file = lines, problems, file
        self.good = np.ones(lines.size, bool)

    def meet(self, name: str, rows: NDArray[np.int64], got: Sequence[str], expected: str) -> None:
        """Meet a problem for each of some rows; a row has one problem at most."""
        for row, what in zip(rows.tolist(), got, strict=True):
            if self.good[row]:
                self.problems.meet(Malformed(self.file, int(self.lines[row]), name, what, expected))
        self.good[rows] = False


def block_of(
    cells: Cells, columns: Sequence[Column], labels: NDArray[np.float32], importance: NDArray[np.float32],
    faults: Faults, bits: int, names: Names | None, step: Step | None,
) -> Block:  # fmt: skip
    """Return the block of the rows that are good."""
    good, lines, problems, file = faults.good, faults.lines, faults.problems, faults.file
    if step is None:
        if names is not None:
            for k, column in enumerate(columns):
                column.meet(names, cells.slots[:, k], np.flatnonzero(cells.there[:, k] & good))
        return packed(cells, good, labels, importance, lines, problems, file)
    rows, there = np.flatnonzero(good), cells.there[good]
    places = np.argwhere(there)
    indptr = np.append(0, np.cumsum(there.sum(axis=1)))
    hashed = np.stack([column.hashes(rows) for column in columns], axis=1)[there] if columns else np.empty(0, np.uint64)
    kinds = np.array([step.kind(column.key) for column in columns], np.int64)[places[:, 1]]
    entries = Entries(
        indptr, hashed, cells.values[good][there], kinds, lambda k: columns[places[k, 1]].word(rows[places[k, 0]])
    )
    return crossed(entries, labels[good], importance[good], lines[good], step, bits, names, problems, file)
