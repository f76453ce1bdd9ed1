"""Rates count only curvature that the objective keeps, and their strengths never decrease."""

import math
from typing import ClassVar

import numpy as np
import pytest

from forel.losses import Linear, Quadratic
from forel.theory.algorithms import (
    FTRL,
    Exact,
    Implicit,
    Linearized,
    MirrorDescent,
    QuadraticBound,
    adagrad_ftrl_proximal,
    as_ftrl_proximal,
    curvature_adaptive,
)
from forel.theory.analysis import bound, play, theorem_2
from forel.theory.geometries import Diagonal, Euclidean, FullMatrix
from forel.theory.norms import L2
from forel.theory.rates import CurvatureAdaptive, MatrixAdaGrad, increment, strength_increment
from forel.theory.sets import Box, l2_ball
from forel.validation import Unsupported

BALL = l2_ball(1.0)


class Scripted:
    """A rate with given strengths, which records the curvature it receives."""

    gradient_bound: ClassVar[float] = math.inf
    gradient_norm: ClassVar = L2

    def __init__(self, *strengths):
        self.strengths = [np.array(s, dtype=float) if np.ndim(s) else s for s in strengths]
        self.shape = ("scalar", "diagonal", "matrix")[np.ndim(strengths[0])]
        self.curvatures = []

    def init(self, n):
        return 0

    def update(self, state, g, curvature=0.0):
        self.curvatures.append(curvature)
        return min(state + 1, len(self.strengths) - 1)

    def strength(self, state):
        return self.strengths[state]


def curved(t, x):
    return Quadratic(np.random.default_rng([3, t]).normal(size=x.size) / 2)


def test_a_radius_a_coordinate_gives_a_box_of_those_radii():
    """Against the coordinates' own radii the documented bound holds; in a box of the largest radius it does not."""
    radius = np.array([0.1, 10.0])
    algorithm = adagrad_ftrl_proximal(radius)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=200)
    for losses in (
        [Linear([s, 0.0]) for s in signs],
        [Linear([1.0 if t < 100 else -1.0, 0.01 * s]) for t, s in enumerate(signs)],
    ):
        trace = play(algorithm, losses)
        assert (np.abs(trace.points) <= radius).all()
        documented = 2 * math.sqrt(2) * float(radius @ np.sqrt((trace.gradients**2).sum(axis=0)))
        assert trace.worst_regret(Box(-radius, radius)) <= documented
    with pytest.raises(ValueError, match=r"radius: got -1\.0 at index 1, expected positive numbers"):
        adagrad_ftrl_proximal([1.0, -1.0])
    with pytest.raises(ValueError, match="z: got shape"):
        adagrad_ftrl_proximal([1.0, 2.0]).init(3)


@pytest.mark.parametrize(
    "make",
    [
        lambda rate: FTRL(rate, Euclidean(), center="played"),
        lambda rate: FTRL(rate, Euclidean(), "played", Linearized(), feasible=BALL),
        lambda rate: MirrorDescent(rate, Euclidean()),
        lambda rate: as_ftrl_proximal(MirrorDescent(rate, Euclidean())),
        lambda rate: Implicit(rate, Euclidean()),
    ],
    ids=["FTRL", "FTRL over a ball", "Mirror Descent", "as FTRL-Proximal", "implicit"],
)
def test_a_rate_that_needs_curvature_is_refused_where_losses_are_linearized(make):
    with pytest.raises(
        Unsupported, match=r"CurvatureAdaptive\(diameter=2.0\) .* linearizes them; use curvature_adaptive\(diameter\)"
    ):
        make(CurvatureAdaptive(2.0))
    rate = Scripted(1.0)  # a user-defined rate receives only the curvature that is kept, which is none
    algorithm = make(rate)
    algorithm.update(algorithm.init(2), Quadratic([1.0, 2.0], 3.0))
    assert rate.curvatures == [0.0]


@pytest.mark.parametrize("surrogate", [QuadraticBound(), Exact()], ids=str)
def test_curvature_that_is_kept_is_counted_and_regret_is_logarithmic(surrogate):
    algorithm = FTRL(CurvatureAdaptive(2.0), Euclidean(), "played", surrogate, feasible=BALL)
    assert algorithm.update(algorithm.init(2), Quadratic([1.0, 2.0], 3.0)).rate.given == 3.0
    trace = play(algorithm, curved, rounds=500, n=2)
    largest = max(L2(g) for g in trace.gradients)
    assert trace.worst_regret(BALL) <= 2 * (largest**2 / 2 * (1 + math.log(500)) + 2 * largest)


def test_the_named_algorithm_names_its_own_argument():
    with pytest.raises(ValueError, match="diameter: got -1, expected a positive number"):
        curvature_adaptive(-1)


FALLING = {
    "scalar": (Euclidean(), [4.0, 4.0, 1.0]),
    "diagonal": (Diagonal(), [[4.0, 4.0], [4.0, 5.0], [4.0, 1.0]]),
    "matrix": (FullMatrix(), [4 * np.eye(2), 5 * np.eye(2), np.diag([6.0, 1.0])]),
    "matrix, rotated": (FullMatrix(), [[[4.0, 0], [0, 4]], [[4.0, 3.0], [3.0, 4.0]]]),
}


@pytest.mark.parametrize("make", [FTRL, MirrorDescent, lambda *parts: as_ftrl_proximal(MirrorDescent(*parts))])
@pytest.mark.parametrize("name", FALLING)
def test_a_strength_that_falls_has_no_bound(name, make):
    """It can be played, and its regret measured; nothing is proved of it."""
    geometry, strengths = FALLING[name]
    trace = play(make(Scripted(*strengths), geometry), [Linear([1.0, -1.0])] * 3)
    assert math.isfinite(trace.regret(np.array([-1.0, 1.0])))
    with pytest.raises(ValueError, match=r"rate: got a strength 1/η that falls by [34].* never falls"):
        bound(trace, np.array([-1.0, 1.0]))


def test_growth_is_the_difference_but_for_rounding():
    assert strength_increment(1.0, 3.0) == 2.0
    assert strength_increment(1.0, 1.0 - 1e-15) == 0.0
    assert strength_increment(np.array([1.0, 2.0]), np.array([1.5, 2.0])).tolist() == [0.5, 0.0]
    rng = np.random.default_rng(1)
    for scale in (1e-8, 1.0, 1e8):
        rate = MatrixAdaGrad(1.0)
        state, total = rate.init(4), np.zeros((4, 4))
        for g in rng.normal(size=(30, 4)) * 10 ** rng.uniform(-6, 6, size=(30, 1)) * scale:
            after = rate.update(state, g)
            total, state = total + increment(rate, state, after), after
        assert np.allclose(total, rate.strength(state), rtol=1e-9, atol=1e-10 * np.max(total))


def test_theorem_2_measures_with_a_strength_that_grew():
    trace = play(FTRL(Scripted(1.0, 2.0, 4.0), Euclidean(), "played"), [Linear([1.0]), Linear([1.0])])
    # r_0 + r_1 + r_2 around 0, 0 and x_2 = −1/2, and ½·1/2 + ½·1/4
    assert theorem_2(trace, np.array([-1.0])).total == pytest.approx(0.5 + 0.5 + 0.25 + 0.25 + 0.125)
