"""Exact worst cases, from semidefinite programs, against the survey's bounds and our own algorithms.

The regret of an algorithm whose points are linear in the gradients is a quadratic form in x* and g_1, …, g_T, so its
largest value over ‖x*‖ ≤ R and ‖g_t‖ ≤ G, in any dimension, is that of a semidefinite program in their Gram matrix
(Drori and Teboulle, 2014). The factors of the best Gram matrix are the worst case itself, which our algorithms then
have to play. PEPit finds the same numbers on its own, from losses that are any convex functions.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

from forel import cvx
from forel.losses import Linear, Quadratic
from forel.theory.algorithms import FTRL, MirrorDescent, follow_the_leader
from forel.theory.analysis import play
from forel.theory.geometries import Euclidean
from forel.theory.rates import Constant, dual_averaging_rate, tuned_rate
from forel.theory.sets import l2_ball

RADIUS, LIPSCHITZ = 1.5, 2.0
ROUNDS = (1, 2, 3, 4)
# What the solver reaches by itself is 1e-8; a wrong constant in a bound or an algorithm shows in the first digits.
TOLERANCE = 1e-5
# The tuned rate, one too small for the bound to be attained within so few rounds, and a larger one.
FACTORS = (0.3, 1.0, 3.0)

needs_solver = pytest.mark.skipif(not cvx.available(), reason=f"needs a solver: {cvx.REMEDY}")


class WorstCase(NamedTuple):
    regret: float
    comparator: np.ndarray
    gradients: np.ndarray


def etas(rate, rounds):
    """η_0, …, η_{T−1} of a rate that depends only on the round, with which x_1, …, x_T are computed."""
    state, found = rate.init(1), []
    for _ in range(rounds):
        found.append(1 / rate.strength(state))
        state = rate.update(state, np.zeros(1))
    return found


def worst_case(rates):
    """The largest regret of x_{t+1} = −η_t g_{1:t} with these η_0, …, η_{T−1}, and who causes it."""
    cp, rounds = cvx.cvxpy(), len(rates)
    # Entry (i, j) of the Gram matrix is v_i·v_j, with v_0 = x* and v_t = g_t.
    form = np.zeros((rounds + 1, rounds + 1))
    for t, eta in enumerate(rates, start=1):
        form[t, 1:t] -= eta  # g_t·x_t = −η_{t−1} g_t·g_{1:t−1}
        form[t, 0] -= 1.0
    gram = cp.Variable((rounds + 1, rounds + 1), PSD=True)
    squares = np.array([RADIUS**2, *[LIPSCHITZ**2] * rounds])
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(form, gram))), [cp.diag(gram) <= squares])
    values, vectors = np.linalg.eigh(cvx.solve(problem, gram))
    factors = vectors * np.sqrt(values.clip(0.0))
    return WorstCase(float(problem.value), factors[0], factors[1:])


def constant_bound(eta, rounds):
    return RADIUS**2 / (2 * eta) + eta * rounds * LIPSCHITZ**2 / 2


def centered_bound(rates):
    return RADIUS**2 / (2 * rates[-1]) + sum(rates) * LIPSCHITZ**2 / 2


def strongly_convex_bound(rounds):
    return sum(LIPSCHITZ**2 / (2 * t) for t in range(1, rounds + 1))


def check_played(algorithm, case):
    """Our algorithm, on the gradients of the worst case, has its regret; no comparator in the ball is worse."""
    assert np.linalg.norm(case.comparator) <= RADIUS * (1 + TOLERANCE)
    assert np.linalg.norm(case.gradients, axis=1).max() <= LIPSCHITZ * (1 + TOLERANCE)
    trace = play(algorithm, [Linear(g) for g in case.gradients])
    assert trace.regret(case.comparator) == pytest.approx(case.regret, rel=TOLERANCE)
    assert trace.worst_regret(l2_ball(RADIUS)) == pytest.approx(case.regret, rel=TOLERANCE)


@needs_solver
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_constant_rate_attains_its_bound(rounds, factor):
    eta = factor * tuned_rate(RADIUS, LIPSCHITZ, rounds).eta
    case, bound = worst_case([eta] * rounds), constant_bound(eta, rounds)
    # Regret against the worst x* is R‖g_{1:T}‖ − ½η‖g_{1:T}‖² + ½ηΣ‖g_t‖², largest where all ‖g_t‖ = G and ‖g_{1:T}‖ is
    # as near R/η as T such gradients allow: one can only be G long, more have any length from 0 to TG.
    length = min(max(RADIUS / eta, LIPSCHITZ * (rounds == 1)), rounds * LIPSCHITZ)
    exact = RADIUS * length - eta * length**2 / 2 + eta * rounds * LIPSCHITZ**2 / 2
    assert case.regret == pytest.approx(exact, rel=TOLERANCE)
    assert case.regret <= bound * (1 + TOLERANCE)
    assert (case.regret == pytest.approx(bound, rel=TOLERANCE)) == (length == pytest.approx(RADIUS / eta))
    check_played(FTRL(Constant(eta), Euclidean()), case)
    check_played(FTRL(Constant(eta), Euclidean(), center="played"), case)
    check_played(MirrorDescent(Constant(eta), Euclidean()), case)


@needs_solver
@pytest.mark.parametrize("rounds", ROUNDS)
def test_tuned_rate_attains_the_root_of_the_horizon(rounds):
    rate = tuned_rate(RADIUS, LIPSCHITZ, rounds)
    case = worst_case(etas(rate, rounds))
    assert case.regret == pytest.approx(RADIUS * LIPSCHITZ * math.sqrt(rounds), rel=TOLERANCE)
    check_played(FTRL(rate, Euclidean()), case)


@needs_solver
@pytest.mark.parametrize("rounds", [*ROUNDS, 12])
def test_the_bound_of_dual_averaging_is_nearly_tight(rounds):
    rate = dual_averaging_rate(RADIUS, LIPSCHITZ)
    rates = etas(rate, rounds)
    case, bound = worst_case(rates), centered_bound(rates)
    # For equality g_{1:t} would have to be 0 in all rounds but the last, and then R/η_{T−1} > G long.
    assert 0.9 * bound < case.regret < 0.96 * bound
    assert bound <= math.sqrt(2) * RADIUS * LIPSCHITZ * math.sqrt(rounds)
    check_played(FTRL(rate, Euclidean()), case)


@needs_solver
@pytest.mark.parametrize(("rounds", "expected"), [(1, 1.0), (2, 1.5)])
def test_dual_averaging_loses_most_to_equal_gradients_at_first(rounds, expected):
    # All g_t = −G(1, 0, …) and x* = R(1, 0, …): Σ g_t·x_t = −η_1G² = −RG/2 in round 2, and −g_{1:T}·x* = TRG.
    case = worst_case(etas(dual_averaging_rate(RADIUS, LIPSCHITZ), rounds))
    assert case.regret == pytest.approx(expected * RADIUS * LIPSCHITZ, rel=TOLERANCE)


@pytest.fixture(scope="module")
def pepit():
    pytest.importorskip("PEPit.functions")
    return pytest.importorskip("PEPit")


def solved(problem):
    return problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)


def online(pepit, rates):
    """PEPit's problem of x_{t+1} = −η_t g_{1:t} against T convex losses, each with its own gradient at x_t."""
    problem = pepit.PEP()
    comparator, regret, total = problem.set_initial_point(), 0, pepit.null_point
    problem.add_constraint(comparator**2 <= RADIUS**2)
    for eta in rates:
        loss = problem.declare_function(pepit.functions.ConvexFunction)
        point = -eta * total
        g, value = loss.oracle(point)
        problem.add_constraint(g**2 <= LIPSCHITZ**2)
        regret += value - loss(comparator)
        total = total + g
    problem.set_performance_metric(regret)
    return problem


