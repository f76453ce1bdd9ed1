"""Margin losses against high precision, their own definitions, and cvxpy."""

import math
from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.losses import (
    Absolute,
    Constants,
    Hinge,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
)
from forel.losses.sigmoid import sigmoid
from tests.losses.cases import CASES, MARGINS, Case, close, every, poisson


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    # log(1 + e^m) − m at m = 700 starts in the 305th digit.
    with mp.workdps(400):
        yield


@every
def test_value_matches_high_precision(case: Case) -> None:
    for y in case.labels:
        values = case.loss(np.array(MARGINS), y)
        for m, got in zip(MARGINS, values, strict=True):
            want = case.exact(mp.mpf(m), mp.mpf(y))
            assert close(float(got), want, case.terms(m, y)), (m, y, got, mp.nstr(want))


@every
def test_slope_matches_high_precision(case: Case) -> None:
    for y in case.labels:
        slopes = case.loss.slope(np.array(MARGINS), y)
        for m, got in zip(MARGINS, slopes, strict=True):
            if m not in case.kinks(y):
                want = mp.diff(lambda u, y=y: case.exact(u, mp.mpf(y)), mp.mpf(m))
                assert close(float(got), want, case.slope_terms(m, y)), (m, y, got, mp.nstr(want))


@every
@given(m=st.floats(-50, 50), u=st.floats(-50, 50), pick=st.integers(0, 9))
def test_slope_is_a_subgradient(case: Case, m: float, u: float, pick: int) -> None:
    y = case.labels[pick % len(case.labels)]
    for at in (m, *case.kinks(y)):
        here, there, rise = case.loss(at, y), case.loss(u, y), case.loss.slope(at, y) * (u - at)
        assert there >= here + rise - 1e-12 * (1 + abs(here) + abs(there) + abs(rise))


@every
def test_slope_at_a_kink_is_the_smallest_subgradient(case: Case) -> None:
    for y in case.labels:
        for kink in case.kinks(y):
            left, right = case.loss.slope(kink - 1e-6, y), case.loss.slope(kink + 1e-6, y)
            assert left < right
            assert case.loss.slope(kink, y) == min(max(left, 0.0), right) == 0.0


@every
def test_arrays_broadcast_and_narrow_numbers_neither_wrap_nor_round(case: Case) -> None:
    labels = np.array(case.labels)
    margins = np.array([[-2.0], [0.0], [3.0]])
    for method in (case.loss, case.loss.slope):
        got = method(margins, labels)
        assert got.shape == (3, len(labels))
        assert got.dtype == np.float64
        for i, j in np.ndindex(got.shape):
            single = method(float(margins[i, 0]), float(labels[j]))
            assert np.shape(single) == ()
            assert single == got[i, j]
        unsigned = method(np.array([0, 2], dtype=np.uint8), np.uint8(1))
        assert unsigned.dtype == np.float64
        assert unsigned.tolist() == method(np.array([0.0, 2.0]), 1.0).tolist()
        for narrow in (np.int8, np.float32):
            got = method(np.array([-128, 1, 100], dtype=narrow), narrow(case.labels[0]))
            assert got.tolist() == method(np.array([-128.0, 1.0, 100.0]), float(narrow(case.labels[0]))).tolist()


def test_links() -> None:
    m = np.array([-800.0, -40.0, -1.5, 0.0, 2.0, 1e4])
    for case in CASES.values():
        predicted = case.loss.link(m)
        assert predicted.shape == m.shape
        if isinstance(case.loss, Logistic):
            assert all(close(p, 1 / (1 + mp.exp(-mp.mpf(u)))) for p, u in zip(predicted, m, strict=True))
        elif isinstance(case.loss, Poisson):
            assert all(close(p, mp.exp(min(u, 80))) for p, u in zip(predicted, m, strict=True))
        elif isinstance(case.loss, Hinge | SquaredHinge):
            assert predicted.tolist() == [-1, -1, -1, -1, 1, 1]
        else:
            assert predicted.tolist() == m.tolist()
    assert float(Poisson().link(np.int8(1))) == math.exp(1)


def test_poisson_is_finite_for_huge_margins_and_continues_as_its_tangent() -> None:
    for m in (-1e80, -1e30, 79.0, 80.0, 81.0, 1e30, 1e80):
        for y in (0.0, 3.0, 1e200):
            assert close(float(Poisson()(m, y)), poisson(mp.mpf(m), mp.mpf(y)), abs(y * m))
            assert math.isfinite(Poisson().slope(m, y))
    loss = Poisson(cap=60.0)
    assert float(loss(60.0, 1)) == pytest.approx(math.exp(60.0))
    assert float(loss(62.0, 0)) == pytest.approx(3 * math.exp(60.0))
    assert float(loss.slope(59.999999, 0)) == pytest.approx(float(loss.slope(61.0, 0)), rel=2e-6)


