"""Blocks from columns of tables, whether CSV or Arrow."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.crosses import Entries, block_of_entries
from forel.data.features.hashing import START, hash_name, hash_spans, slots_of_hashes
from forel.data.features.names import Names
from forel.data.features.rows import Cells, Examples, block_from_cells
from forel.data.options import ReadOptions
from forel.data.problems import Malformed, Problems
from forel.data.sources.streams import PAD
from forel.data.values import plain_number

__all__ = ["FeatureColumn", "Labels", "RowProblems", "Spans", "block_from_columns", "namespace_hash"]


Labels = tuple[NDArray[np.float64], NDArray[np.float32], tuple[str, ...] | None]  # importances, and words of classes


@lru_cache(1 << 12)
def namespace_hash(key: bytes) -> int:
    """Return the hash of a column's name, with which the hashes of its categories start."""
    return hash_name(key) if key else START


@dataclass(frozen=True, eq=False)
class Spans:
    """Strings as spans of bytes of a text."""

    text: NDArray[np.uint8]
    starts: NDArray[Any]
    stops: NDArray[Any]

    def __getitem__(self, k: int) -> bytes:
        return self.text[self.starts[k] : self.stops[k]].tobytes()

    def plain_numbers(self, sign: str, decimal: str) -> "Spans":
        """Return amounts as plain numbers, and other cells as they are."""
        text, spans = self.text.tobytes(), zip(self.starts.tolist(), self.stops.tolist(), strict=True)
        words = (text[start:stop].decode("utf-8", "surrogateescape").strip() for start, stop in spans)
        cells = [plain_number(word, sign, decimal).encode("utf-8", "surrogateescape") for word in words]
        ends = np.zeros((len(cells) + 1, 2), np.int32)  # in columns, as those of CSV are, for the same compiled code
        np.cumsum([len(cell) + 1 for cell in cells], out=ends[1:, 0])
        ends[:-1, 1] = ends[1:, 0] - 1
        joined = bytearray(b"\n".join(cells) + bytes(PAD))
        return Spans(np.frombuffer(joined, np.uint8), ends[:-1, 0], ends[:-1, 1])

    def hashes(self, key: bytes, which: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the 64-bit hashes of some categories of a column; slots are their last bits."""
        return hash_spans(self.text, self.starts[which], self.stops[which], namespace_hash(key))


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """The names of a column's features, to hash and record them.

    Parameters
    ----------
    key : name of the column
    words : categories; None for numbers
    codes : the category of each row, by number; None if row r has category r
    others, mixed : categories of a numeric column, and the rows that have one
    """

    key: bytes
    words: Spans | None = None
    codes: NDArray[Any] | None = None
    others: Spans | None = None
    mixed: NDArray[np.bool_] | None = None

    def add_names(self, names: Names, slots: NDArray[Any], rows: NDArray[np.int64]) -> None:
        """Record the names of some rows with their slots."""
        if self.words is None:
            mixed = np.zeros(rows.size, bool) if self.mixed is None else self.mixed[rows]
            rows = np.concatenate([rows[~mixed][:1], rows[mixed]])
        names.add(slots[rows], self.hashes(rows), lambda k: b"^".join(filter(None, self.word(rows[k]))))

    def hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the 64-bit hashes of some rows."""
        if self.words is None:
            found = np.full(rows.size, namespace_hash(self.key), np.uint64)
        else:
            found = self.words.hashes(self.key, rows if self.codes is None else self.codes[rows])
        if self.others is not None and self.mixed is not None:
            found = np.where(self.mixed[rows], self.others.hashes(self.key, rows), found)
        return found

    def word(self, row: int) -> tuple[bytes, bytes]:
        """Return the namespace and the name of a row's feature."""
        if self.others is not None and self.mixed is not None and self.mixed[row]:
            return self.key, self.others[row]
        if self.words is None:
            return b"", self.key
        return self.key, self.words[row if self.codes is None else self.codes[row]]


class RowProblems:
    """The mask of well-formed rows of a table, and where problems of others are recorded."""

    def __init__(self, lines: NDArray[np.int64], problems: Problems, file: str) -> None:
        self.lines, self.problems, self.file = lines, problems, file
        self.good = np.ones(lines.size, bool)

    def record(self, name: str, rows: NDArray[np.int64], got: Sequence[str], expected: str) -> None:
        """Record a problem for each of some rows, unless the row has one already."""
        for row, what in zip(rows.tolist(), got, strict=True):
            if self.good[row]:
                if what == f"'{name}'":
                    expected = (
                        f"{expected.partition(';')[0]}; the row repeats the header: on_error='skip' leaves it out"
                    )
                self.problems.record(Malformed(self.file, int(self.lines[row]), name, what, expected))
        self.good[rows] = False


def block_from_columns(
    cells: Cells, features: Sequence[FeatureColumn], labels: Labels, row_problems: RowProblems, options: ReadOptions,
    names: Names | None,
) -> Block:  # fmt: skip
    """Return the block of the well-formed rows."""
    good, transform, bits = row_problems.good, options.transform, options.bits
    found, importance, words = labels
    examples = Examples(found, importance, row_problems.lines, row_problems.problems, row_problems.file, words)
    if transform is None:
        if names is not None:
            for k, feature in enumerate(features):
                feature.add_names(names, cells.slots[:, k], np.flatnonzero(cells.present[:, k] & good))
        keys = np.array([namespace_hash(feature.key) for feature in features if options.columns], np.uint64)
        return block_from_cells(cells, good, examples, slots_of_hashes(keys, bits) if options.columns else None)
    rows, present = np.flatnonzero(good), cells.present[good]
    places = np.argwhere(present)
    indptr = np.append(0, np.cumsum(present.sum(axis=1)))
    hashes = [feature.hashes(rows) for feature in features]
    hashed = np.stack(hashes, axis=1)[present] if features else np.empty(0, np.uint64)
    kinds = np.array([transform.kind(feature.key) for feature in features], np.int64)[places[:, 1]]
    entries = Entries(
        indptr, hashed, cells.values[good][present], kinds, lambda k: features[places[k, 1]].word(rows[places[k, 0]])
    )
    return block_of_entries(entries, examples.chosen(good), transform, bits, names)
