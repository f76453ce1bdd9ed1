"""Rows read from dicts by the interpreter's own functions against the same in Python, and dicts that mean harm."""

import sys
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forel.data import concatenate
from forel.data import read as read_blocks
from forel.learner.kernels import hashed_dicts
from forel.learner.kernels.dicts import ADDRESSES, CELLS, FRONT, read
from forel.river import LinearRegressor
from forel.river.rows import Hashing, read_row


def buffers(room, dtype):
    numbers, places = np.zeros(room + FRONT, dtype), np.zeros(2 + room + CELLS, np.int64)
    places[-CELLS:] = ADDRESSES
    return numbers, places


def written(x, names, room=8, dtype=np.float64, adding=True):
    """Return whether a row could be read, its slots and its values."""
    numbers, places = buffers(room, dtype)
    good = read(id(x), id(names), numbers, places, 2.0, -1 if adding else 1 << 40)
    if good:
        assert (numbers[1], places[0], places[1]) == (2.0, 0, len(x))
    return good, places[2 : 2 + len(x)].tolist(), numbers[FRONT : FRONT + len(x)].tolist()


NAMES = st.one_of(
    st.text(max_size=9), st.integers(), st.booleans(), st.floats(), st.none(),
    st.tuples(st.text(max_size=2), st.integers(0, 3)),
)  # fmt: skip
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**18), 10**18), st.booleans(), st.just(-1.0),
    st.floats(-1e6, 1e6, width=32).map(np.float32), st.integers(-9, 9).map(np.int64), st.floats(-9, 9).map(np.float64),
)  # fmt: skip


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=8), max_size=6), st.booleans())
def test_rows_are_those_that_python_reads(rows, adding):
    names, slow = {}, {}
    for x in rows:
        wanted = [slow.setdefault(name, len(slow) + 1) if adding else slow.get(name, 0) for name in x]
        assert written(x, names, adding=adding) == (True, wanted, [float(v) for v in x.values()])
        assert names == slow
        adding = not adding


TEXT = st.text(max_size=20)
MIXED = st.dictionaries(TEXT, st.one_of(VALUES, TEXT), max_size=8)


@given(MIXED, st.sampled_from([1, 3, 22, 32]), st.dictionaries(TEXT, st.sampled_from(["number", "category"])))
def test_hashed_rows_are_those_that_python_reads(x, bits, kinds):
    hashing = Hashing(bits, kinds)
    codes = hashing.codes
    for dtype in (np.float32, np.float64):
        numbers, places = buffers(8, dtype)
        good = hashed_dicts.read(id(x), id(codes) if codes else 0, numbers, places, 2.0, (1 << bits) - 1)
        try:
            slots, values = read_row(x, hashing, np.dtype(dtype))
        except ValueError:
            assert not good  # out of the range of float32
            continue
        fits = all((kinds.get(k) == "category") == isinstance(v, str) for k, v in x.items() if k in kinds)
        assert good == fits
        if good:
            count = int(places[1])
            assert (numbers[1], places[0]) == (2.0, 0)
            assert places[2 : 2 + count].tolist() == slots
            assert numbers[FRONT : FRONT + count].tolist() == values.tolist()


@given(st.lists(MIXED, min_size=1, max_size=5), st.sampled_from([2, 22]))
def test_hashed_rows_are_those_that_readers_of_files_read(rows, bits):
    rows = [{k: v for k, v in x.items() if isinstance(v, str) or abs(v) < 1e30} for x in rows]
    block = concatenate(read_blocks(rows, bits=bits, unlabelled=True, label="no such column"))
    found = [read_row(x, Hashing(bits), np.dtype(np.float32)) for x in rows]
    assert block.indices.tolist() == [slot for slots, _ in found for slot in slots]
    assert block.values.tolist() == [value for _, values in found for value in values.tolist()]


class Name(str):
    """A name that is a string, and may do anything."""


class Real(float):
    """A number that is a float, and may do anything."""


def test_what_may_run_code_is_left_to_python_and_leaves_no_names():
    for value in ("1", None, [], 10**400, 1j, Real(1), np.int8(1), Fraction(1, 2), float("nan"), float("inf")):
        names = {}
        assert not written({"new": 1.0, "a": value}, names)[0]
        assert not names
    for name in (Name("a"), b"a", np.str_("a"), ("a", ("b",)), (Name("a"),), frozenset("a")):
        names = {}
        assert not written({"new": 1.0, name: 1.0}, names)[0]
        assert not names
    assert not written(dict.fromkeys(range(9), 1.0), {}, room=8)[0]
    assert sys.exc_info() == (None, None, None)


def test_hashed_rows_that_may_run_code_are_left_to_python():
    numbers, places = buffers(8, np.float64)

    def reads(x):
        return hashed_dicts.read(id(x), 0, numbers, places, 1.0, 1023)

    assert reads({"a": 1, "b": "text", "": "", "stra\u00dfe": 2.0})
    for value in (None, [], 10**400, 1j, Real(1), Name("a"), np.int8(1), float("nan"), "\ud800"):
        assert not reads({"new": 1.0, "a": value})
    for name in (Name("a"), b"a", 1, None, ("a",), "\ud800"):
        assert not reads({"new": 1.0, name: 1.0})
    assert not reads(dict.fromkeys(map(str, range(9)), 1.0))
    assert not hashed_dicts.read(id(sums := {"a": 1.7e308, "c": 1.7e308}), 0, numbers, places, 1.0, 1), sums
    assert sys.exc_info() == (None, None, None)


def test_slots_beyond_the_state_are_unknown():
    names = {"a": 1, "b": 2, "c": 3}
    numbers, places = buffers(8, np.float64)
    x = {"c": 1.0, "b": 1.0, "z": 1.0}
    assert read(id(x), id(names), numbers, places, 1.0, 3)
    assert places[2:5].tolist() == [0, 2, 0]
    assert len(names) == 3


def test_conversion_holds_no_references_except_to_names():
    key, value = "".join(["a name ", "of its own"]), 12345.678
    names, x = {str(k): k + 1 for k in range(300)}, {key: value}  # small numbers are the interpreter's own
    before = sys.getrefcount(key), sys.getrefcount(value)
    for _ in range(1000):
        assert written(x, names)[0]
    assert sys.getrefcount(value) == before[1]
    assert sys.getrefcount(key) == before[0] + 1  # that of the table
    assert sys.getrefcount(names[key]) == sys.getrefcount(names["299"])


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
