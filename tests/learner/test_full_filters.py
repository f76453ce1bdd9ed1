"""Full-covariance filters: their updates in information form, few features only, storage, extremes."""

import numpy as np
import pytest

from forel.learner.experts import Filter, FullFilter
from forel.learner.full_filters import MOST, FullFilters
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.rows import rows_of
from forel.learner.settings import Settings
from forel.store import serving_model
from forel.training.model import load, save

LIMIT = 30.0  # of margins of log-loss


def stream(seed, rows=60, features=4, units=(1.0,)):
    """Rows with zeros and features in several units, and labels in [0, 1]."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * np.resize(units, features)
    X[rng.random(X.shape) < 0.3] = 0
    return X, (X[:, 0] / units[0] + rng.normal(size=rows) > 0) * 1.0


def dense_filter(X, y, importance, variance, memory, logistic):
    """Margins by the precision matrix, which is inverted in every round."""
    n = X.shape[1] + 1
    mean, precision, scale, margins = np.zeros(n), np.zeros((n, n)), np.zeros(n), []
    for x, label, weight in zip(np.column_stack((np.ones(len(X)), X)), y, importance, strict=True):
        predicted = mean @ np.clip(x, -scale, scale)
        margins.append(np.clip(predicted, -LIMIT, LIMIT) if logistic else predicted)
        if weight < 0:
            continue
        larger = np.maximum(scale, np.abs(x))
        seen = larger > 0
        b = precision @ mean
        precision[np.diag_indices(n)] += (larger**2 - scale**2) / variance
        scale = larger
        covariance = np.zeros((n, n))
        covariance[np.ix_(seen, seen)] = np.linalg.inv(precision[np.ix_(seen, seen)])
        mean = covariance @ b
        m = np.clip(mean @ x, -LIMIT, LIMIT) if logistic else mean @ x
        p = 1 / (1 + np.exp(-m))
        slope, curvature = (p - label, max(p * (1 - p), 1e-6)) if logistic else (m - label, 1.0)
        precision = precision + weight * curvature * np.outer(x, x)
        covariance[np.ix_(seen, seen)] = np.linalg.inv(precision[np.ix_(seen, seen)])
        mean = mean - weight * slope * covariance @ x
        if memory < 1:
            prior = np.divide(variance, scale**2, where=seen, out=np.zeros(n))
            covariance = memory * covariance + (1 - memory) * np.diag(prior)
            precision = np.zeros((n, n))
            precision[np.ix_(seen, seen)] = np.linalg.inv(covariance[np.ix_(seen, seen)])
    return np.array(margins)


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("memory", [1.0, 0.9])
def test_margins_are_those_of_the_precision_form(logistic, memory):
    X, y = stream(3, units=(1.0, 1e-3, 50.0))
    importance = np.resize([1.0, 2.0, 0.5, -1.0], len(X))
    filters = FullFilters((FullFilter(2.0, memory),), logistic)
    found, count = filters.progress(rows_of(X, 4, np.float64), y, importance)
    assert count == len(X)
    np.testing.assert_allclose(found[:, 0], dense_filter(X, y, importance, 2.0, memory, logistic), rtol=1e-7, atol=1e-9)


def test_squared_loss_gives_ridge_regression():
    X, y = stream(5)
    X = np.clip(X, -1, 1)
    X[0] = 1  # all scales are 1 from the first row on
    filters = FullFilters((FullFilter(3.0),), logistic=False)
    filters.progress(rows_of(X, 4, np.float64), y, np.ones(len(X)))
    A = np.column_stack((X, np.ones(len(X))))
    ridge = np.linalg.solve(A.T @ A + np.eye(5) / 3, A.T @ y)
    np.testing.assert_allclose(filters.margins(rows_of(X, 4, np.float64))[:, 0], A @ ridge, atol=1e-10)


def test_without_bias_there_is_no_constant(interpreted):
    X, y = stream(5)
    model = Learner(4, default_grid(bias=False))
    model.progress(X, y + 0.0)
    assert not model.mixture.full_filters.margins(rows_of(np.zeros((1, 4)), 4, np.float32)).any()
    assert not model.select_setting(8).bias.any()


def test_packed_state_continues_with_the_same_bits():
    X, y = stream(7)
    rows = rows_of(X, 4, np.float32)
    first, ones = FullFilters((FullFilter(1.0), FullFilter(30.0, 0.99)), True), np.ones(len(X))
    first.progress(rows, y, ones)
    second = FullFilters(first.filters, True)
    second.unpack(first.pack())
    assert first.pack().size == FullFilters.packed_size(5, 2)
    np.testing.assert_array_equal(first.progress(rows, y, ones)[0], second.progress(rows, y, ones)[0])
    with pytest.raises(ValueError, match="full_filters: got 3, expected the length of a packed state"):
        second.unpack(np.zeros(3))


def wide(rows, features):
    """Rows with one new feature each, and one that decides the label."""
    X = np.zeros((rows, features), np.float32)
    X[np.arange(rows), np.arange(rows) % (features - 1)] = 1
    X[:, -1] = np.resize([1, -1, -1], rows)
    return X, (X[:, -1] > 0) * 1.0


@pytest.mark.parametrize("share", [None, 0.01])
def test_filters_are_dropped_at_the_same_row_for_any_block_size(share):
    X, y = wide(MOST + 40, MOST + 20)
    one, many = (Learner(X.shape[1], default_grid(), share=share) for _ in range(2))
    whole = one.progress(X, y)
    parts = [many.progress(X[k : k + 9], y[k : k + 9]) for k in range(0, len(X), 9)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(one.margins(X), many.margins(X))
    assert (
        len(one.names)
        == one.losses.size
        == len(one.explain().experts)
        == default_grid().n_experts - (2 if share is None else 3)
    )
    guarantee = one.guarantee()
    assert guarantee.bound >= np.log(
        13 if share is None else 12
    )  # the prior weight of experts that were dropped counts
    assert guarantee.loss <= guarantee.other + guarantee.bound


def test_mixture_keeps_all_features_up_to_the_limit():
    X, y = wide(2 * MOST, MOST - 1)
    model = Learner(X.shape[1], default_grid())
    model.progress(X, y)
    assert "full filter, variance=1" in model.names


@pytest.mark.parametrize("features", [5, MOST + 20])
def test_model_files_restore_mixtures(features, tmp_path):
    X, y = wide(MOST + 40, features)
    model = Learner(features, default_grid())
    model.progress(X, y)
    save(tmp_path / "m.forel", model)
    again = load(tmp_path / "m.forel").learner
    np.testing.assert_array_equal(model.progress(X, y), again.progress(X, y))


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("extreme", [1e-45, 1e-30, 1e30, 3e38])
def test_extreme_values_leave_finite_states_that_learn(logistic, extreme):
    X, y = stream(9, rows=400)
    X = X.astype(np.float32)
    X[5, 0], X[50, 1], X[90, 2] = extreme, -extreme, extreme
    filters = FullFilters((FullFilter(1.0), FullFilter(30.0, 0.9999)), logistic)
    labels = y if logistic else y * 1e30
    importance = np.ones(len(X))
    importance[7] = 1e18
    margins, _ = filters.progress(rows_of(X, 4, np.float32), labels, importance)
    assert np.isfinite(margins).all()
    assert np.isfinite(filters.pack()).all()


def test_correlated_features_are_learned_faster_than_by_diagonal_filters():
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(600, 1)) + 0.3 * rng.normal(size=(600, 6))).astype(np.float32)
    y = (X[:, 0] > X[:, 1]) * 1.0
    model = Learner(6, default_grid())
    model.progress(X, y)
    losses = dict(zip(model.names, model.averages, strict=True))
    diagonal = min(loss for name, loss in losses.items() if name.startswith("filter"))
    assert losses["full filter, variance=30, memory=0.9999"] < 0.7 * diagonal


def test_full_filters_need_filters_and_valid_parameters():
    with pytest.raises(ValueError, match=r"full_filters: got .*, expected none without filters"):
        Settings(full_filters=(FullFilter(1.0),))
    with pytest.raises(ValueError, match=r"memory: got 0\.1, expected a number from 0\.5 to 1"):
        Settings(rate="scale_free", filters=(Filter(1.0),), full_filters=((1.0, 0.1),))


def test_mixture_without_them_continues_with_the_other_experts():
    X, y = stream(11, rows=80)
    model = Learner(4, default_grid())
    model.progress(X, y)
    other = model.without_full_filters()
    assert len(other.names) == len(model.names) - 2
    np.testing.assert_array_equal(other.losses, np.delete(model.losses, [8, 9]))
    other.progress(X, y)
    assert other.loss <= other.guarantee().other + other.guarantee().bound


@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e20])
def test_best_model_is_a_full_filter_with_its_means_and_variances(unit):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(600, 1)) + 0.3 * rng.normal(size=(600, 6))).astype(np.float32)
    y = (X[:, 0] > X[:, 1]) * 1.0
    X[:, 0] *= unit
    model = Learner(6, default_grid())
    model.progress(X, y)
    assert model.names[model.best_model].startswith("full filter")
    alone = model.select_setting(model.best_model)
    full = model.mixture.full_filters.margins(rows_of(X, 6, np.float32))[:, model.best_model - 8]
    inside = np.abs(full) < 29  # not clipped
    np.testing.assert_allclose(alone.margins(X)[inside, 0], full[inside], rtol=1e-4, atol=1e-4)
    before = alone.loss[0]
    assert before == model.losses[model.best_model]
    alone.learn(X, y)
    assert alone.loss[0] - before < 600 * np.log(2)


def test_serving_models_predict_with_full_filters():
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(400, 1)) + 0.3 * rng.normal(size=(400, 6))).astype(np.float32)
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > X[:, 1]) * 1.0
    model = Learner(6, default_grid())
    model.progress(X, y)
    inside = np.clip(X, -2, 2)  # no value is beyond the scales
    mixed = serving_model(model, mixed=True)
    np.testing.assert_allclose(mixed.margins(inside), model.margins(inside), atol=2e-3)
    alone, best = serving_model(model), model.select_setting(model.best_model)
    np.testing.assert_allclose(alone.margins(inside), best.margins(inside), rtol=1e-4, atol=1e-5)
