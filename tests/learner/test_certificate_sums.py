"""Sums of certificates: since a snapshot, and of all settings, against raw rows, slopes and a solver."""

import numpy as np
import pytest

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
    floor, function = model.loss_floor(since=before), model.settings.loss_function
    assert floor.rows == 50
    assert floor.weight == pytest.approx(weight[30:].sum())
    assert floor.loss == pytest.approx(weight[30:] @ function(margins, y[30:]), rel=1e-6)
    rows = np.column_stack([X, np.ones(len(X))])
    rows = rows / (np.abs(rows).max(axis=0) if rate == "scale_free" else 1.0)
    for norm in (0.3, 3.0):
        assert floor.at(norm) <= oracle.least_average(loss, rows[30:], y[30:], weight[30:], norm) + 1e-9


def test_all_biases_are_in_the_norm():
    X, _, weight = stream("logistic")
    y = np.random.default_rng(3).integers(0, 3, len(X))
    model = Learner(4, Settings("softmax", alpha=0.3), classes=3, dtype=np.float64, certified=True)
    model.learn(X, y, weight)
    floor, proof = model.loss_floor(), model.certificate()
    learned = np.column_stack([model.weights.T, model.bias]).ravel()
    assert proof.floor_for(learned).summary() == floor.summary()
    assert floor.norm == pytest.approx(np.linalg.norm(learned))


@pytest.mark.parametrize("mixed", [False, True])
def test_certificates_have_the_points_of_all_settings(mixed):
    X, y, weight = stream("logistic")
    model, _ = learned("logistic", "scale_free", X, y, weight, mixed, alpha=(0.01, 0.3, 3.0))
    proof, floor = model.certificate(), model.loss_floor()
    for norm in (0.1, 1.0, 10.0):
        assert proof.loss_floor(scaled=norm) == pytest.approx(floor.at(norm), rel=1e-9)
        each = [model.unmixed.select_setting(k).certificate() for k in range(3)]
        most = max(one.loss_floor(l2=norm) for one in each)
        assert proof.loss_floor(l2=norm) == pytest.approx(most, rel=1e-9)
