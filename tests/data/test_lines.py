"""VW text and svmlight against reference parsers: the same examples, or an error that names the place."""

import codecs
import io
import pathlib
import re
from functools import cache

import numba
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import reference_parsers
from forel.data import Malformed, concatenate, read
from forel.data.values import nearest_float32
from reference_parsers import PARSERS, VALID, examples, same

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
BITS = 7  # few slots, so that names meet


def check(form, text, block_bytes=1 << 20, bits=BITS):
    """Compare with the reference parser, and the places of problems too."""
    reader = read(
        io.BytesIO(text), form, bits=bits, tags=form == "vw", on_error="skip", block_bytes=block_bytes
    )  # fmt: skip
    blocks = list(reader)
    mine = examples(blocks)
    assert [k for block in blocks for k in block.lines.tolist()] == reference_parsers.places(text, PARSERS[form], bits)
    wanted, bad = reference_parsers.read(text, PARSERS[form], bits)
    same(mine, wanted)
    assert reader.problems.count == len(bad)
    for message, line in zip(reader.problems.messages, bad, strict=False):
        assert re.match(rf"stream, line {line}, column \d+: got .*, expected ", message), message
    if bad:
        with pytest.raises(Malformed) as caught:
            list(read(io.BytesIO(text), form, bits=bits, block_bytes=block_bytes))
        assert caught.value.line == bad[0]
        length = len(text.removeprefix(b"\xef\xbb\xbf").split(b"\n")[bad[0] - 1])
        assert 1 <= caught.value.column <= length + 1


DECIMAL = st.one_of(
    st.integers(-99, 99).map(str),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1e5", "-2.5E-3", "+.5", "7.", "00012", "1e-40", "1e-46", "3.4e38", "16777217.0", "1e+07", "-0"]),
    st.sampled_from(["nan", "inf", "-inf", "1e39", "", ".", "-", "1e", "0x1", "1_0", "１", "1e400", "1e-400", "1..2"]),
).map(str.encode)
WORD = st.one_of(
    st.sampled_from(
        [b"a", b"b", b"f12345", b"eight888", b"sixteen_sixteen_", "naïve".encode(), b"\xff\xfe", b"'q", b"#"]
    ),
    st.binary(min_size=1, max_size=20).filter(lambda b: not re.search(rb"[\x00-\x20:|]", b)),
)
GAP = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b" \r", b""])


# Strategies of parts, made once: hypothesis validates each strategy that is made anew.
NUMBERS_BEFORE = st.sampled_from([0, 1, 1, 1, 2, 3])
QUOTE = st.sampled_from([b"", b"'"])
NAMESPACE = st.one_of(st.just(b""), WORD)
NUMBER = st.one_of(st.just(b""), DECIMAL.map(lambda d: b":" + d))
QUERY = st.sampled_from([b"qid:3 ", b"qid: ", b"qid:x ", b"qid "])
INDEX = st.one_of(st.integers(0, 200), st.sampled_from([2**31, 10**14, 10**17, 10**19, -1]))
UP_TO = {high: st.integers(0, high) for high in (3, 4, 5)}
BOOLEAN = st.booleans()


@st.composite
def vw_lines(draw):
    parts = [draw(DECIMAL) + draw(GAP) for _ in range(draw(NUMBERS_BEFORE))]
    if draw(BOOLEAN):
        parts.append(draw(QUOTE) + draw(WORD) + draw(GAP))
    for _ in range(draw(UP_TO[3])):
        parts.append(b"|" + draw(NAMESPACE))
        if draw(UP_TO[4]) == 0:
            parts.append(b":" + draw(DECIMAL))
        parts += [b" " + draw(GAP) + draw(WORD) + draw(NUMBER) for _ in range(draw(UP_TO[4]))]
        parts.append(draw(GAP))
    return b"".join(parts)


@st.composite
def svmlight_lines(draw):
    parts = [draw(GAP), draw(DECIMAL), draw(GAP)]
    if draw(UP_TO[3]) == 0:
        parts.append(draw(QUERY))
    parts += [f"{draw(INDEX)}:".encode() + draw(DECIMAL) + b" " + draw(GAP) for _ in range(draw(UP_TO[5]))]
    if draw(UP_TO[3]) == 0:
        parts.append(b"# a comment 1:2 |")
    return b"".join(parts)


