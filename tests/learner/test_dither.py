"""Sums in float32 that go on for 10⁹ rounds: what stochastic rounding is for."""

import math

import numpy as np
import pytest
from numba import njit

from forel.jit.specialize import specialize
from forel.learner.kernels.intrinsics.scalars import binade
from forel.learner.kernels.kernel import HERE
from forel.learner.learner import Learner
from forel.learner.settings import Settings

pytestmark = pytest.mark.slow
BEFORE = [[-0.05111771821975708, 0.2005106806755066], [0.21220248937606812, -0.974699079990387]]  # rounds 7 and 8

rounding = specialize([f"{HERE}.stochastic_rounding"], f"{HERE}.reference", {"binade": binade, "inline_ir": njit})
add, noise = (getattr(rounding[f"{HERE}.stochastic_rounding"], name) for name in ("add", "noise_of"))


@njit
def grow(start, step, first, rounds, dithered):
    total = start
    for t in range(first, first + rounds):
        r = noise(t, 0)[1] if dithered else np.float32(0)
        total = add(total, step, r)
    return total


@njit
def two(x):
    return binade(x)


@njit
def noises(first, count, key=0):
    out = np.empty((count, 2), np.float32)
    for t in range(count):
        out[t] = noise(first + t, key)
    return out


def test_the_binade_is_the_power_of_two_below():
    for x in (1.0, 1.5, -3.0, 1e-20, 6e7):
        assert two(np.float32(x)) == two(float(x)) == 2.0 ** math.floor(math.log2(abs(x)))
    assert two(np.float32(0)) == 0


@pytest.mark.parametrize("first", [0, 10**6, 10**9])
def test_noise_is_uniform_within_half_a_unit_and_its_parts_do_not_go_together(first):
    found = noises(first, 100_000).astype(np.float64) * 2.0**24  # in ±1
    assert np.abs(found).max() < 1
    assert np.abs(found.mean(axis=0)).max() < 4 / math.sqrt(3 * 100_000)
    assert np.allclose(np.quantile(found, [0.1, 0.25, 0.75, 0.9], axis=0).T, [-0.8, -0.5, 0.5, 0.8], atol=0.01)
    assert abs(np.corrcoef(found.T)[0, 1]) < 0.015
    for lag in (1, 2, 7):
        assert np.abs([np.corrcoef(c[lag:], c[:-lag])[0, 1] for c in found.T]).max() < 0.015


def test_seeds_give_other_noise_and_seed_zero_that_of_before():
    keys = [Settings(seed=seed).noise_key for seed in (0, 1, 2, 2**53 - 1)]
    assert keys[0] == 0
    assert len(set(keys)) == 4
    found = [noises(0, 50_000, key)[:, 1].astype(np.float64) for key in keys]
    assert np.abs(np.corrcoef(found) - np.eye(4)).max() < 0.02
    assert (np.round(noises(7, 2) * 2.0**48) / 2.0**24).tolist() == BEFORE


@pytest.mark.parametrize("step", [0.25, 0.1, 1e-3, 1e-5])
def test_a_sum_grows_by_steps_far_below_its_last_place(step):
    start, rounds = np.float32(3e7), 3_000_000  # neighbors of 3·10⁷ are 2 apart
    assert grow(start, np.float32(step), 0, rounds, False) == start
    grown = float(grow(start, np.float32(step), 0, rounds, True)) - float(start)
    # Each round rounds up by 2 with probability step/2: a binomial, of which four deviations are allowed.
    deviation = 2 * math.sqrt(rounds * step / 2)
    assert grown == pytest.approx(rounds * step, abs=4 * deviation)


def test_adding_zero_changes_nothing_and_a_step_from_zero_is_exact():
    model = Learner(2, Settings())
    model.learn(np.eye(2), [1, 0])
    before = model.state.numbers.copy()
    model.learn(np.eye(2), [1, 0], importance=[0, 0])
    assert np.array_equal(model.state.numbers, before)
    assert grow(np.float32(0), np.float32(0.3), 5, 1, True) == np.float32(0.3)


def forward(settings, rounds, dtype, certified=True):
    """A model as it is after many rounds of a feature and a bias that are always there, p = 1/4 and learned well."""
    model = Learner(1, settings, dtype=dtype, certified=certified, mixed=False)
    n, x = rounds * 0.1875, -0.5 * math.log(3)  # E(p − y)² = p(1 − p), and the margin is shared by both
    strength = (1 + math.sqrt(n)) * 10
    for part, value in enumerate((-strength * x, n, 0.0)[: model.state.numbers.shape[1]]):
        model.state.numbers[:, part, 0] = value
    model.state.rounds = rounds
    return model


def test_after_a_billion_rounds_everything_still_counts():
    """From a state after a billion rounds, float32 continues as float64 does."""
    rng = np.random.default_rng(0)
    rounds = 2_000_000
    X, y = np.ones((rounds, 1), np.float32), (rng.random(rounds) < 0.25).astype(np.float32)
    settings = Settings(alpha=0.1)
    narrow, wide = (forward(settings, 10**9, dtype) for dtype in (np.float32, np.float64))
    start = wide.state.numbers.copy()
    for model in (narrow, wide):
        model.learn(X, y)
    grown = [model.state.numbers.astype(np.float64) - start for model in (narrow, wide)]
    assert grown[0][:, 1] == pytest.approx(grown[1][:, 1], rel=0.02)  # n: plain float32 would not move at all
    assert float(np.float32(start[0, 1, 0]) + np.float32(0.5625)) == pytest.approx(start[0, 1, 0], abs=1)
    assert narrow.weights == pytest.approx(wide.weights, abs=2e-4)
    assert narrow.loss == pytest.approx(wide.loss, rel=1e-6)
    proofs = [model.certificate() for model in (narrow, wide)]
    assert proofs[0].gradients == pytest.approx(proofs[1].gradients, abs=2.0)  # of sums of 2·10⁶ gradients
    x = np.full(2, -0.55)
    assert proofs[0].regret(x) == pytest.approx(proofs[1].regret(x), abs=2.0)
    assert proofs[0].bound(x) == pytest.approx(proofs[1].bound(x), abs=0.05)  # of a strength of 10⁵


def test_a_gradient_that_never_changes_sign_is_still_summed():
    """At a bound the weight stays, and g_{1:t} grows for ever; the certificate must not lag behind."""
    settings = Settings("absolute", "centered", alpha=0.1, radius=0.5, bias=False)
    model = Learner(1, settings, certified=True, mixed=False)
    rounds = 1_000_000
    model.state.numbers[0, :, 0] = -3e7, 3e7
    model.learn(np.full((rounds, 1), 0.25, np.float32), np.full(rounds, 9.0))
    assert model.state.numbers[0, 0, 0] == pytest.approx(-3e7 - 0.25 * rounds, abs=8000)
    assert model.state.numbers[0, 1, 0] == pytest.approx(3e7 + 0.0625 * rounds, abs=4000)
    assert model.weights[0, 0] == 0.5


def test_the_same_rows_give_the_same_bits_in_whatever_pieces():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(1000, 3)).astype(np.float32), rng.integers(0, 2, 1000)
    whole, pieces = Learner(3, Settings(alpha=0.5)), Learner(3, Settings(alpha=0.5))
    whole.learn(X, y)
    for start in range(0, 1000, 77):
        pieces.learn(X[start : start + 77], y[start : start + 77])
    assert whole.state.numbers.tobytes() == pieces.state.numbers.tobytes()
