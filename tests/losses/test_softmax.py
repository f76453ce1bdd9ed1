"""The softmax loss against high precision, the logistic loss and cvxpy."""

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.losses import (
    Logistic,
    Softmax,
)
from forel.losses.sigmoid import log_normalized_sigmoid
from tests.losses.cases import EPS, MARGINS, TINY, close


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    # log(1 + e^m) − m at m = 700 starts in the 305th digit.
    with mp.workdps(400):
        yield


def _softmax(m: list[Any], y: int) -> Any:
    return mp.log(sum(mp.exp(v) for v in m)) - m[y]


SPREADS = [0.0, 1e-12, 1.0, 40.0, 700.0, 1e4, 1e30]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("classes", [2, 5])
def test_softmax_matches_high_precision(spread: float, classes: int) -> None:
    loss = Softmax(classes)
    # Integers times the spread, so that differences of margins are exact and the test is of the formula.
    rows = np.round(np.random.default_rng(classes).normal(size=(3, classes)) * 4) * spread / 4
    for row in [*rows, spread * np.eye(classes)[0]]:
        exact = [mp.mpf(float(v)) for v in row]
        p = [mp.exp(v) / sum(mp.exp(u) for u in exact) for v in exact]
        assert all(close(got, want, ulps=16) for got, want in zip(loss.link(row), p, strict=True))
        for y in range(classes):
            assert close(float(loss(row, y)), _softmax(exact, y), ulps=16)
            for k, got in enumerate(loss.slope(row, y)):
                assert close(got, p[k] - (k == y), ulps=16)


def test_softmax_of_two_classes_is_logistic() -> None:
    m = np.array(MARGINS)
    margins = np.stack([np.zeros_like(m), m], axis=-1)
    for y in (0, 1):
        np.testing.assert_allclose(Softmax(2)(margins, y), Logistic()(m, y), rtol=8 * EPS, atol=TINY)
        np.testing.assert_allclose(Softmax(2).slope(margins, y)[:, 1], Logistic().slope(m, y), rtol=8 * EPS, atol=TINY)


def test_softmax_broadcasts() -> None:
    loss, rng = Softmax(3), np.random.default_rng(1)
    margins, labels = rng.normal(size=(4, 1, 3)), np.array([0, 2])
    assert loss(margins, labels).shape == (4, 2)
    assert loss.slope(margins, labels).shape == (4, 2, 3)
    assert loss(margins, labels)[3, 1] == loss(margins[3, 0], 2)
    np.testing.assert_array_equal(loss.slope(margins, labels)[3, 1], loss.slope(margins[3, 0], 2))


vectors = st.lists(st.floats(-30, 30), min_size=3, max_size=3).map(np.array)


@given(m=vectors, u=vectors, y=st.integers(0, 2))
def test_softmax_slope_is_a_subgradient(m: np.ndarray, u: np.ndarray, y: int) -> None:
    loss = Softmax(3)
    assert loss(u, y) >= loss(m, y) + loss.slope(m, y) @ (u - m) - 1e-12 * (1 + np.sum(np.abs(u - m)))


@given(m=vectors.map(lambda v: v / 15), y=st.integers(0, 2))
def test_softmax_constants_are_valid(m: np.ndarray, y: int) -> None:
    constants = Softmax(3).constants(margin=2.0)
    p, g = Softmax(3).link(m), Softmax(3).slope(m, y)
    hessian = np.diag(p) - np.outer(p, p)
    assert np.linalg.norm(g) <= constants.lipschitz
    assert np.linalg.eigvalsh(hessian)[-1] <= constants.smoothness + 1e-12
    assert np.linalg.eigvalsh(hessian - constants.exp_concavity * np.outer(g, g))[0] >= -1e-12


def test_softmax_constants_are_tight() -> None:
    loss = Softmax(3)
    assert np.linalg.norm(loss.slope([50.0, -50.0, -50.0], 1)) == pytest.approx(loss.constants(50).lipschitz)
    p = loss.link([50.0, 50.0, -50.0])
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1] == pytest.approx(loss.constants(50).smoothness)
    worst = np.array([2.0, -2.0, 2.0])
    p, g = loss.link(worst), loss.slope(worst, 1)
    above = 1.01 * loss.constants(2).exp_concavity
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p) - above * np.outer(g, g))[0] < -1e-6


def test_softmax_expression() -> None:
    margins, labels = np.random.default_rng(2).normal(size=(4, 3)), np.array([0, 1, 2, 1])
    got = Softmax(3).expression(cp.Constant(margins), labels)
    np.testing.assert_allclose(got.value, Softmax(3)(margins, labels), rtol=1e-12)
    assert float(Softmax(3).expression(cp.Constant(margins[0]), 2).value) == pytest.approx(Softmax(3)(margins[0], 2))
    assert Softmax(3).expression(cp.Variable(3), 2).is_convex()


@pytest.mark.parametrize("spread", [0.0, 1e-12, 1.0, 40.0, 660.0, 700.0, 1e4])
def test_normalized_sigmoids_match_high_precision(spread: float) -> None:
    rows = np.round(np.random.default_rng(5).normal(size=(6, 4)) * 4) * spread / 4
    for row, found in zip(rows, log_normalized_sigmoid(rows), strict=True):
        logs = [-mp.log(1 + mp.exp(-mp.mpf(float(m)))) for m in row]
        total = mp.log(sum(mp.exp(log) for log in logs))
        assert all(
            abs(got - (want - total)) <= 4 * EPS * (1 + abs(want)) for got, want in zip(found, logs, strict=True)
        )
