"""Text columns: words, sequences of words (n-grams) and of characters, each of which is a feature.

Words are runs of letters, digits and combining marks of any script, in lower case. A sequence of words is joined by
spaces; sequences of characters are those of a word with a space on either side.
"""

import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.compiled import scanner
from forel.data.compiled.layout import PAD
from forel.data.features.hashing import hash_name, slots_of_hashes
from forel.data.features.rows import merged_columns
from forel.validation import refuse, whole

__all__ = ["TextFeatures", "append_features", "parse_char_ngram"]

CLASSES, LAST_IDEOGRAPH = 0x20000, 0x32400  # as in compiled code
MOST_WORDS, MOST_CHARACTERS = 8, 32


def parse_char_ngram(given: str | None) -> tuple[int, int] | None:
    """Return the least and largest number of characters, such as of "3-5" or "4"; None for None.

    >>> parse_char_ngram("3-5"), parse_char_ngram("4")
    ((3, 5), (4, 4))
    """
    if given is None:
        return None
    low, dash, high = str(given).partition("-")
    if not low.isdecimal() or (dash and not high.isdecimal()) or not (high or low).isdecimal():
        raise refuse("char_ngram", given, "numbers of characters, such as 3-5")
    found = int(low), int(high or low)
    if not 1 <= found[0] <= found[1] <= MOST_CHARACTERS:
        raise refuse("char_ngram", given, f"numbers of characters from 1 to {MOST_CHARACTERS}, the smaller first")
    return found


def word_character(point: int) -> int:
    """Return the lower-case code point of a character of words; 0 for any other.

    >>> chr(word_character(ord("Ä"))), word_character(ord("-"))
    ('ä', 0)
    """
    if point >= CLASSES:
        return point if point < LAST_IDEOGRAPH else 0
    character = chr(point)
    if not character.isalnum() and not unicodedata.category(character).startswith("M"):
        return 0
    lower = character.lower()
    return ord(lower) if len(lower) == 1 else point


class _Translation(dict[int, int]):
    """Code points of words in lower case, and spaces for all others."""

    def __missing__(self, point: int) -> int:
        self[point] = found = word_character(point) or 32
        return found


TRANSLATION = _Translation()


@cache
def _points() -> NDArray[np.int32]:
    return np.array([word_character(point) for point in range(CLASSES)], np.int32)


@dataclass(frozen=True)
class TextFeatures:
    """How text is split into tokens.

    Parameters
    ----------
    ngram : largest number of words of a sequence
    char_ngram : least and largest number of characters of sequences within words; None for none

    >>> TextFeatures(ngram=2).tokens("Free entry, now!")
    ['free', 'free entry', 'entry', 'entry now', 'now']
    >>> TextFeatures(char_ngram=(3, 3)).tokens("Ünder")
    ['ünder', ' ün', 'ünd', 'nde', 'der', 'er ']
    """

    ngram: int = 1
    char_ngram: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if whole("ngram", self.ngram, low=1) > MOST_WORDS:
            raise refuse("ngram", self.ngram, f"1 to {MOST_WORDS} words")

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text, in order of their first words."""
        words, found = text.translate(TRANSLATION).split(), list[str]()
        low, high = self.char_ngram or (1, 0)
        for k, word in enumerate(words):
            found += [" ".join(words[k:end]) for end in range(k + 1, min(k + self.ngram, len(words)) + 1)]
            if high:
                padded = f" {word} "
                for i in range(len(padded)):
                    found += [padded[i : i + n] for n in range(low, min(high, len(padded) - i) + 1)]
        return found

    def hashes(
        self,
        text: NDArray[np.uint8],
        starts: NDArray[Any],
        stops: NDArray[Any],
        present: NDArray[np.bool_],
        column: str,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return the hashes of the tokens of spans of UTF-8, and the offsets of rows among them."""
        rows, longest = starts.size, int((stops - starts).max(initial=0))
        low, high = self.char_ngram or (1, 0)
        seed = np.uint64(hash_name(column.encode("utf-8", "surrogatepass")))
        words = np.empty(2 * longest + PAD, np.uint8)
        bounds = [np.empty(longest // 2 + 1, np.int64) for _ in range(2)]
        indptr, counts = np.zeros(rows + 1, np.int64), np.zeros(2, np.int64)
        hashes, row = np.empty(int((stops - starts).sum()) // 4 + 64, np.uint64), 0
        while row < rows:
            row = scanner("text", "split_text")(
                text, starts, stops, present, _points(), self.ngram, low, high, seed, words, *bounds, row, counts,
                indptr, hashes,
            )  # fmt: skip
            if row < rows:
                larger = np.empty(2 * hashes.size + int(counts[1]), np.uint64)
                larger[: counts[0]] = hashes[: counts[0]]
                hashes = larger
        return indptr, hashes[: counts[0]]


def append_features(
    block: Block,
    lines: NDArray[np.int64],
    columns: list[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float32], int]],
    bits: int,
) -> Block:
    """Return a block with the features of text and date columns added to its rows.

    Parameters
    ----------
    block : the rows of a table that are well-formed
    lines : lines of all rows of the table
    columns : for each, the offsets of rows, the hashes and values of features, and the slot of its name, -1 for text
    bits : of slots
    """
    indptr, indices, values = block.rows
    found = block.columns
    whole_table = block.lines is None or len(block) == lines.size
    kept = np.arange(len(block)) if whole_table else np.searchsorted(lines, np.asarray(block.lines))
    for more_indptr, hashes, more_values, column in columns:
        size = indices.size + int(np.diff(more_indptr)[kept].sum())
        slots = slots_of_hashes(hashes, bits)
        joined = np.zeros(len(block) + 1, np.int64), np.empty(size, slots.dtype), np.empty(size, np.float32)
        scanner("text", "join_rows")(indptr, indices, values, kept, more_indptr, slots, more_values, *joined)
        if found is not None:
            both = np.zeros_like(joined[0]), np.empty_like(joined[1]), np.empty_like(joined[2])
            more = np.full_like(slots, column)
            scanner("text", "join_rows")(indptr, found, values, kept, more_indptr, more, more_values, *both)
            found = both[1]
        indptr, indices, values = joined
    before = indptr.copy(), indices.copy()
    scanner("merge", "merge_rows")(indptr, indices, values)
    end = int(indptr[-1])
    columns_of = None if found is None else merged_columns(*before, found, end)
    return replace(block, indptr=indptr, indices=indices[:end], values=values[:end], columns=columns_of)
