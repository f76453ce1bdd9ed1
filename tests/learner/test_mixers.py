"""Geometric mixers: the same margins as a slow reference, and mixtures with them within the bound of Bayes' rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from forel.learner.experts import MIXERS, Inputs, Mixer
from forel.learner.grid import EXPERTS, default_grid, without_filters
from forel.learner.learner import Learner
from forel.learner.mixers import Mixers
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.losses.margin import Mixing
from forel.training.model import load, save
from tests.fuzz.oracle import fixed_share_margins

N, ROUNDS = 6, 200
SETTINGS = Settings(alpha=(0.1, 10.0), rate="scale_free", filters=((1.0, 1.0), (0.1, 0.0)))


def stream(seed=0, rows=ROUNDS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, N)) * (rng.random((rows, N)) < 0.5)
    return X, 1.0 * (rng.random(rows) < expit(2 * X @ rng.normal(size=N) + 0.3)), rng.choice([0.0, 0.5, 1.0], rows)


class Reference:
    """A Bayesian logistic regression on clipped margins, with the quadratic approximation of each row's loss."""

    def __init__(self, mixer, count):
        self.mixer, self.cov = mixer, mixer.variance * np.eye(count + 1)
        self.v = np.append(np.full(count, 1 / count), 0.0)

    def step(self, margins, label, importance):
        x = np.append(np.clip(margins, -4, 4), 0.3)
        margin = float(np.clip(self.v @ x, -30, 30))
        if importance > 0:
            p = expit(margin)
            h = importance * max(p * (1 - p), 1e-6)
            information = np.linalg.inv(self.cov) + h * np.outer(x, x)
            cov = np.linalg.inv(information)
            self.v = self.v + cov @ x * importance * (label - p)
            memory = self.mixer.memory
            self.cov = memory * cov + (1 - memory) * self.mixer.variance * np.eye(x.size)
        return margin


@pytest.mark.usefixtures("interpreted")
def test_margins_are_those_of_the_reference_and_every_expert_counts():
    X, y, importance = stream()
    model = Learner(N, SETTINGS, dtype=np.float64)
    found = model.progress(X, y, importance)[:, 0]
    margins = Learner(N, SETTINGS, dtype=np.float64, mixed=False).progress(X, y, importance)
    references = [Reference(mixer, 4) for mixer in MIXERS[Mixing.BAYES]]
    experts = np.array(
        [
            np.append(m, [one.step(m, *row) for one in references])
            for m, *row in zip(margins, y, importance, strict=True)
        ]
    )
    shared = fixed_share_margins(experts, np.empty((ROUNDS, 0)), np.empty((ROUNDS, 0)), y, importance)
    losses, suffered = np.zeros(7), 0.0
    for every, label, c, got in zip(np.column_stack([experts, shared]), y, importance, found, strict=True):
        w = np.exp(losses.min() - losses)
        p = w @ expit(every) / w.sum()
        assert got == pytest.approx(np.log(p / (1 - p)), rel=1e-7, abs=1e-9)
        losses += c * (np.logaddexp(0, every) - label * every)
        suffered -= c * np.log(p if label else 1 - p)
    assert model.losses == pytest.approx(losses, rel=1e-8)
    assert model.loss == pytest.approx(suffered, rel=1e-8)
    assert model.loss <= np.log(7) - np.logaddexp.reduce(-losses) + 1e-9
    assert model.guarantee().measured <= model.guarantee().bound == pytest.approx(np.log(7), rel=1e-6)
    assert "the best of 7 experts" in str(model.guarantee())
    summaries = model.explain().experts
    assert [one.kind for one in summaries] == ["setting"] * 2 + ["filter"] * 2 + ["mixer"] * 2 + ["fixed share"]
    assert [one.name for one in summaries][-3:] == ["mixer", "mixer, memory=0.9997", "fixed share"]
    assert sum(one.weight for one in summaries) == pytest.approx(1)


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
    predicted = whole.margins(X[:5])
    whole.progress(X[:5], y[:5], again=True)
    assert np.array_equal(whole.mixture.ledger.array, before)
    assert np.array_equal(pieces.margins(X[:5]), predicted)
    pieces.reset()
    assert np.array_equal(pieces.mixture.ledger.array, Learner(N, SETTINGS).mixture.ledger.array)


@pytest.mark.parametrize("share", [None, 0.01])
@pytest.mark.usefixtures("interpreted")
def test_the_bound_holds_on_rows_that_are_sorted_or_adversarial(share):
    X, y, _ = stream()
    order = np.argsort(y, kind="stable")
    for rows, labels in ((X[order], y[order]), (np.ones((ROUNDS, N)), np.arange(ROUNDS) % 2.0)):
        model = Learner(N, SETTINGS, share=share)
        model.learn(rows, labels)
        measured, bound = model.guarantee().pair
        assert measured <= bound


@pytest.mark.usefixtures("interpreted")
def test_one_setting_alone_may_be_a_filter_and_certificates_are_those_of_settings():
    X, y, _ = stream()
    model = Learner(N, Settings(alpha=(1e-6, 1e-5), rate="scale_free", filters=((1.0, 0.0),)), certified=True)
    model.learn(X, y)
    assert model.best == 2
    alone = model.select_setting()
    assert alone.settings.algorithm == "filter"
    assert np.array_equal(alone.weights, model.weights)
    assert model.certificate().loss == pytest.approx(model.loss)
    assert "loses" in model.summary() or "could" in model.summary()
    for norm in (0.5, 2.0):
        w = norm * model.weights[:, 0] / np.linalg.norm(model.weights[:, 0] * abs(X).max(axis=0))
        margins = X @ w
        assert model.loss_floor().at(norm) <= np.mean(np.logaddexp(0, margins) - y * margins)


@given(st.lists(st.floats(-1e30, 1e30), min_size=3, max_size=3), st.sampled_from([0.0, 0.3, 1.0]))
def test_margins_and_importances_of_any_size_leave_numbers(margins, label):
    for importance in (1e-30, 1.0, 1e38):
        mixers = Mixers((Mixer(0.3, 1.0), Mixer(0.1, 0.9)), 3, Mixing.BAYES)
        rows = np.array([margins, margins[::-1]] * 2)
        given = Examples(Rows(np.zeros(5, np.int64), *np.zeros((2, 0))), np.full(4, label), np.full(4, importance))
        out = mixers.learn(given, Inputs(rows, *np.zeros((2, 0))))
        assert np.isfinite(out).all()
        for state, mixer in zip(mixers.states, mixers.mixers, strict=True):
            assert np.isfinite(state).all()
            assert np.allclose(state[1:], state[1:].T, rtol=0, atol=1e-12)
            assert np.linalg.eigvalsh(state[1:]).max() <= mixer.variance + 1e-9
            assert np.linalg.eigvalsh(state[1:]).min() >= -1e-9


def test_filters_are_part_of_the_default_without_other_options():
    assert default_grid().filters == default_grid(bias=False, seed=3).filters == EXPERTS[Mixing.BAYES].filters
    for options in ({"l1": 1.0}, {"lanes": 8}, {"algorithm": "mirror"}, {"loss": "hinge"}, {"l2": 0.1}, {"alpha": 1.0}):
        assert default_grid(**options).filters == ()
    assert without_filters(default_grid(bias=False)) == default_grid(lanes=16, bias=False)
