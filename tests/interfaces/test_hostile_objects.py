"""Rows whose objects run Python code: learned as given, or refused with an error; never a crash."""

import pickle
import sys
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest

from forel.learner.guard import Guard
from forel.learner.kernels import dicts
from forel.learner.kernels.kernel import uncompiled_kernel
from forel.learner.kernels.spec import KernelSpec
from fuzz import process

pytest.importorskip("river", reason="river is an extra: pip install 'forel[river]'")

from forel.river import LinearClassifier, LinearRegressor, dict_learner


@pytest.mark.slow
def test_rows_that_run_code():
    done = process("objects", 3)
    assert done.returncode == 0, done.stderr
    assert "of which" in done.stdout


@pytest.fixture
def uncompiled(monkeypatch):
    """Read rows in Python and run kernels uncompiled; return the specs that were requested."""
    specs = set()

    def kernel(spec: KernelSpec):
        specs.add(spec)
        return uncompiled_kernel(spec)

    monkeypatch.setattr("forel.learner.kernels.kernel.kernel", kernel)
    monkeypatch.setattr(dict_learner, "compiled_reader", lambda hashed: None)
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
    assert model._learner._table is model._learner.names  # so that rows are read by compiled code again


def test_infinite_recursion_raises_and_the_model_continues():
    model = LinearRegressor(alpha=0.1)
    x = {"a": Acting(lambda: model.learn_one(x, 1.0))}
    with pytest.raises(RecursionError):
        model.learn_one(x, 1.0)
    model.learn_one({"a": 1.0}, 1.0)
    assert model._learner.lanes.rounds == 1


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
    copied = pickle.loads(pickle.dumps(LinearRegressor(alpha=0.1)))
    assert copied._learner._table is copied._learner.names


@pytest.mark.parametrize("bits", [None, 5])
def test_rows_read_in_python_give_the_same_bits(bits, monkeypatch):
    rng = np.random.default_rng(0)
    rows = [
        {f"f{k}": float(v) for k, v in zip(rng.permutation(3000)[:7], rng.normal(size=7), strict=True)}
        for _ in range(300)
    ]
    models = []
    for off in (False, True):
        if off:
            monkeypatch.setattr(dict_learner, "compiled_reader", lambda hashed: None)
        model = LinearClassifier(alpha=0.5, bits=bits)
        for k, x in enumerate(rows):
            model.learn_one(x, k % 3 == 0, w=1 + k % 2)
        models.append(model)
    fast, slow = models
    assert slow._learner._reader is None
    assert fast.weights == slow.weights
    assert [fast.predict_proba_one(x) for x in rows] == [slow.predict_proba_one(x) for x in rows]


def test_unknown_interpreters_use_the_python_path(monkeypatch):
    assert dicts.usable()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert not dicts.usable()
    monkeypatch.undo()
    monkeypatch.setattr(dicts, "C_FUNCTIONS", ["PyDict_Next", "PyDict_no_such_function"])
    assert not dicts.usable()
    monkeypatch.undo()
    monkeypatch.setattr(dicts, "WORD", 0)
    assert not dicts.usable()
    monkeypatch.undo()
    monkeypatch.setattr(dicts, "usable", numba_without_external_functions)
    dict_learner.compiled_reader.cache_clear()
    try:
        assert dict_learner.compiled_reader(False) is None
    finally:
        dict_learner.compiled_reader.cache_clear()


def numba_without_external_functions():
    raise AttributeError("module 'numba.types' has no attribute 'ExternalFunction'")


def test_many_classes_need_four_kernels(uncompiled):
    model, narrow = LinearClassifier(alpha=1.0), LinearClassifier(alpha=1.0)
    for k in range(150):
        model.learn_one({"a": 1.0, "b": k % 3}, k)
    assert {spec.layout.lanes for spec in uncompiled} == {1, 4, 16, 64}
    assert len(model._learner.parts) == 3
    assert model.classes == list(range(150))
    assert len(model.predict_proba_one({"a": 1.0})) == 150
    assert narrow.predict_one({"a": 1.0}) is None


@pytest.mark.parametrize(
    "options", [{}, {"rate": "scale_free"}, {"algorithm": "mirror", "penalty_weight": "every", "l1": 0.01}], ids=str
)
def test_parts_of_lanes_are_one_model(uncompiled, monkeypatch, options):
    monkeypatch.setattr(dict_learner, "SLOTS", 16)  # certificates read all of them
    rng = np.random.default_rng(0)
    rows = [({"x": float(rng.normal()), f"k{k % 9}": 1.0}, f"class {rng.integers(1 + k // 6)}") for k in range(60)]
    wide, parts = (
        LinearClassifier(alpha=1.0, certified=True, **options),
        LinearClassifier(alpha=1.0, certified=True, **options),
    )
    for x, y in rows:
        wide.learn_one(x, y)
    monkeypatch.setattr("forel.river.model.WIDTHS", (4,))
    for x, y in rows:
        parts.learn_one(x, y)
    parts = pickle.loads(pickle.dumps(parts))
    assert len(parts._learner.parts) == 3
    assert parts.classes == wide.classes
    mine, its = parts.weights, wide.weights
    for label in wide.classes:
        assert mine[label] == pytest.approx(its[label], rel=1e-12)
        assert parts.certificate(label).loss == pytest.approx(wide.certificate(label).loss)
    assert parts.intercept == pytest.approx(wide.intercept, rel=1e-12)
    for x, _ in rows[::9]:
        assert parts.predict_proba_one(x) == pytest.approx(wide.predict_proba_one(x))
        assert parts.predict_one(x) == wide.predict_one(x)


def test_a_guard_is_not_entered_twice_by_one_thread():
    guard = Guard()
    with guard.changing(), pytest.raises(RuntimeError, match="inside learning"), guard.changing():
        pass
    with guard.reading(), guard.reading():
        assert guard.read(lambda: 1) == 1
    assert guard.version == 2
    with pytest.raises(KeyError), guard.changing():
        raise KeyError
    assert guard.version == 4
    other = pickle.loads(pickle.dumps(guard))
    assert other.version == 0
    assert other.lock is not guard.lock
