"""Mixers of squared loss: a slow ridge regression, units of labels, extremes, and mixtures within their bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.learner.experts import MIXERS, Filter, Inputs, Mixer
from forel.learner.grid import EXPERTS, default_grid, without_filters
from forel.learner.kernels import mixing
from forel.learner.kernels.ledger_layout import GAP, HEAD
from forel.learner.learner import Learner
from forel.learner.mixers import Mixers
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.training.model import load, save

N, ROUNDS = 4, 150
SETTINGS = Settings("squared", alpha=(3.0, 300.0), rate="scale_free", filters=(Filter(3.0), Filter(3.0, memory=0.9)))


def stream(seed=0, rows=ROUNDS):
    """A level that drifts, with outliers, and importances."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, N)) * (rng.random((rows, N)) < 0.7)
    y = 20 + np.cumsum(rng.normal(size=rows)) + 5 * X @ rng.normal(size=N) + 40 * (rng.random(rows) < 0.02)
    y[60] += 500  # farther outside of the range of earlier labels than that is long
    return X, y, rng.choice([0.5, 1.0, 3.0], rows) * (np.arange(rows) % 5 > 0)


class Reference:
    """Weighted least squares around equal weights, solved anew from the inverse of the covariance in every row."""

    def __init__(self, mixer, count):
        self.mixer, self.cov = mixer, mixer.variance * np.eye(count + 1)
        self.v = np.append(np.full(count, 1 / count), 0.0)
        self.squares, self.rows = 0.0, 0.0

    def step(self, predictions, label, importance, low, high):
        span, memory = high - low, self.mixer.memory
        if span == 0:
            return low
        middle = (low + high) / 2
        x = np.append(np.clip(predictions, low, high) - middle, 0.3 * span)
        mixed = float(np.clip(middle + self.v @ x, low, high))
        if importance > 0:
            precision = importance * (self.rows + 1) / (self.squares + span**2)
            cov = np.linalg.inv(np.linalg.inv(self.cov) + precision * np.outer(x, x))
            error = np.clip(label - mixed, -span, span)
            self.v = self.v + cov @ x * precision * error
            self.cov = memory * cov + (1 - memory) * self.mixer.variance * np.eye(x.size)
            self.squares, self.rows = memory * self.squares + importance * error**2, memory * self.rows + importance
        return mixed


@pytest.mark.usefixtures("interpreted")
def test_predictions_are_those_of_the_reference_and_within_the_bound():
    X, y, importance = stream()
    model = Learner(N, SETTINGS, dtype=np.float64)
    model.progress(X, y, importance)
    margins = Learner(N, SETTINGS, dtype=np.float64, mixed=False).progress(X, y, importance)
    references = [Reference(mixer, 4) for mixer in MIXERS[Mixing.EXP_CONCAVE]]
    counted = importance > 0  # other rows do not count
    low = np.append(np.inf, np.minimum.accumulate(np.where(counted, y, np.inf))[:-1])
    high = np.append(-np.inf, np.maximum.accumulate(np.where(counted, y, -np.inf))[:-1])
    low, high = (np.where(low > high, 0.0, one) for one in (low, high))
    losses = np.zeros(6)
    for r in range(ROUNDS):
        mixed = [one.step(margins[r], y[r], importance[r], low[r], high[r]) for one in references]
        every = np.append(np.clip(margins[r], low[r], high[r]), mixed)
        losses += importance[r] * (every - y[r]) ** 2 / 2
    assert model.losses == pytest.approx(losses, rel=1e-8)
    assert model.names[-2:] == ("mixer", "mixer, memory=0.9997")
    measured, bound = model.guarantee().pair
    assert measured <= bound
    assert "the best of 6 experts, predictions clipped to the labels seen before," in str(model.guarantee())


@pytest.mark.usefixtures("interpreted")
def test_a_large_level_of_labels_costs_the_mixture_one_row():
    """Predictions are between the labels seen before, so that experts far below the level do not count in the mean."""
    X, y, _ = stream()
    model = Learner(N, SETTINGS, dtype=np.float64)
    predictions = model.progress(X, 1000.0 + y)[:, 0]
    assert predictions[0] == 0
    low, high = (1000.0 + one.accumulate(y)[:-1] for one in (np.minimum, np.maximum))
    assert ((predictions[1:] >= low - 1e-9) & (predictions[1:] <= high + 1e-9)).all()
    assert model.mixture.ledger.label_range == (1000.0 + y.min(), 1000.0 + y.max())
    assert Learner(N, SETTINGS).mixture.ledger.label_range == (0.0, 0.0)
    held = Learner(N, SETTINGS, dtype=np.float64)
    held.progress(X, 1000.0 + y, held_out=np.arange(ROUNDS) < 3)
    assert held.mixture.ledger.label_range == (1000.0 + y[3:].min(), 1000.0 + y[3:].max())