LINES = {"vw": vw_lines(), "svmlight": svmlight_lines()}
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b"\n \n"])
TEXTS = {
    form: st.lists(st.tuples(LINES.get(form, st.sampled_from(VALID[form].splitlines())), ENDS), max_size=6)
    for form in PARSERS
}
BLOCK_BYTES = st.sampled_from([1, 7, 50, 1 << 20])


@pytest.mark.parametrize("form", PARSERS)
@given(data=st.data())
@settings(max_examples=250)
def test_generated_lines_give_the_same_as_the_reference(form, data):
    text = b"".join(line + end for line, end in data.draw(TEXTS[form]))
    assume(not text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)))  # which make it text of two bytes a letter
    check(form, text, data.draw(BLOCK_BYTES))


SHORT = [
    b"|",
    b"|",
    b"|a",
    b"|b",
    b"||",
    b"|:",
    b"|a:2",
    b" ",
    b" ",
    b" ",
    b"x",
    b"yy",
    b"seven77",
    b"eight888",
    b"nine99999",
]


@given(st.lists(st.sampled_from([*SHORT, b":3", b"\t", b"\r", b"\n1 "]), max_size=40).map(b"".join))
@example(b"|| x |b y")
@example(b"|: x |b y")
@example(b"|a  |b y")
@example(b"|a :2 |b y")
@example(b"|a seven77 |b eight888 |c nine99999 |a x")
@example(b"|a |b y |c z")
@example(b"|user x |b y z |c z")
@example(b"|user x|b y |c z")
@example(b"|a x |b")
def test_namespaces_of_one_letter_and_feature_give_the_same_as_the_reference(rest):
    check("vw", b"1 " + rest)


VALUES = [
    b":1",
    b":0.5234",
    b":-.25",
    b":12345678",
    b":1234567.8",
    b":16777217",
    b":0.00000001",
    b":1e3",
    b":5.",
    b":-0",
]


@st.composite
def plain_lines(draw):
    """Return lines of names, alone in short and long namespaces or many in one, some with values, a few bytes off."""
    lengths = st.one_of(st.integers(1, 9), st.integers(1, 70))
    letters = st.sampled_from([b"a", b"\xe4"])
    before = draw(st.lists(st.sampled_from([b" ", b" |a ", b" |c14 ", b" |namespace "]), min_size=1, max_size=2))
    values = draw(st.sampled_from([[b""], [b"", b":1.5", b":-12"], VALUES]))
    names = st.builds(
        lambda a, b, n, v: a + b"x" * (n - 1) + b + v,
        st.sampled_from(before),
        letters,
        lengths,
        st.sampled_from(values),
    )
    text = bytearray(
        b"1 |b x" + b"".join(draw(st.lists(names, max_size=40))) + draw(st.sampled_from([b"", b"\n1 |a x"]))
    )
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        other = st.sampled_from([b"", b" ", b"|", b":", b"\t", b"\n", b"|a", b"|a:3", b":2", b":.", b"a"])
        text[place : place + draw(st.integers(0, 2))] = draw(other)
    return bytes(text)


@given(plain_lines())
@settings(max_examples=300)
def test_long_lines_of_plain_names_give_the_same_as_the_reference(text):
    check("vw", text)


@pytest.fixture(scope="module")
def marks():
    import numba

    from forel.data.compiled.words import address, at_most, equal, lowest

    return numba.njit(lambda a, c: (equal(address(a), c), at_most(address(a), c), lowest(equal(address(a), c))))


@given(text=st.binary(min_size=64, max_size=64), wanted=st.sampled_from(b" :|\x80"))
def test_bytes_are_compared_64_at_a_time(marks, text, wanted):
    same, below, first = marks(np.frombuffer(text, np.uint8), np.uint8(wanted))
    assert same == sum(1 << k for k, c in enumerate(text) if c == wanted)
    assert below == sum(1 << k for k, c in enumerate(text) if c <= wanted)
    assert first == (text.find(wanted) if wanted in text else 64)


