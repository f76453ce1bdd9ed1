"""Convex conjugates against numerical suprema, and the inequality that defines them."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from catalogue import MARGIN_LOSSES
from forel.losses import Choice, Interval, Poisson, Softmax
from forel.losses.custom import Custom

SINGLE = [loss for loss in MARGIN_LOSSES if not loss.joint]
each = pytest.mark.parametrize("loss", SINGLE, ids=lambda loss: type(loss).__name__)


def labels_of(loss):
    domain = loss.labels
    if isinstance(domain, Choice):
        return list(domain.values)
    assert isinstance(domain, Interval)
    return [y for y in (-2.5, -1.0, 0.0, 0.25, 1.0, 7.0) if domain.low <= y <= domain.high]


def numerical(loss, slope, y):
    """Return sup s·m − ℓ(m, y) for a slope inside the domain, by a scalar solver on an interval around the maximum."""
    found = minimize_scalar(
        lambda m: float(loss(m, y)) - slope * m, bounds=(-60.0, 60.0), method="bounded", options={"xatol": 1e-12}
    )
    return -found.fun


@each
def test_conjugate_is_the_supremum(loss):
    margins = np.array([-3.0, -1.2, -0.4, -0.05, 0.0, 0.3, 0.8, 1.5, 2.5])
    for y in labels_of(loss):
        # Slopes of the loss, and mixtures of two of them: slopes at a kink.
        slopes = loss.slope(margins, y)
        for slope in [*slopes, *((slopes[1:] + slopes[:-1]) / 2)]:
            found = float(loss.conjugate(slope, y))
            assert found == pytest.approx(numerical(loss, slope, y), rel=1e-6, abs=1e-6), (slope, y)


@each
def test_conjugate_is_infinite_outside_its_domain(loss):
    for y in labels_of(loss):
        for sign in (-1.0, 1.0):
            last = float(loss.slope(sign * 1e6, y))
            if abs(last) < 1e4:  # slopes are bounded on this side, and s·m − ℓ(m, y) rises for ever with a steeper one
                assert float(loss.conjugate(last + sign * 1e-6, y)) == math.inf, (last, y)


@each
def test_fenchel_young_holds_with_equality_at_the_slope(loss):
    rng = np.random.default_rng(0)
    margins, others = rng.normal(scale=3.0, size=(2, 200))
    for y in labels_of(loss):
        slopes = loss.slope(margins, y)
        conjugates = loss.conjugate(slopes, y)
        assert np.isfinite(conjugates).all()
        np.testing.assert_allclose(slopes * margins - conjugates, loss(margins, y), rtol=1e-12, atol=1e-12)
        below = slopes * others - conjugates
        assert np.all(below <= loss(others, y) + 1e-12 * (1 + np.abs(below)))


@each
def test_conjugates_broadcast_and_are_float64(loss):
    labels = np.array(labels_of(loss))
    found = loss.conjugate(np.zeros((3, 1), np.float32), labels)
    assert found.shape == (3, labels.size)
    assert found.dtype == np.float64


@pytest.mark.parametrize("margin", [-800.0, -40.0, 79.0, 80.0, 500.0])
def test_conjugate_of_extreme_slopes_is_finite(margin):
    for loss in SINGLE:
        for y in labels_of(loss):
            assert math.isfinite(float(loss.conjugate(loss.slope(margin, y), y))), loss


def test_poisson_ends_at_its_cap():
    loss = Poisson(cap=60.0)
    assert math.isfinite(float(loss.conjugate(math.exp(60.0) - 1.0, 1.0)))
    assert float(loss.conjugate(math.exp(60.0) * (1 + 1e-9), 1.0)) == math.inf
    assert float(loss.conjugate(-1.0, 1.0)) == 0.0  # the mean 0
    assert float(loss.conjugate(-1.01, 1.0)) == math.inf


def test_softmax_conjugate_is_the_supremum():
    loss, rng = Softmax(3), np.random.default_rng(1)
    for margins in rng.normal(scale=2.0, size=(10, 3)):
        for y in range(3):
            slope = loss.slope(margins, y)
            best = minimize(lambda m, s=slope, y=y: float(loss(m, y)) - s @ m, np.zeros(3), method="BFGS", tol=1e-10)
            assert float(loss.conjugate(slope, y)) == pytest.approx(-best.fun, abs=1e-7)
            assert slope @ margins - float(loss.conjugate(slope, y)) == pytest.approx(float(loss(margins, y)))


def test_softmax_conjugate_is_infinite_outside_the_simplex():
    loss = Softmax()
    assert float(loss.conjugate([0.5, -0.4, 0.0], 1)) == math.inf  # does not sum to 0
    assert float(loss.conjugate([-0.2, 0.2, 0.0], 1)) == math.inf  # a negative probability
    assert float(loss.conjugate([0.0, 0.0, 0.0], 1)) == 0.0  # all on the label
    assert loss.conjugate(np.zeros((4, 1, 3)), np.array([0, 2])).shape == (4, 2)


def test_a_function_of_the_user_has_no_conjugate():
    assert Custom(lambda m, y: (abs(m - y), 1.0)).conjugate(0.5, 1.0) is None
