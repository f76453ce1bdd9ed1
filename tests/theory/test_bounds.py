"""Bounds of the theorems: norms, indicators and simplices."""

import numpy as np
import pytest

from forel import cvx
from forel.losses import Convex, Example, Linear, Logistic, Quadratic, Total
from forel.theory.algorithms import (
    FTRL,
    Exact,
    MirrorDescent,
)
from forel.theory.analysis import (
    bound,
    nonadaptive_bound,
    play,
    theorem_1,
)
from forel.theory.analysis.streams import random_linear
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.norms import LINF
from forel.theory.penalties import Indicator, l1
from forel.theory.rates import (
    Constant,
    DiagonalAdaGrad,
    InverseSqrt,
    MatrixAdaGrad,
    ScalarAdaGrad,
)
from forel.theory.sets import Box, Simplex
from forel.theory.weights import EveryRound, Given, Once
from tests.theory.bound_games import BALL, CUBE, SIMPLEX, TUNED, T


def test_a_comparator_excluded_by_an_indicator_voids_the_bound_for_every_weight():
    for weights in (Once(), EveryRound(), Given([0.0])):
        for rounds in (1, T):
            descent = FTRL(TUNED, Euclidean(), penalty=Indicator(Box(-0.1, 0.1)), weights=weights)
            trace = play(descent, [Linear([1.0])] * rounds)
            for theorem in (theorem_1, nonadaptive_bound, bound):
                assert theorem(trace, np.array([-1.0])).void == "the comparator lies outside X"
                assert theorem(trace, np.array([-0.1])).total >= trace.regret(np.array([-0.1]))


@pytest.mark.parametrize("total", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("make", [FTRL, MirrorDescent], ids=lambda make: make.__name__)
def test_entropic_bounds_hold_on_a_simplex_of_any_total(make, total):
    """With the total, points and comparator grow and strong convexity falls: both terms of the bound are multiples."""
    algorithm = make(Constant(1.0), Entropy(), feasible=Simplex(total))
    trace = play(algorithm, lambda t, x: Linear([1.0, 0.0] if x[0] >= x[1] else [0.0, 1.0]), rounds=50, n=2)
    unit = make(Constant(1.0), Entropy(), feasible=SIMPLEX)
    same = play(unit, trace.losses)
    for corner in np.eye(2):
        limit = bound(trace, total * corner, "losses").total
        assert trace.regret(total * corner) <= limit
        assert limit == pytest.approx(total * bound(same, corner, "losses").total)


@pytest.mark.parametrize("geometry", [Euclidean(), Diagonal(), FullMatrix(), Entropy()], ids=str)
def test_gradients_are_measured_with_the_strength_before_and_after_and_the_curvature_so_far(geometry):
    """‖g_t‖² in the dual norms of r_{0:t−1} + f_{1:t} and of r_{0:t} + f_{1:t}; L2 curvature is none in L1."""
    rate = {"scalar": ScalarAdaGrad(1.0, 1.0), "diagonal": DiagonalAdaGrad(1.0, 1.0), "matrix": MatrixAdaGrad(1.0, 1.0)}
    region = SIMPLEX if geometry == Entropy() else CUBE if geometry != FullMatrix() else BALL
    losses = [Linear([1.0, -1.0]), Quadratic([3.0, 1.0], 0.5), Linear([0.0, 2.0]), Quadratic([-2.0, 1.0], 2.0)]
    trace = play(FTRL(rate[geometry.shape], geometry, surrogate=Exact(), feasible=region), losses)
    delayed, present = trace.squared_norms
    for t, curvature in enumerate([0.0, 0.5, 0.5, 2.5]):
        g = trace.gradients[t]
        for found, state in ((delayed, trace.states[t]), (present, trace.states[t + 1])):
            if geometry == Entropy():
                expected = LINF(g) ** 2 / state.strength
            else:
                matrix = state.strength if geometry == FullMatrix() else np.eye(2) * state.strength
                expected = g @ np.linalg.solve(matrix + curvature * np.eye(2), g)
            assert found[t] == pytest.approx(expected)


def test_a_weighted_sum_of_losses_is_the_sum_of_weighted_values():
    rng = np.random.default_rng(3)
    logistic, own = Example(Logistic(), rng.normal(size=3), 1), Convex(lambda x: float(x @ x), lambda x: 2 * x, 2.0)
    terms = [
        (0.5, Linear(rng.normal(size=3), 0.7)),
        (2.0, logistic),
        (3.0, Quadratic(rng.normal(size=3), 1.5, g=rng.normal(size=3), constant=-0.4)),
        (0.25, own),
        (0.2, Quadratic(rng.normal(size=3), 0.5, constant=2.0)),
        (1.5, logistic),
        (4.0, Linear(rng.normal(size=3), -0.1)),
    ]
    total = Total.zero(3)
    for weight, loss in terms:
        total = total.plus(loss, weight)
    assert not total.quadratic
    assert [loss for _, loss in total.others] == [logistic, own]
    assert total.strong_convexity == pytest.approx(3.0 * 1.5 + 0.25 * 2.0 + 0.2 * 0.5)
    for x in rng.normal(size=(5, 3)):
        assert total(x) == pytest.approx(sum(weight * loss(x) for weight, loss in terms))
        assert np.allclose(total.subgradient(x), sum(weight * loss.subgradient(x) for weight, loss in terms))
        variable = cvx.cvxpy().Variable(3, value=x)
        without = total._replace(others=total.others[:1])
        assert without.expression(variable).value == pytest.approx(total(x) - 0.25 * own(x))


def test_theorem_1_charges_the_comparator_for_the_penalties_of_all_rounds_but_the_last():
    """Against the losses, written out for every horizon: ‖x‖²√T/(2c) + (T − 1)λ‖x‖₁ + (c/2)Σ‖g‖²/√t."""
    scale, size, x = 0.5, 0.3, np.array([0.4, -0.2, 0.0])
    rda = FTRL(InverseSqrt(scale, 1.0), Euclidean(), penalty=l1(size), weights=EveryRound())
    trace, t = play(rda, random_linear(3, 12)), np.arange(1, 13)
    spent = np.cumsum(scale / 2 * np.sum(trace.gradients**2, axis=1) / np.sqrt(t))
    expected = x @ x * np.sqrt(t) / (2 * scale) + (t - 1) * size * np.abs(x).sum() + spent
    np.testing.assert_allclose(theorem_1(trace, x, "losses").over_rounds, expected, rtol=1e-12)
