"""Rows whose objects run Python code: learned as given, or refused with an error; never a crash."""

import pickle
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest

from forel.learner.kernels.kernel import uncompiled_kernel
from forel.learner.kernels.reference import KernelSpec
from fuzz import process

pytest.importorskip("river", reason="river is an extra: pip install 'forel[river]'")

from forel.river import LinearClassifier, LinearRegressor


@pytest.mark.slow
def test_rows_that_run_code():
    done = process("objects", 3)
    assert done.returncode == 0, done.stderr
    assert "of which" in done.stdout


@pytest.fixture
def uncompiled(monkeypatch):
    """Run kernels uncompiled; return the specs that were requested."""
    specs = set()

    def kernel(spec: KernelSpec):
        specs.add(spec)
        return uncompiled_kernel(spec)

    monkeypatch.setattr("forel.learner.kernels.kernel.kernel", kernel)
    return specs


class Acting:
    """A name or number that does something when it is hashed, compared or converted."""

    def __init__(self, act=lambda: None, same="a", number=2.0):
        self.act, self.same, self.number = act, same, number

    def __hash__(self):
        return hash(self.same)

    def __eq__(self, other):
        self.act()
        return other == self.same

    def __float__(self):
        self.act()
        return self.number


def test_a_name_that_empties_the_row_when_it_is_compared():
    model = LinearRegressor(alpha=0.1)
    model.learn_one({"a": 1.0}, 1.0)
    x = {Acting(lambda: x.clear()): 1.0, "b": 2.0}
    model.learn_one(x, 1.0)
    same = LinearRegressor(alpha=0.1)
    same.learn_one({"a": 1.0}, 1.0)
    same.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    assert model.weights == same.weights
    assert x == {}


@pytest.mark.parametrize("bits", [None, 4])
def test_learning_inside_a_conversion_is_applied_before_the_outer_row(bits):
    model, same = LinearRegressor(alpha=0.1, bits=bits), LinearRegressor(alpha=0.1, bits=bits)
    model.learn_one({"a": 1.0, "c": Acting(lambda: model.learn_one({"x": 3.0, "y": 4.0, "z": 5.0}, 2.0))}, 1.0)
    same.learn_one({"x": 3.0, "y": 4.0, "z": 5.0}, 2.0)
    same.learn_one({"a": 1.0, "c": 2.0}, 1.0)
    assert model.weights == same.weights
    assert model.predict_one({"a": Acting(lambda: model.predict_one({"x": 1.0}))}) == same.predict_one({"a": 2.0})


def test_a_class_added_while_a_row_is_converted():
    model, same = LinearClassifier(alpha=0.1), LinearClassifier(alpha=0.1)
    for one in (model, same):
        one.learn_one({"a": 1.0}, "first")
        one.learn_one({"a": -1.0}, "second")
    model.learn_one({"a": Acting(lambda: model.learn_one({"b": 1.0}, "third"))}, "fourth")
    same.learn_one({"b": 1.0}, "third")
    same.learn_one({"a": 2.0}, "fourth")
    assert model.classes == same.classes
    assert model.weights == same.weights


def test_learning_inside_a_comparison_is_refused_and_changes_nothing():
    model = LinearRegressor(alpha=0.1)
    model.learn_one({"a": 1.0}, 1.0)
    before = pickle.dumps(model)
    for act in (lambda: model.learn_one({"b": 1.0}, 1.0), lambda: model.predict_one({"a": 1.0})):
        with pytest.raises(
            RuntimeError, match=r"model: got a call from code that ran inside learning .*, expected one"
        ):
            model.learn_one({"new": 1.0, Acting(act): 1.0}, 1.0)
    with pytest.raises(ZeroDivisionError):
        model.learn_one({"new": 1.0, Acting(lambda: 1 / 0): 1.0}, 1.0)
    assert pickle.dumps(model) == before
    model.learn_one({"b": 1.0}, 1.0)
    assert list(model.weights) == ["a", "b"]


def test_infinite_recursion_raises_and_the_model_continues():
    model = LinearRegressor(alpha=0.1)
    x = {"a": Acting(lambda: model.learn_one(x, 1.0))}
    with pytest.raises(RecursionError):
        model.learn_one(x, 1.0)
    model.learn_one({"a": 1.0}, 1.0)
    assert model._learner.state.rounds == 1


def test_names_that_equal_the_same_name_are_refused():
    model = LinearRegressor(alpha=0.1)
    model.learn_one({"a": 1.0}, 1.0)
    x = {Either(): 1.0, Either(): 1.0}
    assert len(x) == 2
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="expected names of which no two equal the same earlier name"):
        model.learn_one(x, 1.0)
    assert pickle.dumps(model) == before


class Either:
    """A name that equals one that is not of its type."""

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        return type(other) is str


class Index:
    def __index__(self):
        return 3


class Word(str):
    pass


class Whole(int):
    pass


@pytest.mark.parametrize("value", [Index(), Whole(3), Fraction(3), np.int8(3), np.float32(3), np.array(3.0), True + 2])
def test_every_kind_of_number(value):
    model, same = LinearRegressor(alpha=0.1), LinearRegressor(alpha=0.1)
    model.learn_one({"a": value, "b": 1.0}, 1.0)
    same.learn_one({"a": 3.0, "b": 1.0}, 1.0)
    assert model.weights == same.weights
    assert model.predict_one({"a": value}) == same.predict_one({"a": 3.0})


def test_names_that_are_equal_are_one_whatever_their_type():
    model, same = LinearRegressor(alpha=0.1), LinearRegressor(alpha=0.1)
    for name in ("a", Word("a"), np.str_("a"), Acting(), "a", Word("z"), "z"):
        model.learn_one(OrderedDict({name: 1.0}), 1.0)
        same.learn_one({"z" if str(name) == "z" else "a": 1.0}, 1.0)
    assert list(model.weights.values()) == list(same.weights.values())
