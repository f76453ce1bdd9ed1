"""The game, regret and the theorems as formulas; which combinations are refused."""

import math

import numpy as np
import pytest

from forel.losses import (
    Absolute,
    Convex,
    Example,
    Linear,
    Logistic,
    Quadratic,
    Softmax,
)
from forel.theory.algorithms import (
    FTRL,
    MirrorDescent,
    adagrad_ftrl_proximal,
    as_ftrl_proximal,
    doubling_trick,
    dual_averaging,
    ftrl_proximal,
    gradient_descent,
    greedy_projection,
    hedge,
    strongly_convex_descent,
)
from forel.theory.analysis import (
    bound,
    play,
    theorem_1,
    theorem_2,
    theorem_10,
    theorem_12,
    theorem_14,
)
from forel.theory.argmin import project
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.penalties import ElasticNet, l1
from forel.theory.rates import (
    Constant,
    DiagonalAdaGrad,
    InverseSqrt,
    MatrixAdaGrad,
)
from forel.theory.sets import Box, Reals, l2_ball
from forel.theory.weights import Given, Once
from tests.theory.games import curved, random_gradients


@pytest.mark.parametrize(
    ("make", "trace_of", "reason"),
    [
        (theorem_2, dual_averaging(1.0, 1.0), "not proximal"),
        (theorem_14, dual_averaging(1.0, 1.0), "not proximal"),
        (theorem_10, dual_averaging(1.0, 1.0), "not proximal"),
        (theorem_12, dual_averaging(1.0, 1.0), "not Mirror Descent"),
        (theorem_1, greedy_projection(1.0, Box(-1, 1)), "use theorem_12"),
        (theorem_10, greedy_projection(1.0, Box(-1, 1)), "use theorem_12"),
        (theorem_2, adagrad_ftrl_proximal(1.0, l1(0.1), Once()), "there is a penalty"),
        (theorem_14, adagrad_ftrl_proximal(1.0, l1(0.1), Once()), "there is a penalty"),
        (theorem_1, FTRL(Constant(1.0), Euclidean(), penalty=l1(0.1), weights=Given([1.0, 2.0])), ""),
        (theorem_1, FTRL(Constant(1.0), Euclidean(), penalty=l1(0.1), feasible=Box(0.5, 1)), ""),
        (theorem_12, MirrorDescent(Constant(1.0), Euclidean(), l1(0.1), feasible=Box(0.5, 1)), ""),
        (theorem_10, as_ftrl_proximal(greedy_projection(1.0, Box(-1, 1))), "use theorem_12"),
        (theorem_1, gradient_descent(1.0), ""),
        (theorem_12, as_ftrl_proximal(greedy_projection(1.0, Box(-1, 1))), ""),
    ],
)
def test_bounds_are_void_with_a_reason(make, trace_of, reason):
    trace = play(trace_of, random_gradients, rounds=5, n=2)
    limit = make(trace, trace.points[0])
    assert reason in limit.void
    if reason:
        assert "void, because" in str(limit)
        with pytest.raises(ValueError, match="has no number"):
            _ = limit.total
    else:
        assert limit.total > 0


