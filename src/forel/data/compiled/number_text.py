"""Numbers as text with six significant digits, as C's ``%.6g`` writes them.

A number is m·10ᵉ⁻⁵ with m of six digits. In float64, 10ᵏ and the product are each off by a factor of at most 1 ± 2⁻⁵³,
so m is correct unless the product is within 10⁻⁷ of a midpoint, which the caller rounds.
"""

import numpy as np

from forel.data.compiled.cache import fast, inner
from forel.data.compiled.numbers import bits_of

__all__ = ["write_numbers"]

REACH = 330
POWERS = np.array([float(f"1e{k}") for k in range(-REACH, REACH + 1)])
PLACES = np.array([100000, 10000, 1000, 100, 10, 1], np.int64)
LEAST, NEAR = 100000.0, 1e-7
EXPONENT, BIAS, FRACTION = np.uint64(0x7FF), 1023, np.uint64(52)
ZERO, DOT, MINUS, PLUS, LETTER, END = (np.uint8(ord(c)) for c in "0.-+e\n")
NAN, INFINITE = (np.frombuffer(word, np.uint8) for word in (b"nan", b"inf"))


@inner
def power(k):
    """Return 10ᵏ, infinity above the range of doubles."""
    return POWERS[k + REACH] if k < REACH else np.inf


@fast
def write_numbers(values, first, at, out):
    """Write numbers from the first on, each with a line end; return the next one and the end of the text.

    The next one is the number that the caller has to round, or the number of values.
    """
    for k in range(first, values.size):
        start = at
        value = values[k]
        bits = bits_of(value)
        if bits >> np.uint64(63) and not np.isnan(value):
            out[at] = MINUS
            at += 1
            value = -value
        if value == 0:
            out[at] = ZERO
            at += 1
        elif not np.isfinite(value):
            for j in range(3):
                out[at + j] = NAN[j] if np.isnan(value) else INFINITE[j]
            at += 3
        else:
            # At most one below the decimal exponent.
            e = ((np.int64((bits >> FRACTION) & EXPONENT) - BIAS) * 1233) >> 12
            scaled = value * power(5 - e)
            if scaled >= 10 * LEAST:
                e += 1
                scaled = value * power(5 - e)
            elif scaled < LEAST:
                e -= 1
                scaled = value * power(5 - e)
            m = np.int64(scaled + 0.5) if scaled < 11 * LEAST else np.int64(0)
            if m < 99999 or m > 1000000 or abs(scaled - np.floor(scaled) - 0.5) < NEAR:
                return k, start
            if m == 1000000:
                m, e = np.int64(100000), e + 1
            at = write_digits(m, e, at, out)
        out[at] = END
        at += 1
    return values.size, at


@inner
def write_digits(m, e, at, out):
    """Write m·10ᵉ⁻⁵, where m has six digits; return the end of the text."""
    size = 6
    while size > 1 and (m // PLACES[size - 1]) % 10 == 0:
        size -= 1
    point, total = e, size
    if e < -4 or e >= 6:
        point = 0
    elif e < 0:
        out[at], out[at + 1] = ZERO, DOT
        at += 2
        for _ in range(-1 - e):
            out[at] = ZERO
            at += 1
    else:
        total = max(size, e + 1)
    for j in range(total):
        out[at] = ZERO + np.uint8((m // PLACES[j]) % 10)
        at += 1
        if j == point and j + 1 < total:
            out[at] = DOT
            at += 1
    if e < -4 or e >= 6:
        out[at], out[at + 1] = LETTER, MINUS if e < 0 else PLUS
        at += 2
        size = abs(e)
        if size >= 100:
            out[at] = ZERO + np.uint8(size // 100)
            at += 1
        out[at], out[at + 1] = ZERO + np.uint8(size // 10 % 10), ZERO + np.uint8(size % 10)
        at += 2
    return at
