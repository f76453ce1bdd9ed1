"""RMSE, MAE and R² of regression, with the baseline of the mean label."""

import math

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

import forel
from forel.losses import Poisson, Squared
from forel.training.metrics import Metrics


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_metrics_are_those_of_scikit_learn(offset):
    rng = np.random.default_rng(1)
    y, w = rng.normal(size=200) + offset, rng.random(200)
    margins = y + rng.normal(size=200) / 2
    metrics = Metrics(Squared(), "number")
    for part in (slice(0, 50), slice(50, 200)):
        metrics.add(margins[part], y[part], w[part])
    found = metrics.report()
    assert found.rmse == pytest.approx(mean_squared_error(y, margins, sample_weight=w) ** 0.5)
    assert found.mae == pytest.approx(mean_absolute_error(y, margins, sample_weight=w))
    assert found.r2 == pytest.approx(r2_score(y, margins, sample_weight=w), rel=1e-6)
    assert found.baseline_rmse == pytest.approx(np.sqrt(np.cov(y, aweights=w, ddof=0)), rel=1e-6)
    whole = Metrics(Squared(), "number")
    whole.add(margins, y, w)
    assert whole.report() == found


def test_all_digits_of_large_numbers_are_shown():
    metrics = Metrics(Squared(), "number")
    metrics.add([1_234_567.8, 2_234_567.8], [1_234_560.0, 3_234_560.0])
    shown = {field: text for field, _, text in metrics.report().lines("loss")}
    assert shown["mean_label"] == "2,234,560"
    assert shown["mean_prediction"] == "1,734,568"
    assert shown["loss"].replace(",", "").isdecimal()
    assert not any("e+" in text for text in shown.values())


def test_predictions_are_those_of_the_link():
    metrics = Metrics(Poisson(), "number")
    metrics.add([0.0, 1.0], [1.0, 2.0])
    assert metrics.report().mae == pytest.approx((np.e - 2) / 2)


def test_counts_have_the_deviance_of_scikit_learn_in_place_of_a_negative_loss():
    from sklearn.metrics import mean_poisson_deviance

    rng = np.random.default_rng(3)
    margins, weights = rng.normal(size=80) + 2, rng.random(80)
    counts = rng.poisson(np.exp(margins)).astype(float)
    counts[:3] = 0
    metrics = Metrics(Poisson(), "number")
    metrics.add(margins[:30], counts[:30], weights[:30])
    again = Metrics(Poisson(), "number")
    again.unpack(metrics.pack())
    for one in (metrics, again):
        one.add(margins[30:], counts[30:], weights[30:])
    expected = mean_poisson_deviance(counts, np.exp(margins), sample_weight=weights)
    assert metrics.report().deviance == again.report().deviance == pytest.approx(expected)
    assert metrics.report().loss < 0
    assert metrics.report().lines("Poisson loss")[2][1:] == ("Poisson deviance", f"{metrics.report().deviance:.6f}")
    other = Metrics(Squared(), "number")
    other.add(margins, counts)
    assert other.report().deviance is None
    assert again.report().rmse == metrics.report().rmse


def test_packed_metrics_continue():
    metrics, whole = Metrics(Squared(), "number"), Metrics(Squared(), "number")
    metrics.add([1.0, 2.0], [0.0, 4.0])
    again = Metrics(Squared(), "number")
    again.unpack(metrics.pack())
    assert again.report() == metrics.report()
    for one in (metrics, again):
        one.add([5.0, 5.0], [4.0, 7.0])
    whole.add([1.0, 2.0, 5.0, 5.0], [0.0, 4.0, 4.0, 7.0])
    assert (whole.report().mae, whole.report().rmse) == (1.5, pytest.approx(2.5**0.5))
    assert whole.report().r2 == pytest.approx(1 - 2.5 / 6.1875)
    assert again.report() == metrics.report() == whole.report()


def test_classes_and_equal_labels_have_none():
    from forel.losses import Logistic

    metrics = Metrics(Logistic(), "probability")
    metrics.add([1.0], [1.0])
    assert (metrics.report().rmse, metrics.report().r2) == (None, None)
    numbers = Metrics(Squared(), "number")
    assert numbers.report().rmse is None
    numbers.add([1.0, 2.0], [3.0, 3.0])
    assert (numbers.report().r2, numbers.report().baseline_rmse) == (None, 0)


def test_tables_show_them(interpreted):
    rows = [{"x": float(k % 5), "y": 2.0 * (k % 5)} for k in range(40)]
    report = forel.train(rows, forel.Settings("squared", alpha=0.5), label="y", bits=4).report
    titles = [title for _, title, _ in report.lines("squared loss")]
    assert titles[:6] == ["rows", "squared loss", "RMSE", "MAE", "RMSE of the mean label", "R²"]


def test_labels_beyond_float32_keep_their_digits():
    labels = np.where(np.arange(200) % 2, 10000009.6, 10000000.4)
    metrics = Metrics(Squared(), "number")
    metrics.add(np.full(200, 10000004.0, np.float32), labels)
    found = metrics.report()
    assert found.rmse == pytest.approx(np.sqrt((5.6**2 + 3.6**2) / 2), rel=1e-8)
    assert found.loss == pytest.approx(found.rmse**2 / 2, rel=1e-8)
    assert found.baseline_rmse == pytest.approx(4.6, rel=1e-8)
    assert found.r2 == pytest.approx(1 - (found.rmse / 4.6) ** 2, rel=1e-8)


def test_counts_beyond_the_margins_of_the_poisson_loss_have_no_deviance():
    loss = Poisson()
    near, beyond = (Metrics(loss, "number") for _ in range(2))
    near.add([79.0, 78.0], [math.exp(80.0), math.exp(79.0)])
    assert near.report().deviance == pytest.approx(
        2 * (near.report().loss - np.mean([math.exp(c) * (1 - c) for c in (80.0, 79.0)]))
    )
    beyond.add([79.0, 100.0], [1.0, 1e36])
    found = beyond.report()
    assert found.deviance is None
    assert found.loss == pytest.approx(np.mean(loss([79.0, 100.0], [1.0, 1e36])))
    assert found.lines("Poisson loss")[1][1] == "Poisson loss"
    assert "deviance" not in repr(found)
    assert "deviance=" in repr(near.report())
