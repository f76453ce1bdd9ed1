"""CSV by compiled code gives the same as Python's csv module and a reference parser, for all sizes of chunks."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.data import concatenate, read, slot
from forel.data.labels import CLASSES, LabelWords, class_name
from forel.data.parsers.column_values import Spans, cell_numbers
from forel.data.pipeline import ordered_blocks
from reference_parsers import NUMBER, Wrong, examples, put, same

pytestmark = pytest.mark.filterwarnings("ignore:.*which is not UTF-8")

BITS = 9
NOTHING = {"", "NA", "N/A", "NULL", "null", "None", "nan", "NaN", "?"}


def number(cell):
    """Return the number in a cell, None for nothing."""
    word = cell.strip()
    if word in NOTHING:
        return None
    if word.lower() in ("true", "false") and word in (word.lower(), word.upper(), word.title()):
        return float(word.lower() == "true")
    if re.fullmatch(r"[-+]?(inf|infinity|nan)", word, re.IGNORECASE | re.ASCII):
        return float(word)
    if not NUMBER.fullmatch(word.encode()):
        raise Wrong(word)
    return float(word)


def narrow(value):
    with np.errstate(over="ignore"):
        found = np.float32(value)
    if not np.isfinite(found):
        raise Wrong("not finite")
    return found


def wide(value):
    narrow(value)  # within the range of float32
    return np.float64(value)


def odd(lines, separator):
    """Tell whether something follows a closing quote."""
    try:
        list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error:
        return True
    return False


def records(text, separator):
    """Yield the header's cells, then those of each row; None for a line whose quote leads to rows of another width."""
    width, rest = None, list(io.StringIO(text, newline=""))
    while rest:
        used = 0

        def counted(rest=rest):
            nonlocal used
            for line in [*rest, "the end\n"]:
                used += 1
                yield line

        row = next(csv.reader(counted(), delimiter=separator))
        if width is not None and used > 1 and (used > len(rest) or len(row) != width or odd(rest[:used], separator)):
            row, used = None, 1
        width = len(row) if width is None else width
        yield row
        rest = rest[used:]


def word_label(cell, words):
    """Return the label that a word stands for, None for nothing."""
    word = cell.strip()
    if isinstance(words, list):  # of several classes; those of malformed rows have no number
        name = class_name(word)
        return None if word in NOTHING else float(words.index(name)) if name in words else 0.0
    if word in (words.negative, words.positive):
        return float(word == words.positive)
    if word in NOTHING:
        return None
    if None in (words.negative, words.positive):
        return float(words.positive is None)
    raise Wrong(word)


def reference_rows(text, separator=",", label="y", importance="w", ignore=("i",), bits=BITS, words=None):
    """Return the examples of a text, None for unknown words as labels; their lines, and the malformed lines."""
    decoded = text.decode("utf-8", "backslashreplace")
    ended = decoded if decoded.endswith("\n") else decoded + "\n"
    names, *rows = records(ended, separator)
    names = [name.strip(" ") for name in names]
    bad, found, lines, kinds = [], [], [], {}
    for line, row in enumerate(rows, 2):
        if row is not None and not any(row) and len(row) in (0, len(names)):
            continue
        if row is not None and len(row) == 1 < len(names) and not row[0].strip(" "):  # a line of spaces
            continue
        if row is None or len(row) != len(names):
            bad.append(line)
            continue
        features, y, w = {}, np.float32(np.nan), np.float32(1)
        try:
            # All of a row is looked at, because a column's first value may be in one that is left out.
            wrong = None
            for name, cell in zip(names, (cell.strip(" ") for cell in row), strict=True):
                if name in ignore:
                    continue
                if name not in kinds and cell.strip() not in NOTHING:
                    try:
                        number(cell)
                        kinds[name] = "number"
                    except Wrong:
                        kinds[name] = "category"
                if kinds.get(name) == "category" and (name != label or words is None):
                    if cell:
                        put(features, slot(cell, name, bits), np.float32(1))
                    continue
                try:
                    value = word_label(cell, words) if name == label and words is not None else number(cell)
                    if name == label:
                        y = y if value is None else wide(value)
                    elif name == importance:
                        if value is None and cell.strip():
                            raise Wrong(cell)
                        w = w if value is None else narrow(value)
                    elif value is not None:
                        put(features, slot(name, "", bits), narrow(value))
                except Wrong as problem:
                    wrong = problem
            if wrong is not None or w < 0:
                raise Wrong(wrong)
        except Wrong:
            bad.append(line)
            continue
        found.append((y, w, b"", features))
        lines.append(line)
    unknown = kinds.get(importance) == "category" or (kinds.get(label) == "category" and words is None)
    return None if unknown else found, lines, bad


