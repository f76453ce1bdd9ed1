"""Fixed share as one of the experts of a mixture: its reference, files without it, serving models, and drift."""

import numpy as np
import pytest
from scipy.special import expit

from forel.experts import FixedShare, LogOdds, mix
from forel.learner.grid import default_grid
from forel.learner.kernels import bayes
from forel.learner.learner import Learner
from forel.learner.mixture import Ledger
from forel.learner.settings import Settings
from forel.store import serving_model
from tests.fuzz.oracle import fixed_share_margins

SETTINGS = Settings(alpha=(0.1, 10.0), rate="scale_free", filters=((1.0, 1.0), (0.1, 0.0)))


def switching(rows=400, seed=0):
    """Margins of three experts, of which another one is the best after half of the rows, and labels."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < 0.5).astype(float)
    signs = np.where((np.arange(rows) < rows // 2)[:, None], [1.0, -1.0, 0.1], [-1.0, 1.0, 0.1])
    return 1.5 * signs * (2 * y - 1)[:, None] + rng.normal(size=(rows, 3)), y


def played(margins, labels, importance, size=None):
    ledger, out = Ledger(margins.shape[1], fixed_share_expert=True), np.empty(len(margins))
    for start in range(0, len(margins), size or len(margins)):
        part = slice(start, start + (size or len(margins)))
        bayes.bayes(margins[part].ravel(), margins.shape[1], labels[part], importance[part], ledger.array, out[part])
    return ledger, out


def test_the_expert_is_fixed_share_with_shares_of_1_over_t():
    margins, y = switching()
    ledger, _ = played(margins, y, np.ones(len(y)))
    expected = mix(margins, y, pool=LogOdds(), rule=FixedShare())
    assert ledger.losses[-1] == pytest.approx(expected.loss, rel=1e-12)
    assert ledger.weights == pytest.approx(np.exp(expected.state.log_weights), rel=1e-9)
    assert ledger.array[-1] == len(y)
    assert ledger.loss <= ledger.losses.min() + np.log(4) + 1e-9
    assert ledger.loss < ledger.losses[:-1].min() - 20  # no other expert is good in both halves


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_importances_and_soft_labels_are_as_in_the_reference_for_any_block_size(scale):
    margins, y = switching(rows=150)
    rng = np.random.default_rng(1)
    y, importance = np.where(rng.random(150) < 0.3, 0.4, y), rng.choice([0.0, 0.5, 1.0, 3.0, -1.0], 150)
    margins = margins * np.where(rng.random(150) < 0.2, scale, 1.0)[:, None]
    ledger, out = played(margins, y, importance)
    for size in (1, 7, 64):
        other, parts = played(margins, y, importance, size)
        assert np.array_equal(other.array, ledger.array)
        assert np.array_equal(parts, out)
    learned, none = importance >= 0, np.empty((150, 0))
    shared = fixed_share_margins(margins, none, none, y, np.maximum(importance, 0.0))
    lost = np.logaddexp(0, shared) - y * shared
    assert ledger.losses[-1] == pytest.approx((importance * lost)[learned].sum(), rel=1e-9)
    total = np.log(4) * 3 - 3 * np.logaddexp.reduce(-ledger.losses / 3)  # the rate is divided by the largest importance
    assert ledger.loss <= total * (1 + 1e-12)


def test_experts_that_are_dropped_leave_their_weight_to_the_others():
    margins, y = switching(rows=150)
    full, ones = margins[:60, :1] + 0.5, np.ones(150)
    ledger, _ = played(np.column_stack([margins[:60], full]), y[:60], ones[:60])
    before, ledger = ledger, ledger.without_inputs(3, 1)
    assert ledger.weights == pytest.approx(before.weights[:3] / before.weights[:3].sum())
    assert ledger.losses == pytest.approx(before.losses[[0, 1, 2, 4]])
    bayes.bayes(margins[60:].ravel(), margins.shape[1], y[60:], ones[60:], ledger.array, np.empty(90))
    shared = fixed_share_margins(margins, full, np.empty((150, 0)), y, ones)
    assert ledger.losses[-1] == pytest.approx((np.logaddexp(0, shared) - y * shared).sum(), rel=1e-9)
    assert ledger.array[-1] == 150


@pytest.mark.usefixtures("interpreted")
def test_predictions_of_a_serving_model_include_what_fixed_share_weighs():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    signs = np.where(np.arange(200) < 100, 3.0, -3.0)
    y = (rng.random(200) < expit(signs * X[:, 0])).astype(float)
    model = Learner(4, SETTINGS, dtype=np.float64)
    model.learn(X, y)
    model.mixture.ledger.losses[-1] = model.mixture.ledger.losses.min() - 1.0  # fixed share has most of the weight
    assert model.posterior[-1] > 0.3
    found = serving_model(model, mixed=True).margins(X[:20])[:, 0]
    assert found == pytest.approx(model.margins(X[:20])[:, 0], rel=1e-3, abs=2e-3)


def test_it_helps_where_the_best_expert_changes(interpreted):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 5))
    w = np.where((np.arange(900) // 150 % 2)[:, None], 2.0, -2.0) * np.ones(5)
    y = (rng.random(900) < expit((X * w).sum(axis=1))).astype(float)
    model = Learner(5, default_grid())
    model.learn(X, y)
    assert model.explain().kinds[-1].without > 0.01
