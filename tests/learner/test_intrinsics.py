"""Intrinsics against their plain implementations: the same numbers at the same places, and no others touched."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.jit import private
from forel.learner.kernels import intrinsics
from forel.learner.kernels.intrinsics import plain, vectors
from forel.learner.kernels.kernel import compiled_kernel
from forel.learner.layout import record_width
from forel.learner.learner import Learner
from forel.learner.settings import Settings

STRIDE, SPARE = 9, 50


def compiled(function):
    """Compile a function as kernels are compiled."""
    return numba.njit(_nrt=False, no_cfunc_wrapper=True)(function)


def round_trip(home, parts):
    """Return a function that gathers records, changes them in scratch, and scatters them."""
    gather, scatter, load = home.gather_records, home.scatter_records, home.load_values

    def trip(scratch, state, indices, values, j, count, bias, bias_value, extra):
        gather(scratch, np.uint64(1), STRIDE, state, parts, indices, j, count, bias)
        load(scratch, np.uint64(1 + 4 * STRIDE), values, j, count, bias_value)
        if parts > 1:
            for i in range(4 * STRIDE):
                scratch[i] += 1
            scatter(scratch, np.uint64(1), STRIDE, state, parts, indices, j, count, bias, extra, np.uint64(SPARE))

    return trip


def three(parts):
    """Return a round trip by intrinsics, by plain Python, and by the plain implementations, compiled."""
    fallback = SimpleNamespace(**{name: plain.compiled(name) for name in vectors.__all__})
    by_intrinsics, by_fallback = (compiled(round_trip(home, parts)) for home in (vectors, fallback))
    return by_intrinsics, round_trip(plain, parts), by_fallback


TRIPS = {parts: three(parts) for parts in (1, 2, 3, 4)}


# Every pair of a number of parts, a type of index and a type of number; each combination compiles two functions.
COMBINATIONS = [
    (parts, (np.float32, np.float64)[(parts + place) % 2], index)
    for place, index in enumerate((np.int32, np.int64, np.uint32))
    for parts in TRIPS
]


@pytest.mark.parametrize(("parts", "dtype", "index"), COMBINATIONS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_records_are_gathered_and_scattered_as_one_by_one(parts, dtype, index, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count, before, extra = (data.draw(st.integers(low, high)) for low, high in ((0, 8), (0, 3), (0, 1)))
    extra = extra if count < 8 else 0
    # The arrays end with the last index that may be read.
    indices = rng.permutation(12)[: before + count].astype(index)
    values, state = rng.normal(size=before + count).astype(dtype), np.zeros((13, record_width(parts)), dtype)
    state[:, :parts] = rng.normal(size=(13, parts))
    found = []
    for trip in TRIPS[parts]:
        scratch, after = np.full(6 * STRIDE, 7, dtype), state.ravel().copy()
        numbers = np.uint64(before), np.uint64(count), np.uint64(12), dtype(extra), np.uint64(extra)
        trip(scratch, after, indices, values, *numbers)
        # Parts other than z are unspecified after the bias, and so is the spare place.
        unspecified = [STRIDE * part + 1 + i for part in range(1, parts) for i in range(count + 1, 8)]
        scratch[[*unspecified, *range(SPARE, SPARE + 4)]] = 0
        found.append((scratch.tobytes(), after.tobytes()))
    assert found[0] == found[1] == found[2]


def gradient_adder(add):
    """Return a function that adds gradients, by one of three implementations."""

    def call(scales, at, scale, change, row, v):
        add(scales, at, scale, change, row, np.uint64(1), np.uint64(5), v)

    return call


ADDERS = [
    gradient_adder(plain.add_gradients),
    *(compiled(gradient_adder(each)) for each in (vectors.add_gradients, plain.compiled("add_gradients"))),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_gradients_are_added_as_one_by_one(dtype, data):
    """Without noise the same bits; with it sums differ by a unit in the last place."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scales, row = rng.normal(size=12).astype(dtype), rng.normal(size=9).astype(dtype)
    row[5:] = 0 if (plain_sums := data.draw(st.booleans())) else rng.uniform(-0.5, 0.5, 4) * np.finfo(dtype).eps
    row[3] = data.draw(st.sampled_from([0.0, 1e18, -1e18, 0.5]))
    change, v = dtype(data.draw(st.sampled_from([1.0, 2.0**-16]))), dtype(rng.normal())
    found = []
    for add in ADDERS:
        after = scales.copy()
        add(after, np.uint64(4), dtype(2.5), change, row, v)
        found.append(after)
    assert found[0][4] == 2.5
    untouched = [*range(4), *range(8, 12)]
    assert np.array_equal(found[0][untouched], scales[untouched])
    before, added = scales[5:8].astype(float) * change, row[2:5].astype(float) * v
    spacing = np.spacing((np.abs(before) + np.abs(added)).astype(dtype))
    for after in found:
        assert np.all(np.abs(after[5:8] - (before + added)) <= 2 * spacing)
        if plain_sums:
            assert after.tobytes() == found[0].tobytes()


