"""Units of scale-free records: features of any scale are learned from alike, by one kernel."""

from dataclasses import replace

import numpy as np
import pytest

from forel.jit.specialize import specialize
from forel.learner.grid import default_grid
from forel.learner.kernels.kernel import HERE
from forel.learner.kernels.reference import KernelSpec, bindings
from forel.learner.layout import ORDINARY, Layout, units_of
from forel.learner.learner import Learner
from forel.learner.settings import Settings

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
    low, high = ORDINARY
    inside = (scales == 0) | ((low <= scales) & (scales < high))
    assert np.array_equal(units == 1, inside | ((scales >= 1) & (scales < 2)))
    ratios = (scales / units)[~inside & (scales >= ends.tiny)]
    assert ratios.min() >= 1
    assert ratios.max() < 4


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_kernels_have_the_same_units(kind):
    layout = Layout("proximal", "scale_free", "once", double=kind is np.float64)
    names = bindings(KernelSpec("logistic", layout))
    kernels = specialize([f"{HERE}.coordinates"], f"{HERE}.reference", names)[f"{HERE}.coordinates"]
    starts = np.array([*ORDINARY, 1e-30, 1e30], kind)
    scales = np.array([*starts, *np.nextafter(starts, kind(0)), 1, 3, 1e-44, np.finfo(kind).max], kind)
    for s, u in zip(scales, units_of(scales), strict=True):
        assert kernels.unit(s) == (u, 1 / u)
        assert kernels.is_ordinary(s) == (ORDINARY[0] <= s < ORDINARY[1])


POWERS = {np.float32: (2.0**-66, 2.0**66), np.float64: (2.0**-66, 2.0**-100, 2.0**66, 2.0**100)}


@pytest.mark.parametrize(("kind", "power"), [(kind, power) for kind, powers in POWERS.items() for power in powers])
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
def test_the_unit_of_a_feature_changes_no_margin(algorithm, lanes, kind, power, interpreted):
    settings = Settings(rate="scale_free", algorithm=algorithm, alpha=0.5 if lanes == 1 else (0.1, 0.5, 2.0))
    X, y = rows(kind=kind)
    one, other = (Learner(N, settings, dtype=kind, mixed=False) for _ in range(2))
    expected, found = one.progress(X, y), other.progress(X * kind(power), y)
    assert np.array_equal(found, expected)
    assert np.array_equal(other.weights[:N].astype(float) * power, one.weights[:N])


@pytest.mark.parametrize(("kind", "factor"), [(np.float32, 1e-20), (np.float32, 1e20), (np.float64, 1e-20),
                                              (np.float64, 1e-30), (np.float64, 1e20)])  # fmt: skip
@pytest.mark.parametrize("grid", [Settings(rate="scale_free", alpha=0.5), default_grid()], ids=["one", "default"])
def test_features_in_any_unit_are_learned_from_as_well(grid, kind, factor, interpreted):
    """Scale-free rates and filters in units that once fell below the smallest divisor."""
    rng = seed(7)
    X = rng.normal(size=(200, 4))
    y = (X @ [2.0, -1.0, 0.5, 0.0] > 0).astype(int)
    one, other = (Learner(4, replace(grid, full_filters=(), l1=0.0), dtype=kind, mixed=False) for _ in range(2))
    expected, found = one.progress(X.astype(kind), y), other.progress((X * factor).astype(kind), y)
    assert np.allclose(found, expected, rtol=1e-2, atol=1e-2)
    assert ((found > 0) == y[:, None]).mean(axis=0).max() > 0.8


def same_bits(one, other):
    for name in ("records", "_scales", "last_round", "totals"):
        assert getattr(one.state, name).tobytes() == getattr(other.state, name).tobytes()
    assert np.array_equal(one.weights, other.weights)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("value", [2.0**16, -1e30, 1e-12, 1e-40])
def test_blocks_of_any_size_give_the_same_bits_where_units_begin(value, lanes, interpreted):
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
    """A row of hardly any importance with a large scale: only the unit of the record and its strength change."""
    X, y = rows()
    settings = Settings(rate="scale_free", algorithm=algorithm, alpha=0.5)
    model = Learner(N, settings, certified=True, mixed=False)
    model.learn(X, y)
    before = model.state.copied()
    some = np.arange(N)
    gradients = before.numbers[some, before.layout.gradient_part, 0] * before.units(some)
    model.learn(np.where(some == 2, 2.0**20, 0)[None], [1], [1e-30])
    after = model.state
    assert after.units(some).tolist() == [2.0**20 if k == 2 else 1 for k in some]
    np.testing.assert_array_equal(after.numbers[some, after.layout.gradient_part, 0] * after.units(some), gradients)
