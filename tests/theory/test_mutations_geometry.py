"""Mistakes in how geometries measure gradients that bounds alone would not show, each with the test that shows it.

A dual norm that is too large only makes bounds looser, and curvature in a norm that does not know of it only shows in
games that are played for it.
"""

import math

import numpy as np
import pytest

from forel import cvx
from forel.losses import Linear, Quadratic
from forel.theory.algorithms import FTRL, Exact, MirrorDescent
from forel.theory.analysis import bound, play, surrogate_regret, theorem_1
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, SquaredPNorm
from forel.theory.norms import PNorm
from forel.theory.penalties import squared_l2
from forel.theory.rates import Constant, ScalarAdaGrad
from forel.theory.sets import Simplex, l2_ball
from forel.theory.weights import EveryRound

N = 5
SQUARE = np.random.default_rng(0).normal(size=(N, N))
GEOMETRIES = {
    "Euclidean": (Euclidean(), 2.5),
    "Diagonal": (Diagonal(), np.linspace(0.5, 3.0, N)),
    "FullMatrix": (FullMatrix(), SQUARE @ SQUARE.T),
    "Entropy": (Entropy(), 0.7),
    **{f"SquaredPNorm({p})": (SquaredPNorm(p), 1.7) for p in (1.1, 1.5, 2.0)},
}


def unit_ball(geometry, strength, x):
    """Return the solver's words for ‖x‖ ≤ 1 in the norm that the table of geometries names, written here anew."""
    cp = cvx.cvxpy()
    if isinstance(geometry, FullMatrix):
        return cp.quad_form(x, cp.psd_wrap(strength)) <= 1
    if isinstance(geometry, Diagonal):
        return cp.sum(cp.multiply(strength, cp.square(x))) <= 1
    p = {Euclidean: 2.0, Entropy: 1.0}.get(type(geometry)) or geometry.p
    return cp.pnorm(x, p) <= 1 / math.sqrt(strength)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_dual_norm_of_a_geometry_is_the_largest_product_over_its_unit_ball(name):
    geometry, strength = GEOMETRIES[name]
    dual = geometry.norm(strength).dual
    for g in (np.ones(N), np.eye(N)[1], *np.random.default_rng(1).normal(size=(3, N))):
        x = cvx.minimize(N, lambda u, g=g: -g @ u, lambda u: [unit_ball(geometry, strength, u)])
        assert dual(g) == pytest.approx(g @ x, rel=1e-6)


@pytest.mark.parametrize("p", [1.1, 1.5, 1.9])
def test_the_strong_convexity_of_the_p_norm_is_tight(p):
    """½σ‖y − x‖_p² is below the Bregman divergence, and 1.05 times it is not, at points that are nearly equal."""
    geometry, norm, sigma = SquaredPNorm(p), PNorm(p), 1.7
    rng, ratios = np.random.default_rng(2), []
    for _ in range(2000):
        x, step = rng.normal(size=2), 10 ** rng.uniform(-3, 0) * rng.normal(size=2)
        rise = geometry.value(sigma, x + step) - geometry.value(sigma, x) - float(geometry.gradient(sigma, x) @ step)
        ratios.append(rise / (0.5 * sigma * norm(step) ** 2))
    assert 1 - 1e-6 <= min(ratios) <= 1.05


@pytest.mark.parametrize("make", ["centered", "proximal", "mirror"])
@pytest.mark.parametrize("p", [1.1, 1.5])
def test_bounds_in_the_p_norm_measure_gradients_in_the_dual_exponent(p, make):
    """‖g_t‖_q²/σ with 1/p + 1/q = 1, written out: in L2 they would be many times as large."""
    q, gradients = p / (p - 1), np.random.default_rng(3).normal(size=(6, 40))
    algorithm = MirrorDescent(ScalarAdaGrad(1.0, 1.0), SquaredPNorm(p))
    if make != "mirror":
        algorithm = FTRL(ScalarAdaGrad(1.0, 1.0), SquaredPNorm(p), "played" if make == "proximal" else "first")
    trace = play(algorithm, [Linear(g) for g in gradients])
    squares = np.sum(np.abs(gradients) ** q, axis=1) ** (2 / q)
    strengths = np.array([state.strength for state in trace.states])
    assert np.allclose(trace.squared_norms, [squares / strengths[:-1], squares / strengths[1:]], rtol=1e-12)
    assert np.all((gradients**2).sum(axis=1) > 2 * squares)
    limit, lag = bound(trace, np.zeros(40)), int(make == "centered")
    assert limit.stability == pytest.approx(0.5 * squares / strengths[1 - lag : 7 - lag], rel=1e-12)


@pytest.mark.parametrize("geometry", [SquaredPNorm(1.1), SquaredPNorm(1.5), SquaredPNorm(2.0), Entropy()], ids=str)
def test_l2_curvature_of_losses_and_penalties_adds_nothing_in_other_geometries(geometry):
    region = Simplex() if geometry == Entropy() else l2_ball(1.0)
    losses = [Quadratic(c, 3.0) for c in np.random.default_rng(4).normal(size=(4, 3))]
    algorithm = FTRL(Constant(0.5), geometry, "played", Exact(), squared_l2(2.0), EveryRound(), region)
    trace = play(algorithm, losses)
    p = 1.0 if geometry == Entropy() else geometry.p
    expected = [PNorm(p).dual(g) ** 2 / 2.0 for g in trace.gradients]
    assert np.allclose(trace.squared_norms, [expected, expected], rtol=1e-12)


def test_l2_curvature_counted_in_the_p_norm_would_be_exceeded_six_times():
    """Gradients along all coordinates, to and fro: small in L_11, and losses that are strongly convex in L2 only."""
    p, n, sigma = 1.1, 10, 1e-3
    algorithm = FTRL(Constant(1 / sigma), SquaredPNorm(p), surrogate=Exact())
    trace = play(algorithm, lambda t, x: Quadratic(x + (-1.0) ** t * np.ones(n)), rounds=4, n=n)
    x = trace.points[-1]
    regret, limit = surrogate_regret(trace, x), theorem_1(trace, x)
    squares = [PNorm(p).dual(g) ** 2 for g in trace.gradients]
    mistaken = limit.regularization[-1] + 0.5 * sum(s / (sigma + t) for t, s in enumerate(squares, start=1))
    assert regret > 4 * mistaken
    assert regret <= limit.total
