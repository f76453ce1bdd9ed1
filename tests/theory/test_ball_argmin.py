"""The argmin over an L2 ball where the objective is degenerate: flat, tied, or badly scaled."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.cvx import cvxpy, solve
from forel.losses import Example, Linear, Logistic, Squared
from forel.theory.algorithms import (
    FTRL,
    Implicit,
    MirrorDescent,
    adagrad_ftrl_proximal,
    ftrl_proximal,
    matrix_ftrl_proximal,
)
from forel.theory.argmin import Argmin, project
from forel.theory.geometries import Diagonal, Euclidean, FullMatrix
from forel.theory.penalties import ElasticNet
from forel.theory.rates import Constant
from forel.theory.sets import HalfSpace, l2_ball

CENTER = np.array([1.0, -2.0, 0.5])


def nearest_minimizer(z, curvature, threshold, center, radius):
    """The minimizer nearest 0, by the solver: a small ridge on coordinates that are flat selects it among ties."""
    cp = cvxpy()
    x = cp.Variable(len(z))
    ridge = np.where((curvature == 0) & (np.abs(z) <= threshold), 1e-4, 0.0)
    quadratic = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(curvature + ridge), x))
    objective = z @ x + quadratic + cp.sum(cp.multiply(np.broadcast_to(threshold, len(z)), cp.abs(x)))
    return solve(cp.Problem(cp.Minimize(objective), [cp.norm(x - center) <= radius]), x)


DEGENERATE = {
    "nothing seen": ([0, 0, 0], [0, 0, 0], 0.0, 0.5),
    "one coordinate seen": ([0.3, 0, 0], [0.3, 0, 0], 0.0, 0.5),
    "one coordinate pulled far": ([30.0, 0, 0], [0.3, 0, 0], 0.0, 0.5),
    "strength without a slope": ([0, 0, 0], [0.3, 0, 0], 0.0, 0.5),
    "slope without strength": ([0.3, 0, 0], [0, 0, 0], 0.0, 0.5),
    "slopes within the threshold": ([0.3, 0.1, -0.2], [0, 0, 0], 0.4, 0.5),
    "slopes at the threshold, towards the center": ([-0.4, 0.4, -0.4], [0, 0, 0], 0.4, 0.5),
    "slopes at the threshold, away from it": ([0.4, -0.4, 0.4], [0, 0, 0], 0.4, 0.5),
    "slopes on both sides of the threshold": ([0.4, -0.5, 0.1], [0, 0, 1.0], 0.4, 0.5),
    "one threshold a coordinate": ([0.0, 0.3, 0.0], [0, 0, 2.0], np.array([0.0, 0.3, 0.1]), 0.5),
    "a ball that touches 0": ([0, 0, 0], [0, 0, 0], 0.0, float(np.linalg.norm(CENTER))),
    "a ball just short of 0": ([0, 0, 0], [0, 1.0, 0], 0.0, float(np.linalg.norm(CENTER)) * (1 - 1e-9)),
    "a tiny ball": ([0, 0.1, 0], [0, 1.0, 0], 0.0, 1e-6),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_a_flat_objective_has_its_minimum_nearest_0(name):
    z, curvature, threshold, radius = DEGENERATE[name]
    z, curvature = np.array(z, dtype=float), np.array(curvature, dtype=float)
    region = l2_ball(radius, CENTER)
    x = Argmin(Diagonal(), ElasticNet(threshold), region)(z, curvature)
    assert region.contains(x, 1e-12)
    expected = nearest_minimizer(z, curvature, threshold, CENTER, radius)
    assert np.allclose(x, expected, atol=3e-3 * radius), (x, expected)


@pytest.mark.parametrize("name", [name for name, case in DEGENERATE.items() if np.all(case[2] == 0)])
def test_a_rotation_changes_nothing(name):
    z, curvature, _, radius = DEGENERATE[name]
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    z, matrix = basis @ z, basis @ np.diag(curvature) @ basis.T
    x = Argmin(FullMatrix(), feasible=l2_ball(radius, basis @ CENTER))(z, (matrix + matrix.T) / 2)
    straight = Argmin(Diagonal(), feasible=l2_ball(radius, CENTER))(basis.T @ z, np.array(curvature, dtype=float))
    assert np.allclose(basis.T @ x, straight, atol=1e-9)


numbers = st.one_of(st.just(0.0), st.floats(-3, 3), st.sampled_from([1e-200, -1e-12, 1e-12, 1e6, -1e9]))
sizes = st.one_of(st.just(0.0), st.floats(0, 3), st.sampled_from([1e-200, 1e-12, 1e6]))


@settings(max_examples=400, deadline=None)
@given(
    z=st.tuples(numbers, numbers, numbers),
    curvature=st.tuples(sizes, sizes, sizes),
    threshold=st.tuples(sizes, sizes, sizes),
    center=st.tuples(numbers, numbers, numbers),
    radius=st.sampled_from([1e-6, 0.3, 1.0, 2.5, 1e4]),
)
def test_every_input_has_a_feasible_point_that_no_other_beats(z, curvature, threshold, center, radius):
    """Optimality without a solver: first-order conditions along directions to many feasible points."""
    z, curvature, threshold, center = (np.array(v) for v in (z, curvature, threshold, center))
    region = l2_ball(radius, center)
    x = Argmin(Diagonal(), ElasticNet(threshold), region)(z, curvature)
    assert region.contains(x, 1e-12)
    rng = np.random.default_rng(0)
    others = [project(center + radius * v, region) for v in (*rng.normal(size=(12, 3)), *np.eye(3), *-np.eye(3))]
    slope = z + curvature * x
    for other in (*others, center, project(np.zeros(3), region)):
        step = other - x
        # the directional derivative: at 0 the absolute value rises both ways
        rise = slope @ step + threshold @ np.where(x == 0, np.abs(step), np.sign(x) * step)
        # x itself is known to a rounding of its center's size
        size = float(np.sum(np.abs(z) + curvature * (np.abs(x) + radius) + threshold))
        assert rise >= -1e-12 * (np.abs(center).max() + radius) * size, (x, other, rise)


@pytest.mark.parametrize(
    "make", [adagrad_ftrl_proximal, matrix_ftrl_proximal, lambda r, feasible: ftrl_proximal(r, 1.0, feasible)]
)
def test_algorithms_over_a_ball_without_0_survive_gradients_of_zero(make):
    """The first gradient is zero, then they come one coordinate at a time."""
    region = l2_ball(0.5, CENTER)
    algorithm = make(3.0, feasible=region)
    state = algorithm.init(3)
    first = algorithm.play(state)
    assert np.allclose(first, CENTER * (1 - 0.5 / np.linalg.norm(CENTER)))
    for g in (np.zeros(3), np.zeros(3), np.eye(3)[0], np.zeros(3), np.eye(3)[1], -np.eye(3)[2]):
        state = algorithm.update(state, Linear(g))
        assert region.contains(algorithm.play(state), 1e-12)


def test_a_slope_too_small_to_divide_by_still_has_a_direction():
    x = Argmin(Euclidean(), feasible=l2_ball(2.0))(np.array([3e-310, -4e-310]), 0.0)
    assert np.allclose(x, [-1.2, 1.6], rtol=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    z=st.tuples(numbers, numbers, numbers),
    curvature=st.tuples(*[st.floats(1e-6, 1e3)] * 3),
    threshold=st.tuples(sizes, sizes, sizes),
    offset=st.sampled_from([-1e3, -1.0, -1e-9, 0.0, 1e-9, 1.0]),
)
def test_every_half_space_has_its_point(z, curvature, threshold, offset):
    z, curvature, threshold = (np.array(v) for v in (z, curvature, threshold))
    normal = np.array([1.0, -2.0, 0.5])
    x = Argmin(Diagonal(), ElasticNet(threshold), HalfSpace(normal, offset))(z, curvature)
    rounding = 1e-12 * (abs(offset) + np.abs(normal) @ ((np.abs(z) + threshold) / curvature))
    assert normal @ x <= offset + rounding


@settings(max_examples=300, deadline=None)
@given(
    features=st.tuples(*[st.sampled_from([0.0, 1.0, -3.0, 1e-9, 1e8, -1e8, 0.1])] * 3),
    start=st.tuples(*[st.sampled_from([0.0, 0.3, -1e8, 1e8, 7.0])] * 3),
    eta=st.sampled_from([1e-12, 1e-3, 1.0, 1e6]),
    loss=st.sampled_from([(Squared(), 0.7), (Logistic(), 1), (Logistic(), 0)]),
)
def test_implicit_updates_never_lose_their_bracket(features, start, eta, loss):
    """Cancellation in a·x may make the loss look steeper after the step than before it."""
    implicit = Implicit(Constant(eta), Euclidean())
    mirror = MirrorDescent(Constant(eta), Euclidean())
    state = mirror.update(mirror.init(3), Linear(-np.array(start) / eta))
    x = implicit.play(implicit.update(state, Example(loss[0], features, loss[1])))
    assert np.isfinite(x).all()
    assert math.isfinite(loss[0](np.array(features) @ x, loss[1]))


def test_centered_and_proximal_ftrl_have_the_same_first_point():
    for proximal in (False, True):
        algorithm = FTRL(Constant(1.0), Euclidean(), "played" if proximal else "first", feasible=l2_ball(0.5, CENTER))
        state = algorithm.init(3)
        after = algorithm.update(state, Linear(np.zeros(3)))
        assert np.allclose(algorithm.play(after), algorithm.play(state), atol=1e-15)