@every
def test_constants_are_valid_and_tight(case: Case) -> None:
    for margin, label in case.ranges:
        constants = case.loss.constants(margin, label)
        m, h = np.linspace(-margin, margin, 4001, retstep=True)
        y = case.grid(label)[:, np.newaxis]
        slopes = case.loss.slope(m, y)
        curvatures = np.diff(slopes) / h

        assert np.max(np.abs(slopes)) == pytest.approx(constants.lipschitz, rel=1e-12)

        assert np.max(curvatures) <= constants.smoothness * (1 + 1e-9)
        if not case.kinks(case.labels[0]):
            assert np.max(curvatures) >= constants.smoothness * (1 - 2e-3)
        else:
            assert constants.smoothness == math.inf
            assert np.max(curvatures) > 100

        assert np.min(curvatures) >= constants.strong_convexity * (1 - 1e-9)
        assert np.min(curvatures) <= constants.strong_convexity * (1 + 2e-3)

        def bend(alpha: float, m: np.ndarray = m, y: np.ndarray = y) -> float:
            return float(np.max(np.diff(np.exp(-alpha * case.loss(m, y)), 2)))

        assert bend(constants.exp_concavity) <= 1e-14
        assert bend(constants.exp_concavity * 1.1 or 0.05) > 1e-12


@pytest.mark.parametrize(
    ("loss", "arguments", "expected"),
    [
        (Squared(), {}, (math.inf, 1, 1, 0)),
        (Squared(), {"margin": 2, "label": 2}, (4, 1, 1, 1 / 16)),
        (Squared(), {"margin": 0, "label": 0}, (0, 1, 1, math.inf)),
        (Squared(), {"margin": 1e200, "label": 1}, (1e200, 1, 1, 0)),
        (Absolute(), {}, (1, math.inf, 0, 0)),
        (Huber(2), {}, (2, 1, 0, 0)),
        (Huber(2), {"margin": 1, "label": 1}, (2, 1, 1, 0.25)),
        (Quantile(0.9), {}, (0.9, math.inf, 0, 0)),
        (Logistic(), {}, (1, 0.25, 0, 0)),
        (Logistic(), {"margin": 2, "label": 0.5}, Logistic().constants(2)),
        (Hinge(), {"margin": 3}, (1, math.inf, 0, 0)),
        (SquaredHinge(), {}, (math.inf, 1, 0, 0)),
        (SquaredHinge(), {"margin": 1}, (2, 1, 1, 0.25)),
        (Poisson(), {}, (math.inf, math.exp(80), 0, 0)),
        (Poisson(50), {"label": 3}, (math.exp(50), math.exp(50), 0, 0)),
        (Poisson(50), {"margin": 51, "label": 3}, (math.exp(50), math.exp(50), 0, 0)),
        (Poisson(), {"margin": 0.0, "label": 9}, (8, 1, 1, 1 / 64)),
        (Softmax(4), {}, (math.sqrt(2), 0.5, 0, 0)),
        (Softmax(2), {"margin": 1}, (math.sqrt(2), 0.5, 0, math.exp(-2))),
    ],
)
def test_constants_by_hand(loss: Any, arguments: dict[str, float], expected: tuple[float, ...]) -> None:
    assert loss.constants(**arguments) == pytest.approx(Constants(*expected), rel=1e-12, abs=0)


@pytest.mark.parametrize("name", ["margin", "label"])
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_constants_refuse_impossible_ranges(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}: got {value}, expected a number of at least 0, or infinity"):
        Squared().constants(**{name: value})


@every
def test_expression_is_the_same_convex_function(case: Case) -> None:
    m = np.array([-4.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0])
    for y in case.labels:
        np.testing.assert_allclose(case.loss.expression(cp.Constant(m), y).value, case.loss(m, y), atol=1e-12)
        assert case.loss.expression(cp.Variable(), y).is_dcp()
        assert case.loss.expression(cp.Variable(), y).is_convex()
    many = np.resize(case.labels, m.size)
    np.testing.assert_allclose(case.loss.expression(cp.Constant(m), many).value, case.loss(m, many), atol=1e-12)


def test_the_logistic_function_is_right_to_the_last_digits():
    m = np.concatenate([np.random.default_rng(0).normal(size=300) * scale for scale in (0.01, 1.0, 30.0, 200.0)])
    with mp.workdps(40):
        exact = [1 / (1 + mp.exp(-mp.mpf(float(x)))) for x in m]
        wrong = [abs(mp.mpf(float(p)) / q - 1) for p, q in zip(sigmoid(m), exact, strict=True)]
    assert max(wrong) < 2 * np.finfo(np.float64).eps
    assert sigmoid(m.astype(np.float32)).dtype == np.float32
    assert np.isnan(sigmoid(np.nan))
    assert sigmoid([-np.inf, np.inf]).tolist() == [0.0, 1.0]
