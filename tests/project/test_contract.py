"""Contract of all public objects; an exception is declared by the object, never by its name here."""

import dataclasses
import inspect
import math
import pickle

import numpy as np
import pytest

import forel
from catalogue import CATALOGUE, MODULES, N
from forel import validation


def instances(*kinds):
    """Catalogued objects as test parameters, with ids that are the same in every process."""
    things = [(kind, i, thing) for kind in kinds for i, thing in enumerate(CATALOGUE[kind])]
    return [pytest.param(thing, id=f"{kind} {i}: {type(thing).__name__}") for kind, i, thing in things]


def of(kind):
    return pytest.mark.parametrize("thing", instances(kind))


EVERYTHING = instances(*CATALOGUE)
PUBLIC = [(module, name) for module in MODULES for name in module.__all__]


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda p: p if isinstance(p, str) else p.__name__)
def test_public_names_are_documented_and_catalogued(module, name):
    thing = getattr(module, name)
    if not callable(thing) or not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    assert inspect.getdoc(thing), name
    if getattr(thing, "_is_protocol", False):
        return
    doc = inspect.getdoc(thing)
    assert "Survey: " in doc or "After " in doc, f"{name} names no part of the survey, and no paper"
    assert ">>> " in doc, f"{name} has no example"
    if inspect.isclass(thing):
        known = {type(t) for things in CATALOGUE.values() for t in things}
        nested = {type(t) for things in CATALOGUE.values() for s in things for t in getattr(s, "terms", ())}
        assert thing in known | nested, f"list {name} in tests/catalogue.py"


@pytest.mark.parametrize("thing", EVERYTHING)
def test_objects_are_frozen_and_have_a_descriptive_repr(thing):
    assert type(thing).__name__.lower() in repr(thing).lower().replace("_", "")
    names = [f.name for f in dataclasses.fields(thing)] if dataclasses.is_dataclass(thing) else thing._fields
    for name in names:
        with pytest.raises(AttributeError):
            setattr(thing, name, 1)


@pytest.mark.parametrize("thing", [p for p in EVERYTHING if "Convex" not in p.id and "Total" not in p.id])
def test_objects_without_user_functions_can_be_pickled(thing):
    copy = pickle.loads(pickle.dumps(thing))
    assert repr(copy) == repr(thing)


@of("penalty")
def test_penalties_are_convex_non_negative_and_zero_at_the_origin(thing):
    rng = np.random.default_rng(0)
    assert thing(np.zeros(N)) == 0
    for x, y in rng.normal(size=(20, 2, N)):
        middle = (x + y) / 2
        assert thing(x) >= 0
        bound = (thing(x) + thing(y)) / 2 - thing.strong_convexity / 8 * (x - y) @ (x - y)
        assert thing(middle) <= bound + 1e-12


@of("loss")
def test_losses_are_as_strongly_convex_as_declared(thing):
    rng = np.random.default_rng(1)
    for x, y in rng.normal(size=(20, 2, N)):
        g = thing.subgradient(x)
        assert g.shape == (N,)
        assert thing(y) >= thing(x) + g @ (y - x) + thing.strong_convexity / 2 * (y - x) @ (y - x) - 1e-12


@of("rate")
def test_rates_have_strengths_of_the_declared_shape(thing):
    state = thing.init(N)
    if hasattr(thing, "observe"):
        state = thing.observe(state, np.ones(N))
    after = thing.update(state, np.ones(N))
    shape = {"scalar": (), "diagonal": (N,), "matrix": (N, N)}[thing.shape]
    assert np.shape(thing.strength(state)) == np.shape(thing.strength(after)) == shape
    assert thing.gradient_bound > 0
    assert thing.gradient_norm(np.ones(N)) > 0


@of("weights")
def test_total_of_weights_is_their_sum(thing):
    assert thing.total(0) == 0
    for t in range(1, 8):
        assert thing.total(t) == pytest.approx(sum(thing(s) for s in range(1, t + 1)))
    assert thing.non_increasing


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: validation.number("a", "x"), "a: got 'x', expected a finite number"),
        (lambda: validation.number("a", None), "a: got None, expected a finite number"),
        (lambda: validation.number("a", 10**400), "expected a finite number"),
        (lambda: validation.number("a", math.inf), "a: got inf, expected a finite number"),
        (lambda: validation.number("a", 2, "at most 1", high=1.0), "a: got 2, expected at most 1"),
        (lambda: validation.whole("n", 2.5), "n: got 2.5, expected a whole number of at least 0"),
        (lambda: validation.whole("n", True), "n: got True, expected a whole number"),
        (lambda: validation.whole("n", -1), "n: got -1, expected a whole number of at least 0"),
        (lambda: validation.vector("g", [1j]), r"g: got \[1j\], expected a vector of numbers"),
        (lambda: validation.vector("g", ["x"]), r"g: got \['x'\], expected a vector of numbers"),
        (lambda: validation.vector("g", []), r"g: got shape \(0,\), expected a vector"),
        (lambda: validation.vector("g", 1.0), r"g: got shape \(\), expected a vector"),
        (lambda: validation.vector("g", np.full(9999, math.nan)), "g: got nan at index 0, expected finite numbers"),
        (lambda: validation.vector("g", [0, math.inf, math.nan]), "g: got inf at index 1, expected finite numbers"),
        (lambda: validation.matrix("A", [1.0]), r"A: got shape \(1,\), expected a matrix"),
        (lambda: validation.matrix("A", [[]]), r"A: got shape \(1, 0\), expected a matrix"),
        (lambda: validation.matrix("A", [[1.0]], 2), r"A: got shape \(1, 1\), expected a matrix with 2 columns"),
        (lambda: validation.matrix("A", [[1.0, math.inf]]), r"A: got inf at index \(0, 1\), expected finite numbers"),
        (lambda: validation.constants("c", [[1.0]]), r"c: got shape \(1, 1\), expected one number or a vector"),
        (lambda: validation.constants("c", []), r"c: got shape \(0,\), expected one number or a vector"),
        (lambda: validation.constants("c", math.nan, infinite=True), "c: got nan, expected finite numbers"),
        (lambda: validation.constants("c", [0.0, -math.inf]), "c: got -inf at index 1, expected finite numbers"),
        (lambda: validation.same_length(u=np.ones(2), v=np.ones(3)), "u and v: got shapes"),
    ],
)
def test_invalid_numbers_raise_with_name_value_and_expectation(check, message):
    with pytest.raises(ValueError, match=message):
        check()


def test_numbers_whose_squares_overflow_are_accepted():
    huge = np.array([1e200, -1e300])
    assert validation.all_finite(huge)
    assert validation.vector("g", huge) is huge
    assert not validation.all_finite(np.array([1e200, math.inf]))
    assert validation.constants("c", [math.inf, 0.0], low=0.0, infinite=True).tolist() == [math.inf, 0.0]


def test_packages_import_modules_lazily_and_list_them_in_errors():
    assert forel.losses.Logistic in {type(t) for t in CATALOGUE["margin loss"]}
    assert "argmin" in dir(forel.theory)
    with pytest.raises(AttributeError, match=r"it has .*algorithms, .*analysis"):
        forel.theory.nothing  # noqa: B018
