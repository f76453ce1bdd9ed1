"""The closed-form bounds of section 3: their hypotheses, their values, and how tight they are."""

import math

import numpy as np
import pytest

from forel.losses import Linear, Quadratic
from forel.theory.algorithms import (
    FTRL,
    Exact,
    MirrorDescent,
    adagrad_ftrl_proximal,
    doubling_trick,
    dual_averaging,
    follow_the_leader,
    ftrl_proximal,
    gradient_descent,
    hedge,
    lazy_projection,
    regularized_dual_averaging,
    strongly_convex_descent,
)
from forel.theory.analysis import (
    adagrad_proximal_formula,
    dual_averaging_formula,
    entropic_formula,
    nonadaptive_bound,
    passes,
    play,
    proximal_formula,
    sampled,
    strongly_convex_formula,
    theorem_1,
    theorem_2,
    tuned_formula,
)
from forel.theory.analysis.adversaries import alternating, orthogonal, spikes, worst_linear
from forel.theory.analysis.streams import experts, quadratics, random_linear, switching
from forel.theory.argmin import project
from forel.theory.geometries import Diagonal, Entropy, Euclidean, SquaredPNorm
from forel.theory.norms import LINF
from forel.theory.penalties import Indicator, l1
from forel.theory.rates import (
    Constant,
    DiagonalAdaGrad,
    Unregularized,
    dual_averaging_rate,
    entropic_rate,
    proximal_rate,
)
from forel.theory.sets import Box, Simplex, l2_ball
from tests.theory.bound_games import BALL, CUBE, SIMPLEX, TUNED, N, T


