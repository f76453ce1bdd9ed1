"""Rows of CSV and TSV: the spans of cells, the slots of strings, and numbers.

A cell that begins with a quote is quoted: separators and line ends are part of it, and two quotes stand for one. Text
after a closing quote belongs to the cell too. Spaces at both ends of a cell do not, quoted or not. A row ends with a
line feed, a carriage return, or both.

An unclosed quote must not consume all rows after it: a quoted cell ends at most QUOTED bytes after the beginning of its
row. Where a row of several lines is not as wide as the header, or has text between a closing quote and the next
separator, only its first line is malformed: the next line is the next row.
"""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.hashing import hash_padded, only
from forel.data.compiled.layout import ABSENT, OPEN, QUOTED, THERE, UNSURE
from forel.data.compiled.numbers import LARGEST, NUMBER, exactly, number
from forel.data.compiled.words import EIGHT, ONES, TOPS, address, byte, every, first, load

__all__ = ["clear_marks", "convert_decimals", "ends", "fill_numbers", "hash_cells", "read_cells", "split", "unescape"]

ONE = np.uint64(1)
FEED, RETURN, QUOTE, SPACE, TAB = (np.uint8(ord(c)) for c in '\n\r" \t')
COMMA, POINT, ZERO, NINE, PLUS, MINUS, LITTLE_E, BIG_E = (np.uint8(ord(c)) for c in ",.09+-eE")
FEEDS, RETURNS, QUOTES = every(10), every(13), every(34)
REACH = np.uint64(QUOTED)
LONGEST = np.uint64(5)  # bytes of the longest special word; the caller handles others


@inner
def plain_end(i, separators):
    """Return the address of the first separator or line end from i on, which must exist."""
    while True:
        word = load(i)
        a, b, c = word ^ separators, word ^ FEEDS, word ^ RETURNS
        n = first((((a - ONES) & ~a) | ((b - ONES) & ~b) | ((c - ONES) & ~c)) & TOPS)
        i += n
        if n < EIGHT:
            return i


@inner
def quote_at(i, stop):
    """Return the address of the first quote from i on, or ``stop``."""
    while i < stop:
        a = load(i) ^ QUOTES
        n = first((a - ONES) & ~a & TOPS)
        i += n
        if n < EIGHT:
            break
    return min(i, stop)


@inner
def quoted_end(i, stop, separators):
    """Return the end of a quoted cell whose first byte is at i, the end of its bytes, and whether it is malformed.

    The first is 0 if no quote before ``stop`` closes the cell, the second if its bytes are not contiguous. The cell is
    malformed if text follows its closing quote.
    """
    contiguous = True
    while True:
        i = quote_at(i, stop)
        if i == stop:
            return np.uint64(0), np.uint64(0), True
        if byte(i + ONE) != QUOTE:
            break
        contiguous = False
        i += ONE + ONE
    end = plain_end(i + ONE, separators)
    odd = end != i + ONE
    return end, i if contiguous and not odd else np.uint64(0), odd


@inner
def line_end(i):
    """Return the address of the first line end from i on, which must exist."""
    while byte(i) not in (FEED, RETURN):
        i += ONE
    return i


@inner
def after(i, stop):
    """Return the address after a line end."""
    return i + ONE + ONE if i + ONE < stop and byte(i) == RETURN and byte(i + ONE) == FEED else i + ONE


@fast
def ends(text, length, separator, width, whole, found):
    """Write the end of the last row before ``length``, where a line feed must be, and the number of rows to ``found``.

    ``whole`` is true if no text follows.
    """
    base = address(text)
    i, stop = base, base + np.uint64(length)
    separators, mark = np.uint64(separator) * ONES, np.uint8(separator)
    rows, begin, columns, odd = np.int64(0), base, np.int64(0), False
    while i < stop:
        if byte(i) == QUOTE:
            limit = min(stop, begin + REACH)
            i, _, more = quoted_end(i + ONE, limit, separators)
            odd = odd or more
            if i == 0:
                if limit == stop and not whole:
                    break  # the next chunk may close it
                i, columns = stop, np.int64(-1)
        else:
            i = plain_end(i, separators)
        columns += 1
        if i < stop and byte(i) == mark:
            i += ONE
            continue
        if i >= stop and columns != 0:
            break
        if odd or columns != width:
            i = line_end(begin)
            if i >= stop:
                break
        # A carriage return at the end of the chunk may be half of a line end.
        if i + ONE == stop and byte(i) == RETURN and not whole:
            break
        i = after(i, stop)
        begin, columns, odd = i, np.int64(0), False
        rows += 1
    found[0], found[1] = np.int64(begin - base), rows


