"""The loss floor from the dual: below the optimum for every algorithm and stream, and attained somewhere."""

import functools
import math

import numpy as np
import pytest

from catalogue import ALGORITHMS, N
from forel.cvx import minimize
from forel.losses import (
    Absolute,
    Convex,
    EpsilonInsensitive,
    Example,
    Hinge,
    Huber,
    Linear,
    Poisson,
    Quadratic,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    Total,
)
from forel.theory.algorithms import FTRL, gradient_descent, greedy_projection, lazy_projection
from forel.theory.analysis import loss_floor, play
from forel.theory.analysis.adversaries import alternating, spikes, worst_linear
from forel.theory.analysis.dual import conjugate_along
from forel.theory.analysis.streams import classification, quadratics, random_linear, regression, switching
from forel.theory.geometries import Euclidean
from forel.theory.rates import Constant
from forel.theory.sets import Box, HalfSpace, Reals, Simplex, l1_ball, l2_ball

ROUNDS = 12
SETS = {
    "ball": l2_ball(1.0),
    "large ball": l2_ball(20.0),
    "box": Box(-0.5, 2.0),
    "simplex": Simplex(),
    "L1": l1_ball(3.0),
}


def examples(loss, labels, seed=3):
    rng = np.random.default_rng(seed)
    return tuple(Example(loss, a, rng.choice(labels)) for a in rng.normal(size=(ROUNDS, N)))


