"""Solutions of the exercises in ``docs/theory``, as checks."""

import numpy as np
import pytest

from forel.losses import Example, Linear, Logistic
from forel.theory.algorithms import (
    FTRL,
    CoinBetting,
    Squint,
    adagrad_ftrl_proximal,
    dual_averaging,
    exponentiated_gradient,
    gradient_descent,
    greedy_projection,
    lazy_projection,
    online_newton_step,
)
from forel.theory.algorithms.delayed import huber
from forel.theory.algorithms.private import tree_nodes
from forel.theory.analysis import adagrad_proximal_formula, bound, play, strong_ftrl_lemma
from forel.theory.geometries import Diagonal, Euclidean
from forel.theory.rates import Constant, DiagonalAdaGrad, Doubling, ScaleFree, sum_over_roots
from forel.theory.sets import Box


def linear(rows):
    return [Linear(np.atleast_1d(g)) for g in rows]


def test_delay_1_a_repeated_gradient_costs_eta_d_more_in_every_round_after_the_first_d():
    eta, late, g = 0.1, 7, np.array([0.6, -0.8])
    regrets = [play(gradient_descent(eta), linear([g] * 50), delays=d).regrets(-g) for d in (0, late)]
    extra = np.diff(regrets[1] - regrets[0], prepend=0.0)
    np.testing.assert_allclose(extra[late:], eta * late * (g @ g))


def test_delay_2_a_hint_of_zero_gives_the_bound_without_hints():
    assert huber(2.0, 2.0) == 4.0  # the step from 0 to g starts at m = 0: convexity at 0 is an equality
    stream = linear(np.random.default_rng(0).normal(size=(20, 2)))
    plain, hinted = (
        play(FTRL(Constant(0.3), Euclidean(), hint=hint), stream) for hint in (None, lambda t, last: np.zeros(2))
    )
    assert bound(plain, np.ones(2)).total == pytest.approx(bound(hinted, np.ones(2)).total, rel=1e-12)


def test_delay_3_gradient_descent_with_the_last_gradient_as_its_hint():
    g, eta = np.random.default_rng(0).normal(size=(20, 2)), 0.3
    x = play(FTRL(Constant(eta), Euclidean(), hint=lambda t, last: last), linear(g)).points
    np.testing.assert_allclose(x[2:], x[1:-1] - 2 * eta * g[1:] + eta * g[:-1], atol=1e-12)


def test_regret_1_coin_flips_cost_every_player_the_distance_of_a_walk():
    flips = np.random.default_rng(0).choice([-1.0, 1.0], size=(400, 60))
    for player in (dual_averaging(1.0, 1.0, Box(-1, 1)), lazy_projection(0.1, Box(-1, 1))):
        games = [play(player, linear(coins)) for coins in flips]
        excess = [game.values.sum() + abs(coins.sum()) for game, coins in zip(games, flips, strict=True)]
        error = np.std([game.values.sum() for game in games]) / np.sqrt(len(games))
        assert np.mean(excess) == pytest.approx(np.abs(flips.sum(axis=1)).mean(), abs=4 * error)


def test_regret_2_a_player_who_knows_the_loss_has_regret_minus_t_at_best():
    g = np.random.default_rng(0).normal(size=(50, 3))
    g /= np.linalg.norm(g, axis=1, keepdims=True)
    points, total = -g, g.sum(axis=0)
    regret = np.einsum("ti,ti->", g, points) + np.linalg.norm(total)
    assert regret == pytest.approx(-50 + np.linalg.norm(total))


def test_regret_3_a_comparator_outside_has_regret_t_and_no_bound():
    trace = play(lazy_projection(0.3, Box(-1, 1)), linear(np.ones(100)))
    assert trace.regret([-2.0]) >= 99
    assert bound(trace, [-2.0]).void == "the comparator lies outside X"


def test_strength_1_stability_of_a_constant_rate_is_half_eta_g_squared():
    g, eta = np.random.default_rng(0).normal(size=(20, 2)), 0.3
    trace = play(gradient_descent(eta), linear(g))
    np.testing.assert_allclose(strong_ftrl_lemma(trace, np.ones(2)).stability, eta / 2 * np.sum(g**2, axis=1))
    assert trace.regret(trace.points[-1]) == pytest.approx(bound(trace, trace.points[-1]).total)


def test_strength_2_a_rate_off_by_c_costs_half_of_c_plus_its_inverse():
    T, R, G = 100, 2.0, 3.0
    best = R / (G * np.sqrt(T))
    cost = [R**2 / (2 * eta) + eta / 2 * G**2 * T for eta in (best, 4 * best, best / 4)]
    np.testing.assert_allclose(cost, R * G * np.sqrt(T) * np.array([1, 2.125, 2.125]))


def test_strength_3_the_doubling_trick_costs_a_factor_of_3_4():
    factors = [Doubling(1.0, 1.0).bound(2**k - 1) / np.sqrt(2**k - 1) for k in range(1, 30)]
    assert factors == sorted(factors)
    assert factors[-1] == pytest.approx(np.sqrt(2) / (np.sqrt(2) - 1) / np.sqrt(2), rel=1e-3)
    worst = max(Doubling(1.0, 1.0).bound(t) / np.sqrt(t) for t in range(1, 2000))
    assert worst <= np.sqrt(2) / (np.sqrt(2) - 1)


def test_adaptive_1_lemma_4_is_tight_for_sequences_that_grow_slowly_enough():
    left, right = sum_over_roots(np.ones(10**6))
    assert 0.999 * right < left <= right


