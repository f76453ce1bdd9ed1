"""Limits of lines, headers and quotes; time and memory are linear in the input."""

import gzip
import io
import json
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.data import ReadOptions, buffers, read
from forel.data.parsers.columns import Columns
from forel.learner.settings import Settings

LIMIT = 1 << 20


class Endless(io.RawIOBase):
    """A stream of one byte without end, which counts how much of it was read."""

    def __init__(self, text=b"0", start=b""):
        self.text, self.start, self.read_so_far = text, start, 0

    def readable(self):
        return True

    def readinto(self, view):
        assert self.read_so_far < 8 * LIMIT, "read on and on"
        text = (self.start + self.text * len(view))[: len(view)]
        self.start = self.start[len(view) :]
        view[: len(text)] = text
        self.read_so_far += len(view)
        return len(view)


CASES = {
    "a header of csv": ("csv", b"", "line 1: got a header of more than"),
    "a row of csv": ("csv", b"a,b\n1,2\n", "line 3: got text of more than"),
    "a header in quotes": ("csv", b'"', "line 1: got a header of more than"),
    "a line of vw": ("vw", b"1 |a b\n1 |a ", "line 2: got text of more than"),
    "a line of svmlight": ("svmlight", b"1 ", "line 1: got text of more than"),
    "a line of json": ("jsonl", b'{"a": 1}\n{"b', "line 2: got text of more than"),
}


@pytest.mark.parametrize("case", CASES)
def test_text_without_an_end_is_refused_in_little_memory(case):
    form, start, sentence = CASES[case]
    small = {"csv": b'a,b\n1,"x"\n', "vw": b"1 |a b\n", "svmlight": b"1 2:1\n", "jsonl": b'{"a": 1}\n'}[form]
    list(read(io.BytesIO(small), form))  # imports, and compiles, what is needed
    stream = Endless(start=start)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=sentence) as wrong:
            list(read(stream, form, line_limit=LIMIT, block_bytes=1 << 16))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "1,048,576 bytes without a line end, expected a line end before" in str(wrong.value)
    assert "line_limit" in str(wrong.value)
    assert stream.read_so_far < 4 * LIMIT
    assert peak < 6 * LIMIT


def test_zeros_that_were_compressed_well_are_refused(tmp_path):
    (tmp_path / "zeros.csv.gz").write_bytes(gzip.compress(bytes(4 * LIMIT)))
    with pytest.raises(ValueError, match=r"zeros.csv.gz, line 1: got a header of more than 1,048,576 bytes"):
        list(read(tmp_path / "zeros.csv.gz", line_limit=LIMIT))


def test_lines_have_default_and_given_limits():
    for form, most in (("vw", 1 << 26), ("jsonl", 1 << 22)):
        assert read([], form).options.longest_line(form) == most
        assert read([], form, line_limit=7).options.longest_line(form) == 7
    long = "x" * 5000
    text = (f"1 |a {long}\n" * 3).encode()
    assert sum(map(len, read(io.BytesIO(text), "vw", line_limit=6000, block_bytes=100))) == 3
    for size in (1, 100, 1 << 20):
        with pytest.raises(ValueError, match="line 1: got text of more than 4,000 bytes"):
            list(read(io.BytesIO(text), "vw", line_limit=4000, block_bytes=size))
        with pytest.raises(ValueError, match="line 3: got text of more than 4,000 bytes"):
            list(read(io.BytesIO(b"1 |a\n1 |b\n" + text), "vw", line_limit=4000, block_bytes=size))
    with pytest.raises(ValueError, match="line_limit: got 0"):
        read([], line_limit=0)


def test_a_long_object_of_json_is_refused():
    line = json.dumps({f"key{k:060}": k for k in range(70_000)}).encode() + b"\n"  # over 2¹⁶ keys
    assert len(line) > 1 << 22
    with pytest.raises(ValueError, match="line 1: got text of more than 4,194,304 bytes"):
        list(read(io.BytesIO(line), "jsonl"))
    (block,) = read(io.BytesIO(line), "jsonl", line_limit=1 << 24, bits=26)
    assert block.indices.size > 69_900


# Wide tables.


def wide(columns, rows=3):
    header = ",".join(f"c{k}" for k in range(columns))
    return (header + "\n" + (",".join("1" if k % 2 else "w" for k in range(columns)) + "\n") * rows).encode()