STREAMS = {
    "random": random_linear(N, ROUNDS),
    "switching": switching(N, ROUNDS, period=3),
    "quadratics": quadratics(N, ROUNDS),
    "classification": classification(N, ROUNDS),
    "regression": regression(N, ROUNDS),
    "absolute": examples(Absolute(), [-1.0, 0.0, 2.0]),
    "epsilon": examples(EpsilonInsensitive(0.3), [-1.0, 0.0, 2.0]),
    "huber": examples(Huber(0.5), [-1.0, 0.0, 2.0]),
    "quantile": examples(Quantile(0.2), [-1.0, 0.0, 2.0]),
    "hinge": examples(Hinge(), [-1.0, 1.0]),
    "squared hinge": examples(SquaredHinge(), [-1.0, 1.0]),
    "poisson": examples(Poisson(), [0.0, 1.0, 4.0]),
    "mixed": (*classification(N, 6), *random_linear(N, 3), *quadratics(N, 3)),
    "classes": tuple(
        Example(Softmax(2), a, y)
        for a, y in zip(np.random.default_rng(5).normal(size=(ROUNDS, N // 2)), [0, 1, 1] * 4, strict=True)
    ),
}
ADVERSARIES = {"worst": worst_linear(), "alternating": alternating(), "spikes": spikes(period=3)}


@functools.cache
def optimum(stream, region):
    """The smallest total loss in a set, by the solver."""
    total = Total.zero(N)
    for loss in STREAMS[stream]:
        total = total.plus(loss)
    return total(minimize(N, total.expression, SETS[region].constraints))


def rounding(trace, floor):
    return 1e-7 * (1 + abs(floor.energy) + abs(floor.support) + abs(floor.suffered))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_floor_is_below_the_optimum_for_every_algorithm(name, stream):
    try:
        trace = play(ALGORITHMS[name], STREAMS[stream], n=N)
    except ValueError:  # Follow-The-Leader has no leader on losses without curvature
        assert "leader" in name
        return
    regions = list(SETS) if name in ("gradient descent", "hedge", "AdaGrad FTRL-Proximal") else ["large ball", "box"]
    for region in regions:
        floors = {theta: loss_floor(trace, SETS[region], theta) for theta in (None, 1.0, 0.7)}
        slack = rounding(trace, floors[1.0])
        for floor in floors.values():
            if not floor.void:
                assert floor.total <= optimum(stream, region) + slack
                assert floor.regret >= trace.values.sum() - optimum(stream, region) - slack
        tangent = trace.values.sum() - trace.worst_regret(SETS[region], linearized=True)
        assert floors[1.0].total == pytest.approx(tangent, abs=slack)
        assert floors[None].total >= max(f.total for f in floors.values() if not f.void) - slack


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_floor_is_the_optimum_for_linear_losses(name, adversary):
    if "leader" in name:
        pytest.skip("linear losses have no leader")
    trace = play(ALGORITHMS[name], ADVERSARIES[adversary], rounds=ROUNDS, n=N)
    total = trace.gradients.sum(axis=0)
    corner = np.where(total > 0, -0.5, 2.0)  # of the box, where each coordinate is smallest
    assert loss_floor(trace, SETS["box"]).total == pytest.approx(total @ corner, abs=1e-9)
    assert loss_floor(trace, SETS["ball"]).total == pytest.approx(-np.linalg.norm(total), abs=1e-9)


@pytest.mark.parametrize("stream", ["classification", "regression", "quadratics", "huber", "classes"])
def test_the_floor_is_attained_where_the_optimum_is_played(stream):
    total = Total.zero(N)
    for loss in STREAMS[stream]:
        total = total.plus(loss)
    best = minimize(N, total.expression, SETS["ball"].constraints)
    trace = play(greedy_projection(1.0, Box(best, best)), STREAMS[stream], n=N)
    floor = loss_floor(trace, SETS["ball"])
    assert floor.total == pytest.approx(optimum(stream, "ball"), rel=1e-5)
    assert floor.regret == pytest.approx(0.0, abs=1e-4)


def test_logistic_floors_are_sums_of_entropies_and_positive_at_every_radius():
    trace = play(gradient_descent(0.1), classification(N, 200))
    slopes = [abs(f.loss.slope(f.features @ x, f.label)) for f, x in zip(trace.losses, trace.points, strict=False)]

    def entropy(p):
        return -p * math.log(p) - (1 - p) * math.log1p(-p)

    length = np.linalg.norm(trace.gradients.sum(axis=0))
    for radius in (1.0, 10.0, 100.0):
        for theta in (0.01, 0.4, 0.99):
            expected = sum(entropy(theta * a) for a in slopes) - theta * radius * length
            assert loss_floor(trace, l2_ball(radius), theta).total == pytest.approx(expected, rel=1e-9)
        best = loss_floor(trace, l2_ball(radius))
        assert best.total > 0
    assert loss_floor(trace, l2_ball(100.0), 1.0).total < 0 < best.theta < 0.1


def test_squared_floors_have_the_theta_of_the_closed_form():
    trace = play(gradient_descent(0.05), [Example(Squared(), a, 3.0) for a in np.eye(2)[[0, 1, 0, 1, 1]]])
    s = np.array([f.features @ x - 3.0 for f, x in zip(trace.losses, trace.points, strict=False)])
    length = np.linalg.norm(trace.gradients.sum(axis=0))
    # E(θ) = −Σ(θ²s²/2 + θ·3·s), so that the derivative vanishes at θ = −(3Σs + R‖G‖)/Σs²
    theta = -(3 * s.sum() + 0.5 * length) / (s @ s)
    assert 0 < theta < 1.5
    assert loss_floor(trace, l2_ball(0.5)).theta == pytest.approx(min(theta, 1.0), abs=1e-4)


@pytest.mark.parametrize("stream", STREAMS)
def test_conjugates_along_gradients_are_suprema(stream):
    """f⋆(θg) ≥ θg·u − f(u) at every u, with equality at θ = 1 and u = x."""
    rng = np.random.default_rng(0)
    for loss in STREAMS[stream][:4]:
        x = rng.normal(size=N)
        along, g = conjugate_along(loss, x), loss.subgradient(x)
        if along is None:
            assert isinstance(loss, Linear)
            continue
        assert along(1.0) == pytest.approx(g @ x - loss(x), rel=1e-9, abs=1e-9)
        for theta in (0.0, 0.3, 0.8):
            gaps = [along(theta) - (theta * g @ u - loss(u)) for u in 2 * rng.normal(size=(200, N))]
            assert min(gaps) >= -1e-9


def test_void_floors_have_a_reason_and_no_number():
    trace = play(gradient_descent(0.3), random_linear(N, 5))
    for region in (None, Reals(), HalfSpace(np.ones(N), 1.0)):
        floor = loss_floor(trace, region)
        assert str(floor) == "loss floor: void, because X is unbounded along the sum of the gradients"
        with pytest.raises(ValueError, match="it has no number"):
            floor.total  # noqa: B018
    # Losses that are bounded below have the floor of θ = 0 everywhere.
    assert loss_floor(play(gradient_descent(0.3), classification(N, 5))).total == 0.0
    with pytest.raises(ValueError, match=r"theta: got 1\.5, expected a number from 0 to 1"):
        loss_floor(trace, l2_ball(1.0), theta=1.5)


def test_losses_without_a_conjugate_keep_their_gradients():
    own = Convex(lambda x: float(np.abs(x).sum()), np.sign)
    plain, quadratic = [own, own], [Quadratic(np.full(N, 3.0)), Quadratic(np.full(N, 3.0))]
    trace = play(FTRL(Constant(0.3), Euclidean()), [Linear(np.ones(N)), *plain, *quadratic])
    floor, fixed = loss_floor(trace, l2_ball(1.0)), loss_floor(trace, l2_ball(1.0), 1.0)
    points = np.random.default_rng(0).normal(size=(500, N))
    smallest = min(sum(f(x) for f in trace.losses) for x in points / np.linalg.norm(points, axis=1)[:, None])
    assert fixed.total <= floor.total <= smallest
    assert floor.theta < 1


def test_the_sentence_is_rounded_down():
    trace = play(lazy_projection(0.3, l2_ball(1.0)), quadratics(N, 30))
    floor = loss_floor(trace)
    printed = float(str(floor).split("at least ")[1].split(" ")[0])
    assert printed <= floor.total <= printed + 1e-4 * abs(printed)
