"""Conversion of decimal numbers to float32, correctly rounded; hard cases are left to exact arithmetic.

A number is w·10ᵉ, with w its first digits, 12 to 19 where it has them. In float64, w, 10ᵉ and their product are each
off by a factor of at most 1 ± 2⁻⁵³, which is less than 4 units in the product's last place; later digits, where there
are any, add less than a factor of 1 + 1/w, which is less than 2⁵⁴/w units. Rounding the product to float32 is correct
unless a midpoint between two float32 lies within these units, which the 29 additional bits of float64 show. In that
case, and below the normal range, the number is hard, and the caller resolves it in exact arithmetic.
"""

import numpy as np
from numba import types

from forel.data.compiled.cache import inlined, inner, intrinsic
from forel.data.compiled.words import EIGHT, byte, digits, load, power_of_ten, value

__all__ = ["HARD", "LARGEST", "NUMBER", "WRONG", "bits_of", "exactly", "number", "read_label", "resolve_hard"]

NUMBER, WRONG, HARD = 0, 1, 2
ONE, TEN, ZERO = np.uint64(1), np.uint64(10), np.uint64(48)
FULL = np.uint64(10**11)  # below it, eight more digits fit
REACH = 80  # powers of ten; beyond, a number is far out of the range of float32
POWERS = np.array([float(f"1e{k}") for k in range(-REACH, REACH + 1)])
EXACT, AHEAD = np.uint64(1 << 53), np.uint64(1 << 54)
TINY, LARGEST = 2.0**-126, np.float32(np.finfo(np.float32).max)
REST, HALF, NEAR = np.uint64((1 << 29) - 1), np.uint64(1 << 28), np.uint64(4)
DOT, MINUS, PLUS, LITTLE_E, BIG_E, SPACE = (np.uint8(ord(c)) for c in ".-+eE ")


@intrinsic
def bits_of(typing_context, real):
    """Return the 64 bits of a double."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), codegen


@inlined
def far_from_midpoints(real, units):
    """Return whether no midpoint between two float32 lies within ``units`` units in the last place of a double."""
    return (bits_of(real) & REST) - HALF + units > units + units


@inner
def rounded(w, cut, e):
    """Return w·10ᵉ as a double, and whether its float32 is certain; ``cut`` is true if digits were left out."""
    if e == 0 and w < EXACT and not cut:
        return np.float64(w), True
    if w == 0 or e < -REACH:
        return 0.0, True
    if e > REACH:
        return np.inf, True
    real = np.float64(w) * POWERS[np.uint64(e + REACH)]
    near = NEAR + AHEAD // w if cut else NEAR
    return real, real >= TINY and far_from_midpoints(real, near)


@inner
def gather(i, w, cut):
    """Append the digits from address i to w while they fit; return position, w, digits added, and ``cut``."""
    start = i
    n = EIGHT
    while n == EIGHT and w < FULL:
        word = load(i)
        n = digits(word)
        if n > 0:
            w = w * power_of_ten(n) + value(word, n)
            i += n
    taken = i - start
    if n == EIGHT:
        digit = np.uint64(byte(i)) - ZERO
        while digit < TEN:
            cut = cut or digit != 0
            i += ONE
            digit = np.uint64(byte(i)) - ZERO
    return i, w, taken, cut


@inner
def number(i):
    """Read a number from address i; return it, the address after it, and NUMBER, WRONG or HARD."""
    c = byte(i)
    negative = c == MINUS
    if negative or c == PLUS:
        i += ONE
    start = i
    w, taken, cut = np.uint64(byte(i)) - ZERO, ONE, False
    # One digit, alone or before a point: the branch predictor supplies the start of the next word.
    if w < TEN and byte(i + ONE) <= SPACE:
        single = np.float32(w)
        return -single if negative else single, i + ONE, NUMBER
    if w < TEN and byte(i + ONE) == DOT:
        i += ONE
    else:
        i, w, taken, cut = gather(i, np.uint64(0), False)
    whole = i - start
    e = np.int64(whole) - np.int64(taken)
    if byte(i) == DOT:
        i += ONE
        start = i
        i, w, taken, cut = gather(i, w, cut)
        whole += i - start
        e -= np.int64(taken)
    if whole == 0:
        return np.float32(0), i, WRONG
    c = byte(i)
    if c in (LITTLE_E, BIG_E):
        i += ONE
        c = byte(i)
        down = c == MINUS
        if down or c == PLUS:
            i += ONE
        digit = np.uint64(byte(i)) - ZERO
        if digit >= TEN:
            return np.float32(0), i, WRONG
        power = np.int64(0)
        while digit < TEN:
            power = min(power * 10 + np.int64(digit), np.int64(1) << 40)
            i += ONE
            digit = np.uint64(byte(i)) - ZERO
        e += -power if down else power
    real, certain = rounded(w, cut, e)
    if negative:
        real = -real
    return np.float32(real), i, NUMBER if certain else HARD


@inner
def exactly(i, stop):
    """Return the number from address i to ``stop`` as a double, and whether it is the nearest one.

    Up to 2⁵³ and 10²², digits and power are doubles themselves, and one operation rounds once.
    """
    negative = byte(i) == MINUS
    w, e, point, power, scaled, down = np.uint64(0), np.int64(0), False, np.int64(0), False, False
    while i < stop:
        c = byte(i)
        digit = np.uint64(c) - ZERO
        i += ONE
        if c == DOT:
            point = True
        elif c in (LITTLE_E, BIG_E):
            scaled = True
        elif scaled:
            down = down or c == MINUS
            if digit < TEN:
                power = min(power * 10 + np.int64(digit), np.int64(1) << 40)
        elif digit < TEN:
            w = min(w * TEN + digit, EXACT)
            e -= point
    e += -power if down else power
    if w >= EXACT or abs(e) > 22:
        return 0.0, False
    tens = POWERS[np.uint64(REACH + abs(e))]
    real = np.float64(w) / tens if e < 0 else np.float64(w) * tens
    return -real if negative else real, True


@inner
def resolve_hard(start, end, double, hard, resolved, count):
    """Return a hard number if it is resolved; otherwise record its span, if there is space, and return 0.

    ``double`` is true for the nearest double, false for the nearest float32.
    """
    if count < resolved.size:
        return resolved[count]
    if count < hard.shape[0]:
        hard[count, 0], hard[count, 1], hard[count, 2] = start, end, double
    return 0.0


@inner
def read_label(i, end, base, hard, resolved, count):
    """Return the label between two addresses as a double, and the number of hard numbers."""
    label, sure = exactly(i, end)
    if not sure:
        label = resolve_hard(i - base, end - base, True, hard, resolved, count)
        count += 1
    return label, count