@pytest.mark.parametrize("power", [-60, 60])
@pytest.mark.usefixtures("interpreted")
def test_filters_and_mixers_do_not_depend_on_the_unit_of_labels(power):
    X, y, _ = stream()
    only_filters = Settings("squared", alpha=1e-9, rate="scale_free", filters=SETTINGS.filters)
    one, two = (Learner(N, only_filters, dtype=np.float64) for _ in range(2))
    predictions = one.progress(X, y), two.progress(X, y * 2.0**power) / 2.0**power
    assert np.allclose(*predictions, rtol=1e-6)


@pytest.mark.usefixtures("interpreted")
def test_pieces_files_and_copies_continue_with_the_same_bits(tmp_path):
    X, y, importance = stream()
    held = np.arange(ROUNDS) % 7 == 0
    whole, pieces = (Learner(N, SETTINGS) for _ in range(2))
    expected = whole.progress(X, y, importance, held)
    found = [pieces.progress(X[:90], y[:90], importance[:90], held[:90])]
    save(tmp_path / "m", pieces)
    pieces = load(tmp_path / "m").learner
    found.append(pieces.progress(X[90:], y[90:], importance[90:], held[90:]))
    assert np.array_equal(np.concatenate(found), expected)
    assert np.array_equal(pieces.mixture.ledger.array, whole.mixture.ledger.array)
    before = whole.mixture.ledger.array.copy()
    assert np.array_equal(pieces.margins(X[:5]), whole.margins(X[:5]))
    assert np.array_equal(whole.mixture.ledger.array, before)


@pytest.mark.usefixtures("interpreted")
def test_the_bound_holds_on_rows_that_are_sorted_alternating_or_growing():
    X, y, _ = stream()
    order = np.argsort(y)
    signs = np.where(np.arange(ROUNDS) % 2, 1.0, -1.0)
    for rows, labels in (
        (X[order], y[order]),
        (np.ones((ROUNDS, N)), signs),
        (np.ones((ROUNDS, N)), signs * 1.5 ** np.arange(ROUNDS)),
        (np.ones((ROUNDS, N)), np.repeat([1.0, 0.0], [ROUNDS - 1, 1])),
    ):
        model = Learner(N, SETTINGS, dtype=np.float64)
        model.learn(rows, labels)
        measured, bound = model.guarantee().pair
        assert measured <= bound
        span = np.ptp(np.append(labels, 0.0))
        assert bound <= 2 * (np.log(6) + 1) * span**2 * (1 + 1e-9)
        assert np.isfinite(model.posterior).all()


def test_the_rate_falls_no_further_than_the_range_of_labels_needs():
    """After a large excess the rate is 1/span², at which predictions of labels in the range cost nothing further."""
    ledger, spans, out = np.zeros(HEAD + 2), np.full(1, 0.5), np.empty(1)
    ledger[GAP], ledger[HEAD:] = 5.0, (0.03, 0.09)
    experts = np.array([[0.0, 0.5]])
    for label in (0.5, 0.0, 0.5, 0.5):
        w = np.exp(-ledger[HEAD:] / 0.25)
        mixing.squared(experts, np.array([label]), np.ones(1), spans, ledger, out)
        assert out[0] == pytest.approx(w @ experts[0] / w.sum(), rel=1e-12)
    assert ledger[GAP] == 5.0


@given(
    st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3),
    st.lists(st.floats(-1e30, 1e30), min_size=4, max_size=4),
)
def test_labels_and_importances_of_any_size_leave_numbers(margins, labels):
    for importance in (1e-30, 1.0, 1e38):
        mixers = Mixers((Mixer(0.3, 1.0), Mixer(0.1, 0.9)), 3, Mixing.EXP_CONCAVE)
        rows = np.array([margins, margins[::-1]] * 2)
        seen = np.append(0.0, labels[:-1])
        low, high = np.minimum.accumulate(seen), np.maximum.accumulate(seen)
        given = Examples(Rows(np.zeros(5, np.int64), *np.zeros((2, 0))), np.array(labels), np.full(4, importance))
        out = mixers.learn(given, Inputs(rows, low, high))
        assert np.isfinite(mixers.pack()).all()
        assert ((out >= low[:, None] * (1 + 1e-12)) & (out <= high[:, None] * (1 + 1e-12))).all()
        for state, mixer in zip(mixers.states, mixers.mixers, strict=True):
            assert np.linalg.eigvalsh(state[1:]).max() <= mixer.variance + 1e-9
            assert np.linalg.eigvalsh(state[1:]).min() >= -1e-9


def test_filters_are_part_of_the_default_for_squared_loss():
    grid = default_grid(loss="squared")
    assert grid.filters == EXPERTS[Mixing.EXP_CONCAVE].filters
    assert grid.n_settings == 8
    assert default_grid(loss="squared", l2=0.1).filters == default_grid(loss="absolute").filters == ()
    assert without_filters(grid) == default_grid(loss="squared", lanes=16)