@pytest.mark.parametrize("against", ["composite", "losses"])
@pytest.mark.parametrize(
    ("theorem", "kind", "lag", "factor"),
    [
        (theorem_1, "centered", 1, 0.5),
        (theorem_1, "proximal", 1, 0.5),
        (theorem_10, "proximal", 0, 0.5),
        (theorem_12, "mirror", 0, 0.5),
        (bound, "centered", 1, 0.5),
        (bound, "proximal", 0, 0.5),
        (bound, "mirror", 0, 0.5),
        (theorem_2, "bare", 0, 0.5),
        (theorem_14, "bare", 0, 1.0),
    ],
    ids=lambda p: getattr(p, "__name__", str(p)),
)
def test_theorems_are_their_formulas_after_every_round(theorem, kind, lag, factor, against):
    """Σ σ_s/2 ‖x* − c_s‖² + α_{1:·}Ψ(x*) + factor·Σ ‖g_s‖²/σ_{0:·}, each up to t or t − 1 as the theorem says.

    FTRL keeps its penalties, whose curvature λ2·α_{1:t−1} adds to the strength; Mirror Descent keeps tangents.
    """
    rate, psi, alphas = InverseSqrt(0.5, 1), ElasticNet(0.3, 0.2), [4.0, 2.0, 0.5, 0.5, 0.5]
    algorithm = {
        "centered": FTRL(rate, Euclidean(), "first", penalty=psi, weights=Given([4.0, 2.0, 0.5])),
        "proximal": FTRL(rate, Euclidean(), "played", penalty=psi, weights=Given([4.0, 2.0, 0.5])),
        "mirror": MirrorDescent(rate, Euclidean(), psi, Given([4.0, 2.0, 0.5])),
        "bare": FTRL(rate, Euclidean(), "played"),
    }[kind]
    x, losses = np.array([0.7, -0.2]), [Linear(g) for g in 9 * np.random.default_rng(5).normal(size=(5, 2))]
    trace = play(algorithm, losses)
    cumulative = np.array([state.strength for state in trace.states])
    centers = np.vstack([trace.points[:1], trace.points[:-1] if kind != "centered" else np.zeros((5, 2))])
    added = np.diff(cumulative, prepend=0.0) / 2 * ((x - centers) ** 2).sum(axis=1)
    charge = np.concatenate([[0.0], alphas]) * (psi(x) if against == "losses" and kind != "bare" else 0.0)
    curvature = 0.2 * np.cumsum([0.0, *alphas[:-1]]) if kind in ("centered", "proximal") else 0.0
    stability = factor * (trace.gradients**2).sum(axis=1) / (cumulative[1 - lag : 6 - lag] + curvature)
    limit = theorem(trace, x) if kind == "bare" else theorem(trace, x, against)
    expected = np.cumsum(added + charge)[1 - lag : 6 - lag] + np.cumsum(stability)
    assert np.ptp(trace.points) > 1
    assert np.allclose(limit.over_rounds, expected, rtol=1e-12)
    assert limit.total == limit.over_rounds[-1]


def test_a_gradient_where_there_is_no_strength_voids_the_bound_from_its_round_on():
    trace = play(adagrad_ftrl_proximal(1.0), [Linear([0.0]), Linear([0.0]), Linear([1.0])])
    assert theorem_1(trace, np.ones(1)).void.startswith("in round 3 the gradient is not zero where")
    assert theorem_2(trace, np.ones(1)).total == pytest.approx(0.5 / math.sqrt(2) + 0.5 * math.sqrt(2))


def test_a_comparator_outside_the_set_voids_the_bound():
    trace = play(ftrl_proximal(1.0, 1.0), random_gradients, rounds=5, n=2)
    assert theorem_2(trace, np.array([3.0, 0.0])).void == "the comparator lies outside X"


def test_theorem_2_is_an_equality_at_the_last_point_for_quadratics():
    """Lemma 7 is one for quadratics, and at x* = x_{T+1} the remainder is 0."""
    for algorithm in (
        FTRL(DiagonalAdaGrad(0.5, beta=1.0), Diagonal(), center="played"),
        FTRL(InverseSqrt(0.5, 1), Euclidean(), center="played"),
        FTRL(MatrixAdaGrad(0.5, 1.0), FullMatrix(), center="played"),
    ):
        trace = play(algorithm, random_gradients, rounds=80, n=3)
        x = trace.points[-1]
        assert theorem_2(trace, x).total == pytest.approx(trace.regret(x), rel=1e-8)


def test_play_runs_the_given_number_of_rounds():
    losses, seen, asked = [Linear([1.0]), Linear([2.0]), Linear([4.0])], [], []
    trace = play(gradient_descent(1.0), losses, rounds=2, progress=seen.append)
    assert trace.losses == tuple(losses[:2])
    assert seen == [1, 2]
    assert trace.regrets(np.array([1.0])).tolist() == [-1.0, -5.0]
    assert trace.regrets(np.array([1.0]), linearized=True).tolist() == [-1.0, -5.0]

    def adversary(t, x):
        asked.append((t, x.tolist()))
        return losses[0]

    play(gradient_descent(1.0), adversary, rounds=2, n=1)
    assert asked == [(1, [0.0]), (2, [-1.0])]
    dimensions = {
        3: Linear(np.ones(3)),
        4: Quadratic(np.ones(4)),
        2: Example(Logistic(), np.ones(2), 1),
        6: Example(Softmax(3), np.ones(2), 1),
    }
    for n, loss in dimensions.items():
        assert play(gradient_descent(1.0), [loss]).points.shape == (2, n)
    assert play(gradient_descent(1.0), [Convex(sum, np.sign)], n=5).points.shape == (2, 5)