@needs_solver
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("name", ["tuned", "dual averaging"])
def test_pepit_finds_linear_losses_worst(pepit, name, rounds):
    rate = tuned_rate(RADIUS, LIPSCHITZ, rounds) if name == "tuned" else dual_averaging_rate(RADIUS, LIPSCHITZ)
    rates = etas(rate, rounds)
    assert solved(online(pepit, rates)) == pytest.approx(worst_case(rates).regret, rel=TOLERANCE)


@needs_solver
@pytest.mark.parametrize("rounds", ROUNDS)
def test_pepit_finds_the_leaders_bound_attained(pepit, rounds):
    problem = pepit.PEP()
    point, losses, regret = problem.set_initial_point(), [], 0
    comparator = pepit.Point()
    for _ in range(rounds):
        loss = problem.declare_function(pepit.functions.StronglyConvexFunction, mu=1.0)
        g, value = loss.oracle(point)
        problem.add_constraint(g**2 <= LIPSCHITZ**2)
        regret += value - loss(comparator)
        losses.append(loss)
        point = sum(losses[1:], losses[0]).stationary_point()
    problem.set_performance_metric(regret)
    assert solved(problem) == pytest.approx(strongly_convex_bound(rounds), rel=TOLERANCE)


@pytest.mark.parametrize("rounds", [*ROUNDS, 50])
def test_leader_of_quadratics_attains_its_bound(rounds):
    # Quadratics with gradients of length G at x_t, whatever their directions, and the leader itself as comparator.
    rng = np.random.default_rng(rounds)

    def adversary(t, x):
        direction = rng.normal(size=x.size)
        return Quadratic(x, g=LIPSCHITZ * direction / np.linalg.norm(direction))

    trace = play(follow_the_leader(), adversary, rounds, n=3)
    assert trace.regret(trace.points[-1]) == pytest.approx(strongly_convex_bound(rounds), rel=1e-12)
