"""Beyond the survey: each algorithm and bound against plain numpy, and games at random."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from forel.losses import Absolute, Example, Hinge, Linear, Logistic, Squared
from forel.theory.algorithms import (
    CoinBetting,
    Implicit,
    MirrorDescent,
    Squint,
    VovkAzouryWarmuth,
    doubling_trick,
    exp3,
    exponentiated_gradient,
    follow_the_leader,
    greedy_projection,
    hedge,
    lazy_projection,
    online_newton_step,
    private_ftrl,
    strongly_convex_descent,
    zero_concentrated_privacy,
)
from forel.theory.algorithms.surrogates import QuadraticBound
from forel.theory.analysis import bound, dynamic_bound, local_norm_bound, path_formula, play, strongly_convex_formula
from forel.theory.analysis.adversaries import bandit, worst_linear
from forel.theory.analysis.streams import quadratics
from forel.theory.geometries import Diagonal, Euclidean
from forel.theory.penalties import l1
from forel.theory.rates import Constant, DiagonalAdaGrad, InverseSqrt
from forel.theory.sets import Box, l2_ball

T, N = 30, 3


def linear(g):
    return [Linear(v) for v in g]


def unit_rows(seed):
    g = np.random.default_rng(seed).normal(size=(T, N)) + (seed % 3) * 0.4
    return g / np.maximum(1, np.linalg.norm(g, axis=1, keepdims=True))


def ball_point(z, matrix, radius):
    """The minimizer of z·x + ½xᵀQx in a ball, by bisection on the multiplier."""
    low, high = 0.0, float(np.linalg.norm(z)) / radius
    for _ in range(200):
        middle = (low + high) / 2
        inside = np.linalg.norm(np.linalg.solve(matrix + middle * np.eye(len(z)), -z)) <= radius
        low, high = (low, middle) if inside else (middle, high)
    return np.linalg.solve(matrix + high * np.eye(len(z)), -z)


@pytest.mark.parametrize("seed", range(6))
def test_online_newton_step_is_ftrl_on_the_quadratics_below_and_has_the_bound_of_a_t(seed):
    rng = np.random.default_rng(seed)
    rows, labels, gamma, eps = rng.normal(size=(T, N)), rng.choice([-1.0, 1.0], T), 0.05, 0.3
    stream = [Example(Logistic(), a, (y + 1) / 2) for a, y in zip(rows, labels, strict=True)]
    trace = play(online_newton_step(gamma, l2_ball(0.6), eps), stream)
    A, z, spent = eps * np.eye(N), np.zeros(N), 0.0
    for t in range(T):
        x = trace.points[t]
        np.testing.assert_allclose(x, ball_point(z, gamma * A, 0.6), rtol=0, atol=1e-12)
        g = -labels[t] * rows[t] / (1 + np.exp(labels[t] * (rows[t] @ x)))
        A, z = A + np.outer(g, g), z + g - gamma * g * (g @ x)
        spent += g @ np.linalg.solve(A, g) / (2 * gamma)
    for u in (np.zeros(N), np.full(N, 0.3), -0.6 * np.eye(N)[0]):
        limit = bound(trace, u)
        assert limit.total == pytest.approx(gamma * eps / 2 * u @ u + spent, rel=1e-9)
        assert trace.regret(u) <= limit.total


def test_a_gamma_that_is_too_large_voids_the_bound_of_the_newton_step():
    stream = [Example(Logistic(), [1.0], 1.0), Example(Logistic(), [1.0], 0.0)] * 5
    assert "is above that of the round" in bound(play(online_newton_step(50.0, l2_ball(3.0)), stream), [3.0]).void


def exact(matrix, target):
    """The solution of a linear system, in 30 digits."""
    with mpmath.workdps(30):
        return np.array([float(v) for v in mpmath.lu_solve(matrix, target)])


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_forecaster_has_points_and_bound_of_plain_numpy_for_labels_of_any_size(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(T, N)) * 10.0 ** rng.uniform(-2, 2, N)
    labels, ridge = rng.standard_t(1.2, T), float(10 ** rng.uniform(-2, 2))
    trace = play(VovkAzouryWarmuth(ridge), [Example(Squared(), a, y) for a, y in zip(rows, labels, strict=True)])
    A, b, spent = ridge * mpmath.eye(N), mpmath.zeros(N, 1), 0.0
    for t, (row, y) in enumerate(zip(rows, labels.tolist(), strict=True)):
        a = mpmath.matrix(row)
        A = A + a * a.T
        np.testing.assert_allclose(trace.points[t], exact(A, b), rtol=1e-9, atol=1e-9)
        b, spent = b + y * a, spent + 0.5 * y**2 * (row @ exact(A, a))
    for u in (exact(A, b), np.zeros(N), rng.normal(size=N)):
        limit = bound(trace, u)
        assert limit.total == pytest.approx(ridge / 2 * u @ u + spent, rel=1e-9)
        assert trace.regret(u) <= limit.total * (1 + 1e-9)


def test_gradient_descent_for_strongly_convex_losses_has_the_bound_of_the_leader_of_quadratics():
    stream = quadratics(N, T)
    mirror, leader = (
        play(strongly_convex_descent(), stream),
        play(follow_the_leader(surrogate=QuadraticBound()), stream),
    )
    np.testing.assert_allclose(mirror.points, leader.points, atol=1e-12)
    x = np.full(N, 0.1)
    assert bound(mirror, x).total == pytest.approx(bound(leader, x).total, rel=1e-12)
    largest = float(np.linalg.norm(mirror.gradients, axis=1).max())
    assert mirror.regret(x) <= bound(mirror, x).total <= strongly_convex_formula(mirror, x, largest).total


def potential(rounds, z, endowment):
    logs = gammaln((rounds + 1 + z) / 2) + gammaln((rounds + 1 - z) / 2) - gammaln(rounds + 1)
    return endowment / np.pi * np.exp(rounds * np.log(2) + logs)


def largest_gain(rounds, size, endowment):
    """The maximum of ‖x*‖z − F(z) over 0 ≤ z ≤ T, on grids that become finer around it."""
    low, high = 0.0, rounds
    for _ in range(4):
        grid = np.linspace(low, high, 2001)
        gains = size * grid - potential(rounds, grid, endowment)
        best = int(gains.argmax())
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 2000)]
    return gains[best]


@pytest.mark.parametrize("per_coordinate", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_coin_betting_has_points_and_bound_of_plain_numpy(seed, per_coordinate):
    g, lipschitz, endowment = 3.0 * unit_rows(seed), 3.0, 0.7
    adversary = worst_linear(lipschitz=lipschitz) if seed == 0 else None
    bettor = CoinBetting(endowment, lipschitz, per_coordinate)
    trace = play(bettor, adversary or linear(g), rounds=T, n=N)
    g = trace.gradients / lipschitz
    wealth, z = np.full(N, endowment / N) if per_coordinate else endowment, np.zeros(N)
    for t in range(T):
        x = -z / (t + 1) * wealth
        np.testing.assert_allclose(trace.points[t], x, rtol=1e-9, atol=1e-12)
        wealth, z = wealth - (g[t] * x if per_coordinate else g[t] @ x), z + g[t]
    for size in (0.0, 0.3, 1.0, 50.0):
        u = -size * np.sign(z) if per_coordinate else -size * z / max(np.linalg.norm(z), 1e-9)
        share, sizes = (endowment / N, np.abs(u)) if per_coordinate else (endowment, [np.linalg.norm(u)])
        expected = lipschitz * sum(share + largest_gain(T, v, share) for v in sizes)
        limit = bound(trace, u)
        assert limit.total == pytest.approx(expected, rel=1e-12)
        assert (trace.regrets(u) <= limit.over_rounds * (1 + 1e-9) + 1e-9).all()


def test_coin_betting_is_void_where_a_gradient_is_larger_than_assumed():
    trace = play(CoinBetting(), linear([[0.5], [2.0]]))
    assert bound(trace, [1.0]).void == "the gradient of round 2 has norm 2, more than the assumed 1"


@pytest.mark.parametrize("improper", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_squint_has_points_and_bound_of_plain_numpy(seed, improper):
    rng = np.random.default_rng(seed)
    losses, prior = rng.random((T, N)) < np.linspace(0.1, 0.9, N), rng.dirichlet(np.ones(N))
    nodes, weights = np.polynomial.legendre.leggauss(100)  # exact to rounding for integrands like these
    eta = (nodes + 1) / 4 if improper else 0.5 * 2.0 ** -np.arange(6)
    trace = play(Squint(prior, None if improper else eta), linear(losses))
    R, V = np.zeros(N), np.zeros(N)
    for t in range(T):
        potentials = np.exp(np.outer(R, eta) - np.outer(V, eta**2))
        mean = potentials @ (weights if improper else eta)
        p = prior * mean / (prior @ mean)
        np.testing.assert_allclose(trace.points[t], p, atol=1e-12)
        r = p @ losses[t] - losses[t]
        R, V = R + r, V + r * r
    for k in range(N):
        if improper:
            lead = math.log((0.5 + math.log(T + 1)) / prior[k])
            expected = math.sqrt(2 * V[k]) * (1 + math.sqrt(2 * max(lead, 0.0)))
            expected += 5 * math.log1p((1 + 2 * math.log(T + 1)) / prior[k])
        else:
            expected = np.min(eta * V[k] + (math.log(len(eta)) - math.log(prior[k])) / eta)
        limit = bound(trace, np.eye(N)[k])
        assert limit.total == pytest.approx(expected, rel=1e-12)
        assert (trace.regrets(np.eye(N)[k]) <= limit.over_rounds).all()


def test_squints_integral_is_stable_where_regret_and_variance_are_far_apart():
    from forel.theory.algorithms.squint import _log_integral

    for R, V in [(0.0, 0.0), (3.0, 0.0), (-40.0, 50.0), (30.0, 20.0), (1.0, 60.0), (-3.0, 1e-6), (200.0, 900.0)]:
        with mpmath.workdps(30):
            integral = mpmath.quad(lambda e, R=R, V=V: mpmath.exp(e * R - e**2 * V), mpmath.linspace(0, 0.5, 9))
            expected = float(mpmath.log(integral))
        assert _log_integral(np.array([R]), np.array([V]))[0] == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_dynamic_regret_is_below_its_bound_which_is_that_of_plain_numpy(seed):
    rng = np.random.default_rng(seed)
    g, path = rng.normal(size=(T, N)), rng.normal(size=(T, N)).cumsum(axis=0) / 5
    path /= np.maximum(1, np.linalg.norm(path, axis=1, keepdims=True))
    if seed % 2:
        trace = play(greedy_projection(0.3, l2_ball(1.0)), linear(g))
        q = np.full((T + 1, N), 1 / 0.3)
        length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
        formula = path[0] @ path[0] / 0.6 + 2 * length / 0.3 + 0.15 * np.sum(g**2)
        assert path_formula(trace, path, 2.0).total == pytest.approx(formula, rel=1e-9)
        assert trace.regret(path) <= formula
    else:
        trace = play(MirrorDescent(DiagonalAdaGrad(0.5, 1.0), Diagonal(), feasible=l2_ball(1.0)), linear(g))
        q = np.sqrt(1 + np.vstack([np.zeros(N), np.cumsum(g**2, axis=0)])) / 0.5

    def divergence(strength, u, x):
        return 0.5 * np.sum(strength * (u - x) ** 2, axis=-1)

    xs = trace.points[:-1]
    expected = divergence(q[0], path[0], xs[0]) + divergence(np.diff(q, axis=0), path, xs).sum()
    expected += 0.5 * np.sum(g**2 / q[1:])
    expected += np.sum(divergence(q[1:T], path[1:], xs[1:]) - divergence(q[1:T], path[:-1], xs[1:]))
    limit = bound(trace, path)
    assert limit.total == pytest.approx(expected, rel=1e-9)
    assert (trace.regrets(path) <= limit.over_rounds + 1e-9).all()
    still = np.tile(path[0], (T, 1))
    assert bound(trace, still).total == pytest.approx(bound(trace, path[0]).total, rel=1e-9)


def test_dynamic_regret_on_the_simplex_and_what_has_no_bound():
    path = np.random.default_rng(0).dirichlet(np.ones(N), size=T)
    trace = play(exponentiated_gradient(0.4), linear(unit_rows(1)))
    assert (trace.regrets(path) <= bound(trace, path).over_rounds).all()
    assert dynamic_bound(play(lazy_projection(0.3, l2_ball(1.0)), linear(unit_rows(0))), path).void
    assert bound(trace, 2 * path).void == "the comparator lies outside X"
    with pytest.raises(ValueError, match=r"^x: got 2 rows, expected a point, or one for each of the 30 rounds"):
        trace.regret(path[:2])


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Absolute(), Hinge()], ids=str)
def test_implicit_updates_have_a_bound_never_worse_than_that_of_mirror_descent(loss):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(T, N)), rng.integers(0, 2, T).astype(float)
    labels = 2 * labels - 1 if loss == Hinge() else labels
    stream = [Example(loss, a, y) for a, y in zip(rows, labels, strict=True)]
    trace = play(Implicit(InverseSqrt(0.5, 1.0), Euclidean()), stream)
    q = 2 * np.sqrt(1 + np.arange(T + 1))
    spent = [
        f(x) - f(y) - 0.5 * s * np.sum((y - x) ** 2)
        for f, x, y, s in zip(stream, trace.points, trace.points[1:], q[1:], strict=False)
    ]
    for u in (np.zeros(N), rng.normal(size=N), trace.points[-1]):
        kept = 0.5 * q[0] * u @ u + sum(
            0.5 * s * np.sum((u - x) ** 2) for s, x in zip(np.diff(q), trace.points, strict=False)
        )
        limit = bound(trace, u)
        assert limit.total == pytest.approx(kept + sum(spent), rel=1e-9)
        assert (trace.regrets(u) <= limit.over_rounds + 1e-9).all()
    assert (bound(trace, u).stability <= 0.5 * np.sum(trace.gradients**2, axis=1) / q[1:] + 1e-9).all()


def test_an_own_bound_is_void_for_points_that_are_not_the_algorithms_own():
    class Wrong:
        right = CoinBetting()

        def __getattr__(self, name):
            return getattr(self.right, name)

        def play(self, state):
            return state.x + (state.t == 4)

    trace = play(Wrong(), linear([[1.0], [-1.0]] * 5))
    assert bound(trace, [0.0]).void == "the point of round 5 is not the algorithm's own"


def test_an_own_bound_that_the_game_refutes_is_void():
    from forel.theory.algorithms import Bound

    class Boasts:
        right = CoinBetting()

        def __getattr__(self, name):
            return getattr(self.right, name)

        def bound(self, trace, x):
            return Bound("boast", np.zeros(trace.rounds), np.zeros(trace.rounds))

    trace = play(Boasts(), linear([[1.0]] * 5))
    assert bound(trace, [-9.0]).void == "regret is above it after round 1"


def test_the_doubling_trick_has_the_sum_of_its_epochs_bounds():
    trace = play(doubling_trick(1.0, 1.0), linear(unit_rows(0)))
    x = -np.eye(N)[0]
    expected = [sum(math.sqrt(2**k) for k in range(5))]
    assert bound(trace, x).over_rounds[30 - 1] <= expected[0] + math.sqrt(16)
    assert bound(trace, x).over_rounds[14] == pytest.approx(sum(math.sqrt(2**k) for k in range(4)))
    assert (trace.regrets(x) <= bound(trace, x).over_rounds).all()
    assert bound(trace, 2 * x).void.startswith("the comparator has norm 2")
    assert bound(play(doubling_trick(1.0, 0.5), linear(unit_rows(0))), x).void.startswith("the gradient of round ")


@pytest.mark.parametrize("noise", [0.1, 5.0])
def test_private_ftrl_adds_the_noise_of_the_nodes_of_a_prefix(noise):
    g = unit_rows(2)
    trace = play(private_ftrl(2.0, noise, seed=7), linear(g))
    sums = np.vstack([np.zeros(N), np.cumsum(g, axis=0)])
    b = -2.0 * trace.points - sums[: T + 1]
    node = noise * np.random.default_rng((7, 8, 4)).normal(size=N)
    np.testing.assert_allclose(b[12] - b[8], node, atol=1e-9)  # 12 = 8 + 4: rounds 9 to 12 are one node
    spread = np.std([private_ftrl(1.0, noise, seed=s).hint(8, np.zeros(50)) for s in range(20)])
    assert spread == pytest.approx(noise * math.sqrt(3), rel=0.1)  # 7 = 4 + 2 + 1
    for u in (np.zeros(N), -g.sum(axis=0) / np.linalg.norm(g.sum(axis=0))):
        a, length = np.linalg.norm(g - b[:T], axis=1), np.linalg.norm(g, axis=1)
        huber = 0.5 * a**2 - 0.5 * np.maximum(a - length, 0) ** 2
        assert bound(trace, u).total == pytest.approx(u @ u + huber.sum() / 2, rel=1e-9)
        assert trace.regret(u) <= bound(trace, u).total
    assert zero_concentrated_privacy(1024, 2.0) == 11 / 8


@pytest.mark.parametrize("seed", range(6))
def test_local_norms_are_those_of_plain_numpy_and_hold_for_every_draw(seed):
    losses = np.random.default_rng(seed).random((T, N))
    trace = play(exp3(N), bandit(losses, seed), rounds=T, n=N)
    eta = np.sqrt(np.log(N) / (N * np.arange(1, T + 1)))
    spent = 0.5 * np.sum(eta * np.sum(trace.points[:-1] * trace.gradients**2, axis=1))
    for corner in np.eye(N):
        limit = local_norm_bound(trace, corner)
        assert limit.total == pytest.approx(math.log(N) / eta[-1] + spent, rel=1e-9)
        assert (trace.regrets(corner) <= limit.over_rounds + 1e-9).all()
    signed = play(exp3(N), linear(np.random.default_rng(seed).uniform(-1, 1, (T, N))))
    assert (signed.regrets(np.eye(N)[0]) <= local_norm_bound(signed, np.eye(N)[0]).over_rounds + 1e-9).all()
    assert "below −1" in local_norm_bound(play(hedge(N), linear(-99 * losses)), np.eye(N)[0]).void
    assert local_norm_bound(play(lazy_projection(0.1, Box(-1, 1)), linear(losses)), np.eye(N)[0]).void


def test_penalties_of_implicit_updates_are_in_the_regret_of_their_bound():
    stream = [Example(Squared(), a, 1.0) for a in np.random.default_rng(0).normal(size=(T, N))]
    trace = play(Implicit(Constant(0.3), Euclidean(), l1(0.1)), stream)
    x = np.full(N, 0.1)
    charged = 0.1 * (np.abs(trace.points[:-1]).sum() - T * np.abs(x).sum())
    assert trace.regret(x) + charged <= bound(trace, x).total
    assert bound(trace, x, "losses").void == "its bound is for regret with the penalty"