@pytest.mark.parametrize("form", PARSERS)
@given(data=st.data())
@settings(max_examples=250)
def test_mutated_files_give_the_same_as_the_reference(form, data):
    text = bytearray(VALID[form])
    for _ in range(data.draw(st.integers(1, 4))):
        k = data.draw(st.integers(0, len(text) - 1))
        byte = data.draw(st.one_of(st.sampled_from(list(b"\n\r |:'#.eE+-09a\x00\xff")), st.integers(0, 255)))
        action = data.draw(st.sampled_from(["replace", "insert", "delete"]))
        if action == "insert":
            text.insert(k, byte)
        elif action == "delete" and len(text) > 1:
            del text[k]
        else:
            text[k] = byte
    check(form, bytes(text), data.draw(st.sampled_from([1, 13, 1 << 20])))


@pytest.mark.parametrize("form", PARSERS)
def test_every_truncation_gives_the_same_as_the_reference(form):
    for end in range(len(VALID[form]) + 1):
        check(form, VALID[form][:end])
        check(form, VALID[form][:end], block_bytes=5)


@pytest.mark.parametrize("form", PARSERS)
def test_the_valid_files_are_valid(form):
    wanted, bad = reference_parsers.read(VALID[form], PARSERS[form], BITS)
    assert len(wanted) == 4
    assert not bad


@pytest.mark.parametrize("form", PARSERS)
def test_a_byte_order_mark_is_not_part_of_the_first_label(form):
    check(form, b"\xef\xbb\xbf" + VALID[form])


# Numbers: around points half-way between two float32, where rounding twice goes wrong.


def around_a_middle(bits, digits, nudge):
    lower = np.uint32(bits).view(np.float32)
    upper = np.uint32(bits + 1).view(np.float32)
    middle = (float(lower) + (float(upper) if np.isfinite(upper) else 2.0**128)) / 2
    text = f"{middle:.{digits}e}"
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}{nudge}e{exponent}".encode()


MIDDLES = st.builds(
    around_a_middle, st.integers(0, 0x7F7FFFFF), st.integers(5, 120), st.sampled_from(["", "1", "0001", "9", "0"])
)


@given(st.lists(st.one_of(MIDDLES, DECIMAL.filter(bool)), min_size=1, max_size=30))
@example([b"1.00000017881393432617187499", b"1.00000017881393432617187500", b"1.00000017881393432617187501"])
@example([b"1099511693312.1", b"1099511693312", b"1099511693311.9", b"1099511693312.00000000000000000000000001"])
@example([b"340282356779733661637539395458142568447", b"340282356779733661637539395458142568448"])
@example([b"0." + b"0" * 500 + b"1e500", b"1" + b"0" * 500 + b"e-500", b"0" * 6000 + b"5", b"9" * 6000 + b"e-5999"])
@example([b"7.0064923216240854e-46", b"7.006492321624085e-46", b"1.1754942807573643e-38"])
@settings(max_examples=250)
def test_numbers_are_rounded_once(decimals):
    check("vw", b"".join(b"1 |a b:%s\n" % d for d in decimals))


def test_exact_arithmetic_finishes_hard_numbers_in_any_amount():
    hard = b" ".join(b"n%d:1e-40" % k for k in range(3000))
    check("vw", b"1e-42 1e-41 |a:1e-40 x\n" + b"1 | " + hard + b"\n1 | " + hard + b" bad:\n1 |a b:1e-39\n", bits=20)


@given(st.one_of(MIDDLES, st.floats(allow_nan=False, allow_infinity=False).map(lambda x: repr(x).encode())))
@settings(max_examples=300)
def test_nearest_is_the_nearest(word):
    try:
        wanted = reference_parsers.number(word)
    except reference_parsers.Wrong:
        assert np.isinf(nearest_float32(word))
    else:
        assert nearest_float32(word) == wanted


# Errors name the place and the remedy.