def check(text, block_bytes, form="csv"):
    wanted, lines, bad = reference_rows(text, "," if form == "csv" else "\t")
    reader = read(
        io.BytesIO(text), form, bits=BITS, label="y", importance="w", ignore=["i"], on_error="skip",
        block_bytes=block_bytes,
    )  # fmt: skip
    blocks, refused = [], ""
    try:
        blocks = list(reader)
    except ValueError as error:
        refused = str(error)
    if refused:
        assert wanted is None
        assert re.search("expected (a column of numbers|at least two words, or numbers)", refused)
        return
    kind = reader.kinds.known.get("y")
    words = reader.classes.names if kind == CLASSES else LabelWords.of_kind(kind)
    if words is not None:
        wanted, lines, bad = reference_rows(text, "," if form == "csv" else "\t", words=words)
    same(examples(blocks), wanted)
    assert [line for block in blocks for line in block.lines] == lines
    assert [int(re.search(r", line (\d+)", message)[1]) for message in reader.problems.messages] == bad[:5]
    assert reader.problems.count == len(bad)


HEADER = b"y,a,i,b,w\n"
NUMERIC = [b"", b"1.5", b" 2 ", b'"3"', b'"4"5', b"true", b"NULL", b"inf", b"1e39", b"x", b"1_0", b"\xa0"]
CITIES = [b"", b"Rome", b"longer than eight bytes", b'"a,b"', b'"line\nend"', b'"', b'""', b'""""', b"NA", b"3"]
CITIES += [b"Z\xc3\xbcrich", b"caf\xe9", b'x"y', b'"q"z"', b'"5""7"']
ROW = st.tuples(
    st.sampled_from([b"0", b"1", b"", b'"1"', b"NA"]),
    st.sampled_from(NUMERIC),
    st.sampled_from([b"", b"7", b"x", b'"a,b"', b'"a\nb"', b'5" pipe', b'"say ""so"""', b'"\r\n"']),
    st.sampled_from(CITIES),
    st.sampled_from([b"", b"1", b"0.25", b"-1", b"FALSE", b"00000000000000000000.5"]),
)
ROWS = st.lists(st.tuples(ROW, st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b",\n"])), max_size=8).map(
    lambda rows: b"".join(b",".join(cells) + end for cells, end in rows)
)
SOUP = st.lists(
    st.sampled_from([b",", b",", b",", b",", b'"', b'""', b"\n", b"\r\n", b"\r", b"1", b"2.5", b"NA", b"x", b" ",
                     b"long enough words", b"1e39", b"-", b"\xff", b"\xc3\xa9", b"\0"]), max_size=40,
).map(b"".join)  # fmt: skip


@given(ROWS | SOUP, st.integers(1, 80))
@settings(max_examples=400)
def test_rows_and_random_bytes_equal_the_reference(body, block_bytes):
    check(HEADER + body, block_bytes)
    check(HEADER + body, 1 << 20)
    check((HEADER + body).replace(b",", b"\t"), block_bytes, "tsv")


DOCUMENT = HEADER + (
    b'1,,x,NA,\n0,2.5,"a\nb",,"1"\n\n1,NA,7,"say ""so"", he said",2\n,-1e-3,,"Z\xc3\xbcrich\r\n",0.5\r\n'
    b'1,"3"5,,\xe9t\xe9,\n0,1,2\n1,z,3,"r",1\n1,0.1,q,3" pipe,-1\r0,1e400,,Rome,\n1,12345678901234567890,,"",3\n'
)


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_every_size_of_chunk_gives_the_same(ends):
    text = DOCUMENT.replace(b"\n", ends)
    for size in range(1, len(text) + 2):
        check(text, size)


