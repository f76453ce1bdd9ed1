"""The format of svmlight and libsvm: ``label [qid:number] id:value ... [# comment]``."""

import numpy as np

from forel.data.compiled import layout
from forel.data.compiled.cache import fast, inner
from forel.data.compiled.hashing import claim_row, mix
from forel.data.compiled.merge import merge_row
from forel.data.compiled.numbers import FULL, HARD, LARGEST, WRONG, number, read_label, resolve_hard
from forel.data.compiled.vw import blank
from forel.data.compiled.words import EIGHT, address, byte, digits, load, power_of_ten
from forel.data.compiled.words import value as value_of

__all__ = ["parse"]

ONE, FOUR, LONGEST = np.uint64(1), np.uint64(4), np.uint64(15)
COLON, COMMENT, END, SPACE = (np.uint8(ord(c)) for c in ":#\n ")
QID, FOUR_BYTES = np.uint64(int.from_bytes(b"qid:", "little")), np.uint64(0xFFFFFFFF)


@inner
def whole(i):
    """Read an integer from address i; return it and the address after it, i if it has no digits or too many."""
    start, found, n = i, np.uint64(0), EIGHT
    while n == EIGHT and found < FULL:
        word = load(i)
        n = digits(word)
        if n > 0:
            found = found * power_of_ten(n) + value_of(word, n)
            i += n
    return found, (start if i - start > LONGEST else i)


@fast
def parse(
    text, length, counts, bits, indptr, indices, values, labels, importance, row_lines, tags, hard, resolved,
    fingerprints, records,
):  # fmt: skip
    """Parse examples from counts[AT] to the end of the text, or to the first error; return the status.

    Ids of more than ``bits`` bits are hashed to them.
    """
    mask = (ONE << np.uint64(bits)) - ONE
    recording = fingerprints.size > 0
    base = address(text)
    i, stop = base + np.uint64(counts[layout.AT]), base + np.uint64(length)
    rows, entries, lines = counts[layout.ROWS], counts[layout.ENTRIES], counts[layout.LINES]
    hards, names = np.int64(0), counts[layout.NAMES]
    table = np.full(1024, -1, np.int32)
    status = layout.DONE
    while i < stop:
        while blank(byte(i)):
            i += ONE
        if byte(i) == COMMENT:
            while byte(i) != END:
                i += ONE
        if byte(i) == END:
            i += ONE
            lines += 1
            continue
        entry, candidate = np.uint64(entries), np.uint64(names)
        label = 0.0
        _, end, kind = number(i)
        if kind == WRONG:
            status = layout.NO_NUMBER
        else:
            label, hards = read_label(i, end, base, hard, resolved, hards)
            if abs(np.float32(label)) <= LARGEST:
                i = end
            else:
                status = layout.NOT_FINITE
        rising, last = True, np.int64(-1)
        first = True
        while status == layout.DONE:
            c = byte(i)
            if c > SPACE and c != COMMENT:
                status = layout.NO_SPACE
                break
            while blank(c):
                i += ONE
                c = byte(i)
            if c == COMMENT:
                while byte(i) != END:
                    i += ONE
                break
            if c == END:
                break
            if first and load(i) & FOUR_BYTES == QID:
                i += FOUR
                _, end = whole(i)
                if end == i:
                    status = layout.NO_QUERY
                    break
                i = end
                first = False
                continue
            first = False
            start = i
            index, end = whole(i)
            if end == start:
                status = layout.NO_ID
                break
            i = end
            if byte(i) != COLON:
                status = layout.NO_COLON
                break
            i += ONE
            value, end, kind = number(i)
            if kind == HARD:
                value = np.float32(resolve_hard(i - base, end - base, False, hard, resolved, hards))
                hards += 1
            if kind == WRONG:
                status = layout.NO_NUMBER
                break
            if not abs(value) <= LARGEST:
                status = layout.NOT_FINITE
                break
            name_stop = i - ONE
            i = end
            slot = index if index <= mask else mix(index) & mask
            rising = bool(rising and np.int64(slot) > last)
            last = np.int64(slot)
            indices[entry] = slot
            values[entry] = value
            entry += ONE
            if recording:
                records[candidate, 0], records[candidate, 1] = slot, np.int64(mix(index))
                records[candidate, 2], records[candidate, 3] = start - base, start - base
                records[candidate, 4], records[candidate, 5] = start - base, name_stop - base
                candidate += ONE
        end_entries = np.int64(entry)
        if status == layout.DONE and not rising:
            end_entries, table, finite = merge_row(indices, values, entries, end_entries, entries, table)
            if not finite:
                status = layout.SUM
        if status != layout.DONE:
            break
        if recording:
            names = claim_row(fingerprints, records, names, np.int64(candidate) - names)
        entries = end_entries
        labels[rows] = label
        importance[rows] = np.float32(1)
        row_lines[rows] = lines
        rows += 1
        indptr[rows] = entries
        i += ONE
        lines += 1
    counts[layout.AT], counts[layout.ROWS], counts[layout.ENTRIES] = i - base, rows, entries
    counts[layout.LINES], counts[layout.HARD], counts[layout.NAMES] = lines, hards, names
    return status
