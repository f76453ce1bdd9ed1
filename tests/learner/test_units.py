"""Units of scale-free records: kernels with and without them agree, and files of other units are converted."""

from dataclasses import replace

import numpy as np
import pytest

from forel.jit.specialize import specialize
from forel.learner.grid import default_grid
from forel.learner.kernels.kernel import HERE
from forel.learner.kernels.reference import bindings
from forel.learner.kernels.spec import KernelSpec
from forel.learner.layout import Layout
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.learner.state import State
from forel.learner.units import units_and_thresholds, units_of

N = 9


def seed(*numbers):
    return np.random.default_rng(numbers)


def free(**others):
    return Settings(rate="scale_free", l1=0.01, l2=0.02, radius=5.0, **others)


def rows(count=60, kind=np.float32):
    rng = seed(count)
    X = np.where(rng.random((count, N)) < 0.6, rng.normal(size=(count, N)), 0).astype(kind)
    return X, rng.integers(0, 2, count)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_units_are_powers_of_two_that_keep_every_scale_in_the_middle_of_the_range(kind):
    ends = np.finfo(kind)
    powers = np.ldexp(kind(1), np.arange(ends.minexp, ends.maxexp)).astype(kind)
    scales = np.array([kind(0), ends.smallest_subnormal, kind(0.3), ends.max, *powers, *(powers * kind(1.5))])
    units = units_of(scales)
    assert np.all(np.frexp(units)[0] == 0.5)
    assert np.all(np.frexp((1 / units).astype(kind))[0] == 0.5)
    assert np.array_equal((1 / units).astype(kind) * units.astype(kind), np.ones(scales.size))
    low, high = units_and_thresholds(kind)[1][1:3]
    inside = (scales == 0) | ((low <= scales) & (scales < high))
    assert np.array_equal(units == 1, inside)
    ratios = (scales / units)[scales >= ends.tiny]
    assert ratios.min() >= low
    assert ratios.max() < high


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_kernels_have_the_same_units(kind):
    layout = Layout("proximal", "scale_free", "once", double=kind is np.float64)
    names = bindings(KernelSpec("logistic", layout, units=True))
    kernels = specialize([f"{HERE}.units"], f"{HERE}.reference", names)[f"{HERE}.units"]
    starts = units_and_thresholds(kind)[1]
    scales = np.array([0, *starts, *np.nextafter(starts, kind(0)), 1, np.finfo(kind).max], kind)
    for s, u in zip(scales, units_of(scales), strict=True):
        assert kernels.unit(s) == (u, 1 / u)
        assert kernels.needs_other_unit(s, kind(0)) == (u != 1)
        assert kernels.needs_other_unit(kind(0), -s) == (u != 1)
        assert kernels.needs_other_unit(s, kind(1)) == (u != 1)


@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror", "implicit"])
@pytest.mark.parametrize("every", ["once", "every"])
def test_kernels_with_and_without_units_have_the_same_bits(
    every, algorithm, lanes, certified, interpreted, monkeypatch
):
    settings = free(algorithm=algorithm, alpha=0.5 if lanes == 1 else (0.1, 0.5, 2.0), penalty_weight=every)
    X, y = rows()
    one, other = (Learner(N, settings, certified=certified, mixed=False) for _ in range(2))
    first = one.progress(X, y)
    with_units(monkeypatch)
    assert np.array_equal(first, other.progress(X, y))
    same_bits(one, other)


def same_bits(one, other):
    for name in ("records", "_scales", "last_round", "totals"):
        assert getattr(one.state, name).tobytes() == getattr(other.state, name).tobytes()
    assert np.array_equal(one.weights, other.weights)


def with_units(monkeypatch):
    """Use the kernel for any values from the first row on."""
    monkeypatch.setattr(State, "_with_kernels", lambda lanes, count, process: process(lanes.kernel, 0))


COMPILED = [  # kernels that other tests compile as well
    (Settings(rate="scale_free", alpha=0.5, l1=0.01), False),
    (replace(default_grid(), full_filters=()), False),
]


@pytest.mark.parametrize(("settings", "certified"), COMPILED)
def test_compiled_kernels_likewise(settings, certified, monkeypatch):
    rng = seed(2)
    X, y = rng.normal(size=(300, 40)).astype(np.float32), rng.integers(0, 2, 300)
    one, other = (Learner(40, settings, certified=certified, mixed=False) for _ in range(2))
    first = one.progress(X, y)
    with_units(monkeypatch)
    assert np.array_equal(first, other.progress(X, y))
    same_bits(one, other)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [2.0**16, -1e30, 1e-12, 1e-40])
def test_blocks_of_any_size_give_the_same_bits_where_units_begin(value, lanes, interpreted):
    """The row with the value is the first that the kernel without units does not learn from."""
    X, y = rows()
    X[:, 4] = np.where(np.arange(60) == 30, value, 0)
    importance = np.where(np.arange(60) % 7 == 3, 2.0, 1.0)
    held = np.arange(60) % 5 == 1
    settings = free(alpha=0.5 if lanes == 1 else (0.1, 0.5, 2.0))
    found = []
    for size in (60, 31, 7, 1):
        model = Learner(N, settings, certified=True, mixed=False)
        parts = [slice(a, a + size) for a in range(0, 60, size)]
        margins = [model.progress(X[p], y[p], importance[p], held[p]) for p in parts]
        found.append((np.concatenate(margins), model.margins(X), model))
    assert (units_of(model.state.scales)[:N] != 1).sum() == 1
    assert model.rounds == 60 - held.sum()
    assert model.total_importance == importance[~held].sum()
    for margins, after, each in found[1:]:
        assert np.array_equal(margins, found[0][0])
        assert np.array_equal(after, found[0][1])
        same_bits(each, found[0][2])


@pytest.mark.parametrize("algorithm", ["proximal", "mirror"])
def test_records_change_units_without_a_change_of_weights(algorithm, interpreted):
    """A value of 0 times a large scale: only the unit of the record and its strength change."""
    X, y = rows()
    settings = Settings(rate="scale_free", algorithm=algorithm, alpha=0.5)
    model = Learner(N, settings, certified=True, mixed=False)
    model.learn(X, y)
    before = model.state.copied()
    some = np.arange(N)
    gradients = before.numbers[some, before.layout.gradient_part, 0] * before.units(some)
    model.learn(np.where(some == 2, 2.0**20, 0)[None], [1], [0.0])
    after = model.state
    assert after.units(some).tolist() == [2.0**48 if k == 2 else 1 for k in some]
    np.testing.assert_array_equal(after.numbers[some, after.layout.gradient_part, 0] * after.units(some), gradients)
