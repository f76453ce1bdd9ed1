"""Sums of certificates: merged over learners, and with a free bias, against raw rows, slopes and a solver."""

import numpy as np
import pytest

from forel.learner.certificate_sums import CertificateSums, difference, merge
from forel.learner.linear import Linear, Settings
from forel.learner.mixture import Mixture
from tests.fuzz import oracle
from tests.learner.test_dual import stream

pytestmark = pytest.mark.usefixtures("interpreted")
HALVES = slice(0, 30), slice(30, None)


def learned(loss, rate, X, y, weight, make=Linear, alpha=(0.1, 0.4)):
    model = make(X.shape[1], Settings(loss, alpha=alpha, rate=rate), dtype=np.float64, certified=True)
    return model, model.progress(X, y, weight)


@pytest.mark.parametrize("loss", oracle.LOSSES)
@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
def test_merged_sums_are_those_of_the_rows_of_all_learners(loss, rate):
    X, y, weight = stream(loss)
    X[:30, 3], X[30:, 0] = 0.0, 0.0  # features that one of the learners never sees
    parts = [learned(loss, rate, X[half], y[half], weight[half]) for half in HALVES]
    both = merge(*(model.snapshot() for model, _ in parts))
    model, margins = parts[0][0], np.concatenate([found for _, found in parts])
    floor, function = model.loss_floor(1, rows=both), model.settings.loss_function
    rows, thetas = np.column_stack([X, np.ones(len(X))]), np.array([0.2, 1.0])
    scales = np.abs(rows).max(axis=0) if rate == "scale_free" else np.ones(rows.shape[1])
    assert floor.rows == len(y)
    assert floor.weight == pytest.approx(weight.sum())
    assert floor.loss == pytest.approx(weight @ function(margins[:, 1], y), rel=1e-12)
    for point, lane in zip(floor.points, margins.T, strict=True):
        slopes = function.slope(lane, y)
        gradient = (weight * slopes) @ rows / scales
        assert point.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=1e-9)
        assert point.weights_gradient == pytest.approx(np.linalg.norm(gradient[:-1]), rel=1e-9)
        assert point.bias_gradient == pytest.approx(abs(gradient[-1]), rel=1e-9)
        exact = -weight @ function.conjugate(np.outer(slopes, thetas), y[:, None])
        assert point.energy(thetas)[-1] == pytest.approx(exact[-1], rel=1e-9)
        assert (point.energy(thetas) <= exact + 1e-9 * np.abs(exact)).all()
    for norm in (0.3, 3.0):
        assert floor.at(norm) <= oracle.least_average(loss, rows / scales, y, weight, norm) + 1e-9


@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
@pytest.mark.parametrize("loss", ["logistic", "poisson", "squared"])
def test_sums_since_a_moment_and_before_it_add_up(loss, rate):
    X, y, weight = stream(loss)
    model, _ = learned(loss, rate, X[:30], y[:30], weight[:30], Mixture)
    before = model.snapshot()
    model.learn(X[30:], y[30:], weight[30:])
    since = difference(model.snapshot(), before)
    assert (since.rounds, since.mixture_rows) == (50, 50)
    for norm in (0.3, 3.0):
        assert model.loss_floor(rows=since).at(norm) == model.loss_floor(since=before).at(norm)
        whole = model.loss_floor(rows=merge(before, since))
        assert whole.at(norm) == pytest.approx(model.loss_floor().at(norm), rel=1e-9)
        assert whole.average == pytest.approx(model.loss_floor().average, rel=1e-12)
        assert whole.norm == pytest.approx(model.loss_floor().norm, rel=1e-12)


def test_merging_is_commutative_and_empty_sums_are_neutral():
    X, y, weight = stream("logistic")
    one, two = (learned("logistic", "scale_free", X[half], y[half], weight[half])[0].snapshot() for half in HALVES)
    first, second, third = merge(one, two), merge(two, one), merge(CertificateSums(), one, two)
    for other in (second, third):
        assert np.array_equal(first.slots, other.slots)
        np.testing.assert_allclose(first.gradients, other.gradients, rtol=1e-14, atol=1e-12)
        assert np.array_equal(first.sums, other.sums)
        assert np.array_equal(first.scales, other.scales)
    assert merge().rounds == 0
    plain = Linear(4, Settings(alpha=0.1))
    plain.learn(X, y)
    with pytest.raises(ValueError, match="parts: got sums of different shapes"):
        merge(one, plain.snapshot())
    with pytest.raises(ValueError, match="rows: got sums without gradients"):
        learned("logistic", "adagrad", X, y, weight)[0].loss_floor(rows=plain.snapshot())