@fast
def split(text, length, separator, starts, stops, lines, wrong, found):
    """Find the cells of rows that are as wide as the header; ``found`` receives the numbers of rows and of malformed
    ones, and whether any cell is escaped.

    Empty lines are skipped, rows of empty cells are not. An escaped cell, whose bytes are not contiguous, has ~stop in
    ``stops``. ``wrong`` receives line, begin, end and number of cells of malformed rows; OPEN for one that ends within
    quotes.
    """
    width = np.uint64(starts.shape[1])
    base = address(text)
    i, stop = base, base + np.uint64(length)
    mark, separators = np.uint8(separator), np.uint64(separator) * ONES
    row, bad, line = np.uint64(0), np.uint64(0), np.int64(0)
    escaped = False
    while i < stop:
        begin, column, something, escapes, odd = i, np.uint64(0), False, False, False
        while True:
            start = i
            if byte(i) == QUOTE:
                start += ONE
                i, end, more = quoted_end(start, min(stop, begin + REACH), separators)
                odd = odd or more
                if i == 0:
                    i = stop
                    break
                something = True
                if end == 0:
                    escapes = True
                    end = ~(i - base) + base
            else:
                i = plain_end(i, separators)
                end = i
                something = something or end > start
            while start < end and byte(start) == SPACE:
                start += ONE
            while start < end and byte(end - ONE) == SPACE:
                end -= ONE
            if column < width:
                starts[row, column] = np.int32(start - base)
                stops[row, column] = np.int32(end - base)
            column += ONE
            if i >= stop or byte(i) != mark:
                break
            i += ONE
        broken = i >= stop or (odd and line_end(begin) < i)
        if broken or column != width:
            # An empty line is not a row, nor is one of spaces.
            if broken or column > ONE or start != end:
                wrong[bad, 3] = OPEN if broken else np.int64(column)
                i = line_end(begin)  # the end of the row, unless it has several lines
                wrong[bad, 0], wrong[bad, 1], wrong[bad, 2] = line, begin - base, min(i, stop) - base
                bad += ONE
        elif something or width > ONE:
            lines[row] = line
            row += ONE
            escaped = escaped or escapes
        line += 1
        i = after(i, stop)
    found[0], found[1], found[2] = np.int64(row), np.int64(bad), np.int64(escaped)


@fast
def unescape(text, starts, stops):
    """Compact the bytes of escaped cells in place: one quote for two, and none where the quoted part ends."""
    for r in range(starts.shape[0]):
        for k in range(starts.shape[1]):
            if stops[r, k] < 0:
                i, stop = np.int64(starts[r, k]), np.int64(~stops[r, k])
                to, inside = i, True
                while i < stop:
                    c = text[i]
                    i += 1
                    if inside and c == QUOTE:
                        if i == stop or text[i] != QUOTE:
                            inside = False
                            continue
                        i += 1
                    text[to] = c
                    to += 1
                while to > starts[r, k] and text[to - 1] == SPACE:
                    to -= 1
                while to > starts[r, k] and text[starts[r, k]] == SPACE:
                    starts[r, k] += 1
                stops[r, k] = np.int32(to)


@inner
def blank(c):
    """Return whether a byte is whitespace around a number."""
    return c == SPACE or (c >= TAB and c <= RETURN)


@inner
def trimmed(text, start, stop):
    """Return the span of a cell without whitespace around it."""
    while start < stop and blank(text[start]):
        start += 1
    while start < stop and blank(text[stop - 1]):
        stop -= 1
    return start, stop