def adversaries(n=N, rounds=T):
    yield from (random_linear(n, rounds), switching(n, rounds), worst_linear(), orthogonal(), alternating(), spikes())
    yield [Linear(np.eye(n)[0])] * rounds  # always the same direction
    yield [Linear(np.eye(n)[0] * (1 if t < rounds // 2 else -1)) for t in range(rounds)]  # and then back
    yield lambda t, x: Linear(np.eye(n)[0] * (1.0 if x[0] > 0 else -1.0))


def linear_games(algorithm, region, formula, n=N):
    """Every (measured, bound) with the comparator that is worst for the algorithm, and a few more."""
    for adversary in adversaries(n):
        trace = play(algorithm, adversary, rounds=T, n=n)
        worst = project(-1e4 * trace.gradients.sum(axis=0), region)
        for x in (worst, trace.points[-1], *(project(u, region) for u in np.eye(n))):
            limit = formula(trace, x)
            if limit.void:
                assert "comparator has norm" in limit.void or "outside X" in limit.void, limit
                continue
            yield trace.regret(x), limit.total


# The largest ratio measured/bound found with these adversaries, held so that a bound that gets looser fails. The survey
# itself calls some of the steps that lead to these formulas loose.
CASES = {
    "tuned": (gradient_descent(1 / math.sqrt(T)), BALL, lambda t, x: tuned_formula(t, x, 1.0, 1.0, T), 0.999),
    "tuned, lazy": (
        lazy_projection(1 / math.sqrt(T), BALL),
        BALL,
        lambda t, x: tuned_formula(t, x, 1.0, 1.0, T),
        0.999,
    ),
    "dual averaging": (dual_averaging(1.0, 1.0), BALL, lambda t, x: dual_averaging_formula(t, x, 1.0, 1.0), 0.87),
    "FTRL-Proximal": (ftrl_proximal(1.0, 1.0), BALL, lambda t, x: proximal_formula(t, x, 1.0, 1.0), 0.45),
    "AdaGrad": (adagrad_ftrl_proximal(1.0), CUBE, lambda t, x: adagrad_proximal_formula(t, x, 1.0), 0.45),
    "entropic": (hedge(N), SIMPLEX, lambda t, x: entropic_formula(t, x, 1.0), 0.34),
}


@pytest.mark.parametrize("name", CASES)
def test_formulas_hold_and_are_as_tight_as_recorded(name):
    algorithm, region, formula, attained = CASES[name]
    ratios = [regret / limit for regret, limit in linear_games(algorithm, region, formula)]
    assert max(ratios) <= 1 + 1e-9
    assert max(ratios) >= attained, f"largest ratio {max(ratios):.4f}"


def test_the_strongly_convex_formula():
    for algorithm in (follow_the_leader(), strongly_convex_descent()):
        trace = play(algorithm, quadratics(2, 200))
        largest = max(np.linalg.norm(g) for g in trace.gradients)
        best = trace.points[-1]
        limit = strongly_convex_formula(trace, best, largest)
        if limit.void:
            assert "only 0-strongly convex" in limit.void  # linearized, so not the losses themselves
            continue
        assert 0 < trace.regret(best) <= limit.total
    # Centers that alternate keep every gradient at 1: the harmonic sum is attained, its logarithm nearly.
    state, leader, losses = follow_the_leader().init(1), follow_the_leader(), []
    for t in range(1, 400):
        losses.append(Quadratic(leader.play(state) + (1.0 if t % 2 else -1.0)))
        state = leader.update(state, losses[-1])
    trace = play(leader, losses)
    limit = strongly_convex_formula(trace, trace.points[-1], 1.0)
    assert trace.regret(trace.points[-1]) == pytest.approx(theorem_2(trace, trace.points[-1]).total)
    assert trace.regret(trace.points[-1]) / limit.total >= 0.93


def test_the_tuned_rate_degrades_away_from_its_horizon():
    """RG√T at T = T', and worse on both sides: the reason for adaptive rates."""
    trace = play(gradient_descent(1 / math.sqrt(100)), random_linear(2, 400))
    x = np.zeros(2)
    over = tuned_formula(trace, x, 1.0, 1.0, 100).over_rounds / np.sqrt(np.arange(1, 401))
    assert np.argmin(over) == 99
    assert over[99] == pytest.approx(1.0)
    assert over[-1] == pytest.approx(1.25)


def test_the_nonadaptive_bound_is_both_theorems_at_once():
    trace = play(lazy_projection(0.3, BALL), random_linear(N, T))
    x = np.eye(N)[1]
    assert nonadaptive_bound(trace, x).total == pytest.approx(theorem_1(trace, x).total)
    assert nonadaptive_bound(trace, x).total == pytest.approx(0.5 / 0.3 + 0.5 * 0.3 * T)
    assert (
        "changes from round to round" in nonadaptive_bound(play(dual_averaging(1.0, 1.0), random_linear(N, T)), x).void
    )
    curved = play(FTRL(Constant(0.3), Euclidean(), surrogate=Exact()), [Quadratic(x), Linear(x)])
    assert nonadaptive_bound(curved, x).void == "the losses are not linear; use theorem_1"
    penalized = play(FTRL(Constant(0.3), Euclidean(), penalty=l1(0.1)), random_linear(N, T))
    assert "there is a penalty" in nonadaptive_bound(penalized, x).void


def test_adaptive_bounds_are_smaller_than_their_worst_case_forms():
    trace = play(hedge(8), experts(8, 200))
    x = np.eye(8)[0]
    assert theorem_1(trace, x).total <= entropic_formula(trace, x, 1.0).total
    trace = play(adagrad_ftrl_proximal(1.0), spikes(), rounds=200, n=3)
    assert adagrad_proximal_formula(trace, x[:3], 1.0).total < 3 * 2 * math.sqrt(2) * math.sqrt(200)


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (lambda t, x: tuned_formula(t, x, 1.0, 0.5, T), "has norm 1, more than the assumed 0.5"),
        (lambda t, x: tuned_formula(t, 3 * x, 1.0, 1.0, T), "the comparator has norm 3, more than R = 1"),
        (lambda t, x: tuned_formula(t, x, 1.0, 1.0, 2 * T), "the rate is not the one the formula is for"),
        (lambda t, x: dual_averaging_formula(t, x, 1.0, 1.0), "the rate is not the one"),
        (lambda t, x: proximal_formula(t, x, 1.0, 1.0), "outside the ball|the rate is not"),
        (lambda t, x: adagrad_proximal_formula(t, x, 9.0), "the rate is not the one"),
        (lambda t, x: entropic_formula(t, x, 1.0), "the geometry is not Entropy"),
        (lambda t, x: strongly_convex_formula(t, x, 1.0), "only 0-strongly convex"),
    ],
)
def test_formulas_are_void_with_a_reason(limit, reason):
    trace = play(gradient_descent(1 / math.sqrt(T)), random_linear(N, T))
    found = limit(trace, np.eye(N)[0])
    assert found.void
    with pytest.raises(ValueError, match=reason):
        _ = found.total


def test_a_penalty_or_a_point_outside_voids_a_formula():
    trace = play(adagrad_ftrl_proximal(1.0, l1(0.1)), random_linear(N, T))
    assert adagrad_proximal_formula(trace, np.zeros(N), 1.0).void == "there is a penalty"
    trace = play(hedge(N), random_linear(N, T, norm=LINF.dual))
    assert entropic_formula(trace, np.ones(N), 1.0).void == "the comparator lies outside X"


ROUNDS = np.arange(1.0, 6)


PULLS = np.array([[3.0, 0, 0], [0, -3, 0], [0, 0, 1], [2, 0, 2], [0, 1, -1]])  # of L2 and L∞ norm at most 3


LENGTH = math.sqrt(8)


def pulled(algorithm, factor=1.0):
    return play(algorithm, [Linear(factor * g) for g in PULLS])


def aimed(algorithm, curvature=1.0, factor=1.0):
    """Quadratics whose gradients are those of ``pulled``."""
    return play(algorithm, lambda t, x: Quadratic(x - factor * PULLS[t - 1] / curvature, curvature), rounds=5, n=3)


# With R = 2 and G = 3 nothing can be multiplied where it has to be divided.
FORMULAS = {
    "tuned": (
        lambda x: tuned_formula(pulled(gradient_descent(2 / (3 * LENGTH))), x, 2.0, 3.0, 8),
        3 * LENGTH + 3 * ROUNDS / LENGTH,
    ),
    "dual averaging": (
        lambda x: dual_averaging_formula(pulled(dual_averaging(2.0, 3.0)), x, 2.0, 3.0),
        math.sqrt(2) / 2 * (2 + 1.5**2 / 2) * 3 * np.sqrt(ROUNDS),
    ),
    "FTRL-Proximal": (
        lambda x: proximal_formula(pulled(ftrl_proximal(2.0, 3.0)), x, 2.0, 3.0),
        2 * math.sqrt(2) * 6 * np.sqrt(ROUNDS),
    ),
    "AdaGrad": (
        lambda x: adagrad_proximal_formula(pulled(adagrad_ftrl_proximal(2.0)), x, 2.0),
        2 * math.sqrt(2) * 2 * np.sqrt(np.cumsum(PULLS**2, axis=0)).sum(axis=1),
    ),
    "entropic": (
        lambda x: entropic_formula(pulled(hedge(3, 3.0)), x / x.sum(), 3.0),
        2 * np.sqrt((9 + np.array([0, 9, 18, 19, 23])) * math.log(3)),
    ),
    "strongly convex": (
        lambda x: strongly_convex_formula(aimed(follow_the_leader()), x, 3.0),
        4.5 * (1 + np.log(ROUNDS)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_those_of_the_survey_after_every_round(name):
    formula, expected = FORMULAS[name]
    assert np.allclose(formula(np.array([1.5, 0.0, 0.0])).over_rounds, expected, rtol=1e-12)


X, CORNER = np.array([2.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])


DIAGONAL_SCALE = math.sqrt(2) * 2.0


HYPOTHESES = {
    "tuned, gradient": (
        lambda: tuned_formula(pulled(gradient_descent(2 / (3 * LENGTH)), 1.01), X, 2.0, 3.0, 8),
        "the gradient of round 1 has norm 3.03, more than the assumed 3",
    ),
    "tuned, comparator": (
        lambda: tuned_formula(pulled(gradient_descent(2 / (3 * LENGTH))), 1.01 * X, 2.0, 3.0, 8),
        "the comparator has norm 2.02, more than R = 2",
    ),
    "tuned, rate": (
        lambda: tuned_formula(pulled(gradient_descent(2.02 / (3 * LENGTH))), X, 2.0, 3.0, 8),
        "the rate is not the one the formula is for",
    ),
    "dual averaging, gradient": (
        lambda: dual_averaging_formula(pulled(dual_averaging(2.0, 3.0), 1.01), X, 2.0, 3.0),
        "more than the assumed 3",
    ),
    "dual averaging, comparator": (
        lambda: dual_averaging_formula(pulled(dual_averaging(2.0, 3.0, l2_ball(1.0))), X, 2.0, 3.0),
        "the comparator lies outside X",
    ),
    "dual averaging, small rate": (
        lambda: dual_averaging_formula(play(dual_averaging(2.0, 3.03e-12), [Linear([3e-12, 0.0, 0.0])]), X, 2.0, 3e-12),
        "the rate is not the one the formula is for",
    ),
    "dual averaging, rate": (
        lambda: dual_averaging_formula(pulled(dual_averaging(2.02, 3.0)), X, 2.0, 3.0),
        "the rate is not the one the formula is for",
    ),
    "FTRL-Proximal, gradient": (
        lambda: proximal_formula(pulled(ftrl_proximal(2.0, 3.0), 1.01), X, 2.0, 3.0),
        "more than the assumed 3",
    ),
    "FTRL-Proximal, comparator": (
        lambda: proximal_formula(pulled(ftrl_proximal(2.0, 3.0, l2_ball(2.02))), 1.01 * X, 2.0, 3.0),
        "the comparator has norm 2.02, more than R = 2",
    ),
    "FTRL-Proximal, points": (
        lambda: proximal_formula(pulled(ftrl_proximal(2.0, 3.0, l2_ball(2.02))), X, 2.0, 3.0),
        "a point that was played is outside the ball of radius 2",
    ),
    "FTRL-Proximal, rate": (
        lambda: proximal_formula(pulled(ftrl_proximal(2.0, 3.03)), X, 2.0, 3.0),
        "the rate is not the one the formula is for",
    ),
    "AdaGrad, comparator": (
        lambda: adagrad_proximal_formula(pulled(adagrad_ftrl_proximal(2.0, feasible=Box(-2.02, 2.02))), 1.01 * X, 2.0),
        "the comparator has 2.02 at index 0, more than R = 2",
    ),
    "AdaGrad, points": (
        lambda: adagrad_proximal_formula(pulled(adagrad_ftrl_proximal(2.0, feasible=Box(-2.02, 2.02))), X, 2.0),
        "the point of round 2 has -2.02 at index 0, more than R = 2",
    ),
    **{
        f"AdaGrad, {name}": (
            lambda rate=rate, proximal=proximal: adagrad_proximal_formula(
                pulled(FTRL(rate, Diagonal(), "played" if proximal else "first", feasible=Box(-2, 2))), X, 2.0
            ),
            "the rate is not the one the formula is for",
        )
        for name, rate, proximal in [
            ("centered", DiagonalAdaGrad(DIAGONAL_SCALE), False),
            ("offset", DiagonalAdaGrad(DIAGONAL_SCALE, 1.0), True),
            ("beta", DiagonalAdaGrad(DIAGONAL_SCALE, beta=1.0), True),
            ("scale", DiagonalAdaGrad(1.01 * DIAGONAL_SCALE), True),
            ("scale by a millionth", DiagonalAdaGrad((1 + 1e-6) * DIAGONAL_SCALE), True),
        ]
    },
    "entropic, gradient": (
        lambda: entropic_formula(pulled(hedge(3, 3.0), 1.01), CORNER, 3.0),
        "the gradient of round 1 has norm 3.03, more than the assumed 3",
    ),
    "entropic, rate": (
        lambda: entropic_formula(pulled(hedge(3, 3.03)), CORNER, 3.0),
        "the rate is not the one the formula is for",
    ),
    "strongly convex, gradient": (
        lambda: strongly_convex_formula(aimed(follow_the_leader(), factor=1.01), X, 3.0),
        "more than the assumed 3",
    ),
    "strongly convex, comparator": (
        lambda: strongly_convex_formula(aimed(follow_the_leader(Box(-1, 1))), X, 3.0),
        "the comparator lies outside X",
    ),
    "strongly convex, curvature": (
        lambda: strongly_convex_formula(
            play(follow_the_leader(), [Quadratic([1.0]), Quadratic([1.0], 0.99)]), np.zeros(1), 3.0
        ),
        "a loss is only 0.99-strongly convex",
    ),
    "strongly convex, regularizer": (
        lambda: strongly_convex_formula(
            aimed(FTRL(proximal_rate(1.0, 1.0), Euclidean(), "played", Exact(), feasible=l2_ball(2.0))), X, 3.0
        ),
        "the algorithm has a regularizer",
    ),
}


@pytest.mark.parametrize("name", HYPOTHESES)
def test_formulas_are_void_where_one_hypothesis_fails_by_a_hundredth(name):
    found, reason = HYPOTHESES[name]
    assert reason in found().void


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: tuned_formula(t, X, 0.0, 1.0, 8), "radius: got 0.0, expected a positive number"),
        (lambda t: tuned_formula(t, X, 1.0, -1.0, 8), "lipschitz: got -1.0, expected a positive number"),
        (lambda t: tuned_formula(t, X, 1.0, 1.0, 0), "horizon: got 0, expected a whole number of at least 1"),
        (lambda t: tuned_formula(t, X[:2], 1.0, 1.0, 8), "x: got shape"),
        (lambda t: dual_averaging_formula(t, X, 0.0, 1.0), "radius: got 0.0"),
        (lambda t: dual_averaging_formula(t, X, 1.0, 0.0), "lipschitz: got 0.0"),
        (lambda t: proximal_formula(t, X, 0.0, 1.0), "radius: got 0.0"),
        (lambda t: proximal_formula(t, X, 1.0, 0.0), "lipschitz: got 0.0"),
        (lambda t: adagrad_proximal_formula(t, X, 0.0), "radius: got 0.0"),
        (lambda t: entropic_formula(t, X, 0.0), "lipschitz: got 0.0"),
        (lambda t: strongly_convex_formula(t, X, 0.0), "lipschitz: got 0.0"),
        (lambda t: theorem_1(t, X[:2]), r"x: got shape \(2,\), expected a vector of length 3"),
        (lambda t: list(passes(t.losses, 0)), "count: got 0, expected a whole number of at least 1"),
        (lambda t: sampled(t.losses, 0), "rounds: got 0, expected a whole number of at least 1"),
    ],
)
def test_invalid_arguments_of_formulas_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call(pulled(gradient_descent(1.0)))


OTHERS = {
    "a penalty that is 0 where it played": (
        FTRL(TUNED, Euclidean(), penalty=l1(100.0)),
        [Linear([1.0])] * T,
        [-1.0],
        lambda t, x: tuned_formula(t, x, 1.0, 1.0, T),
        "there is a penalty",
    ),
    "an indicator that the comparator violates": (
        FTRL(TUNED, Euclidean(), penalty=Indicator(Box(-0.1, 0.1))),
        [Linear([1.0])] * T,
        [-1.0],
        lambda t, x: tuned_formula(t, x, 1.0, 1.0, T),
        "there is a penalty",
    ),
    "regularized dual averaging": (
        regularized_dual_averaging(1.0, 1.0, l1=100.0),
        [Linear([1.0])] * T,
        [-1.0],
        lambda t, x: dual_averaging_formula(t, x, 1.0, 1.0),
        "there is a penalty",
    ),
    "FTRL-Proximal with a penalty": (
        FTRL(proximal_rate(1.0, 1.0), Euclidean(), "played", penalty=l1(100.0), feasible=BALL),
        [Linear([1.0])] * T,
        [-1.0],
        lambda t, x: proximal_formula(t, x, 1.0, 1.0),
        "there is a penalty",
    ),
    "entropy with a penalty": (
        FTRL(entropic_rate(2, 1.0), Entropy(), penalty=l1([0.0, 1000.0]), feasible=SIMPLEX),
        [Linear([1.0, 0.0])] * T,
        [0.0, 1.0],
        lambda t, x: entropic_formula(t, x, 1.0),
        "there is a penalty",
    ),
    "a leader with a penalty": (
        FTRL(Unregularized(), Euclidean(), "played", Exact(), penalty=l1(100.0)),
        [Quadratic([-1.0])] * T,
        [-1.0],
        lambda t, x: strongly_convex_formula(t, x, 1.0),
        "there is a penalty",
    ),
    "another geometry": (
        FTRL(TUNED, SquaredPNorm(1.1)),
        [Linear(np.full(50, -(50**-0.5)))] * T,
        np.full(50, 50**-0.5),
        lambda t, x: tuned_formula(t, x, 1.0, 1.0, T),
        "the geometry is not Euclidean()",
    ),
    "Mirror Descent at dual averaging's rate": (
        MirrorDescent(dual_averaging_rate(1.0, 1.0), Euclidean()),
        [Linear([1.0 if t < T // 4 else -1.0]) for t in range(T)],
        [1.0],
        lambda t, x: dual_averaging_formula(t, x, 1.0, 1.0),
        "the regularizers are not around x_1",
    ),
    "Mirror Descent at the entropic rate": (
        MirrorDescent(entropic_rate(2, 1.0), Entropy(), feasible=SIMPLEX),
        [Linear([1.0 if t < 33 else -1.0, 0.0]) for t in range(100)],
        [1.0, 0.0],
        lambda t, x: entropic_formula(t, x, 1.0),
        "the regularizers are not around x_1",
    ),
    "a larger simplex": (
        FTRL(entropic_rate(2, 1.0), Entropy(), feasible=Simplex(100.0)),
        [Linear([1.0, 0.0])] * T,
        [0.0, 100.0],
        lambda t, x: entropic_formula(t, x, 1.0),
        "outside the ball of radius 1",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_formulas_are_void_for_algorithms_that_violate_them(name):
    """Each is nearly the formula's algorithm, and its regret is above the number that the formula has."""
    algorithm, losses, x, formula, reason = OTHERS[name]
    trace = play(algorithm, losses)
    found = formula(trace, np.array(x))
    assert reason in found.void
    assert trace.regret(np.array(x)) > found.regularization[-1]


def test_formulas_are_void_for_other_algorithms():
    x = np.array([1.0])
    centered = play(FTRL(proximal_rate(1.0, 1.0), Euclidean(), feasible=BALL), [Linear([1.0])] * T)
    assert proximal_formula(centered, x, 1.0, 1.0).void == "the regularizers are not proximal"
    restarted = play(doubling_trick(1.0, 1.0), [Linear([1.0])] * T)
    assert "the rate is not the one" in tuned_formula(restarted, x, 1.0, 1.0, T).void