def test_adaptive_2_with_one_coordinate_adagrad_pays_a_factor_of_2_root_2():
    g = np.random.default_rng(0).normal(size=(200, 4)) * [1, 0, 0, 0]
    trace = play(adagrad_ftrl_proximal(1.0), linear(g))
    tuned = np.sqrt(np.sum(g**2))  # R²/(2η) + ηΣg²/2 at the best η, for R = 1
    assert adagrad_proximal_formula(trace, np.zeros(4), 1.0).total == pytest.approx(2 * np.sqrt(2) * tuned)


def test_adaptive_3_scale_free_rates_make_predictions_independent_of_units():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    labels, units, margins = (rows[:, 0] > 0).astype(float), np.array([1000.0, 1.0]), []
    for rate in (ScaleFree(0.5), DiagonalAdaGrad(0.5, beta=1.0)):
        for scaled in (rows, rows * units):
            player = FTRL(rate, Diagonal(), "played")
            trace = play(player, [Example(Logistic(), a, y) for a, y in zip(scaled, labels, strict=True)])
            margins.append(np.einsum("ti,ti->t", trace.points[:-1], scaled))
    np.testing.assert_allclose(margins[0], margins[1], rtol=1e-9)
    assert np.abs(margins[2] - margins[3]).max() > 0.1


def test_paths_1_a_path_that_stays_has_the_bound_of_theorem_12():
    trace = play(greedy_projection(0.3, Box(-1, 1)), linear(np.random.default_rng(0).normal(size=(30, 2))))
    x = np.array([0.5, -0.5])
    assert bound(trace, np.tile(x, (30, 1))).total == pytest.approx(bound(trace, x).total)


def test_paths_2_moving_to_a_coordinate_that_the_player_left_costs_its_logarithm():
    eta, rounds = 1.0, 22
    trace = play(exponentiated_gradient(eta), linear([[0.0, 1.0]] * rounds))
    path = np.array([[1.0, 0.0]] * (rounds - 1) + [[0.0, 1.0]])
    moved = bound(trace, path).total - bound(trace, path[0]).total
    x = trace.points[rounds - 1]
    assert moved == pytest.approx(np.log(x[0] / x[1]) / eta)
    assert moved > 20


def test_paths_3_regret_grows_with_the_root_of_rounds_times_length():
    T, D = 10_000, 2.0
    values = []
    for length in (10.0, 40.0, 160.0):
        eta = np.geomspace(1e-4, 10, 4001)
        values.append(np.min(D**2 / (2 * eta) + D * length / eta + eta / 2 * T))
    np.testing.assert_allclose(values[1:] / np.array(values[:-1]), 2.0, rtol=0.1)


def test_curvature_1_and_2_the_sum_is_at_most_a_logarithm_and_near_it():
    g, eps = np.random.default_rng(0).normal(size=(100, 3)), 0.5
    A, total = eps * np.eye(3), 0.0
    for row in g:
        A = A + np.outer(row, row)
        total += row @ np.linalg.solve(A, row)
    assert total <= np.linalg.slogdet(A)[1] - 3 * np.log(eps)
    harmonic = sum(1 / (1 + t) for t in range(1, 1001))  # n = 1, g = 1, ε = 1
    assert np.log(1001) - harmonic == pytest.approx(1 - np.euler_gamma, abs=1e-3)


def test_curvature_3_a_gamma_that_is_too_large_has_no_bound():
    stream = [Example(Logistic(), [1.0], y) for y in (1.0, 0.0)] * 5
    assert "is above that of the round" in bound(play(online_newton_step(50.0, Box(-3, 3)), stream), [3.0]).void


def test_betting_1_the_gambler_has_money_left_while_gradients_are_at_most_1():
    for scale in (1.0, 3.0):
        state, bettor = CoinBetting().init(1), CoinBetting()
        for t in range(60):
            state = bettor.update(state, Linear([-scale if t < 59 else 50 * (scale - 1) + 1]))
        assert (state.wealth > 0) == (scale == 1)


def test_betting_2_regret_at_0_is_at_most_the_endowment():
    g = np.random.default_rng(0).choice([-1.0, 1.0], size=500)
    trace = play(CoinBetting(2.0), linear(g))
    assert trace.regret([0.0]) <= bound(trace, [0.0]).total <= 2.0


def test_betting_3_a_prior_of_one_half_saves_its_expert_a_logarithm_over_eta():
    rates, experts = [0.25], linear(np.random.default_rng(0).random((50, 4)))
    uniform, sure = play(Squint(rates=rates), experts), play(Squint([3, 1, 1, 1], rates), experts)
    spent = []
    for trace in (uniform, sure):
        r = np.einsum("ti,ti->t", trace.gradients, trace.points[:-1]) - trace.gradients[:, 0]
        spent.append(bound(trace, np.eye(4)[0]).total - 0.25 * np.sum(r**2))
    np.testing.assert_allclose(spent, [np.log(4) / 0.25, np.log(2) / 0.25])


def test_noise_1_and_2_estimates_are_right_on_average_and_their_local_norm_is_at_most_n():
    p, losses = np.array([0.01, 0.29, 0.7]), np.array([1.0, 0.3, 0.9])
    estimates = np.eye(3) * (losses / p)  # a row for each action drawn
    np.testing.assert_allclose(p @ estimates, losses)
    assert p @ (estimates**2 @ p) <= 3
    T, n = 1000, 3
    eta = np.sqrt(np.log(n) / (n * np.arange(1, T + 1)))
    assert np.log(n) / eta[-1] + n / 2 * eta.sum() <= 2 * np.sqrt(n * T * np.log(n))


def test_noise_3_the_first_gradient_is_in_ten_nodes_and_the_last_in_one():
    read = {node for t in range(1, 1001) for node in tree_nodes(t)}
    held = [sum(start < t <= start + length for start, length in read) for t in (1, 1000)]
    assert held == [10, 1]