def test_every_truncation_and_many_changes_equal_the_reference():
    for end in range(len(HEADER), len(DOCUMENT)):
        check(DOCUMENT[:end], 50)
    rng = np.random.default_rng(0)
    for _ in range(400):
        data = bytearray(DOCUMENT)
        for k in rng.integers(len(HEADER), len(data), rng.integers(1, 5)):
            data[k] = rng.choice(np.frombuffer(b',,""\n\r 1x.\xff\0', np.uint8))
        check(bytes(data), int(rng.integers(1, 300)))


def test_an_unclosed_quote_is_a_problem_of_its_row():
    reader = read(io.BytesIO(b'a,b\n1,2\n3,"x\n4,5\n'), "csv", on_error="skip", block_bytes=1)
    assert sum(map(len, reader)) == 2
    assert reader.problems.messages == [
        "stream, line 3: got an open quote in '3,\"x', expected a quote that closes it within 1,048,576 bytes"
    ]


def test_the_first_problem_of_a_file_is_raised_whatever_its_column():
    text = b"a,b,y\n1,2,1\n1,x,1\n1,2\nz,2,1\n"
    for size in (1, 20, 1 << 20):
        with pytest.raises(ValueError, match="line 3, column 'b': got 'x'"):
            list(read(io.BytesIO(text), "csv", label="y", block_bytes=size))


def test_ignored_columns_may_have_any_content():
    text = b"id,n\n7,1\nx,2\n"
    assert concatenate(read(io.BytesIO(text), "csv", ignore=["id"])).values.tolist() == [1, 2]
    with pytest.raises(ValueError, match="line 3, column 'id': got 'x'"):
        list(read(io.BytesIO(text), "csv"))


def test_words_as_importances_are_refused():
    with pytest.raises(ValueError, match="importance: got 'column y of words', expected a column of numbers"):
        list(read(io.BytesIO(b"y,a\nyes,1\n"), "csv", importance="y"))


DECIMALS = st.from_regex(r"[-+]?[0-9]{1,25}(\.[0-9]{0,20})?([eE][-+]?[0-9]{1,2})?", fullmatch=True) | st.floats(
    allow_nan=False, allow_infinity=False
).map(repr)


@given(st.lists(DECIMALS, min_size=1, max_size=20))
@settings(max_examples=300)
def test_numbers_are_those_that_python_reads(decimals):
    text = np.frombuffer(",".join(decimals).encode() + b"\0" * 16, np.uint8)
    sizes = np.array([len(d) for d in decimals])
    stops = (np.cumsum(sizes + 1) - 1).astype(np.int32)
    words = Spans(text, (stops - sizes).astype(np.int32), stops)
    wanted = np.array([float(d) for d in decimals])
    for exact in (False, True):
        found = cell_numbers(words, exact)
        assert found.present.all()
        with np.errstate(over="ignore"):
            assert np.array_equal(found.values, wanted.astype(np.float32))
        assert not exact or np.array_equal(found.wide, wanted)


CELLS = st.tuples(
    st.sampled_from(["0", "1", ""]),
    st.sampled_from(["", "3", "0.1", "-1e5", "123456789.123456789", "NA"]),
    st.sampled_from(["Rome", "Oslo", "", '"a, ""b"""', "Zürich"]),
    st.sampled_from(["7", "8", "x", "NA"]),
)
READING = [
    {}, {"names": True}, {"log": ["n"]}, {"log": ["n"], "names": True},
    {"interactions": ["city*code"]}, {"interactions": ["cc", "n*city"], "names": True}, {"keep": ["city"]},
]  # fmt: skip


def test_any_number_of_threads_and_any_beginning_give_the_same_blocks():
    text = HEADER + b"".join(b'%d,%d,,"city, %d\n",\n' % (k % 2, k, k % 7) for k in range(400)) + b"1,x,,z,\n"
    common = {"bits": BITS, "label": "y", "on_error": "skip", "block_bytes": 500}
    whole = list(read(io.BytesIO(text), "csv", **common))
    assert len(whole) > 10
    for threads in (0, 1, 3):
        reader = read(io.BytesIO(text), "csv", **common)
        same(examples(ordered_blocks(reader, threads)), examples(whole))
        assert reader.problems.count == 1
    for k in (0, 5, len(whole) - 1):
        reader = replace(read(io.BytesIO(text), "csv", **common), start=whole[k].after)
        same(examples(reader), examples(whole[k + 1 :]))
