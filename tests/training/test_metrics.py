"""Progressive metrics against scikit-learn's, which keep every row."""

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from forel.learner.kernels.counting import log_losses
from forel.losses import Hinge, Logistic, Squared
from forel.training.metrics import Metrics


def clicks(rows=20_000, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    margins = (rng.normal(size=rows) * scale - 1).astype(np.float32)
    labels = (rng.random(rows) < expit(margins)).astype(np.float32)
    return margins, labels, rng.integers(0, 4, rows).astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_equal_those_of_scikit_learn(weighted):
    margins, labels, importance = clicks()
    weight = importance.astype(float) if weighted else np.ones(labels.size)
    seen = Metrics(Logistic())
    seen.add(margins, labels, importance if weighted else None)
    found, p = seen.report(), expit(margins.astype(float))
    assert found.loss == pytest.approx(log_loss(labels, p, sample_weight=weight), rel=1e-9)
    base = np.full(labels.size, np.average(labels, weights=weight))
    assert found.entropy == pytest.approx(found.loss / log_loss(labels, base, sample_weight=weight), rel=1e-9)
    truth = roc_auc_score(labels, margins, sample_weight=weight)
    assert abs(found.auc - truth) <= found.auc_error < 1e-4
    assert found.calibration == pytest.approx((weight @ p) / (weight @ labels), rel=1e-9)
    assert found.weight == sum(b.weight for b in found.table) == weight.sum()
    assert sum(b.weight * b.predicted for b in found.table) == pytest.approx(weight @ p)
    assert sum(b.weight * b.actual for b in found.table) == pytest.approx(weight @ labels)
    assert len(found.table) == 10
    assert all(abs(b.predicted - b.actual) < 0.05 for b in found.table)


def test_auc_error_bounds_margins_beyond_the_histogram():
    margins, labels, _ = clicks(scale=40.0)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(labels.size) < 0.2, 1 - labels, labels)
    seen = Metrics(Logistic())
    seen.add(margins, labels)
    found = seen.report()
    assert found.auc_error > 0.01
    assert abs(found.auc - roc_auc_score(labels, margins)) <= found.auc_error


@pytest.mark.parametrize("sizes", [[20_000], [1] * 50, [7, 13, 4096, 3, 1000]])
def test_metrics_do_not_depend_on_blocks(sizes):
    margins, labels, importance = clicks()
    whole, parts = Metrics(Logistic()), Metrics(Logistic())
    end = 0
    for size in sizes:
        rows = slice(end, end + size)
        parts.add(margins[rows], labels[rows], importance[rows])
        end += size
    whole.add(margins[:end], labels[:end], importance[:end])
    assert whole.report() == parts.report()
    assert whole.total == parts.total


def measured(margins, labels):
    losses, probabilities = np.empty((2, margins.size))
    log_losses(margins, labels, losses, probabilities)
    return losses, probabilities


