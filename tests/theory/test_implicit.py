"""Implicit updates against their definition, and what composite updates keep."""

import numpy as np
import pytest

from forel import cvx
from forel.cvx import cvxpy, minimize
from forel.losses import (
    Absolute,
    Example,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Poisson,
    Quadratic,
    Quantile,
    Squared,
    SquaredHinge,
)
from forel.theory.algorithms import (
    FTRL,
    Implicit,
    fobos,
)
from forel.theory.analysis import (
    play,
)
from forel.theory.argmin import project
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.penalties import ElasticNet, l1, squared_l2
from forel.theory.rates import (
    Constant,
    DiagonalAdaGrad,
    MatrixAdaGrad,
    ScalarAdaGrad,
)
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Box, Reals, Simplex, l2_ball
from forel.theory.weights import EveryRound, Given
from forel.validation import Unsupported

MARGIN_LOSSES = [
    (Squared(), 1.5),
    (Absolute(), 0.3),
    (Huber(0.5), -2.0),
    (Quantile(0.2), 1.0),
    (Hinge(), 1),
    (SquaredHinge(), -1),
    (Logistic(), 0),
    (Poisson(), 3),
]


@pytest.mark.parametrize(("loss", "label"), MARGIN_LOSSES, ids=lambda p: str(p))
@pytest.mark.parametrize("region", [Reals(), Box(-0.2, 0.2), l2_ball(0.3)], ids=str)
@pytest.mark.parametrize("eta", [0.1, 100.0])
def test_implicit_updates_minimize_the_loss_itself(loss, label, region, eta):
    """The one-dimensional solve against a program for the solver, at a kink or not, with and without a set."""
    implicit = Implicit(Constant(eta), Euclidean(), l1(0.05), feasible=region)
    state = implicit.init(3)
    for a in np.random.default_rng(2).normal(size=(3, 3)):
        example = Example(loss, a, label)
        x = state.x
        state = implicit.update(state, example)

        def objective(u, x=x, example=example):
            return example(u) + 0.05 * np.abs(u).sum() + (u - x) @ (u - x) / (2 * eta)

        def expression(u, x=x, example=example):
            cp = cvxpy()
            return example.expression(u) + 0.05 * cp.norm1(u) + cp.sum_squares(u - x) / (2 * eta)

        solution = minimize(3, expression, region.constraints)
        assert objective(state.x) <= objective(solution) + 1e-7
        assert region.contains(state.x)


def test_implicit_updates_of_other_losses_go_to_the_solver():
    implicit = Implicit(Constant(1.0), Euclidean())
    state = implicit.update(implicit.init(2), Quadratic([2.0, -4.0]))
    assert np.allclose(state.x, [1.0, -2.0], atol=1e-6)
    with pytest.raises(Unsupported, match="proves no bound for implicit"):
        _ = play(implicit, [Quadratic([2.0, -4.0])]).added


@pytest.mark.parametrize("geometry", [Euclidean(), Diagonal(), FullMatrix(), Entropy()], ids=str)
@pytest.mark.parametrize(
    "loss", [Example(Logistic(), [1.0, -2.0, 0.5], 1), Quadratic([1.0, 0.5, -2.0])], ids=["margin", "other"]
)
def test_implicit_updates_follow_their_rate_their_weights_and_their_set(geometry, loss):
    rate = {"scalar": ScalarAdaGrad(0.7, 1.0), "diagonal": DiagonalAdaGrad(0.7, 1.0), "matrix": MatrixAdaGrad(0.7, 1.0)}
    penalty = squared_l2(0.3) if geometry in (FullMatrix(), Entropy()) else ElasticNet([0.3, 0.0, 0.1], 0.2)
    region = {FullMatrix(): l2_ball(0.5, [0.5, 0.2, 0.1]), Entropy(): Simplex()}.get(geometry, Box(0.1, 0.8))
    implicit = Implicit(rate[geometry.shape], geometry, penalty, Given([4.0, 1.0, 0.5]), region)
    state = implicit.init(3)
    others = [project(u, region) for u in (*np.eye(3), *-np.eye(3), *np.random.default_rng(0).normal(size=(5, 3)))]
    for t in range(1, 5):
        after = implicit.update(state, loss)
        near = Regularizer.around(geometry, implicit.rate.strength(after.rate), state.x)

        def objective(u, t=t, near=near):
            return loss(u) + implicit.weights(t) * penalty(u) + near(u)

        assert after.t == t
        assert region.contains(after.x)
        for u in others:
            for step in (1.0, 0.01):
                assert objective(after.x) <= objective(after.x + step * (u - after.x)) + 1e-8
        state = after


def test_implicit_updates_of_margins_need_no_solver(monkeypatch):
    monkeypatch.setattr(cvx, "available", lambda: False)
    implicit = Implicit(Constant(1.0), Euclidean())
    state = implicit.update(implicit.init(1), Example(Squared(), [1.0], 3.0))
    assert state.x == pytest.approx([1.5])


def test_composite_ftrl_keeps_all_penalties_where_mirror_descent_keeps_one():
    """After t rounds Native FTRL thresholds at tλ, Mirror Descent at λ (Figure 3)."""
    losses = [Linear([1.0 if t % 2 else -0.98]) for t in range(1, 40)]
    native = play(FTRL(Constant(0.1), Euclidean(), penalty=l1(0.05), weights=EveryRound()), losses)
    mirror = play(fobos(Constant(0.1), Euclidean(), l1(0.05)), losses)
    assert not native.points[25:].any()
    assert mirror.points[25:].any()
