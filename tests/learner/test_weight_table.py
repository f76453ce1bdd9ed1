"""Predictions of mixtures from tables of weights: the same as those of the kernel with all settings."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from forel.learner.kernels import kernel
from forel.learner.kernels.table_margins import table_margins
from forel.learner.linear import Linear, Settings
from forel.learner.mixture import Mixture
from forel.learner.relevance import group_settings
from forel.learner.rows import rows_of
from forel.learner.weight_table import WeightTable

N, ALPHAS = 40, (0.01, 0.1, 1.0)


@pytest.fixture(autouse=True)
def _uncompiled(interpreted, monkeypatch):
    """Run the product of rows and tables uncompiled, as the kernels: compiled code rounds products and sums at once."""
    compiled = kernel.routine
    plain = {"table_margins": getattr(table_margins, "py_func", table_margins)}
    monkeypatch.setattr(kernel, "routine", lambda module, name: plain.get(name) or compiled(module, name))


def rows(seed=0, number=60):
    return sparse.random_array((number, N), density=0.2, format="csr", rng=np.random.default_rng(seed))


@cache
def trained(classes, loss, rate, dtype):
    """A mixture that tests copy: learning uncompiled takes longer than they do."""
    model = Mixture(N, Settings(loss, alpha=ALPHAS, rate=rate), classes, dtype=dtype)
    model.learn(rows(), np.arange(60) % (classes or 2))
    return model


@cache
def rare_margins(classes, loss, rate):
    """The margins of all its settings on ``rare_classes()``, which do not depend on how far behind they are."""
    return trained(classes, loss, rate, np.float64).linear.margins(rare_classes())


def learned(classes, behind, loss="logistic", rate="scale_free", dtype=np.float64):
    """A mixture whose settings are so far behind the best, in units of log-loss."""
    model = copy.deepcopy(trained(classes, loss, rate, dtype))
    model.ledger.losses[:] = behind
    return model


def groups_of(model):
    return group_settings(model.pool.pooling, model.ledger, model.dtype)


def from_all_settings(model, X):
    return model.pool.pooling.predict(model.linear.margins(X), model.ledger)


def rare_classes(seed=1):
    """Rows with values beyond the scales of features, and probabilities so small that settings far behind matter."""
    X = rows(seed)
    X.data *= np.logspace(0, 5, 60)[np.repeat(np.arange(60), np.diff(X.indptr))]
    X.data[::3] *= -1
    return X


@pytest.mark.parametrize(("classes", "loss"), [(None, "logistic"), (3, "logistic"), (3, "softmax")])
@pytest.mark.parametrize(
    ("behind", "kept"),
    [
        ((0, 300, 500), [[0]]),
        ((300, 0, 10), [[1, 2]]),
        ((0, 0, 1e5), [[0, 1]]),
        ((54, 0, 54), [[1]]),
        ((53, 300, 0), [[2], [0]]),
        ((54, 0, 110), [[1], [0]]),
        ((60, 5, 0), [[1, 2]]),
        ((0, 1, 2), []),
        ((0, 50, 52), []),
    ],
)
@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
def test_settings_of_negligible_weight_do_not_change_predictions(classes, loss, behind, kept, rate):
    model, X = learned(classes, behind, loss, rate), rare_classes()
    groups = groups_of(model)
    assert [group.tolist() for group in groups.settings] == kept
    found = model.margins(X)
    all_settings = model.pool.pooling.predict(rare_margins(classes, loss, rate), model.ledger)
    assert np.allclose(found, all_settings, rtol=1e-12, atol=1e-12)
    if kept == [[0]] and rate == "adagrad":
        smallest = found.min(axis=1) if classes else -np.abs(found[:, 0])
        assert 0 < np.count_nonzero(smallest < groups.smallest[-1]) < 60
    assert model.margins(X[:0]).shape == (0, classes or 1)


@pytest.mark.parametrize("behind", [(33, 34, 0), (33, 90, 0), (0, 33, 90), (0, 35, 300), (81, 0, 300), (0, 20, 60)])
@pytest.mark.parametrize("classes", [None, 3])
def test_in_float32_ignored_settings_change_log_probabilities_by_less_than_rounding(behind, classes):
    model, X = learned(classes, behind, rate="adagrad", dtype=np.float32), rare_classes()
    assert groups_of(model).settings
    found = model.margins(X)
    every = model.linear.group_margins(rows_of(X, N, np.float32), np.arange(3))
    assert np.allclose(found, model.pool.pooling.predict(every, model.ledger), rtol=1e-14, atol=2.0**-24 * (1 + 1e-6))


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_likeliest_class_is_that_of_the_mixture(loss, dtype):
    model, X = learned(3, (0, 60, 500), loss, dtype=dtype), rare_classes()
    found, all_settings = model.pool.likeliest(model.linear, X), from_all_settings(model, X)
    assert np.array_equal(all_settings[np.arange(60), found], all_settings.max(axis=1))
    model.ledger.losses[:] = 0, 10, 500
    assert model.pool.likeliest(model.linear, X) is None


def test_a_table_of_all_features_finds_values_above_their_scales():
    model = learned(3, (0, 300, 500))
    X = sparse.csr_array(np.abs(np.sin(np.arange(60.0 * N))).reshape(60, N))
    model.margins(X)
    assert all(table._complete for table in model.linear._tables.kept.values())
    X.data[::7] *= 1e3
    assert np.allclose(model.margins(X), from_all_settings(model, X), rtol=1e-12)


def test_a_table_has_the_weights_of_the_present_state():
    model = learned(3, (0, 300, 500))
    X = rows(2)
    assert np.allclose(model.margins(X), from_all_settings(model, X), rtol=1e-12)
    tables = list(model.linear._tables.kept.values())
    model.margins(rows(3))
    assert list(model.linear._tables.kept.values()) == tables  # more features, the same table
    other = pickle.loads(pickle.dumps(model))
    assert not other.linear._tables.kept
    model.learn(rows(4), np.arange(60) % 3)
    assert np.allclose(model.margins(X), from_all_settings(model, X), rtol=1e-12)
    assert np.allclose(other.margins(X), from_all_settings(other, X), rtol=1e-12)
    assert not np.allclose(model.margins(X), other.margins(X), rtol=1e-3)


def test_margins_that_overflow_are_clipped():
    model = learned(3, (0, 300, 500), rate="adagrad")
    X = np.full((1, N), 1e308)
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = model.linear.margins(X)
    found = model.linear.group_margins(rows_of(X, N, np.float64), np.array([0, 2]))
    assert np.array_equal(found, kernel[:, [0, 2, 3, 5, 6, 8]])


SETTINGS = {
    "scale_free": {"rate": "scale_free", "l1": 0.1},
    "constant": {"rate": "constant", "l2": 0.1},
    "root": {"rate": "root", "algorithm": "centered"},
    "decays": {"algorithm": "mirror", "penalty_weight": "every", "l1": 0.001, "rate": "scale_free"},
    "drifts": {"algorithm": "mirror", "penalty_weight": "every", "l1": 0.001, "rate": "root"},
    "replays": {"penalty_weight": "every", "l1": 0.001, "l2": 0.01, "rate": "root"},
    "implicit": {"algorithm": "implicit", "rate": "scale_free"},
    "filters": {"filters": ((1.0,), (10.0, 0.5)), "rate": "scale_free"},
    "filter": {"algorithm": "filter", "beta": 0.5},
    "without bias": {"bias": False, "l1": 0.1},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_and_margins_of_some_lanes_are_those_of_the_kernel(name, dtype):
    model = Linear(N, Settings(alpha=ALPHAS, **SETTINGS[name]), dtype=dtype)
    X = rows()
    X.data *= np.float64([1e-12, 1.0, 1e12])[X.indices % 3]  # in other units than 1
    model.learn(X, np.arange(60) % 2)
    lanes, given = model.copied_lanes(), rows_of(X, N, dtype)
    for chosen in (np.arange(lanes.lanes), np.array([2, 0])):
        table = WeightTable(lanes, chosen)
        assert np.array_equal(table.margins_within_scales(given), model.margins(given)[:, chosen])
        assert np.array_equal(table._weights[:, : chosen.size], model.weights[:, chosen])
        assert model.weights[:, chosen].any(axis=0).all()


@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
def test_classes_of_one_setting_have_the_same_margins_from_a_table_as_from_the_kernel(rate):
    model = Linear(N, Settings(alpha=0.5, rate=rate), classes=3)
    model.learn(rows(), np.arange(60) % 3)
    X = rows(5)
    X.data *= 0.1
    one_by_one = np.concatenate([model.margins(X[[row]]) for row in range(60)])
    assert not model._tables.kept
    assert np.array_equal(model.margins(X), one_by_one)
    assert len(model._tables.kept) == 1
    X.data *= 1e3  # above the scales
    assert np.array_equal(model.margins(X), np.concatenate([model.margins(X[[row]]) for row in range(60)]))


def test_no_more_than_two_tables_are_kept():
    model = learned(3, (0, 300, 500))
    for group in range(3):
        model.linear.group_margins(rows_of(rows(), N, np.float64), np.array([group]))
    assert len(model.linear._tables.kept) == 2


def test_mixers_predict_from_all_settings():
    settings = Settings(alpha=(0.1, 1.0), rate="scale_free", filters=((1.0,), (10.0, 0.5)))
    model, X = Mixture(N, settings, dtype=np.float64), rows(1)
    model.learn(rows(), np.arange(60) % 2)
    model.ledger.losses[:] = 10, 500, 500, 0, 500, 500, 500
    X.data *= np.repeat([1.0, 1e2, 1e3], 20)[np.repeat(np.arange(60), np.diff(X.indptr))]
    assert not groups_of(model).settings
    assert np.allclose(model.margins(X), from_all_settings(model, X), rtol=1e-12, atol=1e-12)
