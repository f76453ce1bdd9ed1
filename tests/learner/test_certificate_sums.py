"""Sums of certificates: since a snapshot, and with a free bias, against raw rows, slopes and a solver."""

import numpy as np
import pytest

from forel.learner.certificate_sums import difference
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from tests.fuzz import oracle
from tests.learner.test_dual import stream

pytestmark = pytest.mark.usefixtures("interpreted")


def learned(loss, rate, X, y, weight, mixed=False, alpha=(0.1, 0.4)):
    settings = Settings(loss, alpha=alpha, rate=rate)
    model = Learner(X.shape[1], settings, dtype=np.float64, certified=True, mixed=mixed)
    return model, model.progress(X, y, weight)


@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
@pytest.mark.parametrize("loss", ["logistic", "poisson", "squared"])
def test_floors_since_a_snapshot_are_about_the_rows_after_it(loss, rate):
    X, y, weight = stream(loss)
    X[:30, 3], X[30:, 0] = 0.0, 0.0  # features that occur only before or after the snapshot
    model, _ = learned(loss, rate, X[:30], y[:30], weight[:30], mixed=True)
    before = model.snapshot()
    margins = model.progress(X[30:], y[30:], weight[30:])[:, 0]
    since = difference(model.snapshot(), before)
    floor, function = model.loss_floor(since=before), model.settings.loss_function
    assert (since.rounds, since.mixture_rows, floor.rows) == (50, 50, 50)
    assert floor.weight == pytest.approx(weight[30:].sum())
    assert since.mixture_loss == pytest.approx(weight[30:] @ function(margins, y[30:]), rel=1e-6)
    rows = np.column_stack([X, np.ones(len(X))])
    rows = rows / (np.abs(rows).max(axis=0) if rate == "scale_free" else 1.0)
    for norm in (0.3, 3.0):
        assert floor.at(norm) <= oracle.least_average(loss, rows[30:], y[30:], weight[30:], norm) + 1e-9


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
    assert f"with a bias within ±{0.5})" in floor.summary()


def test_a_model_without_a_bias_has_no_free_one():
    model = Learner(1, Settings(alpha=1.0, bias=False), certified=True)
    model.learn(np.ones((10, 1)), [1, 0] * 5)
    with pytest.raises(ValueError, match="bias: got a model without one"):
        model.loss_floor().with_free_bias()
    with pytest.raises(ValueError, match="expected None for a model without a bias"):
        model.certificate().loss_floor(l2=1.0, bias=1.0)


def test_several_biases_have_a_norm():
    X, _, weight = stream("logistic")
    y = np.random.default_rng(3).integers(0, 3, len(X))
    model = Learner(4, Settings("softmax", alpha=0.3), classes=3, dtype=np.float64, certified=True)
    model.learn(X, y, weight)
    floor, proof = model.loss_floor(), model.certificate()
    learned = np.column_stack([model.weights.T, model.bias]).ravel()
    assert proof.floor_for(learned).summary() == floor.summary()
    assert proof.floor_for(learned).with_free_bias().summary() == floor.with_free_bias().summary()
    assert floor.bias_norm == pytest.approx(np.linalg.norm(model.bias))
    assert "with biases of norm at most" in floor.with_free_bias().summary()


@pytest.mark.parametrize("mixed", [False, True])
def test_certificates_have_the_points_of_all_settings(mixed):
    X, y, weight = stream("logistic")
    model, _ = learned("logistic", "scale_free", X, y, weight, mixed, alpha=(0.01, 0.3, 3.0))
    proof, floor = model.certificate(), model.loss_floor()
    for norm in (0.1, 1.0, 10.0):
        assert proof.loss_floor(scaled=norm) == pytest.approx(floor.at(norm), rel=1e-9)
        each = [model.unmixed.select_setting(k).certificate() for k in range(3)]
        for kind in ("l2", "l1", "box"):
            most = max(one.loss_floor(**{kind: norm}) for one in each)
            assert proof.loss_floor(**{kind: norm}) == pytest.approx(most, rel=1e-9)