@fast
def clear_marks(text, starts, stops, marks, ends):
    """Empty the cells that equal one of the marks, which are concatenated in ``marks`` and end at ``ends``."""
    for r in range(starts.shape[0]):
        for k in range(starts.shape[1]):
            start, stop = trimmed(text, np.int64(starts[r, k]), np.int64(stops[r, k]))
            begin = np.int64(0)
            for end in ends:
                if stop - start == end - begin:
                    same = True
                    for j in range(stop - start):
                        same = same and text[start + j] == marks[begin + j]
                    if same:
                        stops[r, k] = starts[r, k]
                begin = end


@fast
def convert_decimals(text, starts, stops):
    """Replace the comma by a point in cells of digits, signs, an exponent and one comma."""
    for r in range(starts.shape[0]):
        for k in range(starts.shape[1]):
            start, stop = trimmed(text, np.int64(starts[r, k]), np.int64(stops[r, k]))
            place, commas, numeric = np.int64(0), 0, True
            for j in range(start, stop):
                c = text[j]
                if c == COMMA:
                    place, commas = np.int64(j), commas + 1
                elif not (ZERO <= c <= NINE or c in (PLUS, MINUS, LITTLE_E, BIG_E)):
                    numeric = False
            if numeric and commas == 1 and stop - start > 1:
                text[place] = POINT


@fast
def hash_cells(text, starts, stops, columns, places, hashes, mask, slots, there):
    """Fill columns of cells with the slots of strings; empty ones are absent."""
    base = address(text)
    for r in range(np.uint64(starts.shape[0])):
        for k in range(np.uint64(columns.size)):
            column, place = np.uint64(columns[k]), np.uint64(places[k])
            i, stop = base + np.uint64(starts[r, column]), base + np.uint64(stops[r, column])
            slots[r, place] = hash_padded(i, stop, hashes[k]) & mask
            there[r, place] = i < stop


def as_words(*words):
    """Return short words as the integers that they are loaded as."""
    return np.array([int.from_bytes(word, "little") for word in words], np.uint64)


NOTHING = as_words(b"NA", b"N/A", b"NULL", b"null", b"None", b"nan", b"NaN", b"?")
YES, NO = as_words(b"true", b"True", b"TRUE"), as_words(b"false", b"False", b"FALSE")


@inner
def read_cell(i, stop):
    """Return the number in a cell, the status of the cell, and the span without whitespace."""
    while i < stop and blank(byte(i)):
        i += ONE
    while i < stop and blank(byte(stop - ONE)):
        stop -= ONE
    value, status = np.float32(0), ABSENT
    if i == stop:
        return value, status, i, stop
    found, end, kind = number(i)
    if end == stop and kind == NUMBER:
        return found, THERE, i, stop
    status = UNSURE
    if stop - i <= LONGEST and byte(stop - ONE) != 0:  # a trailing zero byte looks like padding
        word = only(load(i), stop - i)
        for k in range(NOTHING.size):
            if word == NOTHING[k]:
                status = ABSENT
        for k in range(YES.size):
            if word == YES[k]:
                value, status = np.float32(1), THERE
            elif word == NO[k]:
                status = THERE
    # An empty span: a word is not read again as a number.
    return value, status, stop, stop


@fast
def read_cells(text, starts, stops, exact, values, kinds):
    """Write the numbers of a column and the status of each: THERE, ABSENT, or UNSURE, which the caller resolves."""
    base = address(text)
    for r in range(np.uint64(starts.size)):
        found, kind, i, end = read_cell(base + np.uint64(starts[r]), base + np.uint64(stops[r]))
        values[r], kinds[r] = found, kind
        if exact and i < end:
            values[r], sure = exactly(i, end)
            kinds[r] = THERE if sure else UNSURE


@fast
def fill_numbers(text, starts, stops, columns, places, column_slots, slots, values, there, odd):
    """Fill columns of cells with numbers; ``odd`` receives the columns with a cell that the caller has to resolve."""
    base = address(text)
    for r in range(np.uint64(starts.shape[0])):
        for k in range(np.uint64(columns.size)):
            column, place = np.uint64(columns[k]), np.uint64(places[k])
            start, stop = base + np.uint64(starts[r, column]), base + np.uint64(stops[r, column])
            found, kind, _, _ = read_cell(start, stop)
            slots[r, place] = column_slots[k]
            values[r, place] = found
            there[r, place] = kind == THERE
            if kind == UNSURE or not abs(found) <= LARGEST:
                odd[k] = True