def test_linearized_regret_is_of_the_gradients_that_were_seen():
    trace = play(strongly_convex_descent(), curved, rounds=30, n=3)
    total = trace.gradients.sum(axis=0)
    best = -total / np.linalg.norm(total)
    assert trace.worst_regret(l2_ball(1.0), linearized=True) == pytest.approx(trace.regret(best, linearized=True))
    assert trace.worst_regret(l2_ball(1.0), linearized=True) > trace.worst_regret(l2_ball(1.0)) + 0.1
    # Σf = x/2 + |x − 1/2| is smallest at its kink: not linear, though nothing in it is curved
    mixed = play(gradient_descent(0.1), [Linear([0.5]), Example(Absolute(), [1.0], 0.5)])
    assert mixed.best(Box(-1, 1)) == pytest.approx([0.5], abs=1e-6)
    assert mixed.worst_regret(Box(-1, 1)) == pytest.approx(mixed.regret(np.array([0.5])), abs=1e-6)


def test_worst_regret_is_attained_and_exact_for_linear_losses():
    trace = play(dual_averaging(1.0, 1.0), random_gradients, rounds=50, n=3)
    total = trace.gradients.sum(axis=0)
    best = -total / np.linalg.norm(total)
    assert trace.worst_regret(l2_ball(1.0)) == pytest.approx(trace.regret(best))
    curvy = play(strongly_convex_descent(), curved, rounds=30, n=3)
    assert curvy.worst_regret(l2_ball(1.0)) >= max(
        curvy.regret(u / np.linalg.norm(u)) for u in np.random.default_rng(0).normal(size=(50, 3))
    )
    middle = np.mean([f.center for f in curvy.losses], axis=0)
    assert np.allclose(curvy.best(Reals()), middle, atol=1e-6)
    assert np.allclose(curvy.best(Box(1.0, 2.0)), project(middle, Box(1.0, 2.0)), atol=1e-6)
    lopsided = Box([-1.0, 0.0, -5.0], [3.0, 0.5, 1.0])
    assert trace.worst_regret(lopsided) == pytest.approx(trace.regret(project(-1e6 * total, lopsided)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FTRL(DiagonalAdaGrad(1.0), Euclidean()), r"has a diagonal strength.*use geometry=Diagonal\(\)"),
        (lambda: MirrorDescent(Constant(1.0), Diagonal()), r"use geometry=Euclidean\(\)"),
        (lambda: FTRL(Constant(1.0), Entropy()), "needs a subset of the simplex"),
        (lambda: gradient_descent(-1.0), "eta: got -1.0, expected a positive number"),
        (lambda: gradient_descent(1.0).init(0), "n: got 0, expected a whole number of at least 1"),
        (lambda: greedy_projection(1.0, Box(-1, 1)).init(2.5), "n: got 2.5, expected a whole number of at least 1"),
        (lambda: doubling_trick(1.0, 1.0).init(0), "n: got 0, expected a whole number of at least 1"),
        (lambda: play(gradient_descent(1.0), random_gradients), "rounds, n: got"),
        (lambda: play(gradient_descent(1.0), random_gradients, rounds=3), r"rounds, n: got \(3, None\), expected both"),
        (lambda: play(gradient_descent(1.0), random_gradients, n=3), r"rounds, n: got \(None, 3\), expected both"),
        (lambda: play(gradient_descent(1.0), random_gradients, 0, 3), "rounds: got 0, expected a whole number"),
        (lambda: play(gradient_descent(1.0), random_gradients, 3, 0), "n: got 0, expected a whole number"),
        (lambda: play(gradient_descent(1.0), []), r"losses: got \(\), expected at least one loss"),
        (
            lambda: play(gradient_descent(1.0), [[1.0, 2.0]]),
            r"losses: got 'list', expected a loss in round 1; .*Linear",
        ),
        (lambda: play(gradient_descent(1.0), np.ones((2, 3))), "losses: got 'ndarray', expected a loss in round 1"),
        (lambda: play(gradient_descent(1.0), lambda t, x: x, 2, 2), "losses: got 'ndarray', expected a loss"),
        (
            lambda: play(gradient_descent(1.0), [Linear([1.0, 2.0]), Linear([1.0])]),
            "losses: got 'dimension 1 in round 2', expected 2",
        ),
        (lambda: play(gradient_descent(1.0), [Convex(sum, np.sign)]), "the dimension, which Convex does not have"),
        (lambda: play(gradient_descent(1.0), [Linear([1.0])]).regret([1.0, 2.0]), r"x: got shape \(2,\)"),
        (lambda: play(gradient_descent(1.0), lambda t, x: Convex(sum, lambda x: x * math.nan), 1, 1), "nan"),
        (lambda: hedge(1), "n"),
    ],
)
def test_unsupported_combinations_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()
