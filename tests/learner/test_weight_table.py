"""Predictions of mixtures from tables of weights: the same as those of the kernel with all settings."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from forel.learner.linear import Settings
from forel.learner.mixture import Mixture

N, ALPHAS = 40, (0.01, 0.1, 1.0)
pytestmark = pytest.mark.usefixtures("interpreted")


def rows(seed=0, number=60):
    return sparse.random_array((number, N), density=0.2, format="csr", rng=np.random.default_rng(seed))


def learned(classes, behind, loss="logistic", rate="scale_free"):
    """A mixture whose settings are so far behind the best, in units of log-loss."""
    model = Mixture(N, Settings(loss, alpha=ALPHAS, rate=rate), classes, dtype=np.float64)
    model.learn(rows(), np.arange(60) % (classes or 2))
    model.ledger.losses[:] = behind
    return model


def from_all_settings(model, X):
    return model.pool.pooling.predict(model.linear.margins(X), model.ledger)


@pytest.mark.parametrize(("classes", "loss"), [(None, "logistic"), (3, "logistic"), (3, "softmax")])
@pytest.mark.parametrize(
    ("behind", "kept"),
    [((0, 300, 500), [0]), ((300, 0, 10), [1, 2]), ((0, 0, 1e5), [0, 1]), ((0, 1, 2), None)],
)
@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
def test_settings_of_negligible_weight_do_not_change_predictions(classes, loss, behind, kept, rate):
    model, X = learned(classes, behind, loss, rate), rows(1)
    # Values beyond the scales of features, and probabilities so small that settings far behind matter.
    X.data *= np.repeat([1.0, 1e3, 1e5], 20)[np.repeat(np.arange(60), np.diff(X.indptr))]
    found, relevant = model.margins(X), model.pool.pooling.relevant(model.ledger)
    assert relevant is None if kept is None else relevant.tolist() == kept
    assert np.allclose(found, from_all_settings(model, X), rtol=1e-12, atol=1e-12)
    if kept == [0] and rate == "adagrad":
        assert 0 < model.pool.pooling.extreme(found).sum() < 60
    assert model.margins(X[:0]).shape == (0, classes or 1)


def test_a_table_has_the_weights_of_the_present_state():
    model = learned(3, (0, 300, 500))
    X = rows(2)
    assert np.allclose(model.margins(X), from_all_settings(model, X), rtol=1e-12)
    table = model.linear._table
    model.margins(rows(3))
    assert model.linear._table is table  # more features, the same table
    copy = pickle.loads(pickle.dumps(model))
    assert copy.linear._table is None
    model.learn(rows(4), np.arange(60) % 3)
    assert np.allclose(model.margins(X), from_all_settings(model, X), rtol=1e-12)
    assert np.allclose(copy.margins(X), from_all_settings(copy, X), rtol=1e-12)
    assert not np.allclose(model.margins(X), copy.margins(X), rtol=1e-3)


def test_margins_that_overflow_are_clipped():
    model = learned(3, (0, 300, 500), rate="adagrad")
    X = np.full((1, N), 1e308)
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = model.linear.margins(X)
    assert np.array_equal(model.linear.margins(X, np.array([0, 2])), kernel[:, [0, 2, 3, 5, 6, 8]])


def test_mixers_predict_from_all_settings():
    settings = Settings(alpha=(0.1, 1.0), rate="scale_free", filters=((1.0,), (10.0, 0.5)))
    model, X = Mixture(N, settings, dtype=np.float64), rows(1)
    model.learn(rows(), np.arange(60) % 2)
    model.ledger.losses[:] = 10, 500, 500, 0, 500, 500, 500
    X.data *= np.repeat([1.0, 1e2, 1e3], 20)[np.repeat(np.arange(60), np.diff(X.indptr))]
    assert model.pool.pooling.relevant(model.ledger) is None
    assert np.allclose(model.margins(X), from_all_settings(model, X), rtol=1e-12, atol=1e-12)
