"""Logarithms of numeric columns: the same in every format, and invalid input."""

import io
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data import read, slot
from forel.data.values import signed_log1p
from reference_parsers import examples, same

NUMBERS = st.floats(-(2.0**100), 2.0**100)


@given(NUMBERS)
def test_logarithms_keep_sign_and_order(x):
    assert signed_log1p(x) == pytest.approx(math.copysign(math.log1p(abs(x)), x), rel=1e-15)


ROWS = [{"p": 3.0, "q": 100.0, "c": "x"}, {"p": -5.5, "q": None, "c": "y"}, {"p": 0.0, "q": 0.1, "c": "x"}]


def test_every_form_has_the_same_features():
    text = "p,q,c\n" + "".join(",".join("" if v is None else str(v) for v in row.values()) + "\n" for row in ROWS)
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    for source in (ROWS, io.BytesIO(text.encode()), io.BytesIO(lines), pa.Table.from_pylist(ROWS)):
        reader = read(source, bits=18, log=["p", "q"], names=True)
        wanted = []
        for row in ROWS:
            logarithm = np.float32(math.copysign(math.log1p(abs(row["p"])), row["p"]))
            found = {slot("p", bits=18): logarithm, slot(row["c"], "c", 18): 1.0}
            if row["q"] is not None:
                found[slot("q", bits=18)] = np.float32(math.log1p(row["q"]))
            wanted.append((np.float32(np.nan), np.float32(1), b"", found))
        same(examples(reader), wanted)
        assert {reader.names[k] for k in reader.names} == {"p", "q", "c^x", "c^y"}


def test_values_that_are_not_numbers_raise():
    with pytest.raises(ValueError, match=r"log: got 'column c of type string', expected numbers"):
        list(read(pa.Table.from_pylist(ROWS), log=["c"]))
    reader = read(ROWS, log=["c"], on_error="skip")
    assert list(reader) == []
    assert reader.problems.messages[0] == "dicts, line 1, column 'c': got str 'x', expected a number, or null"
    reader = read(io.BytesIO(b"c,d\nx,1\n3,1\n"), "csv", log=["c"], on_error="skip")
    assert sum(map(len, reader)) == 1
    assert "line 2, column 'c': got 'x', expected a number" in reader.problems.messages[0]
    for wrong, message in [
        ({"log": ["z"]}, "log: got 'z', expected one of the columns p, q, c"),
        ({"categories": ["p"], "log": ["p"]}, "categories, log, text, date: got 'p', expected one of these"),
    ]:
        with pytest.raises(ValueError, match=message):
            list(read(pa.Table.from_pylist(ROWS), **wrong))
    with pytest.raises(ValueError, match="none for vw, which has no columns"):
        list(read(io.BytesIO(b"1 |a b"), log=["a"]))


def test_a_table_to_predict_may_lack_the_label():
    table = pa.table({"a": [1.0]})
    for source in (table, io.BytesIO(b"a\n1\n")):
        (block,) = read(source, "csv" if source is not table else "auto", label="y", unlabelled=True)
        assert np.isnan(block.labels).all()
