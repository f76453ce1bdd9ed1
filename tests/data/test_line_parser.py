"""Lines a few at a time are the rows of a file with the same lines."""

import io
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data import ReadOptions, read
from forel.data.line_parser import LineParser

GOOD = [
    b"1 2.0 'id7|a x:3 y", b"|a y", b"-1 |user u17 |site news |b x:1.5 x:2", b"0.25 tag|a:2 x y:-3e-5 | plain",
    b"", b"1 |", b"0.1234567890123456789012 |a x:3.00000017881393432617187500", b"2 0 |a z z z",
]  # fmt: skip
BAD = {b"1 2 3 |a y": "'|' after label", b"nonsense": "'|'", b"1 |a x:1e99": "float32", b"1 -2 |a x": "at least 0"}
OPTIONS = {
    "plain": ReadOptions(bits=12),
    "crosses": ReadOptions(bits=12, interactions=("ab",)),
    "ignore": ReadOptions(bits=12, ignore=("b",)),
}


def of_file(lines, options):
    text = io.BytesIO(b"".join(line + b"\n" for line in lines))
    with warnings.catch_warnings():  # a few lines do not have all namespaces
        warnings.simplefilter("ignore")
        return next(iter(read(text, "vw", options=options.updated({"tags": True}))), None)


@pytest.mark.parametrize("name", OPTIONS)
def test_rows_are_those_of_files(name):
    parser, rng = LineParser(OPTIONS[name], capacity=16), np.random.default_rng(1)
    for count in (1, 2, 40, 1, 300):
        lines = [GOOD[k] for k in rng.integers(0, len(GOOD), count)]
        found, expected = parser.parse(b"\n".join(lines)), of_file(lines, OPTIONS[name])
        if expected is None:
            assert found.labels.size == 0
            continue
        assert [array.tolist() for array in found[:3]] == [array.tolist() for array in expected.rows]
        np.testing.assert_array_equal(found.labels, expected.labels)
        assert (found.importance.tolist(), found.tags) == (expected.importance.tolist(), expected.tags)
        assert found.lines.tolist() == (expected.lines - 1).tolist()
        assert found.errors == {}


@pytest.mark.parametrize("name", OPTIONS)
def test_errors_are_those_of_their_lines_and_leave_the_others(name):
    lines = [GOOD[0], *BAD, GOOD[2], b"again", GOOD[1]]
    found = LineParser(OPTIONS[name]).parse(b"\n".join(lines))
    assert found.lines.tolist() == [0, len(BAD) + 1, len(BAD) + 3]
    assert sorted(found.errors) == [*range(1, len(BAD) + 1), len(BAD) + 2]
    for number, expected in enumerate(BAD.values(), 1):
        assert expected in found.errors[number]
    expected = of_file([GOOD[0], GOOD[2], GOOD[1]], OPTIONS[name])
    assert [array.tolist() for array in found[:3]] == [array.tolist() for array in expected.rows]


@given(st.lists(st.binary(max_size=40) | st.sampled_from(GOOD), max_size=6))
def test_any_bytes_are_rows_or_errors_line_by_line(lines):
    lines = [line.replace(b"\n", b"") for line in lines]
    parser = LineParser(OPTIONS["plain"], capacity=16)
    found = parser.parse(b"".join(line + b"\n" for line in lines))
    written = [k for k, line in enumerate(lines) if line.strip(bytes(range(33)))]
    assert sorted([*found.lines.tolist(), *found.errors]) == written
    assert np.isfinite(found.values).all()
    labels = dict(zip(found.lines.tolist(), found.labels.tolist(), strict=True))
    errors = found.errors
    for k in written:
        alone = parser.parse(lines[k])
        assert list(alone.errors.values()) == ([errors[k]] if k in errors else [])
        np.testing.assert_array_equal(alone.labels, [labels[k]] if k in labels else [])