def calls(work):
    """Return how many functions a piece of work calls, Python's own among them."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str(self) == str(other)

    __hash__ = str.__hash__


def test_the_work_of_a_table_grows_as_its_width():
    for reading in ({}, {"label": "c1", "ignore": ["c3"]}, {"names": True}):

        def work(columns, reading=reading):
            return list(read(io.BytesIO(wide(columns)), "csv", **reading))

        work(50)
        narrow, broad = calls(lambda: work(400)), calls(lambda: work(1600))
        assert broad < 4.5 * narrow
    for columns in (100, 400):
        Name.compared = 0
        names = [Name(f"c{k}") for k in range(columns)]
        chosen = Columns(ReadOptions(label="c1", keep=[f"c{k}" for k in range(columns)], ignore=["c3", "c5"]))
        assert len(chosen.features(names)) == columns - 3
        assert Name.compared < 10 * columns


def test_blank_lines_of_a_wide_table_take_no_memory(monkeypatch):
    asked = []
    held = buffers.Buffers.empty
    monkeypatch.setattr(
        buffers.Buffers, "empty", lambda self, shape, kind: asked.append(np.prod(shape)) or held(self, shape, kind)
    )
    text = wide(5001) + b"\n" * 200_000 + wide(5001).split(b"\n")[1] + b"\n"
    blocks = list(read(io.BytesIO(text), "csv"))
    assert [line for block in blocks for line in block.lines] == [2, 3, 4, 200_005]
    assert max(asked) < 1 << 22


# Quotes.


def lines_read(text, block_bytes=1 << 20, **reading):
    reader = read(io.BytesIO(text), "csv", label="y", on_error="skip", block_bytes=block_bytes, **reading)
    return [line for block in reader for line in block.lines], reader.problems


@pytest.mark.parametrize("block_bytes", [1, 50, 1 << 12, 1 << 21])
def test_an_open_quote_costs_its_line(block_bytes):
    good = b"1,news\n0,shop\n" * 500
    for opened in (b'1,"open\n', b'"1,x\n', b'0,"open\r\n', b'0,"say ""so\n'):
        lines, problems = lines_read(b"y,site\n" + good + opened + good, block_bytes)
        assert lines == [k for k in range(2, 2003) if k != 1002]
        assert problems.count == 1
        assert "line 1002: got an open quote in '" in problems.messages[0]
        assert "expected a quote that closes it within 1,048,576 bytes" in problems.messages[0]


@pytest.mark.parametrize("block_bytes", [1, 50, 1 << 12])
def test_a_quote_that_a_later_one_closes_costs_its_line(block_bytes):
    text = b'y,site\n1,"open\n0,shop\n1,"news"\n0,"two\nlines"\n1,x\n'
    lines, problems = lines_read(text, block_bytes)
    assert lines == [3, 4, 5, 6]
    assert problems.count == 1
    assert problems.messages[0].startswith("stream, line 2: got ")


def test_a_quote_reaches_a_megabyte_and_no_further():
    inside = b"x" * 999 + b"\n"
    whole = b'y,site\n1,"' + inside * 1000 + b'"\n0,a\n'
    for size in (1 << 16, 1 << 21):
        assert lines_read(whole, size)[0] == [2, 3]
        lines, problems = lines_read(b'y,site\n1,"' + inside * 1100 + b'"\n0,a\n', size)
        assert lines[-1] == 2 + 1101
        assert problems.count > 1000
        assert "line 2: got an open quote" in problems.messages[0]


def test_rows_after_an_open_quote_are_learned_from(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"y,site\n" + b'1,"open\n' + b"1,news\n0,shop\n" * 100)
    trained = forel.train(tmp_path / "a.csv", Settings(alpha=1.0), label="y", bits=10, on_error="skip")
    assert trained.training.rows == 200
    assert trained.training.problems.count == 1
    with pytest.raises(ValueError, match=r"a.csv, line 2: got an open quote in '1,\"open'"):
        forel.train(tmp_path / "a.csv", Settings(alpha=1.0), label="y", bits=10)


# What is written is what the name says, and text is UTF-8 whatever the locale.


def test_generate_writes_the_format_of_the_suffix(tmp_path):
    def generate(name, *more):
        return CliRunner().invoke(app, ["dev", "generate", "ctr", "--rows", "50", "-o", str(tmp_path / name), *more])

    for name in ("a.vw", "a.csv", "a.csv.gz", "a.vw.gz", "a.txt", "a"):
        assert generate(name).exit_code == 0
        held = (tmp_path / name).read_bytes()
        text = gzip.decompress(held) if name.endswith(".gz") else held
        assert text.startswith(b"click,") == ("csv" in name)
        generate(name)
        assert (tmp_path / name).read_bytes() == held
    for name in ("a.jsonl", "a.parquet", "a.svm", "a.tsv", "a.vw.zst"):
        done = generate(name)
        assert done.exit_code == 2
        assert "expected a name that ends in .vw or .csv" in done.output
        assert not (tmp_path / name).exists()


def test_sources_are_read_as_utf_8_in_every_locale(tmp_path):
    text = (
        "import io, forel; from forel.learner.kernels.kernel import routine; routine('mixing', 'adahedge')\n"
        "print(len(list(forel.read(io.BytesIO(b'1 |st\\xc3\\xa4dte Z\\xc3\\xbcrich'), 'vw'))))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr
