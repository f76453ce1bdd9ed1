"""Losses as functions of the point, and their lower bounds."""

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.losses import (
    Convex,
    Example,
    Hinge,
    Linear,
    Logistic,
    Quadratic,
    Softmax,
    Squared,
    linear_bound,
    quadratic_bound,
)
from forel.validation import Unsupported
from tests.losses.cases import CASES

FEATURES = np.array([0.5, -1.25, 2.0])
EXAMPLES = {name: Example(case.loss, FEATURES, case.labels[1]) for name, case in CASES.items()}
LOSSES = {
    **EXAMPLES,
    "linear": Linear([1.0, -2.0, 0.5], constant=3.0),
    "quadratic": Quadratic([1.0, 0.0, -1.0], curvature=2.0, g=[0.5, 0.0, 1.0], constant=-1.0),
    "convex": Convex(
        lambda x: float(np.sum(np.abs(x)) + x @ x),
        lambda x: np.sign(x) + 2 * x,
        strong_convexity=2.0,
        expression=lambda x: cp.norm1(x) + cp.sum_squares(x),
    ),
    "one dimension": Example(Squared(), [-1.5], 2.0),
    "multiclass": Example(Softmax(3), [1.0, -0.5], 2),
}
DIMENSION = {"one dimension": 1, "multiclass": 6}
every_loss = pytest.mark.parametrize(("name", "loss"), LOSSES.items(), ids=LOSSES)
entries = st.floats(-3, 3)


@every_loss
def test_subgradient_matches_finite_differences(name: str, loss: Any) -> None:
    n = DIMENSION.get(name, 3)
    for x in np.random.default_rng(3).normal(size=(5, n)):
        steps = 1e-6 * np.eye(n)
        slopes = [(loss(x + step) - loss(x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(loss.subgradient(x), slopes, rtol=1e-6, atol=1e-7)
        assert isinstance(loss(x), float)
        assert loss.subgradient(x).shape == (n,)


@every_loss
def test_loss_expression_is_the_loss(name: str, loss: Any) -> None:
    n = DIMENSION.get(name, 3)
    for x in np.random.default_rng(4).normal(size=(3, n)):
        assert float(loss.expression(cp.Constant(x)).value) == pytest.approx(loss(x), rel=1e-12)
    assert loss.expression(cp.Variable(n)).is_convex()


@every_loss
@given(data=st.data())
def test_linear_bound_is_below_and_tight(name: str, loss: Any, data: st.DataObject) -> None:
    n = DIMENSION.get(name, 3)
    x, u = (np.array(data.draw(st.lists(entries, min_size=n, max_size=n))) for _ in range(2))
    bound = linear_bound(loss, x)
    # Poisson's margins reach 11 here, so values and gradients reach 1e5.
    slack = 1e-13 * (1 + abs(loss(x)) + 20 * np.sum(np.abs(bound.g)))
    assert isinstance(bound, Linear)
    assert bound(x) == pytest.approx(loss(x), abs=slack)
    assert bound(u) <= loss(u) + slack + 1e-13 * abs(loss(u))
    np.testing.assert_array_equal(bound.subgradient(u), loss.subgradient(x))


@pytest.mark.parametrize("name", ["quadratic", "convex", "one dimension"])
@given(data=st.data())
def test_quadratic_bound_is_below_and_tight(name: str, data: st.DataObject) -> None:
    loss: Any = LOSSES[name]
    n = DIMENSION.get(name, 3)
    x, u = (np.array(data.draw(st.lists(entries, min_size=n, max_size=n))) for _ in range(2))
    bound = quadratic_bound(loss, x)
    assert bound.strong_convexity == loss.strong_convexity > 0
    assert bound(x) == loss(x)
    assert bound(u) <= loss(u) + 1e-11
    assert bound(u) >= linear_bound(loss, x)(u) - 1e-11
    np.testing.assert_array_equal(bound.subgradient(x), loss.subgradient(x))
    if name != "convex":
        assert bound(u) == pytest.approx(loss(u), rel=1e-11, abs=1e-11)


def test_quadratic_bound_takes_a_curvature_and_needs_one() -> None:
    assert quadratic_bound(LOSSES["squared"], np.ones(3), curvature=0.5).curvature == 0.5
    for name, curvature in (("squared", None), ("linear", None), ("quadratic", 0.0), ("quadratic", -1.0)):
        with pytest.raises(ValueError, match=r"^curvature: got .*, expected a positive number; .* use linear_bound$"):
            quadratic_bound(LOSSES[name], np.ones(3), curvature)


def test_bounds_refuse_points_where_the_loss_is_infinite() -> None:
    loss = Convex(lambda x: math.inf, lambda x: x)
    for bound in (linear_bound, lambda loss, x: quadratic_bound(loss, x, 1.0)):
        with pytest.raises(ValueError, match=r"^loss\(x\): got inf, expected a finite number$"):
            bound(loss, [1.0])


def test_lipschitz_of_an_example() -> None:
    length = np.linalg.norm(FEATURES)
    for name, factor in (("logistic", 1), ("hinge", 1), ("huber", 0.75), ("quantile", 0.7), ("squared", math.inf)):
        assert EXAMPLES[name].lipschitz == pytest.approx(factor * length)
    assert Example(Squared(), [0.0, 0.0], 1).lipschitz == 0
    assert Example(Softmax(3), FEATURES, 1).lipschitz == pytest.approx(math.sqrt(2) * length)


def test_strong_convexity_of_an_example() -> None:
    assert Example(Squared(), [-1.5], 2.0).strong_convexity == 2.25
    assert Example(Squared(), [-1.5, 0.0], 2.0).strong_convexity == 0
    assert Example(Logistic(), [2.0], 1).strong_convexity == 0


def test_a_loss_copies_the_arrays_of_the_caller() -> None:
    g, center, features = np.ones(2), np.ones(2), np.ones(2)
    linear, quadratic, example = Linear(g), Quadratic(center, g=g), Example(Hinge(), features, 1)
    g[:] = center[:] = features[:] = 9.0
    assert linear.g.tolist() == quadratic.center.tolist() == quadratic.g.tolist() == example.features.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        linear.subgradient(g)[0] = 5.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "value(x): got nan, expected one number, or infinity where f is not defined"),
        (-math.inf, "value(x): got -inf, expected one number, or infinity where f is not defined"),
        (np.ones(2), "value(x): got [1.0, 1.0], expected one number, or infinity where f is not defined"),
        (None, "value(x): got None, expected one number, or infinity where f is not defined"),
    ],
)
def test_values_of_a_user_defined_loss(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^value") as error:
        Convex(lambda x: value, lambda x: x)(np.ones(2))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        ([1.0, math.nan], "subgradient(x): got nan at index 1, expected finite numbers"),
        ([1.0, 2.0, 3.0], "subgradient(x): got shape (3,), expected a vector of length 2"),
        (1.0, "subgradient(x): got shape (), expected a vector of length 2"),
        ("up", "subgradient(x): got 'up', expected a vector of numbers"),
    ],
)
def test_subgradients_of_a_user_defined_loss(gradient: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^subgradient") as error:
        Convex(lambda x: 0.0, lambda x: gradient).subgradient(np.ones(2))
    assert str(error.value) == message


def test_a_user_defined_loss_without_expression_raises() -> None:
    with pytest.raises(Unsupported, match=r"pass one, as in Convex\(..., expression=...\)"):
        Convex(lambda x: 0.0, lambda x: x).expression(cp.Variable(2))
    assert Convex(lambda x: math.inf, lambda x: x)(np.ones(2)) == math.inf
