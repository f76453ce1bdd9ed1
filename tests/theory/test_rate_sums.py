"""The sums behind the regret bounds of the rates, Lemma 4, and rates that adapt to features or curvature."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forel.theory.norms import L2
from forel.theory.rates import (
    CurvatureAdaptive,
    Doubling,
    InverseTime,
    ScaleFree,
    adagrad_dual_averaging_rate,
    adagrad_proximal_rate,
    dual_averaging_rate,
    entropic_rate,
    increment,
    proximal_rate,
    sum_over_roots,
    tuned_rate,
)
from tests.theory.rate_runs import N, strengths

ROUNDING = 1 + 1e-12


# The sums of section 3 that belong to a rate alone.

ROUNDS = [1, 2, 3, 10, 1000]


R, G = 3.0, 2.0


def scalar_rates(rate, rounds):
    """η_0, …, η_T, infinite where there is no strength."""
    return [math.inf if s == 0 else 1 / s for s in strengths(rate, np.zeros((rounds, 1)))]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_dual_averaging_sum(rounds):
    eta = scalar_rates(dual_averaging_rate(R, G), rounds)
    measured = R**2 / (2 * eta[rounds - 1]) + sum(eta[t - 1] * G**2 for t in range(1, rounds + 1)) / 2
    bound = math.sqrt(2) * R * G * math.sqrt(rounds)
    assert measured <= bound * ROUNDING
    assert measured >= bound * (1 - 0.5 / math.sqrt(rounds))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_proximal_sum(rounds):
    eta = scalar_rates(proximal_rate(R, G), rounds)
    measured = (2 * R) ** 2 / (2 * eta[rounds]) + sum(eta[t] * G**2 for t in range(1, rounds + 1)) / 2
    bound = 2 * math.sqrt(2) * R * G * math.sqrt(rounds)
    assert measured <= bound * ROUNDING
    assert measured >= bound * (1 - 0.5 / math.sqrt(rounds))


@pytest.mark.parametrize("rounds", ROUNDS)
def test_strongly_convex_sum(rounds):
    eta = scalar_rates(InverseTime(0.5), rounds)
    measured = sum(eta[1:]) * G**2 / 2
    bound = G**2 / (2 * 0.5) * (1 + math.log(rounds))
    assert 0.6 * bound <= measured <= bound * ROUNDING


@pytest.mark.parametrize("horizon", [1, 7, 100])
@pytest.mark.parametrize("rounds", ROUNDS)
def test_tuned_sum(rounds, horizon):
    def bound(eta, rounds):
        return R**2 / (2 * eta) + eta * G**2 * rounds / 2

    eta = tuned_rate(R, G, horizon).eta
    formula = R * G / 2 * (math.sqrt(horizon) + rounds / math.sqrt(horizon))
    assert bound(eta, rounds) == pytest.approx(formula, rel=1e-14)
    assert bound(eta, horizon) == pytest.approx(R * G * math.sqrt(horizon), rel=1e-14)
    assert bound(eta, horizon) < min(bound(0.9 * eta, horizon), bound(1.1 * eta, horizon))


magnitudes = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1, allow_subnormal=False), st.floats(1e-12, 1e-6))


columns_of = st.lists(magnitudes, min_size=1, max_size=40).map(np.array)


COLUMNS = [np.ones(50), 2.0 ** np.arange(-30, 1), np.r_[np.zeros(5), 1, 0, 1e-9, 1], (-1.0) ** np.arange(30)]


def check_adagrad_proximal_rate(g):
    rate = adagrad_proximal_rate(R)
    path = [float(s[0]) for s in strengths(rate, g[:, None])]
    stability = sum(v**2 / s for v, s in zip(g, path[1:], strict=True) if v != 0) / 2
    measured = (2 * R) ** 2 * path[-1] / 2 + stability
    bound = 2 * math.sqrt(2) * R * L2(g)  # which does not underflow, as g @ g does
    assert measured <= bound * ROUNDING
    return measured, bound


def check_adagrad_dual_averaging_rate(g):
    path = [float(s[0]) for s in strengths(adagrad_dual_averaging_rate(R, 1.0), g[:, None])]
    measured = R**2 * path[-2] / 2 + sum(v**2 / s for v, s in zip(g, path[:-1], strict=True)) / 2
    assert measured <= 1.5 * R * math.sqrt(1 + float(g[:-1] @ g[:-1])) * ROUNDING


def check_entropic(g, n=5):
    gradients = np.outer(g, [0.5, -1.0, 0.0, 0.25, 0.0])
    path = strengths(entropic_rate(n, 1.0), gradients)
    measured = math.log(n) * path[-2] + sum(v**2 / s for v, s in zip(g, path[:-1], strict=True)) / 2
    bound = 2 * math.sqrt((1 + float(g[:-1] @ g[:-1])) * math.log(n))
    assert measured <= bound * ROUNDING
    assert bound <= 2 * math.sqrt(len(g) * math.log(n)) * ROUNDING
    return measured, bound


CHECKS = [check_adagrad_proximal_rate, check_adagrad_dual_averaging_rate, check_entropic]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("g", COLUMNS)
def test_adaptive_sums_on_adversarial_gradients(check, g):
    check(g)


@pytest.mark.parametrize("check", CHECKS)
@given(g=columns_of)
def test_adaptive_sums_on_any_gradients(check, g):
    check(g)


@pytest.mark.parametrize("check", [check_adagrad_proximal_rate, check_entropic])
def test_adaptive_sums_are_nearly_tight(check):
    measured, bound = check(np.ones(2000))
    assert measured >= 0.97 * bound


# Doubling.


def test_epochs_partition_the_rounds():
    doubling = Doubling(R, G)
    t = 1
    for number in range(8):
        for _ in range(2**number):
            assert doubling.epoch(t) == (number, 2**number, 2**number)
            t += 1
    assert [doubling.rate(k).eta for k in range(6)] == [tuned_rate(R, G, 2**k).eta for k in range(6)]


@pytest.mark.parametrize("rounds", [*range(70), 1023, 1024, 10**6, 10**12])
def test_doubling_bound(rounds):
    doubling = Doubling(R, G)
    measured = doubling.bound(rounds)
    slow, begin, number = 0.0, 0, 0
    while begin < rounds:
        eta, played = doubling.rate(number).eta, min(2**number, rounds - begin)
        slow += R**2 / (2 * eta) + eta * G**2 * played / 2
        begin, number = begin + 2**number, number + 1
    assert measured == pytest.approx(slow, rel=1e-13)
    assert measured <= math.sqrt(2) / (math.sqrt(2) - 1) * R * G * math.sqrt(rounds)
    # What an adaptive rate gains, a constant factor, shows from round 4 on.
    assert rounds < 4 or measured > math.sqrt(2) * R * G * math.sqrt(rounds)


# Scale-free rates.


@pytest.mark.parametrize("units", [[1.0, 1.0, 8.0], [1e-6, 3.0, 1e80]])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_predictions_do_not_depend_on_units(units, beta):
    rng = np.random.default_rng(5)
    features = rng.normal(size=(60, N)) * (rng.random((60, N)) < 0.6)
    labels = rng.random(60) < 0.5
    rate = ScaleFree(0.3, beta)

    def learn(features):
        state, z, predictions, last = rate.init(N), np.zeros(N), [], None
        for a, y in zip(features, labels, strict=True):
            state = rate.observe(state, a)
            last = rate.strength(state)
            x = np.divide(-z, last, out=np.zeros(N), where=last > 0)
            predictions.append(float(a @ x))
            g = (1 / (1 + math.exp(-predictions[-1])) - y) * a
            state, z = rate.update(state, g), z + g
        return np.array(predictions), last

    predictions, strength = learn(features)
    rescaled, rescaled_strength = learn(features * units)
    np.testing.assert_allclose(rescaled, predictions, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rescaled_strength, strength * np.square(units), rtol=1e-10)
    assert np.ptp(predictions) > 0.1


def test_the_current_example_counts():
    rate = ScaleFree(1.0)
    state = rate.observe(rate.init(2), np.array([-2.0, 0.0]))
    np.testing.assert_array_equal(rate.strength(state), [4.0, 0.0])
    state = rate.observe(rate.update(state, np.array([1.0, 0.0])), np.array([1.0, 3.0]))
    np.testing.assert_array_equal(rate.strength(state), [6.0, 9.0])


# Strength as needed.


def balance_cost(diameter, squares, curvatures, added):
    """½D²λ_{1:T} + ½Σ‖g_t‖²/(σ_{1:t} + λ_{1:t}), with 0/0 = 0; one row for each alternative."""
    total = np.cumsum(curvatures) + np.cumsum(added, axis=-1)
    terms = np.full(total.shape, math.inf)
    with np.errstate(over="ignore"):  # next to no strength costs infinity
        np.divide(squares, total, out=terms, where=total > 0)
    terms[..., np.asarray(squares) == 0] = 0.0
    return diameter**2 * np.sum(added, axis=-1) / 2 + np.sum(terms, axis=-1) / 2


def play(diameter, sizes, curvatures):
    """The strengths added by the rate, and what they cost."""
    rate = CurvatureAdaptive(diameter)
    state, added = rate.init(1), []
    for size, curvature in zip(sizes, curvatures, strict=True):
        before, state = state, rate.update(state, np.array([size]), curvature)
        added.append(increment(rate, before, state))
        assert rate.total(state) == pytest.approx(rate.strength(state) + sum(curvatures[: len(added)]), abs=1e-300)
    return np.array(added), balance_cost(diameter, np.square(sizes), curvatures, added)


def test_strength_added_balances():
    rng = np.random.default_rng(1)
    sizes, curvatures = rng.normal(size=50), rng.random(50) * (rng.random(50) < 0.5)
    added, _ = play(2.0, sizes, curvatures)
    np.testing.assert_allclose(2.0**2 * added, sizes**2 / (np.cumsum(curvatures) + np.cumsum(added)), rtol=1e-11)


@pytest.mark.parametrize("curvature", [1e3, 1e8, 1e16, 1e30])
def test_strength_added_to_much_curvature_does_not_cancel(curvature):
    rate = CurvatureAdaptive(2.0)
    state = rate.update(rate.init(1), np.array([3.0]), curvature)
    with mpmath.workdps(90):
        exact = (mpmath.sqrt(mpmath.mpf(curvature) ** 2 + 9) - mpmath.mpf(curvature)) / 2
    assert rate.strength(state) == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("curvature", [0.01, 1.0, 10.0])
def test_curved_losses_cost_a_logarithm(curvature):
    costs = {}
    for rounds in (100, 1000):
        sizes, curvatures = G * (-1.0) ** np.arange(rounds), [curvature] * rounds
        _, costs[rounds] = play(2 * R, sizes, curvatures)
        nothing = balance_cost(2 * R, sizes**2, curvatures, np.zeros(rounds))
        assert nothing <= G**2 / (2 * curvature) * (1 + math.log(rounds))
        assert costs[rounds] <= 2 * nothing
    if curvature >= 1:
        assert costs[1000] - costs[100] <= 2 * G**2 / (2 * curvature) * math.log(10) * 1.01


@pytest.mark.parametrize("rounds", [1, 10, 1000])
def test_flat_losses_cost_a_root(rounds):
    added, cost = play(2 * R, np.full(rounds, G), [0.0] * rounds)
    best_constant = 2 * R * G * math.sqrt(rounds)
    assert best_constant <= cost <= 2 * best_constant
    assert cost == pytest.approx((2 * R) ** 2 * added.sum(), rel=1e-12)
    assert cost == pytest.approx(math.sqrt(2) * best_constant, rel=0.3)


rounds_of = st.lists(
    st.tuples(magnitudes, st.one_of(st.just(0.0), st.floats(0, 2)), st.one_of(st.just(0.0), st.floats(0, 3))),
    min_size=1,
    max_size=25,
)


@given(rounds=rounds_of, diameter=st.floats(0.1, 10), first=st.floats(1e-6, 1e3))
def test_within_a_factor_two_of_any_strengths_in_hindsight(rounds, diameter, first):
    sizes, curvatures, added = (np.array(column) for column in zip(*rounds, strict=True))
    _, cost = play(diameter, sizes, curvatures)
    once = np.zeros(len(sizes))
    rivals = [added, once, np.where(np.arange(len(sizes)) == 0, first, added)]
    one_shots = np.geomspace(1e-4, 1e2, 60) * np.sqrt(np.sum(sizes**2)) / diameter
    rivals += [np.where(np.arange(len(sizes)) == 0, size, once) for size in [first, *one_shots]]
    best = balance_cost(diameter, sizes**2, curvatures, np.array(rivals)).min()
    assert cost <= 2 * best * ROUNDING


# Lemma 4.


@given(st.lists(st.one_of(st.just(0.0), st.floats(0, 1e308), st.floats(0, 1)), min_size=1, max_size=30))
def test_sum_over_roots(a):
    measured, bound = sum_over_roots(a)
    assert measured <= bound
    with mpmath.workdps(40):
        sums, total, slow = mpmath.mpf(0), sum(map(mpmath.mpf, a)), mpmath.mpf(0)
        for v in map(mpmath.mpf, a):
            sums += v
            slow += v / mpmath.sqrt(sums) if v else 0
        assert bound == pytest.approx(float(2 * mpmath.sqrt(total)), rel=1e-13, abs=0)
        assert measured == pytest.approx(float(slow), rel=1e-13, abs=0)


@given(st.lists(st.integers(-300, 300), min_size=1, max_size=20))
def test_sum_over_roots_of_huge_ratios(exponents):
    measured, bound = sum_over_roots([10.0**e for e in exponents])
    assert bound / 2 <= measured * ROUNDING
    assert measured <= bound


@pytest.mark.parametrize(("n", "ratio"), [(1, 0.5), (100, 0.92), (10_000, 0.99), (1_000_000, 0.999)])
def test_sum_over_roots_is_tight_in_the_limit(n, ratio):
    measured, bound = sum_over_roots(np.full(n, 3.0))
    assert ratio * bound <= measured * ROUNDING
    assert measured <= bound


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20), st.integers(0, 20))
def test_sum_over_roots_ignores_zeros(a, at):
    assume(at <= len(a))
    assert sum_over_roots([*a[:at], 0.0, 0.0, *a[at:]]) == pytest.approx(sum_over_roots(a), rel=1e-13)