PROBLEMS = [
    ("vw", b"1 2:3\n", 1, 3, "got '2:3', expected a number"),
    ("vw", b"\n1\n", 2, 2, "got the end of the line, expected '|' before the features"),
    ("vw", b"1 2 3 |a b\n", 1, 5, "got '3', expected '|' after label and importance"),
    ("vw", b"1 'tag x |a b\n", 1, 8, "got 'x', expected '|' after the tag"),
    ("vw", b"1 -2 |a b\n", 1, 3, "got '-2', expected an importance of at least 0"),
    ("vw", b"nan |a b\n", 1, 1, "got 'nan', expected a number"),
    ("vw", b"1 |a b:inf\n", 1, 8, "got 'inf', expected a number"),
    ("vw", b"1 |a b:1e39\n", 1, 8, "got '1e39', expected a number within the range of float32"),
    ("vw", b"1 |a:1e30 b:1e30\n", 1, 13, "got '1e30', expected a number within the range of float32"),
    ("vw", b"1 |a b:3e38 b:3e38\n", 1, 19, "expected values of one slot whose sum is within"),
    ("vw", b"1 |:2 b\n", 1, 4, "got ':2', expected a namespace before ':', or a space after '|'"),
    ("vw", b"1 | :2\n", 1, 5, "got ':2', expected the name of a feature before ':'"),
    ("vw", b"1 |a b:\n", 1, 8, "got the end of the line, expected a number"),
    ("vw", b"1 |a b: c\n", 1, 8, "got a space, expected a number"),
    ("vw", b"1 |a b:1x\n", 1, 9, "got 'x', expected the end of the number"),
    ("vw", b"1 |a b:caf\xe9\n", 1, 8, "got 'caf\\xe9', expected a number"),
    ("svmlight", b"x 1:2\n", 1, 1, "got 'x', expected a number"),
    ("svmlight", b"1,2 1:2\n", 1, 2, "got ',2', expected the end of the number"),
    ("svmlight", b"1 x:2\n", 1, 3, "got 'x:2', expected the id of a feature, a whole number"),
    ("svmlight", b"1 3\n", 1, 4, "got the end of the line, expected ':' and a value after the id"),
    ("svmlight", b"1 3:nan\n", 1, 5, "got 'nan', expected a number"),
    ("svmlight", b"1 qid:x 3:1\n", 1, 7, "got 'x', expected a whole number after qid:"),
]


@pytest.mark.parametrize(("form", "text", "line", "column", "sentence"), PROBLEMS, ids=lambda p: repr(p)[:40])
def test_an_error_names_file_line_column_and_expectation(form, text, line, column, sentence, tmp_path):
    path = tmp_path / f"data.{form}"
    path.write_bytes(text)
    with pytest.raises(Malformed) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}, line {line}, column {column}: ")
    assert sentence in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_only_the_first_messages_are_kept():
    reader = read(io.BytesIO(b"x | a\n" * 100 + b"1 | a\n"), "vw", on_error="skip")
    assert len(concatenate(reader)) == 1
    assert reader.problems.count == 100
    assert len(reader.problems.messages) == 5


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-9, 9)), max_size=40), max_size=5))
def test_equal_slots_of_a_row_are_summed_at_any_place_of_the_table(rows):
    from forel.data.compiled.merge import merge_rows

    # Slots that differ by multiples of the table's width meet in it.
    slots = [[1024 * a + b for a, b, _ in row] for row in rows]
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    indices = np.array([q for row in slots for q in row], np.int32)
    values = np.array([v for row in rows for *_, v in row], np.float32)
    assert merge_rows(indptr, indices, values) == -1
    for r, (row, held) in enumerate(zip(rows, slots, strict=True)):
        wanted = {}
        for (*_, v), q in zip(row, held, strict=True):
            wanted[q] = wanted.get(q, 0) + v
        part = slice(indptr[r], indptr[r + 1])
        assert list(zip(indices[part].tolist(), values[part].tolist(), strict=True)) == list(wanted.items())


@cache
def distinct_from_python():
    from forel.data.compiled.merge import distinct

    return numba.njit(lambda *arguments: distinct(*arguments))  # it has no wrapper for Python


@given(st.lists(st.lists(st.integers(0, 3 * 8192), max_size=70), min_size=1, max_size=6), st.sampled_from([0, 65533]))
def test_rows_reported_as_distinct_have_distinct_slots(rows, before):
    from forel.data.compiled.merge import STAMPS

    distinct = distinct_from_python()
    stamps = np.zeros(STAMPS, np.uint16)
    for number, row in enumerate(rows, before):
        known = distinct(np.array(row, np.int32), 0, len(row), stamps, number)
        apart = len(row) <= 64 and len({slot % STAMPS for slot in row}) == len(row)
        assert known == apart or (apart and number == 65535)  # whose stamp is that of no row yet
