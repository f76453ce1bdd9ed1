"""Sequences of features that follow one another in a namespace of VW text."""

import numpy as np

from forel.data.compiled.cache import fast
from forel.data.compiled.hashing import START, hash_padded
from forel.data.compiled.words import address

__all__ = ["count_sequences", "hash_sequences"]

SPACE = np.uint8(32)


@fast
def _run_end(records, k, last):
    """Return the end of the features of one namespace from entry k on."""
    end = k + 1
    while end < last and records[end, 2] == records[k, 2]:
        end += 1
    return end


@fast
def _chosen(text, records, k, letters):
    """Return whether the first letter of the namespace of entry k is among some; a space for one without a name."""
    return letters[text[records[k, 2]] if records[k, 3] > records[k, 2] else SPACE]


@fast
def count_sequences(text, indptr, records, reach, letters, sizes):
    """Add the number of sequences of each row to sizes, and return the largest number of bytes of one."""
    longest = np.int64(0)
    for r in range(indptr.size - 1):
        k, last, total = indptr[r], indptr[r + 1], np.int64(0)
        while k < last:
            end = _run_end(records, k, last)
            for p in range(reach.size if _chosen(text, records, k, letters) else 0):
                total += max(np.int64(0), end - k - reach[p])
            longest = max(longest, records[end - 1, 5] - records[k, 4] + end - k)
            k = end
        sizes[r] += total
    return longest


@fast
def hash_sequences(text, indptr, records, patterns, reach, letters, skipped, joined, out_indptr, hashes, parts):
    """Write the hashes of sequences, their words separated by spaces, and the offsets of rows among them.

    Parameters
    ----------
    text, records : as a parser locates the features of each row in the text
    patterns, reach : offsets of a sequence's words from its first, 0 after the last, and the largest offset
    letters : whether namespaces with a first letter have these sequences
    skipped : rows without sequences
    joined : bytes for the longest sequence, and padding
    out_indptr, hashes : receive the result
    parts : receives the first word and the pattern of each sequence, if it has rows
    """
    base, source, count = address(joined), address(text), np.int64(0)
    for r in range(indptr.size - 1):
        k, last = indptr[r], indptr[r + 1]
        while k < last and not skipped[r]:
            end = _run_end(records, k, last)
            if not _chosen(text, records, k, letters):
                k = end
                continue
            seed = START
            if records[k, 3] > records[k, 2]:
                seed = hash_padded(source + np.uint64(records[k, 2]), source + np.uint64(records[k, 3]), START)
            for first in range(k, end):
                for p in range(reach.size):
                    if first + reach[p] >= end:
                        continue
                    to = np.int64(0)
                    for j in range(patterns.shape[1]):
                        if j > 0:
                            if patterns[p, j] == 0:
                                break
                            joined[to] = SPACE
                            to += 1
                        for i in range(records[first + patterns[p, j], 4], records[first + patterns[p, j], 5]):
                            joined[to] = text[i]
                            to += 1
                    hashes[count] = hash_padded(base, base + np.uint64(to), seed)
                    if parts.shape[0]:
                        parts[count, 0], parts[count, 1] = first, p
                    count += 1
            k = end
        out_indptr[r + 1] = count
