"""JSON lines: numbers are values, strings are categories, and objects are namespaces, as in ``parsers/dicts.py``.

A line is read completely or not at all: lines that are not in the common form are left to the caller, as are errors.
There is a hash table for keys of the outermost objects, and a set per line for nested keys.
"""

import numpy as np

from forel.data.compiled import json_layout as layout
from forel.data.compiled import numbers
from forel.data.compiled.cache import fast, inner
from forel.data.compiled.hashing import START, hash_padded, only
from forel.data.compiled.layout import PAD
from forel.data.compiled.text import encode
from forel.data.compiled.words import EIGHT, ONES, TOPS, address, byte, digits, every, first, load, store

__all__ = ["rebuild", "scan"]

ZERO, ONE, TWO, FOUR, FIVE, NINE = (np.uint64(k) for k in (0, 1, 2, 4, 5, 9))
OPEN, CLOSE, FROM, TO, QUOTE, COLON, COMMA, MINUS, CARET, END = (np.uint8(ord(c)) for c in '{}[]":,-^\n')
BACKSLASH, SPACE, RETURN, TAB, DOT, FIRST_DIGIT, LAST_DIGIT = (np.uint8(ord(c)) for c in "\\ \r\t.09")
HALF, WHOLE = np.uint64((1 << 32) - 1), np.uint64((1 << 40) - 1)
NULL, TRUE, FALSE = (np.uint64(int.from_bytes(word, "little")) for word in (b"null", b"true", b"false"))
NO_STRING, NO_OBJECT = (
    layout.LABEL | layout.IMPORTANCE | layout.NUMERIC | layout.LOGARITHM,
    layout.LABEL | layout.WORD | layout.IMPORTANCE | layout.LOGARITHM,
)
LITTLE_E, BIG_E, UNICODE = (np.uint8(ord(c)) for c in "eEu")
QUOTES, BACKSLASHES, SPACES = every(ord('"')), every(ord("\\")), every(32)
LONGEST = np.uint64(300)  # bytes of a number; Python refuses integers of more than 4300 digits

