"""The text format of Vowpal Wabbit: ``Label [Importance] [Tag]|namespace:scale feature:value ...``.

Of namespaces with one name each, ``|user u17 |b name``, bars and blanks of 64 bytes are located at once, so that the
start of a name does not depend on the end of the previous one.
"""

import numpy as np

from forel.data.compiled import layout
from forel.data.compiled.cache import fast, inner
from forel.data.compiled.hashing import LETTERS, START, absorb, claim_row, finish, hash_name, only
from forel.data.compiled.merge import STAMPS, distinct, merge_row
from forel.data.compiled.numbers import HARD, LARGEST, WRONG, number, read_label, resolve_hard
from forel.data.compiled.words import EIGHT, address, at_most, byte, equal, load, lowest, name_end

__all__ = ["parse", "plain_namespaces"]

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
COLON, BAR, END, QUOTE, SPACE = (np.uint8(ord(c)) for c in ":|\n' ")
PAIR, NEXT = np.uint64(0xFFFF), np.uint64(int.from_bytes(b" |", "little"))


@inner
def plain_namespaces(i, mask, indices, values, entry):
    """Read all such namespaces from the bar at address i on, each followed by a bar or the end of the line.

    Return the address of the bar or line end after the last, and the end of the entries. Other forms are left to the
    caller.
    """
    one = np.float32(1)
    while True:
        bars, spaces, lines = equal(i, BAR), equal(i, SPACE), equal(i, END)
        before = bars >> ONE
        inner = spaces & ~before
        ends = before & spaces | lines
        # If spaces within and ends of namespaces alternate, the difference has all bits from each space to its end.
        names = ends - inner
        wrong = names ^ names << ONE ^ (inner | ends) | names & ends
        wrong |= inner & (bars << ONE | ends >> ONE)  # empty namespaces and names
        wrong |= before & ~spaces | (spaces | lines) ^ (at_most(i, SPACE) | equal(i, COLON))
        ends &= ~wrong & (wrong - ONE) & (lines ^ (lines - ONE))  # before the first mismatch, up to the end of the line
        here = i
        while ends != ZERO:
            middle, end = i + lowest(inner), i + lowest(ends)
            inner &= inner - ONE
            ends &= ends - ONE
            state = LETTERS[byte(here + ONE)]
            if middle != here + TWO:
                state = hash_name(here + ONE, middle - here - ONE, START)
            indices[entry] = hash_name(middle + ONE, end - middle - ONE, state) & mask
            values[entry] = one
            entry += ONE
            here = end + ONE
        if here == i:
            return i, entry
        if byte(here - ONE) == END:
            return here - ONE, entry
        i = here


@inner
def blank(c):
    """Return whether a byte is whitespace within a line."""
    return c <= SPACE and c != END


@inner
def read_name(i, state):
    """Read a name from address i; return the address after it, and its hash that starts from ``state``."""
    start = i
    word = load(i)
    n = name_end(word)
    while n == EIGHT:
        state = absorb(state, word)
        i += EIGHT
        word = load(i)
        n = name_end(word)
    if n > 0:
        state = absorb(state, only(word, n))
        i += n
    return i, finish(state, i - start)


