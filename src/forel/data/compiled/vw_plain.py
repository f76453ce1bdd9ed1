"""VW text of the form of most click logs: a label and namespaces with one name each, ``1 |user u17 |b name``."""

import numpy as np

from forel.data.compiled import layout
from forel.data.compiled.cache import fast
from forel.data.compiled.merge import STAMPS, distinct, merge_row
from forel.data.compiled.numbers import short_number
from forel.data.compiled.plain_namespaces import plain_namespaces
from forel.data.compiled.words import address, byte

__all__ = ["parse_plain"]

ONE = np.uint64(1)
BAR, END, SPACE = (np.uint8(ord(c)) for c in "|\n ")


@fast
def parse_plain(text, length, counts, bits, indptr, indices, values, labels, importance, row_lines):
    """Parse examples from counts[AT] to the end of the text, or to the first line of another form.

    Numbers are those of :func:`forel.data.compiled.vw.parse`, which continues where this one stops. It takes a
    third of the time to compile.
    """
    mask, base = (ONE << np.uint64(bits)) - ONE, address(text)
    i, stop = base + np.uint64(counts[layout.AT]), base + np.uint64(length)
    rows, entries, lines = counts[layout.ROWS], counts[layout.ENTRIES], counts[layout.LINES]
    table, stamps = np.full(1024, -1, np.int32), np.zeros(STAMPS, np.uint16)
    while i < stop:
        end = i
        while byte(end) > SPACE and byte(end) != BAR:
            end += ONE
        bar = end
        while byte(bar) == SPACE:
            bar += ONE
        label, certain = short_number(i, end - i)
        if not certain or bar == end or byte(bar) != BAR:  # as with a tag, which touches the bar, or an importance
            break
        end, entry = plain_namespaces(bar, mask, indices, values, np.uint64(entries))
        if byte(end) != END:
            break
        end_entries = np.int64(entry)
        if not distinct(indices, entries, end_entries, stamps, rows):
            end_entries, table, _ = merge_row(indices, values, entries, end_entries, entries, table)
        entries = end_entries
        labels[rows], importance[rows], row_lines[rows] = label, np.float32(1), lines
        rows += 1
        indptr[rows] = entries
        i = end + ONE
        lines += 1
    counts[layout.AT], counts[layout.ROWS], counts[layout.ENTRIES] = i - base, rows, entries
    counts[layout.LINES] = lines
