"""Decimal numbers in any notation become the nearest float32, ties to even."""

import io
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from forel.data import concatenate, read

TOP = Fraction(2) ** 128


def oracle(text):
    """Return the nearest float32 by exact arithmetic; infinite where it is too large."""
    exact = Fraction(text)
    size = abs(exact)
    if size == 0:
        return math.copysign(0.0, -1 if text.startswith("-") else 1)
    # A unit in the last place: 24 binary digits, and not below the smallest denormal number.
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power -= size < Fraction(2) ** power
    unit = Fraction(2) ** max(power - 23, -149)
    found = round(size / unit) * unit  # Fraction rounds half to even
    return math.copysign(float(found) if found < TOP else math.inf, 1 if exact > 0 else -1)


def written(exact, digits, rng):
    """Return a positive fraction truncated to a number of digits, with the point at any position."""
    power = math.floor(math.log10(exact)) + 1
    whole = str(int(exact * Fraction(10) ** (digits - power)))
    power += len(whole) - digits
    form = rng.randrange(4)
    if form == 0 and -30 < power <= 0:
        return "0." + "0" * -power + whole
    if form == 1 and 0 < power < len(whole):
        return f"{whole[:power]}.{whole[power:]}"
    if form == 2:
        return f"{whole[0]}.{whole[1:]}e{power - 1}"
    return f"0.00000{whole}e{power + 5:+d}"


def midpoints(rng, low=-126, high=127):
    """Return the point half-way between two float32 that follow each other."""
    power = rng.randrange(low, high)
    return (Fraction(rng.randrange(1 << 23, 1 << 24)) + Fraction(1, 2)) * Fraction(2) ** (power - 23)


def hard_cases(seed=0, count=4000):
    rng = random.Random(seed)
    cases = []
    for _ in range(count):
        exact = midpoints(rng)
        digits = rng.choice((9, 12, 13, 16, 17, 18, 19, 20, 21, 25, 40, 112))
        cases.append(written(exact, digits, rng))
        cases.append(written(exact * (1 + Fraction(rng.choice((-1, 1)), 10 ** rng.randrange(9, 30))), digits + 2, rng))
    for _ in range(count // 4):  # below the normal range
        exact = Fraction(2 * rng.randrange(1, 1 << rng.randrange(2, 23)) + 1, 2) * Fraction(2) ** -149
        cases.append(written(exact, rng.choice((5, 12, 17, 30, 120)), rng))
    for _ in range(count):
        zeros = "0" * rng.randrange(9)
        cases.append(f"{rng.randrange(10 ** rng.randrange(5))}.{zeros}{rng.randrange(10 ** rng.randrange(5, 22))}")
    for digits in range(1, 11):  # one digit before the point, as most fractions are written
        cases += [f"{rng.randrange(10)}.{rng.randrange(10**digits):0{digits}d}" for _ in range(count // 10)]
        cases += [f"{float(midpoints(rng, -20, 3)):.{digits}f}" for _ in range(count // 10)]
    return cases


EDGES = [
    "0", "0.0", "0." + "0" * 60 + "1", "1" + "0" * 39 + "e-39", "0." + "0" * 200 + "1e201", "9" * 30 + "e-30",
    "3.4028234663852886e38", "3.40282356779733642e38", "340282356779733661637539395458142568447",
    "1.401298464324817e-45", "7.006492321624085e-46", "7.006492321624086e-46",
    "7.00649232162408535461864791644958065640130970938257885878534141944895541342930300743319094181060791015625e-46",
    "1.17549435e-38", "1.1754943157898258e-38",
    "1.00000005960464477539062499999", "1.000000059604644775390625", "1.00000005960464477539062500001",
    "1.00000017881393432617187499999", "1.000000178813934326171875", "1.00000017881393432617187500001",
    "16777217", "16777217.0000000000000000000000000000000001", "0.000123456789012345678", "1234.567890123456789",
    "8.589973e9", "9007199254740993", "9007199254740992999999999999999999", "2.2250738585072011e-308", "1e-400",
]  # fmt: skip


def bits(values):
    return np.asarray(values, np.float32).view(np.uint32)


def parsed(cases, form):
    good = [text for text in cases if math.isfinite(oracle(text))]
    wanted = bits([oracle(text) for text in good])
    if form == "vw":
        text = "".join(f"|a x:{case}\n" for case in good)
    elif form == "svmlight":
        text = "".join(f"1 3:{case}\n" for case in good)
    else:
        text = "x\n" + "".join(f" {case}\n" for case in good)
    block = concatenate(read(io.BytesIO(text.encode()), form))
    assert block.values.size == len(good) > 0
    wrong = np.flatnonzero(bits(block.values) != wanted)
    assert [good[k] for k in wrong[:5]] == []


@pytest.mark.parametrize("form", ["vw", "svmlight", "csv"])
def test_numbers_are_rounded_once_and_correctly(form):
    parsed(EDGES + [f"-{case}" for case in EDGES], form)
    parsed(hard_cases(), form)


def test_numbers_beyond_float32_are_refused():
    for text in ("3.4028235677973366163753939545814256845e38", "1e39", "-1e400"):
        assert math.isinf(oracle(text))
        with pytest.raises(ValueError, match="expected a number within the range of float32"):
            list(read(io.BytesIO(f"|a x:{text}\n".encode()), "vw"))
    parsed(["3.4028235677973366163753939545814256844e38"], "vw")


def test_the_oracle_is_right_where_python_is():
    rng = random.Random(1)
    for _ in range(2000):
        text = repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-44, 38))
        assert oracle(text) == np.float32(float(text))
