"""Sequences of features of VW text: VW's ``--ngram`` and ``--skips``, in the slots of text columns."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled.layout import PAD
from forel.data.features.crosses import MOST
from forel.data.features.lengths import LETTERS, Sequences
from forel.data.features.names import Names
from forel.data.features.rows import drop_rows
from forel.data.features.text import TextFeatures, append_features
from forel.data.problems import Malformed
from forel.data.scanners import scanner

__all__ = ["add_sequences"]


def add_sequences(
    block: Block, text: NDArray[np.uint8], records: NDArray[np.int64], split: Sequences, bits: int,
    names: Names | None,
) -> tuple[Block, list[Malformed]]:  # fmt: skip
    """Return a block with the sequences of features within each namespace, and a problem for each row left out.

    The features ``a b`` of a namespace n add the feature ``a b`` of namespace n with value 1, as those of a column n of
    text do.

    Parameters
    ----------
    block : rows whose features are not summed
    text, records : where a parser found their namespaces and names
    split : the lengths of sequences of each namespace, and the words that they leave out
    bits : of slots
    names : receives the names of features and sequences; None if names are not kept
    """
    first_bytes = np.zeros((len(split.groups), LETTERS), np.bool_)
    for k, (_, letters) in enumerate(split.groups):
        first_bytes[k, list(letters)] = True
    patterns = [pattern_array(one) for one, _ in split.groups]
    sizes, longest = np.zeros(len(block), np.int64), 0
    for pattern, chosen in zip(patterns, first_bytes, strict=True):
        count = scanner("sequences", "count_sequences")
        longest = max(longest, int(count(text, block.indptr, records, pattern.max(axis=1), chosen, sizes)))
    many = sizes + np.diff(block.indptr) > MOST
    joined, columns = np.zeros(longest + PAD, np.uint8), []
    mask = np.uint64((1 << bits) - 1)
    if names is not None:
        single = records[:, 1].astype(np.uint64)
        names.add((single & mask).astype(np.int64), single, lambda k: _name(text, records, k, (0,)))
    room = int(sizes[~many].sum())
    for (one, _), pattern, chosen in zip(split.groups, patterns, first_bytes, strict=True):
        indptr, hashes = np.zeros(len(block) + 1, np.int64), np.empty(room, np.uint64)
        parts = np.empty((0 if names is None else room, 2), np.int64)
        reach = pattern.max(axis=1)
        scanner("sequences", "hash_sequences")(
            text, block.indptr, records, pattern, reach, chosen, many, joined, indptr, hashes, parts
        )
        hashes = hashes[: indptr[-1]]
        if names is not None:
            _record(names, text, records, hashes, parts, one, mask)
        columns.append((indptr, hashes, np.ones(hashes.size, np.float32)))
    lines = np.asarray(block.lines)
    found = replace(append_features(block, lines, columns, bits), lines=lines)
    infinite = np.zeros(len(block), bool)
    if not np.isfinite(found.values).all():
        infinite[np.repeat(np.arange(len(block)), np.diff(found.indptr))[~np.isfinite(found.values)]] = True
    problems = []
    for row in np.flatnonzero(many | infinite).tolist():
        got, expected = "values of one slot that are too large together", "a finite sum"
        if many[row]:
            got, expected = f"{sizes[row]:,} sequences of features", f"at most {MOST:,} features in an example"
        problems.append(Malformed(block.file, int(lines[row]), None, got, expected))
    return (drop_rows(found, np.flatnonzero(many | infinite)) if problems else found), problems


def pattern_array(split: TextFeatures) -> NDArray[np.int64]:
    """Return the offsets of a sequence's words from its first, a row for each pattern, 0 after the last."""
    patterns = np.zeros((len(split.patterns), split.ngram), np.int64)
    for k, pattern in enumerate(split.patterns):
        patterns[k, : len(pattern)] = pattern
    return patterns


def _name(text: NDArray[np.uint8], records: NDArray[np.int64], first: int, offsets: tuple[int, ...]) -> bytes:
    """Return the name of a sequence of features of a namespace."""
    words = (text[records[first + k, 4] : records[first + k, 5]].tobytes() for k in offsets)
    namespace, name = text[records[first, 2] : records[first, 3]].tobytes(), b" ".join(words)
    return b"^".join((namespace, name)) if namespace else name


def _record(
    names: Names, text: NDArray[np.uint8], records: NDArray[np.int64], hashes: NDArray[np.uint64],
    parts: NDArray[np.int64], split: TextFeatures, mask: np.uint64,
) -> None:  # fmt: skip
    """Record the names of sequences."""

    def sequence(k: int) -> bytes:
        first, pattern = parts[k].tolist()
        return _name(text, records, first, split.patterns[pattern])

    names.add((hashes & mask).astype(np.int64), hashes, sequence)