@pytest.mark.parametrize(("loss", "kind"), [(Logistic(), "probability"), (Hinge(), "sign"), (Squared(), "number")])
def test_sums_and_bins_equal_those_of_a_loop(loss, kind):
    margins, labels, importance = clicks(500, scale=12.0)
    # Numbers whose products float32 would have to round.
    labels, importance = 2 * labels - 1 if kind == "sign" else labels * np.float32(0.3), importance / np.float32(3)
    seen = Metrics(loss, kind)
    seen.add(margins, labels, importance)
    sums, bins = np.zeros(5), {}
    for m, y, w in zip(margins.astype(float), labels.astype(float), importance.astype(float), strict=True):
        lost, p = float(loss(m, y)), m
        if kind == "probability":  # compiled, with an exponential and a logarithm of its own
            lost, p = (held.item() for held in measured(np.array([m]), np.array([y])))
        sums += [w > 0, w, w * lost, w * y, w * p]
        place = min(max(int((m + 16) * 2048), 0), 65535)
        bins[place] = bins.get(place, 0) + np.array([w, w * (1 + y) / 2 if kind == "sign" else w * y, w * p])
    kept = seen.pack()
    np.testing.assert_array_equal(kept["sums"], sums)
    if kind != "number":
        used = sorted(place for place, held in bins.items() if held.any())
        np.testing.assert_array_equal(kept["used"], used)
        np.testing.assert_array_equal(kept["bins"].T, [bins[place] for place in used])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_log_losses_equal_the_loss(dtype):
    ends = [0.0, -0.0, 1e-30, 40.0, 700.0, 1e30]
    m = np.array([*ends, *(-end for end in ends), *np.random.default_rng(0).normal(0, 5, 1000)], dtype)
    for y in (0.0, 0.3, 1.0):
        labels = np.full(m.size, y, dtype)
        losses, probabilities = measured(m, labels)
        np.testing.assert_allclose(losses, Logistic()(m, labels), rtol=1e-15)
        np.testing.assert_allclose(probabilities, Logistic().link(m), rtol=1e-15)


def test_predictions_of_signs_are_margins():
    seen = Metrics(Logistic(), "sign")
    seen.add([2.0, 5.0], [0.0, 1.0])
    assert seen.report().mean_prediction == 3.5


def test_invalid_rows_leave_metrics_unchanged():
    seen = Metrics(Logistic())
    for margins, importance in (([0.0, 1.0], None), ([0.0], [1.0, 1.0, 1.0]), ([[0.0]], None)):
        with pytest.raises(ValueError, match="one number for each of 1 labels"):
            seen.add(margins, [1.0], importance)
    with pytest.raises(ValueError, match="margins: got shape"):
        seen.add([0.0, 1.0, 2.0], [1.0, 0.0])  # which numpy would not compute with either
    with pytest.raises(ValueError, match="loss: got shape"):
        Metrics(lambda m, y: np.zeros(5)).add([0.0], [1.0])
    assert seen.report().rows == 0
    seen.add([math.nan, 1e300, -1e300], [1, 1, 0])
    assert math.isnan(seen.report().loss)


def test_totals_since_others_cover_the_rows_added_after_them():
    margins, labels, importance = clicks(1000)
    seen, second = Metrics(Logistic()), Metrics(Logistic())
    assert seen.total.rows == 0
    assert math.isnan(seen.total.mean)
    seen.add(margins[:400], labels[:400], importance[:400])
    before = seen.total
    for one in (seen, second):
        one.add(margins[400:], labels[400:], importance[400:])
    found, other, report = seen.total.since(before), second.total, seen.report()
    counts = importance > 0
    assert (found.rows, found.weight) == (counts[400:].sum(), pytest.approx(other.weight, rel=1e-12))
    assert found.mean == pytest.approx(other.mean, rel=1e-12)
    assert (report.rows, report.weight, report.loss) == (counts.sum(), seen.total.weight, seen.total.mean)
    resumed = Metrics(Logistic())
    resumed.unpack(seen.pack())
    assert resumed.total == seen.total


def test_undefined_metrics_are_none():
    empty = Metrics(Logistic()).report()
    assert (empty.rows, empty.auc, empty.calibration, empty.table) == (0, None, None, ())
    assert math.isnan(empty.loss)
    one = Metrics(Logistic())
    one.add([0.0, 1.0], [0, 0])
    assert (one.report().auc, one.report().entropy, one.report().calibration) == (None, None, None)
    numbers = Metrics(Squared(), "number")
    numbers.add([1.0, 2.0], [1.5, 2.0])
    assert numbers.report().loss == 0.5 * 0.25 / 2
    assert numbers.report().auc is None
    signs = Metrics(Hinge(), "sign")
    signs.add([1.0, -2.0, 0.5], [1, -1, -1])
    assert signs.report().auc == 1.0
    assert signs.report().entropy is None