@pytest.mark.parametrize("loss", oracle.LOSSES)
@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
def test_floors_with_a_free_bias_hold_for_all_biases_up_to_the_limit(loss, rate):
    X, y, weight = stream(loss)
    model, _ = learned(loss, rate, X, y, weight)
    floor, proof = model.loss_floor(1).with_free_bias(0.5), model.certificate(1)
    scales = np.abs(X).max(axis=0) if rate == "scale_free" else np.ones(X.shape[1])
    rows, kind = np.column_stack([X / scales, np.ones(len(X))]), "scaled" if rate == "scale_free" else "l2"
    assert floor.norm == pytest.approx(np.linalg.norm(model.weights[:, 1] * scales), rel=1e-9)
    for norm in (0.3, 3.0):
        assert floor.at(norm) <= oracle.least_average(loss, rows, y, weight, norm, free_bias=0.5) + 1e-9
        assert proof.loss_floor(**{kind: norm}, bias=0.5) == pytest.approx(floor.at(norm), rel=1e-9)
    # A larger limit allows more models, and a bias of 0 fewer than one in the norm.
    assert model.loss_floor(1).with_free_bias(5.0).at(0.3) <= floor.at(0.3)
    assert model.loss_floor(1).with_free_bias(0.0).at(0.3) >= model.loss_floor(1).at(0.3) - 1e-12
    goal = 0.9 * floor.average - 0.2 * abs(floor.average) * (floor.average < 0)
    assert proof.needed_norm(goal, kind, bias=0.5) == pytest.approx(floor.needed_norm(goal), rel=1e-6)
    assert floor.bias_norm == pytest.approx(abs(float(model.bias[1])))
    assert f"with a bias within ±{0.5}," in floor.summary()


def test_a_model_without_a_bias_has_no_free_one():
    model = Linear(1, Settings(alpha=1.0, bias=False), certified=True)
    model.learn(np.ones((10, 1)), [1, 0] * 5)
    with pytest.raises(ValueError, match="bias: got a model without one"):
        model.loss_floor().with_free_bias()
    with pytest.raises(ValueError, match="expected None for a model without a bias"):
        model.certificate().loss_floor(l2=1.0, bias=1.0)


def test_several_biases_have_a_norm():
    X, _, weight = stream("logistic")
    y = np.random.default_rng(3).integers(0, 3, len(X))
    model = Linear(4, Settings("softmax", alpha=0.3), classes=3, dtype=np.float64, certified=True)
    model.learn(X, y, weight)
    floor, proof = model.loss_floor(), model.certificate()
    learned = np.column_stack([model.weights.T, model.bias]).ravel()
    assert proof.floor_for(learned).summary() == floor.summary()
    assert proof.floor_for(learned).with_free_bias().summary() == floor.with_free_bias().summary()
    assert floor.bias_norm == pytest.approx(np.linalg.norm(model.bias))
    assert "with biases of norm at most" in floor.with_free_bias().summary()


@pytest.mark.parametrize("make", [Linear, Mixture])
def test_certificates_have_the_points_of_all_settings(make):
    X, y, weight = stream("logistic")
    model, _ = learned("logistic", "scale_free", X, y, weight, make, alpha=(0.01, 0.3, 3.0))
    proof, floor = model.certificate(), model.loss_floor()
    for norm in (0.1, 1.0, 10.0):
        assert proof.loss_floor(scaled=norm) == pytest.approx(floor.at(norm), rel=1e-9)
        each = [model.linear.only(k).certificate() for k in range(3)]
        for kind in ("l2", "l1", "box"):
            most = max(one.loss_floor(**{kind: norm}) for one in each)
            assert proof.loss_floor(**{kind: norm}) == pytest.approx(most, rel=1e-9)