COMPILED = vectors, SimpleNamespace(**{name: plain.compiled(name) for name in vectors.__all__})


def lane_copier(home, count):
    """Return a function that pads lanes and copies them back, by one of three implementations."""
    load, store = home.load_lanes, home.store_lanes

    def call(source, at, target, place, back):
        load(source, at, target, place, count)
        store(target, place, back, at, count)

    return call


LANES = {count: [lane_copier(plain, count), *(compiled(lane_copier(home, count)) for home in COMPILED)]
         for count in (1, 7, 13, 16)}  # fmt: skip


@pytest.mark.parametrize("count", LANES)
@pytest.mark.parametrize("at", [0, 3])
def test_lanes_are_padded_with_zeros_and_copied_back(count, at):
    source, size = np.arange(1, at + count + 1, dtype=np.float32), -(-count // 8) * 8
    for call in LANES[count]:
        target, back = np.full(size + 3, 7, np.float32), np.full(at + count + 2, 5, np.float32)
        call(source, np.uint64(at), target, np.uint64(2), back)
        assert target.tolist() == [7, 7, *source[at:], *[0] * (size - count), 7]
        assert back.tolist() == [5] * at + [*source[at:], 5, 5]


def test_intrinsics_that_cannot_be_built_are_replaced_by_plain_code(monkeypatch):
    intrinsics._available.cache_clear()
    monkeypatch.setitem(private.NAMES, "populate_array", "numba.np.arrayobj.gone")
    monkeypatch.delitem(__import__("sys").modules, "forel.learner.kernels.intrinsics.memory", raising=False)
    found = intrinsics.available()
    intrinsics._available.cache_clear()
    assert found["allocate"].py_func is plain.allocate
    assert found["gather_records"] is vectors.gather_records


@pytest.mark.slow
def test_kernels_without_private_intrinsics_have_the_same_bits(monkeypatch):
    X = np.random.default_rng(0).integers(-2, 3, (30, 20)).astype(np.float32)
    models = [Learner(20, Settings(alpha=0.3, l1=0.1), certified=True) for _ in range(2)]
    models[0].learn(X, np.arange(30) % 2)
    monkeypatch.setenv("FOREL_INTRINSICS", "0")
    fallback = compiled_kernel.__wrapped__(models[1].state.spec)
    monkeypatch.setattr("forel.learner.kernels.kernel.kernel", lambda spec: fallback)
    models[1].learn(X, np.arange(30) % 2)
    assert models[0].state.records.tobytes() == models[1].state.records.tobytes()
    assert models[0].state.totals.tobytes() == models[1].state.totals.tobytes()


def test_kernel_modules_run_as_they_are_imported():
    from forel.learner.kernels import loops

    model = Learner(3, Settings(), dtype=np.float64, certified=True)
    lanes, one = model.state, np.ones(1)
    rows = np.array([0, 2]), np.array([0, 2]), np.array([1.0, 2.0])
    t = loops.learn(*rows, one, one, *lanes.arrays, lanes.shape, 3, lanes.totals, np.empty(0))
    model_compiled = Learner(3, Settings(), dtype=np.float64, certified=True)
    model_compiled.learn([[1.0, 0.0, 2.0]], [1.0])
    assert t == 1
    np.testing.assert_allclose(lanes.records, model_compiled.state.records, rtol=1e-14)
