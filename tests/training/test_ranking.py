"""The sampling error of the AUC against all pairs of rows and a bootstrap, and where there is none."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from forel.losses import Hinge, Logistic
from forel.training.metrics import Metrics, auc_standard_error


def sample(rows, seed, ties=False):
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.3).astype(float)
    margins = rng.normal(size=rows) + 1.2 * labels
    return (margins.round() if ties else margins), labels


def delong(margins, labels):
    """The estimate from every pair of a positive and a negative row."""
    positive, negative = margins[labels == 1], margins[labels == 0]
    above = (positive[:, None] > negative[None, :]) + 0.5 * (positive[:, None] == negative[None, :])
    rows, columns = above.mean(axis=1), above.mean(axis=0)
    return np.sqrt(rows.var(ddof=1) / rows.size + columns.var(ddof=1) / columns.size)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_error_is_that_of_all_pairs(seed, ties):
    margins, labels = sample(150, seed, ties)
    metrics = Metrics(Logistic(), "probability")
    for part in (slice(0, 40), slice(40, 150)):
        metrics.add(margins[part], labels[part])
    assert metrics.report().auc_se == pytest.approx(delong(margins, labels), rel=2e-3)  # bins join a few margins
    signs = Metrics(Hinge(), "sign")
    signs.add(margins, 2 * labels - 1)
    assert signs.report().auc_se == metrics.report().auc_se


def test_the_error_is_the_spread_of_samples_of_rows():
    margins, labels = sample(400, 7)
    metrics = Metrics(Logistic(), "probability")
    metrics.add(margins, labels)
    rng = np.random.default_rng(0)
    draws = (rng.integers(0, 400, 400) for _ in range(600))
    bootstrap = np.std([roc_auc_score(labels[rows], margins[rows]) for rows in draws])
    assert metrics.report().auc_se == pytest.approx(bootstrap, rel=0.1)


def test_there_is_no_error_for_weighted_rows_fractional_labels_or_a_row_of_a_class():
    margins, labels = sample(50, 1)
    for given in ((margins, labels, np.full(50, 0.5)), (margins, 0.9 * labels)):
        metrics = Metrics(Logistic(), "probability")
        metrics.add(*given)
        report = metrics.report()
        assert report.auc is not None
        assert report.auc_se is None
        assert "std. error" not in str(report.lines("log-loss"))
    assert auc_standard_error(np.array([3.0, 0.0]), np.array([0.0, 1.0])) is None


def test_the_error_is_shown_and_packed():
    margins, labels = sample(300, 2)
    metrics = Metrics(Logistic(), "probability")
    metrics.add(margins[:100], labels[:100])
    again = Metrics(Logistic(), "probability")
    again.unpack(metrics.pack())
    for one in (metrics, again):
        one.add(margins[100:], labels[100:])
    assert again.report().auc_se == metrics.report().auc_se
    shown = dict(line[1:] for line in metrics.report().lines("log-loss"))
    assert float(shown["AUC, std. error"]) == pytest.approx(metrics.report().auc_se, rel=0.05)


def test_a_standard_error_of_zero_is_not_shown():
    metrics = Metrics(Logistic(), "probability")
    metrics.add([-1.0, -2.0, 1.0, 2.0], [0, 0, 1, 1])
    report = metrics.report()
    assert (report.auc, report.auc_se) == (1.0, None)