# The byte of each escape of two bytes; 0 for others.
ESCAPES = np.zeros(256, np.uint8)
ESCAPES[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
# The value of a hexadecimal digit; 255 for other bytes.
DIGITS = np.full(256, 255, np.uint8)
DIGITS[list(b"0123456789abcdefABCDEF")] = [*range(16), *range(10, 16)]
NO_DIGIT = np.uint64(255)
HIGH, LOW, AFTER, PAIRS = (np.uint64(k) for k in (0xD800, 0xDC00, 0xE000, 0x10000))
SIX, TENTH = np.uint64(6), np.uint64(10)


@inner
def find_key(keys, hashed, key, length, role):
    """Return the row of a key in the table, which must not be full, and whether it is new."""
    last = np.uint64(keys.shape[0] - 1)
    place = hashed & last
    while keys[place, layout.START] != ZERO:
        if (
            keys[place, layout.HASH] == hashed
            and keys[place, layout.LENGTH] == length
            and same_bytes(key, keys[place, layout.START], length)
        ):
            return place, False
        place = (place + ONE) & last
    keys[place, layout.HASH], keys[place, layout.START] = hashed, key
    keys[place, layout.LENGTH], keys[place, layout.ROLE] = length, role
    keys[place, layout.STAMP] = keys[place, layout.KINDS] = keys[place, layout.ID] = ZERO
    return place, True


@inner
def first_in_line(names, hashed, stamp):
    """Add a hash to the set of a line, which must not be full; return False if it is in the set already."""
    last = np.uint64(names.shape[0] - 1)
    place = hashed & last
    while names[place, 1] == stamp:
        if names[place, 0] == hashed:
            return False
        place = (place + ONE) & last
    names[place, 0], names[place, 1] = hashed, stamp
    return True


@inner
def label_of(words, labels, hashed):
    """Return the label of a word by its hash, infinity for a word that is none, and whether the word is known."""
    last = np.uint64(words.size - 1)
    place = hashed & last
    while words[place] != ZERO:
        if words[place] == hashed:
            return labels[place], True
        place = (place + ONE) & last
    return np.inf, False


@fast
def rebuild(old, new):
    """Copy the keys of a table to a larger, empty one."""
    last = np.uint64(new.shape[0] - 1)
    for k in range(np.uint64(old.shape[0])):
        if old[k, layout.START] != ZERO:
            place = old[k, layout.HASH] & last
            while new[place, layout.START] != ZERO:
                place = (place + ONE) & last
            for column in range(old.shape[1]):
                new[place, column] = old[k, column]


@inner
def blank_end(i):
    """Return the address of the first byte from i on that is not whitespace within a line."""
    c = byte(i)
    while c in (SPACE, RETURN, TAB):
        i += ONE
        c = byte(i)
    return i


@inner
def same_bytes(a, b, length):
    """Return whether the bytes from two addresses on are the same, which a readable word must follow."""
    while length >= EIGHT:
        if load(a) != load(b):
            return False
        a += EIGHT
        b += EIGHT
        length -= EIGHT
    return only(load(a) ^ load(b), length) == ZERO


@inner
def copy(start, stop, to):
    """Copy the bytes between two addresses; return the address after the copy."""
    while start < stop:
        store(to, byte(start))
        start += ONE
        to += ONE
    return to


@inner
def string_end(i):
    """Return the address of the first quote, backslash or control byte from i on."""
    while True:
        word = load(i)
        a, b = word ^ QUOTES, word ^ BACKSLASHES
        n = first((((a - ONES) & ~a) | ((b - ONES) & ~b) | ((word - SPACES) & ~word)) & TOPS)
        i += n
        if n < EIGHT:
            return i


@inner
def code_unit(i):
    """Return the number with four hexadecimal digits at address i; PAIRS, above all such numbers, if there is none."""
    found = ZERO
    for k in range(FOUR):
        digit = np.uint64(DIGITS[byte(i + np.uint64(k))])
        if digit == NO_DIGIT:
            return PAIRS
        found = (found << FOUR) | digit
    return found


@inner
def unescape(i, to):
    """Write the string from address i on without escapes; return the addresses after it, or 0, and after the copy."""
    while True:
        end = string_end(i)
        to = copy(i, end, to)
        i = end
        c = byte(i)
        if c == QUOTE:
            return i + ONE, to
        if c != BACKSLASH:
            return ZERO, to
        c = byte(i + ONE)
        i += TWO
        if c != UNICODE:
            if ESCAPES[c] == 0:
                return ZERO, to
            store(to, ESCAPES[c])
            to += ONE
            continue
        code = code_unit(i)
        if code == PAIRS:
            return ZERO, to
        i += FOUR
        if code >= HIGH and code < LOW and byte(i) == BACKSLASH and byte(i + ONE) == UNICODE:
            second = code_unit(i + TWO)
            if second >= LOW and second < AFTER:
                code = PAIRS + ((code - HIGH) << TENTH) + (second - LOW)
                i += SIX
        to = encode(code, to)


@inner
def read_string(i, to):
    """Read the string after a quote before address i; return its span, and the addresses after it and after ``to``.

    A string with escapes is written to ``to`` without them. The address after an invalid one is 0.
    """
    end = string_end(i)
    if byte(end) == QUOTE:
        return i, end, end + ONE, to
    if byte(end) != BACKSLASH:
        return i, end, ZERO, to
    after, stop = unescape(i, to)
    return to, stop, after, stop


@inner
def read_number(i):
    """Read a number from address i; return as :func:`number`, and whether it is whole; the address is 0 if invalid."""
    c = byte(i)
    start = i + ONE if c == MINUS else i
    c = byte(start)
    valid = c >= FIRST_DIGIT and c <= LAST_DIGIT and not (c == FIRST_DIGIT and digits(load(start)) > ONE)
    point = start
    n = digits(load(point))
    while n == EIGHT:
        point += EIGHT
        n = digits(load(point))
    point += n
    c = byte(point)
    whole = c not in (DOT, LITTLE_E, BIG_E)
    if c == DOT:
        c = byte(point + ONE)
        valid = valid and c >= FIRST_DIGIT and c <= LAST_DIGIT
    found, end, kind = numbers.number(i)
    return found, end if valid and end - i < LONGEST else ZERO, kind, whole


@inner
def record(records, entry, base, top, top_end, space, space_end, name, name_end):
    """Record the spans of the outermost key, the namespace and the name of an entry."""
    records[entry, 0], records[entry, 1] = top - base, top_end - base
    records[entry, 2], records[entry, 3] = space - base, space_end - base
    records[entry, 4], records[entry, 5] = name - base, name_end - base


@fast
def scan(
    text, length, scratch, valid, counts, default, keys, names, events, indptr, hashes, values, labels, importance,
    row_lines, records, pending, doubles, marks, known_words, word_labels,
):  # fmt: skip
    """Read lines from counts[AT] to the end of the text, or to one that is left to the caller; return the status.

    Parameters
    ----------
    valid : whether the text is valid UTF-8; if not, all lines are left to the caller
    default : role of keys that are not in the table
    keys, names : tables of keys, whose numbers of rows are powers of two
    events : receives ID, offset, length and kind for the first value of each kind of a key, and of any kind of a named
        key, once its line is complete
    records : for each entry, offsets of the outermost key, the namespace and the name; empty if they are not needed
    pending, doubles : receive the entry of each number that the caller transforms, and the number
    marks : work array with two rows for each key that a line may have
    known_words, word_labels : hashes of labels that are words, in a table with a power of two rows, and their numbers
    """
    recording = records.shape[0] > 0
    base = address(text)
    i, stop = base + np.uint64(counts[layout.AT]), base + np.uint64(length)
    scratch_base = address(scratch)
    free = scratch_base + np.uint64(counts[layout.SCRATCH])
    words = scratch_base + np.uint64(scratch.size - PAD - layout.RESERVED)
    rows, entries, lines = counts[layout.ROWS], np.uint64(counts[layout.ENTRIES]), counts[layout.LINES]
    attempts, used = np.uint64(counts[layout.ATTEMPTS]), counts[layout.KEYS]
    found_events, waiting = np.uint64(counts[layout.EVENTS]), np.uint64(counts[layout.PENDING])
    most_keys, most_names = keys.shape[0] // 2, names.shape[0] // 2
    levels = np.empty((layout.DEPTH, 3), np.uint64)
    one, zero = np.float32(1), np.float32(0)
    status = layout.DONE
    while i < stop:
        begin = i
        i = blank_end(i)
        if byte(i) == END:
            i += ONE
            lines += 1
            continue
        attempts += ONE
        status = layout.FALLBACK
        # Unescaped strings have to fit into scratch memory.
        if byte(i) != OPEN or not valid or free + (stop - i) > words:
            i = begin
            break
        entry, scratch_end, wait, marked, inner = entries, free, waiting, ZERO, 0
        label, weight = np.nan, one
        depth, state, space, space_end = 0, START, base, base
        top = top_end = base
        place, role, top_role = ZERO, ZERO, ZERO
        i = blank_end(i + ONE)
        closing = byte(i) == CLOSE
        while True:
            if closing:
                i += ONE
                if depth == 0:
                    i = blank_end(i)
                    if byte(i) == END:
                        status = layout.DONE
                    break
                depth -= 1
                state, space, space_end = levels[depth, 0], levels[depth, 1], levels[depth, 2]
            else:
                if byte(i) != QUOTE:
                    break
                key, key_end, i, scratch_end = read_string(i + ONE, scratch_end)
                if i == ZERO:
                    break
                i = blank_end(i)
                if byte(i) != COLON:
                    break
                i = blank_end(i + ONE)
                hashed = hash_padded(key, key_end, state)
                if depth == 0:
                    if used >= most_keys:
                        status = layout.MORE_KEYS
                        break
                    place, new = find_key(keys, hashed, key, key_end - key, default)
                    if new:
                        used += 1
                        if key < base or key >= stop:
                            free = scratch_end  # the table refers to the unescaped key
                    if keys[place, layout.STAMP] == attempts:
                        break  # of a repeated key, the last value is used
                    keys[place, layout.STAMP] = attempts
                    role = top_role = keys[place, layout.ROLE]
                    top, top_end = key, key_end
                    if role & layout.NAMED != ZERO:
                        marks[marked, 0], marks[marked, 1] = place, layout.SEEN
                        marked += ONE
                else:
                    role = top_role & layout.USED
                    inner += 1
                    if inner > most_names:
                        status = layout.MORE_NAMES
                        break
                    if not first_in_line(names, hashed, attempts):
                        break
                c = byte(i)
                if c in (QUOTE, FROM, OPEN):
                    # The value is in a namespace that ends with this key.
                    within, within_end, within_state = key, key_end, hashed
                    if depth > 0 and space_end > space:
                        # Unescaped strings of the rest of the text have to fit, too.
                        if scratch_end + (space_end - space) + ONE + (key_end - key) + (stop - i) > words:
                            break
                        within = scratch_end
                        scratch_end = copy(space, space_end, scratch_end)
                        store(scratch_end, CARET)
                        scratch_end = copy(key, key_end, scratch_end + ONE)
                        within_end = scratch_end
                        within_state = hash_padded(within, within_end, START)
                    if within == within_end:
                        within_state = START
                if c == QUOTE:
                    word, word_end, i, scratch_end = read_string(i + ONE, scratch_end)
                    if i == ZERO:
                        break
                    if role & layout.WORD != ZERO:
                        label, known = label_of(known_words, word_labels, hash_padded(word, word_end, START) | ONE)
                        if not known:
                            counts[layout.WORD_START], counts[layout.WORD_STOP] = word - base, word_end - base
                            status, counts[layout.LITERAL] = layout.NEW_WORD, 0
                            break
                        if label == np.inf:
                            break
                    elif role & NO_STRING != ZERO:
                        break
                    if role & layout.USED != ZERO and word_end > word:
                        hashes[entry], values[entry] = hash_padded(word, word_end, within_state), one
                        if recording:
                            record(records, entry, base, top, top_end, within, within_end, word, word_end)
                        entry += ONE
                    if role & layout.RECORDED != ZERO:
                        marks[marked, 0], marks[marked, 1] = place, layout.CATEGORY
                        marked += ONE
                elif c == OPEN:
                    if role & NO_OBJECT != ZERO or depth == layout.DEPTH:
                        break
                    levels[depth, 0], levels[depth, 1], levels[depth, 2] = state, space, space_end
                    state, space, space_end = within_state, within, within_end
                    depth += 1
                    i = blank_end(i + ONE)
                    closing = byte(i) == CLOSE
                    continue
                elif c == FROM:
                    if role & NO_OBJECT != ZERO:
                        break
                    i = blank_end(i + ONE)
                    valid_list = True
                    if byte(i) == TO:
                        i += ONE
                    else:
                        while True:
                            if byte(i) == QUOTE:
                                word, word_end, i, scratch_end = read_string(i + ONE, scratch_end)
                                valid_list = i != ZERO
                                if valid_list and role & layout.USED != ZERO and word_end > word:
                                    hashes[entry], values[entry] = hash_padded(word, word_end, within_state), one
                                    if recording:
                                        record(records, entry, base, top, top_end, within, within_end, word, word_end)
                                    entry += ONE
                            else:
                                _, i, _, _ = read_number(i)
                                valid_list = i != ZERO and role & layout.USED == ZERO
                            if not valid_list:
                                break
                            i = blank_end(i)
                            c = byte(i)
                            if c == COMMA:
                                i = blank_end(i + ONE)
                                continue
                            valid_list = c == TO
                            i += ONE
                            break
                    if not valid_list:
                        break
                elif load(i) & HALF == NULL:
                    i += FOUR
                else:
                    literal = load(i)
                    start = i
                    if literal & HALF == TRUE:
                        found, kind, whole = one, numbers.NUMBER, True
                        word, word_end = words, words + FOUR
                        i += FOUR
                    elif literal & WHOLE == FALSE:
                        found, kind, whole = zero, numbers.NUMBER, True
                        word, word_end = words + FOUR, words + NINE
                        i += FIVE
                    else:
                        found, i, kind, whole = read_number(i)
                        word, word_end = start, i
                        if i == ZERO or kind == numbers.WRONG:
                            break
                    if role & (layout.WORD | layout.LABEL) == layout.WORD:
                        label, known = label_of(known_words, word_labels, hash_padded(word, word_end, ONE) | ONE)
                        if not known:
                            counts[layout.WORD_START], counts[layout.WORD_STOP] = word - base, word_end - base
                            status, counts[layout.LITERAL] = layout.NEW_WORD, 1
                            break
                        if label == np.inf:
                            break
                    elif role & (layout.USED | layout.LABEL | layout.IMPORTANCE) == ZERO:
                        pass
                    elif role & layout.CODED != ZERO:
                        # Fractions are written as Python writes them.
                        if not whole or (found == 0 and byte(start) == MINUS):
                            break
                        category_state = START if key == key_end else hashed
                        hashes[entry], values[entry] = hash_padded(word, word_end, category_state), one
                        if recording:
                            record(records, entry, base, top, top_end, key, key_end, word, word_end)
                        entry += ONE
                    else:
                        # It needs exact arithmetic, or is out of range.
                        if kind == numbers.HARD or not abs(found) < numbers.LARGEST:
                            break
                        if whole and found == 0:
                            found = zero  # -0 is an integer, and -0.0 is not
                        if role & layout.LABEL != ZERO:
                            label, sure = numbers.exactly(start, i)
                            if word != start:
                                label, sure = np.float64(found), True
                            if not sure:
                                break
                            if whole and label == 0:
                                label = 0.0
                        if role & layout.IMPORTANCE != ZERO:
                            weight = found
                            # A negative number may be rounded to -0.
                            if found < 0 or (found == 0 and byte(start) == MINUS):
                                break
                        if role & layout.USED != ZERO:
                            hashes[entry], values[entry] = hashed, found
                            if recording:
                                record(records, entry, base, top, top_end, space, space_end, key, key_end)
                            if role & layout.LOGARITHM != ZERO:
                                double, sure = numbers.exactly(start, i)
                                if word != start or (whole and found == 0):
                                    double, sure = np.float64(found), True
                                if not sure:
                                    break
                                doubles[wait] = double
                                pending[wait] = entry
                                wait += ONE
                            entry += ONE
                    if role & layout.RECORDED != ZERO:
                        kind_found = layout.CATEGORY if role & layout.CODED != ZERO else layout.NUMBER
                        marks[marked, 0], marks[marked, 1] = place, kind_found
                        marked += ONE
            i = blank_end(i)
            c = byte(i)
            if c == COMMA:
                i = blank_end(i + ONE)
                closing = False
            elif c == CLOSE:
                closing = True
            else:
                break
        if status != layout.DONE:
            i = begin
            break
        for k in range(marked):
            place, kind_found = marks[k, 0], marks[k, 1]
            if keys[place, layout.KINDS] & kind_found == ZERO:
                keys[place, layout.KINDS] |= kind_found
                events[found_events, 0] = keys[place, layout.ID]
                events[found_events, 1] = keys[place, layout.START] - base
                events[found_events, 2] = keys[place, layout.LENGTH]
                events[found_events, 3] = kind_found
                found_events += ONE
        if recording:
            free = scratch_end
        entries, waiting = entry, wait
        labels[rows], importance[rows], row_lines[rows] = label, weight, lines
        rows += 1
        indptr[rows] = entries
        i += ONE
        lines += 1
    counts[layout.AT], counts[layout.LINES] = i - base, lines
    counts[layout.ROWS], counts[layout.ENTRIES] = rows, entries
    counts[layout.SCRATCH], counts[layout.ATTEMPTS], counts[layout.KEYS] = free - scratch_base, attempts, used
    counts[layout.EVENTS], counts[layout.PENDING] = found_events, waiting
    return status