@fast
def parse(
    text, length, counts, bits, indptr, indices, values, labels, importance, row_lines, tags, hard, resolved,
    fingerprints, records,
):  # fmt: skip
    """Parse examples from counts[AT] to the end of the text, or to the first error; return the status.

    With records but no fingerprints, every feature is recorded and none are summed, because crosses come first.
    """
    mask = (ONE << np.uint64(bits)) - ONE
    recording, tagging = fingerprints.size > 0, tags.size > 0
    keeping = records.shape[0] > 0
    separate = keeping and not recording
    base = address(text)
    i, stop = base + np.uint64(counts[layout.AT]), base + np.uint64(length)
    rows, entries, lines = counts[layout.ROWS], counts[layout.ENTRIES], counts[layout.LINES]
    hards, names = np.int64(0), counts[layout.NAMES]
    table, stamps = np.full(1024, -1, np.int32), np.zeros(STAMPS, np.uint16)
    status = layout.DONE
    one = np.float32(1)
    while i < stop:
        while blank(byte(i)):
            i += ONE
        if byte(i) == END:
            i += ONE
            lines += 1
            continue
        label, weight = np.nan, one
        entry, candidate, words = np.uint64(entries), np.uint64(names), 0
        tag = tag_end = i
        # Before the bar: numbers and a tag.
        while byte(i) != BAR:
            if byte(i) == END:
                status = layout.NO_BAR
                break
            word = i
            while byte(i) != BAR and byte(i) > SPACE:
                i += ONE
            if byte(i) == BAR or byte(word) == QUOTE:
                tag, tag_end = (word + ONE if byte(word) == QUOTE else word), i
                while blank(byte(i)):
                    i += ONE
                if byte(i) != BAR:
                    status = layout.AFTER_TAG
                break
            found, end, kind = number(word)
            if kind == HARD and words > 0:
                found = np.float32(resolve_hard(word - base, end - base, False, hard, resolved, hards))
                hards += 1
            if words == 2:
                status = layout.THIRD
            elif kind == WRONG or end != i:
                status = layout.NO_HEAD
            elif words == 0:
                label, hards = read_label(word, end, base, hard, resolved, hards)
                if not abs(np.float32(label)) <= LARGEST:
                    status = layout.NOT_FINITE
            elif not abs(found) <= LARGEST:
                status = layout.NOT_FINITE
            elif found < 0:
                status = layout.NEGATIVE
            if status != layout.DONE:
                i = word
                break
            if words == 1:
                weight = found
            words += 1
            while blank(byte(i)):
                i += ONE
        # From bar to bar: a namespace, and its features.
        while status == layout.DONE and byte(i) == BAR:
            if not keeping:
                i, entry = plain_namespaces(i, mask, indices, values, entry)
                if byte(i) == END:
                    break
            c = byte(i + ONE)
            i += ONE
            begin, state, scale = i, START, one
            if c > SPACE and c != COLON and c != BAR:
                if byte(i + ONE) <= SPACE:
                    # A namespace of one letter: the branch predictor supplies the start of its features.
                    i += ONE
                    state = LETTERS[c]
                else:
                    i, state = read_name(i, START)
            middle = i
            if byte(i) == COLON:
                i += ONE
                scale, end, kind = number(i)
                if kind == HARD:
                    scale = np.float32(resolve_hard(i - base, end - base, False, hard, resolved, hards))
                    hards += 1
                if middle == begin:
                    i = begin
                    status = layout.NO_NAMESPACE
                elif kind == WRONG:
                    status = layout.NO_NUMBER
                elif not abs(scale) <= LARGEST:
                    status = layout.NOT_FINITE
                elif byte(end) > SPACE and byte(end) != BAR:
                    i = end
                    status = layout.NO_SPACE
                if status != layout.DONE:
                    break
                i = end
            while True:
                while blank(byte(i)):
                    i += ONE
                if byte(i) == BAR or byte(i) == END:
                    break
                start = i
                i, hashed = read_name(i, state)
                name_stop, value = i, scale
                if byte(i) == COLON:
                    i += ONE
                    found, end, kind = number(i)
                    if kind == HARD:
                        found = np.float32(resolve_hard(i - base, end - base, False, hard, resolved, hards))
                        hards += 1
                    value *= found
                    if start == name_stop:
                        i = start
                        status = layout.NO_NAME
                    elif kind == WRONG:
                        status = layout.NO_NUMBER
                    elif not abs(value) <= LARGEST:
                        status = layout.NOT_FINITE
                    elif byte(end) > SPACE and byte(end) != BAR:
                        i = end
                        status = layout.NO_SPACE
                    if status != layout.DONE:
                        break
                    i = end
                slot = hashed & mask
                indices[entry] = slot
                values[entry] = value
                entry += ONE
                if keeping:
                    records[candidate, 0], records[candidate, 1] = slot, np.int64(hashed)
                    records[candidate, 2], records[candidate, 3] = begin - base, middle - base
                    records[candidate, 4], records[candidate, 5] = start - base, name_stop - base
                    candidate += ONE
                if load(i) & PAIR == NEXT:
                    # Namespaces with one feature each are separated by these two bytes.
                    i += ONE
                    break
        end_entries = np.int64(entry)
        if status == layout.DONE and not separate and not distinct(indices, entries, end_entries, stamps, rows):
            end_entries, table, finite = merge_row(indices, values, entries, end_entries, entries, table)
            if not finite:
                status = layout.SUM
        if status != layout.DONE:
            break
        if recording:
            names = claim_row(fingerprints, records, names, np.int64(candidate) - names)
        elif separate:
            names = np.int64(candidate)
        entries = end_entries
        labels[rows] = label
        importance[rows] = weight
        if tagging:
            tags[rows, 0], tags[rows, 1] = tag - base, tag_end - base
        row_lines[rows] = lines
        rows += 1
        indptr[rows] = entries
        i += ONE
        lines += 1
    counts[layout.AT], counts[layout.ROWS], counts[layout.ENTRIES] = i - base, rows, entries
    counts[layout.LINES], counts[layout.HARD], counts[layout.NAMES] = lines, hards, names
    return status
