"""Rows read from dicts: names and values as Python's, hashed rows as readers of files read them, refused values."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data import ReadOptions, concatenate
from forel.data import read as read_blocks
from forel.river import LinearClassifier, LinearRegressor
from forel.river.rows import read_row
from forel.store.row_reader import RowReader

NAMES = st.one_of(
    st.text(max_size=9), st.integers(), st.booleans(), st.floats(), st.none(),
    st.tuples(st.text(max_size=2), st.integers(0, 3)),
)  # fmt: skip
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**18), 10**18), st.booleans(), st.just(-1.0),
    st.floats(-1e6, 1e6, width=32).map(np.float32), st.integers(-9, 9).map(np.int64), st.floats(-9, 9).map(np.float64),
)  # fmt: skip
TEXT = st.text(max_size=20)
MIXED = st.dictionaries(TEXT, st.one_of(VALUES, TEXT), max_size=8)


@given(st.dictionaries(NAMES, VALUES, max_size=8))
def test_names_and_values_are_those_of_the_dict(x):
    names, values = read_row(x, None, np.dtype(np.float64))
    assert names == list(x)
    assert list(values) == [float(v) for v in x.values()]


@given(st.lists(MIXED, min_size=1, max_size=5), st.sampled_from([2, 22]))
def test_hashed_rows_are_those_that_readers_of_files_read(rows, bits):
    rows = [{k: v for k, v in x.items() if isinstance(v, str) or abs(v) < 1e30} for x in rows]
    block = concatenate(read_blocks(rows, bits=bits, unlabelled=True, label="no such column"))
    reader = RowReader(ReadOptions(bits=bits))
    found = [read_row(x, reader, np.dtype(np.float32)) for x in rows]
    assert block.indices.tolist() == [slot for slots, _ in found for slot in slots]
    assert block.values.tolist() == [value for _, values in found for value in values]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", ["1", b"1", bytearray(b"1"), [], 10**400, 1j, float("inf"), -(10**400)])
def test_values_that_are_no_finite_numbers_are_refused_and_leave_no_names(value, dtype):
    for model in (LinearRegressor(alpha=0.1, dtype=dtype), LinearClassifier(alpha=0.1, dtype=dtype)):
        with pytest.raises(ValueError, match=r"x\['a'\]: got"):
            model.learn_one({"new": 1.0, "a": value}, 1)
        with pytest.raises(ValueError, match=r"x\['a'\]: got"):
            model.predict_one({"new": 1.0, "a": value})
        assert not model.weights


def test_values_beyond_float32_are_refused_in_float32_alone():
    model = LinearRegressor(alpha=0.1, dtype="float32")
    with pytest.raises(ValueError, match="within the range of float32"):
        model.predict_one({"a": 1.0, "b": -1e39})
    assert LinearRegressor(alpha=0.1).predict_one({"a": 1.0, "b": -1e39}) == 0.0


def test_targets_and_importances_of_any_kind_of_number():
    rows = [({"a": 1.0}, 1), ({"a": 2.0}, np.float32(0.5)), ({"b": 1.0}, Fraction(1, 4)), ({"b": 1}, True)]
    model, same = LinearRegressor(alpha=0.1), LinearRegressor(alpha=0.1)
    for x, y in rows:
        model.learn_one(x, y, w=1)
        same.learn_one(x, float(y), w=np.float64(1.0))
    assert model.weights == same.weights


def test_other_mappings_are_read_in_their_order():
    from collections import OrderedDict, UserDict

    moved = OrderedDict(a=1.0, b=2.0)
    moved.move_to_end("a")
    for x in (moved, UserDict(b=2.0, a=1.0)):
        model = LinearRegressor(alpha=0.1)
        model.learn_one(x, 1.0)
        assert list(model.weights) == ["b", "a"]
