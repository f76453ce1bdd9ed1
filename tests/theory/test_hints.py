"""Hints and delays: the points and bounds of plain numpy, games at random, and what has no proof."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.losses import Example, Linear, Logistic
from forel.theory.algorithms import (
    FTRL,
    adagrad_ftrl_proximal,
    delay_tolerant_adagrad,
    dual_averaging,
    ftrl_proximal,
    gradient_descent,
    greedy_projection,
)
from forel.theory.analysis import (
    adagrad_proximal_formula,
    bound,
    delay_tolerant_formula,
    dual_averaging_formula,
    loss_floor,
    play,
    strong_ftrl_lemma,
)
from forel.theory.geometries import Diagonal, Entropy, Euclidean
from forel.theory.penalties import l1
from forel.theory.rates import Constant, DiagonalAdaGrad, InverseSqrt, adagrad_proximal_rate
from forel.theory.sets import Box, Reals, Simplex, l2_ball
from forel.theory.weights import EveryRound
from forel.validation import Unsupported

T, N, R = 30, 3, 0.7


def stream(seed):
    """Gradients of one of several kinds, and hints that may be good, bad or huge."""
    rng = np.random.default_rng(seed)
    g = [
        rng.normal(size=(T, N)),
        np.tile(rng.normal(size=N), (T, 1)),
        rng.normal(size=(T, N)) * (rng.random((T, N)) < 0.2),
    ]
    g = g[seed % 3] * 10.0 ** rng.uniform(-2, 2)
    m = [g + 0.3 * rng.normal(size=g.shape), -g, 30 * rng.normal(size=g.shape), np.vstack([np.zeros(N), g[:-1]])]
    return g, m[seed % 4]


def told(m):
    return lambda t, last: m[min(t, len(m)) - 1]


def losses(g):
    return [Linear(v) for v in g]


def huber(a, b):
    return 0.5 * a * a - 0.5 * np.maximum(a - b, 0) ** 2


def corners(g, size):
    yield from (-size * np.sign(g.sum(axis=0)), np.zeros(g.shape[1]), size * np.ones(g.shape[1]))


@pytest.mark.parametrize("seed", range(12))
def test_optimistic_ftrl_has_the_points_and_the_bound_of_plain_numpy(seed):
    """The twin keeps q, the linear part and z by hand, around 0 and around x_t, in a box."""
    g, m = stream(seed)
    for proximal in (False, True):
        rate = DiagonalAdaGrad(0.5, 1.0)
        trace = play(
            FTRL(rate, Diagonal(), "played" if proximal else "first", feasible=Box(-R, R), hint=told(m)), losses(g)
        )
        q, lin, z, root, points, terms = np.full(N, 2.0), np.zeros(N), np.zeros(N), np.ones(N), [], []
        spent = [(q, np.zeros(N))]
        for t in range(T):
            x = np.clip(-(z + m[t] - lin) / q, -R, R)
            points.append(x)
            root = np.hypot(root, g[t] - m[t])
            sigma = root / 0.5 - q
            norm = q + sigma if proximal else q
            terms.append(huber(np.sqrt(np.sum((g[t] - m[t]) ** 2 / norm)), np.sqrt(np.sum(g[t] ** 2 / norm))))
            center = x if proximal else np.zeros(N)
            spent.append((sigma, center))
            q, lin, z = q + sigma, lin + sigma * center, z + g[t]
        np.testing.assert_allclose(trace.points[:-1], points, rtol=1e-9, atol=1e-12)
        for u in corners(g, R):
            limit = bound(trace, u)
            kept = spent if proximal else spent[:-1]
            expected = sum(0.5 * (s * (u - c)) @ (u - c) for s, c in kept) + sum(terms)
            assert limit.total == pytest.approx(expected, rel=1e-9)
            assert (trace.regrets(u) <= limit.over_rounds * (1 + 1e-9)).all()
            parts = strong_ftrl_lemma(trace, u)
            assert parts.error < 1e-9
            assert parts.remainder <= 1e-9 * limit.total


@pytest.mark.parametrize("seed", range(8))
def test_adagrad_on_the_errors_of_hints_has_its_formula(seed):
    g, m = stream(seed)
    trace = play(FTRL(adagrad_proximal_rate(R), Diagonal(), "played", feasible=Box(-R, R), hint=told(m)), losses(g))
    for u in corners(g, R):
        limit = adagrad_proximal_formula(trace, u, R)
        assert limit.total == pytest.approx(2 * np.sqrt(2) * R * np.sqrt(((g - m) ** 2).sum(axis=0)).sum(), rel=1e-9)
        assert trace.regret(u) <= bound(trace, u).total * (1 + 1e-9) <= limit.total * (1 + 2e-9)


def test_a_radius_for_each_coordinate_has_a_formula_as_well():
    g, radii = stream(0)[0], np.array([0.1, 1.0, 10.0])
    trace = play(adagrad_ftrl_proximal(radii), losses(g))
    corner = -radii * np.sign(g.sum(axis=0))
    limit = adagrad_proximal_formula(trace, corner, radii)
    assert limit.total == pytest.approx(2 * np.sqrt(2) * np.sqrt((g**2).sum(axis=0)) @ radii)
    assert trace.regret(corner) <= bound(trace, corner).total <= limit.total
    assert adagrad_proximal_formula(trace, corner, radii * [1, 1, 0.5]).void
    assert (
        adagrad_proximal_formula(trace, corner, radii * [1, 1, 2]).void == "the rate is not the one the formula is for"
    )


@given(st.integers(0, 10_000), st.sampled_from(["centered", "proximal", "entropy", "L1"]))
@settings(max_examples=25, deadline=None)
def test_regret_with_any_hints_is_below_the_bound(seed, kind):
    g, m = stream(seed)
    algorithm = {
        "centered": FTRL(InverseSqrt(0.5, 1), Euclidean(), feasible=l2_ball(R), hint=told(m)),
        "proximal": FTRL(InverseSqrt(0.5, 1), Euclidean(), "played", feasible=Box(-R, R), hint=told(m)),
        "entropy": FTRL(InverseSqrt(0.5, 1), Entropy(), feasible=Simplex(), hint=told(m), start=[0.6, 0.3, 0.1]),
        "L1": FTRL(InverseSqrt(0.5, 1), Euclidean(), penalty=l1(0.3), weights=EveryRound(), hint=told(m)),
    }[kind]
    trace = play(algorithm, losses(g))
    for u in (trace.points[-1], trace.leaders[-1]):
        limit = bound(trace, u)
        at_u = algorithm.penalty(u) if kind == "L1" else 0.0
        charged = sum(algorithm.penalty(x) - at_u for x in trace.points[:-1]) if kind == "L1" else 0.0
        assert trace.regret(u) + charged <= limit.total * (1 + 1e-9)


def outstanding(delays, t):
    return [s for s in range(t) if s + delays[s] >= t]


@pytest.mark.parametrize("seed", range(12))
def test_delayed_points_are_those_of_the_gradients_that_are_there(seed):
    g, _ = stream(seed)
    delays = np.random.default_rng(seed).integers(0, 9, T).tolist()
    for feasible in (Reals(), Box(-R, R)):
        trace = play(FTRL(Constant(2.0), Euclidean(), feasible=feasible), losses(g), delays=delays)
        missing = np.array([g[outstanding(delays, t)].sum(axis=0) for t in range(T)])
        there = np.array([g[:t].sum(axis=0) for t in range(T)]) - missing
        expected = -2.0 * there if feasible == Reals() else np.clip(-2.0 * there, -R, R)
        np.testing.assert_allclose(trace.points[:-1], expected, rtol=1e-9, atol=1e-9 * np.abs(g).max())
        np.testing.assert_allclose(trace.errors, g + missing, rtol=1e-9, atol=1e-9 * np.abs(g).max())
        a, b = np.linalg.norm(g + missing, axis=1), np.linalg.norm(g, axis=1)
        for u in corners(g, R):
            limit = bound(trace, u)
            assert limit.result == "Theorem 1, with hints"
            assert limit.total == pytest.approx(0.25 * u @ u + 2.0 * huber(a, b).sum(), rel=1e-9)
            assert (trace.regrets(u) <= limit.over_rounds * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(12))
def test_delay_tolerant_adagrad_has_the_points_and_the_formula_of_plain_numpy(seed):
    g, _ = stream(seed)
    g, late = g / np.abs(g).max(), seed % 6
    trace = play(delay_tolerant_adagrad(R, 1.0, late, Box(-R, R)), losses(g), delays=late)
    missing = np.array([g[max(0, t - late) : t].sum(axis=0) for t in range(T)])
    q = huber(np.abs(g + missing), np.abs(g))
    constant = (late + 1) * (2 * late + 1)
    for t in range(T):
        arrived = max(0, t - late)
        eta = R / np.sqrt(2 * (constant + 2 * q[:arrived].sum(axis=0)))
        np.testing.assert_allclose(trace.points[t], np.clip(-eta * g[:arrived].sum(axis=0), -R, R), atol=1e-9)
    for u in corners(g, R):
        limit = delay_tolerant_formula(trace, u, R, 1.0, late)
        assert limit.total == pytest.approx(np.sqrt(2) * R * np.sqrt(constant + 2 * q.sum(axis=0)).sum(), rel=1e-9)
        assert trace.regret(u) <= bound(trace, u).total * (1 + 1e-9)
        assert trace.regret(u) <= limit.total
    if late:
        assert delay_tolerant_formula(trace, u, R, 1.0, late - 1).void
    assert delay_tolerant_formula(trace, u, R, 0.5, late).void.startswith("the gradient of round ")


def test_a_loss_floor_holds_under_any_delay():
    """It needs slopes at the points that were played only, whatever made them be played."""
    rng = np.random.default_rng(0)
    stream = [Example(Logistic(), a, int(a[0] > 0)) for a in rng.normal(size=(40, 2))]
    trace = play(dual_averaging(1.0, 1.0), stream, delays=5)
    floor = loss_floor(trace, l2_ball(1.0))
    best = min(sum(loss(np.array([np.cos(v), np.sin(v)])) for loss in stream) for v in np.linspace(0, 7, 400))
    assert floor.total <= best


@pytest.mark.parametrize(
    "algorithm",
    [ftrl_proximal(1.0, 1.0), greedy_projection(1.0, Box(-1, 1)), FTRL(Constant(1.0), Euclidean(), penalty=l1(1.0))],
)
def test_delays_of_which_nothing_is_proved_are_refused(algorithm):
    with pytest.raises(Unsupported, match=r"^delays: these need FTRL around x_1 on linearized losses"):
        play(algorithm, losses(np.eye(2)), delays=1)


def test_a_formula_for_undelayed_gradients_is_void_where_the_error_of_the_hint_is_larger():
    trace = play(dual_averaging(1.0, 1.0), losses(np.tile([1.0, 0.0], (5, 1))), delays=2)
    assert dual_averaging_formula(trace, np.array([-1.0, 0.0]), 1.0, 1.0).void.startswith("the gradient of round 2 has")


def test_a_start_outside_of_x_is_refused_and_one_inside_is_x_1():
    assert play(FTRL(Constant(1.0), Euclidean(), start=[3.0]), [Linear([1.0])]).points.ravel().tolist() == [3.0, 2.0]
    with pytest.raises(ValueError, match=r"^start: got .*, expected a point of Box"):
        FTRL(Constant(1.0), Euclidean(), feasible=Box(-1, 1), start=[3.0]).init(1)
    assert gradient_descent(1.0).start is None
