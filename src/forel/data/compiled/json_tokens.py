"""Tokens and keys of JSON; text that needs Python's parser is left to the caller.

There is a hash table for keys of the outermost objects, and a set per line for nested keys.
"""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.hashing import only
from forel.data.compiled.json_layout import HASH, ID, KINDS, LENGTH, ROLE, STAMP, START
from forel.data.compiled.numbers import number
from forel.data.compiled.words import EIGHT, ONES, TOPS, byte, digits, every, first, load, store

__all__ = [
    "LONG",
    "blank_end",
    "copy",
    "find_key",
    "first_in_line",
    "read_number",
    "read_string",
    "rebuild",
    "same_bytes",
]

ZERO, ONE, TWO, FOUR = (np.uint64(k) for k in (0, 1, 2, 4))
QUOTE, BACKSLASH, SPACE, RETURN, TAB, MINUS, DOT, NOUGHT = (np.uint8(ord(c)) for c in '"\\ \r\t-.0')
LITTLE_E, BIG_E, UNICODE = (np.uint8(ord(c)) for c in "eEu")
QUOTES, BACKSLASHES, SPACES = every(ord('"')), every(ord("\\")), every(32)
NINE, TEN = np.uint8(ord("9")), np.uint64(10)
LONG = np.uint64(300)  # bytes of a number; Python refuses integers of more than 4300 digits

# The byte of each escape of two bytes; 0 for others.
ESCAPES = np.zeros(256, np.uint8)
ESCAPES[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
# The value of a hexadecimal digit; 255 for other bytes.
DIGITS = np.full(256, 255, np.uint8)
DIGITS[list(b"0123456789abcdefABCDEF")] = [*range(16), *range(10, 16)]
NO_DIGIT = np.uint64(255)
HIGH, LOW, AFTER, PAIRS = (np.uint64(k) for k in (0xD800, 0xDC00, 0xE000, 0x10000))
SIX, TWELVE, EIGHTEEN, TENTH = (np.uint64(k) for k in (6, 12, 18, 10))
TAIL, REST, LEAD2, LEAD3, LEAD4 = (np.uint64(k) for k in (0x80, 0x3F, 0xC0, 0xE0, 0xF0))
ONE_BYTE, TWO_BYTES = np.uint64(0x80), np.uint64(0x800)


@inner
def find_key(keys, hashed, key, length, role):
    """Return the row of a key in the table, which must not be full, and whether it is new."""
    last = np.uint64(keys.shape[0] - 1)
    place = hashed & last
    while keys[place, START] != ZERO:
        if (
            keys[place, HASH] == hashed
            and keys[place, LENGTH] == length
            and same_bytes(key, keys[place, START], length)
        ):
            return place, False
        place = (place + ONE) & last
    keys[place, HASH], keys[place, START], keys[place, LENGTH], keys[place, ROLE] = hashed, key, length, role
    keys[place, STAMP] = keys[place, KINDS] = keys[place, ID] = ZERO
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


@fast
def rebuild(old, new):
    """Copy the keys of a table to a larger, empty one."""
    last = np.uint64(new.shape[0] - 1)
    for k in range(np.uint64(old.shape[0])):
        if old[k, START] != ZERO:
            place = old[k, HASH] & last
            while new[place, START] != ZERO:
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
def encode(code, to):
    """Write a code point, which may be a surrogate, in UTF-8; return the address after it."""
    if code < ONE_BYTE:
        store(to, np.uint8(code))
        return to + ONE
    if code < TWO_BYTES:
        store(to, np.uint8(LEAD2 | (code >> SIX)))
    else:
        if code < PAIRS:
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
    valid = c >= NOUGHT and c <= NINE and not (c == NOUGHT and digits(load(start)) > ONE)
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
        valid = valid and c >= NOUGHT and c <= NINE
    found, end, kind = number(i)
    return found, end if valid and end - i < LONG else ZERO, kind, whole
