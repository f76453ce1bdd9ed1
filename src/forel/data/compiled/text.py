"""Text as words, sequences of words, and sequences of characters, hashed as names of a namespace."""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.hashing import hash_padded
from forel.data.compiled.words import address, store

__all__ = ["encode", "join_rows", "split_text"]

SPACE = np.uint8(32)
CLASSES = 0x20000  # code points in the table; above it, those of ideographs are parts of words
LAST_IDEOGRAPH = 0x32400
ONE, SIX, TWELVE, EIGHTEEN = (np.uint64(k) for k in (1, 6, 12, 18))
ONE_BYTE, TWO_BYTES, THREE_BYTES = (np.uint64(k) for k in (0x80, 0x800, 0x10000))
TAIL, REST, LEAD2, LEAD3, LEAD4 = (np.uint64(k) for k in (0x80, 0x3F, 0xC0, 0xE0, 0xF0))


@inner
def decode(text, at, stop):
    """Return the code point at an offset and the number of its bytes; 0 and 1 if it is incomplete."""
    first = np.int64(text[at])
    size = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
    if size == 1 or at + size > stop:
        return np.int64(0), np.int64(1)
    point = first & (0x7F >> size)
    for k in range(1, size):
        point = point << 6 | (np.int64(text[at + k]) & 0x3F)
    return np.int64(point), np.int64(size)


@inner
def encode(code, to):
    """Write a code point, which may be a surrogate, in UTF-8; return the address after it."""
    if code < ONE_BYTE:
        store(to, np.uint8(code))
        return to + ONE
    if code < TWO_BYTES:
        store(to, np.uint8(LEAD2 | (code >> SIX)))
    else:
        if code < THREE_BYTES:
            store(to, np.uint8(LEAD3 | (code >> TWELVE)))
        else:
            store(to, np.uint8(LEAD4 | (code >> EIGHTEEN)))
            to += ONE
            store(to, np.uint8(TAIL | ((code >> TWELVE) & REST)))
        to += ONE
        store(to, np.uint8(TAIL | ((code >> SIX) & REST)))
    to += ONE
    store(to, np.uint8(TAIL | (code & REST)))
    return to + ONE


@inner
def lower_words(text, start, stop, points, out, begins, ends):
    """Write the lower-case words of a text, with a space before and after each; return their number."""
    out[0] = SPACE
    base = address(out)
    at, to, words, within = np.int64(start), np.int64(1), np.int64(0), False
    while at < stop:
        byte = text[at]
        if byte < 0x80:
            point, size = np.int64(byte), np.int64(1)
        else:
            point, size = decode(text, at, stop)
        at += size
        if point < CLASSES:
            point = np.int64(points[point])
        elif point >= LAST_IDEOGRAPH:
            point = np.int64(0)
        if point:
            if not within:
                begins[words] = to
                within = True
            to = np.int64(encode(np.uint64(point), base + np.uint64(to)) - base)
        elif within:
            ends[words] = to
            words += 1
            out[to] = SPACE
            to += 1
            within = False
    if within:
        ends[words] = to
        words += 1
        out[to] = SPACE
    return words


@fast
def split_text(
    text, starts, stops, present, points, ngram, shortest, longest, seed, out, begins, ends, row, counts, indptr, hashes
):  # fmt: skip
    """Write the hashes of the tokens of rows from ``row`` on; return the first row that does not fit, or the end.

    Sequences of words have up to ``ngram``. Sequences of characters have ``shortest`` to ``longest`` characters of a
    word with a space on either side; there are none if ``longest`` is 0. ``counts[0]`` is the number of hashes.
    """
    base = address(out)
    count = counts[0]
    for r in range(row, starts.size):
        indptr[r + 1] = count
        if not present[r]:
            continue
        size = np.int64(stops[r]) - np.int64(starts[r])
        needed = (size // 2 + 1) * ngram
        if longest:
            needed += (2 * size + 2) * (longest - shortest + 1)
        if count + needed > hashes.size:
            counts[0], counts[1] = count, needed
            return np.int64(r)
        words = lower_words(text, starts[r], stops[r], points, out, begins, ends)
        for w in range(words):
            for last in range(w, min(w + ngram, words)):
                hashes[count] = hash_padded(base + np.uint64(begins[w]), base + np.uint64(ends[last]), seed)
                count += 1
            if longest:
                first = begins[w] - 1
                while first <= ends[w]:
                    end, characters = first, 0
                    while end <= ends[w] and characters < longest:
                        end += 1
                        while end <= ends[w] and out[end] & 0xC0 == 0x80:
                            end += 1
                        characters += 1
                        if characters >= shortest:
                            hashes[count] = hash_padded(base + np.uint64(first), base + np.uint64(end), seed)
                            count += 1
                    first += 1
                    while first <= ends[w] and out[first] & 0xC0 == 0x80:
                        first += 1
        indptr[r + 1] = count
    counts[0] = count
    return np.int64(starts.size)


@fast
def join_rows(indptr, indices, values, kept, more_indptr, more, more_values, out_indptr, out_indices, out_values):
    """Append entries to rows; ``kept`` has the number of each row among the rows of the entries."""
    to = np.int64(0)
    for r in range(kept.size):
        for k in range(indptr[r], indptr[r + 1]):
            out_indices[to], out_values[to] = indices[k], values[k]
            to += 1
        for k in range(more_indptr[kept[r]], more_indptr[kept[r] + 1]):
            out_indices[to], out_values[to] = more[k], more_values[k]
            to += 1
        out_indptr[r + 1] = to
