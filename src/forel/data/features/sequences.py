"""Sequences of features of VW text: VW's ``--ngram`` and ``--skips``, in the slots of text columns."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled.layout import PAD
from forel.data.features.crosses import MOST
from forel.data.features.names import Names
from forel.data.features.rows import drop_rows
from forel.data.features.text import TextFeatures, append_features
from forel.data.problems import Malformed
from forel.data.scanners import scanner

__all__ = ["add_sequences"]


def add_sequences(
    block: Block, text: NDArray[np.uint8], records: NDArray[np.int64], split: TextFeatures, bits: int,
    names: Names | None,
) -> tuple[Block, list[Malformed]]:  # fmt: skip
    """Return a block with the sequences of features within each namespace, and a problem for each row left out.

    The features ``a b`` of a namespace n add the feature ``a b`` of namespace n with value 1, as those of a column n of
    text do.

    Parameters
    ----------
    block : rows whose features are not summed
    text, records : where a parser found their namespaces and names
    split : the lengths of sequences, and the words that they leave out
    bits : of slots
    names : receives the names of features and sequences; None if names are not kept
    """
    patterns = np.zeros((len(split.patterns), split.ngram), np.int64)
    for k, pattern in enumerate(split.patterns):
        patterns[k, : len(pattern)] = pattern
    reach, sizes = patterns.max(axis=1), np.empty(len(block), np.int64)
    longest = scanner("sequences", "count_sequences")(block.indptr, records, reach, sizes)
    many = sizes + np.diff(block.indptr) > MOST
    count = int(sizes[~many].sum())
    indptr, hashes = np.zeros(len(block) + 1, np.int64), np.empty(count, np.uint64)
    parts = np.empty((0 if names is None else count, 2), np.int64)
    scanner("sequences", "hash_sequences")(
        text, block.indptr, records, patterns, reach, many, np.zeros(longest + PAD, np.uint8), indptr, hashes, parts
    )
    if names is not None:
        _record(names, text, records, hashes, parts, split, bits)
    lines = np.asarray(block.lines)
    ones = np.ones(count, np.float32)
    found = replace(append_features(block, lines, [(indptr, hashes, ones)], bits), lines=lines)
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


def _record(
    names: Names, text: NDArray[np.uint8], records: NDArray[np.int64], hashes: NDArray[np.uint64],
    parts: NDArray[np.int64], split: TextFeatures, bits: int,
) -> None:  # fmt: skip
    """Record the names of features, then of sequences."""

    def word(k: int) -> bytes:
        return text[records[k, 4] : records[k, 5]].tobytes()

    def named(k: int, name: bytes) -> bytes:
        namespace = text[records[k, 2] : records[k, 3]].tobytes()
        return b"^".join((namespace, name)) if namespace else name

    def sequence(k: int) -> bytes:
        first, pattern = parts[k].tolist()
        return named(first, b" ".join(word(first + offset) for offset in split.patterns[pattern]))

    mask = np.uint64((1 << bits) - 1)
    single = records[:, 1].astype(np.uint64)
    names.add((single & mask).astype(np.int64), single, lambda k: named(k, word(k)))
    names.add((hashes & mask).astype(np.int64), hashes, sequence)
