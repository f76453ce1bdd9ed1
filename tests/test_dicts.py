"""Rows read from dicts by the interpreter's own functions against the same in Python, and dicts that mean harm."""

import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.kernels.dicts import CELLS, FRONT, read
from forel.river import LinearClassifier, LinearRegressor


def written(x, names, room=8, dtype=np.float64, adding=True):
    """Return whether a row could be read, its slots and its values."""
    numbers, places = np.zeros(room + FRONT, dtype), np.zeros(2 + room + CELLS, np.int64)
    good = read(id(x), 0 if names is None else id(names), numbers, places, 0.5, 2.0, adding)
    if good:
        assert (numbers[0], numbers[1], places[0], places[1]) == (0.5, 2.0, 0, len(x))
    return good, places[2 : 2 + len(x)].tolist(), numbers[FRONT : FRONT + len(x)].tolist()


NAMES = st.one_of(st.text(max_size=9), st.integers(), st.booleans(), st.tuples(st.text(max_size=2), st.integers(0, 3)))
VALUES = st.one_of(
    st.floats(allow_nan=False), st.integers(-(10**18), 10**18), st.booleans(), st.just(-1.0),
    st.floats(-1e6, 1e6, width=32).map(np.float32), st.integers(-9, 9).map(np.int8), st.fractions(max_denominator=9),
)  # fmt: skip


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=8), max_size=6), st.booleans())
def test_rows_are_those_that_python_reads(rows, adding):
    names, slow = {}, {}
    for x in rows:
        wanted = [slow.setdefault(name, len(slow) + 1) if adding else slow.get(name, 0) for name in x]
        assert written(x, names, adding=adding) == (True, wanted, [float(v) for v in x.values()])
        assert names == slow
        adding = not adding


@given(st.dictionaries(st.integers(0, 2**40), st.floats(allow_nan=False, width=32), max_size=8))
def test_names_that_are_slots_are_taken_as_they_are(x):
    assert written(x, None, dtype=np.float32) == (True, list(x), list(x.values()))


class Hostile:
    """A number that does something to a dict when it is asked for its value."""

    def __init__(self, act):
        self.act = act

    def __float__(self):
        return float(self.act())


class Liar:
    """A name that has the hash of another, and does something when they are compared."""

    def __init__(self, act=lambda: 1 / 0):
        self.act = act

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        return bool(self.act())


def test_no_dict_does_harm():
    x = {"a": 1.0, "b": None, "c": 3.0}
    x["b"] = Hostile(lambda: x.pop("b") and 2.0)
    assert not written(x, {})[0]
    grown = dict.fromkeys(range(3), 1.0)
    grown[1] = Hostile(lambda: grown.update(dict.fromkeys(range(100), 1.0)) or 2.0)
    names = {}
    assert not written(grown, names)[0]
    assert not names
    gone = dict.fromkeys(range(8), 1.0)
    gone[0] = Hostile(lambda: gone.clear() or 2.0)
    assert not written(gone, {})[0]
    for bad in ("1", None, [], 10**400, Hostile(lambda: 1 / 0), 1j):
        names = {}
        assert not written({"new": 1.0, "a": bad}, names)[0]
        assert not names
    assert not written({Liar(): 1.0}, {"a": 1})[0]
    late = {Liar(lambda: late.update(dict.fromkeys(range(1000), 1.0))): 1.0}
    known = {"a": 1}
    read(id(late), id(known), np.zeros(8 + FRONT), np.zeros(2 + 8 + CELLS, np.int64), 0.5, 2.0, True)
    assert len(late) == 1001
    assert not written(dict.fromkeys(range(9), 1.0), {}, room=8)[0]
    assert sys.exc_info() == (None, None, None)


def test_a_model_refuses_them_and_goes_on():
    model = LinearClassifier()
    model.learn_one({"a": 1.0}, True)
    x = {"b": 1.0, "c": Hostile(lambda: x.clear() or 2.0)}
    before = model.weights
    with pytest.raises(ValueError, match="x: got"):
        model.learn_one(x, True)
    with pytest.raises(ValueError, match="x: got"):
        model.learn_one({Liar(): 1.0}, True)
    assert model.weights == before
    model.learn_one({"a": Fraction(1, 2), "b": Decimal("0.5")}, False)
    assert list(model.weights) == ["a", "b"]


def test_nothing_is_kept_but_names():
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
    model, same = LinearRegressor(), LinearRegressor()
    for x, y in rows:
        model.learn_one(x, y, w=1)
        same.learn_one(x, float(y), w=np.float64(1.0))
    assert model.weights == same.weights


def test_other_mappings_are_read_in_their_order():
    from collections import OrderedDict, UserDict

    moved = OrderedDict(a=1.0, b=2.0)
    moved.move_to_end("a")
    for x in (moved, UserDict(b=2.0, a=1.0)):
        model = LinearRegressor()
        model.learn_one(x, 1.0)
        assert list(model.weights) == ["b", "a"]
