"""Gaussian filters: the same margins as a slow reference, alone and with lanes of FTRL, and invalid options."""

import numpy as np
import pytest
from scipy.special import expit

from forel.learner.experts import Filter
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.training.model import load, save

N, ROUNDS = 6, 120
FILTERS = (Filter(10.0, 3.0), Filter(0.3, 3.0), Filter(0.3), Filter(0.03))
FORGETFUL = (Filter(10.0, 3.0), Filter(0.3, 3.0, 0.9), Filter(0.3, memory=0.5), Filter(0.03, 0.0, 0.99))
BESIDE = Settings(alpha=(0.05, 0.3, 1.5, 20.0), l1=(0.1, 1.0, 0.1, 0.1), beta=0.01, rate="scale_free", filters=FILTERS)


def stream(loss="logistic", seed=0, units=None):
    """Sparse rows of which some are empty, with importances; the largest values come late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROUNDS, N)) * (rng.random((ROUNDS, N)) < 0.5) * np.linspace(0.1, 3, ROUNDS)[:, None]
    X = np.float32(X) * (1 if units is None else units)
    score = (X != 0) @ rng.normal(size=N) + 0.3
    y = 50 + 10 * score + rng.normal(size=ROUNDS) if loss == "squared" else 1.0 * (rng.random(ROUNDS) < expit(score))
    return X, y, rng.choice([0.0, 0.5, 1.0, 4.0], ROUNDS)


class Reference:
    """Beliefs as they are defined: a Gaussian for each weight, whose prior is in the unit of its feature's scale."""

    def __init__(self, variance, shrinkage, memory, loss, bias):
        self.variance, self.shrinkage, self.memory, self.loss = variance, shrinkage, memory, loss
        self.mean, self.information = np.zeros(N + bias), np.zeros(N + bias)
        self.scale = np.append(np.zeros(N), np.ones(int(bias)))

    @property
    def variances(self):
        return 1 / np.maximum(self.scale**2 / self.variance + self.information, 1e-30)

    @property
    def weights(self):
        threshold = self.shrinkage * np.append(np.ones(N), np.zeros(self.mean.size - N)) * self.variances
        square = self.mean**2
        return self.mean * np.maximum(square - threshold, 0) / np.maximum(square + threshold, 1e-300)

    def step(self, row, label, importance):
        a = np.append(row, np.ones(self.mean.size - N)).astype(np.float64)
        if importance == 0:  # not learned from
            return np.clip(a, -self.scale, self.scale) @ self.weights
        self.scale = np.maximum(self.scale, abs(a))
        V = self.variances
        margin, S = a @ self.weights, V @ a**2
        p = expit(margin)
        slope, curvature = (margin - label, 1.0) if self.loss == "squared" else (p - label, p * (1 - p))
        slope, curvature = importance * slope, importance * curvature
        self.mean = self.mean - V * a * slope / (1 + curvature * S)
        self.information[curvature * a != 0] *= self.memory  # rows without information are not forgotten for
        self.information = self.information + curvature * a**2 / (1 + curvature * (S - V * a**2))
        return margin


def replayed(loss, X, y, importance, variance, shrinkage, memory, bias):
    reference = Reference(variance, shrinkage, memory, loss, bias)
    return np.array([reference.step(*one) for one in zip(X, y, importance, strict=True)]), reference


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.usefixtures("interpreted")
def test_margins_are_those_of_the_reference(loss, bias):
    X, y, importance = stream(loss)
    filters = FORGETFUL if loss == "squared" else FILTERS
    variances, shrinkages, memories = zip(*filters, strict=True)
    alone = Settings(loss, "filter", alpha=variances, beta=shrinkages, memory=memories, bias=bias)
    beside = Settings(loss, rate="scale_free", filters=filters, bias=bias)
    models = [Learner(N, settings, dtype=np.float64, mixed=False) for settings in (alone, beside)]
    found = [model.progress(X, y, importance) for model in models]
    assert np.array_equal(found[0], found[1][:, 1:])
    for lane, one in enumerate(filters):
        margins, reference = replayed(loss, X, y, importance, *one, bias)
        assert np.allclose(found[0][:, lane], margins, rtol=1e-10, atol=1e-12)
        assert np.allclose(models[0].weights[:, lane], reference.weights[:N], rtol=1e-9, atol=1e-12)
        assert np.array_equal(models[0].weights[:, lane] == 0, reference.weights[:N] == 0)
        single = models[1].select_setting(1 + lane)
        assert single.settings == alone.only(lane)
        assert np.array_equal(single.weights[:, 0], models[0].weights[:, lane])
        # It continues as it would have.
        assert np.array_equal(
            single.progress(X[:9], y[:9]), Learner.select_setting(models[0], lane).progress(X[:9], y[:9])
        )


def test_compiled_lanes_of_both_kinds_are_the_same_bits_in_whatever_pieces(tmp_path):
    X, y, importance = stream()
    whole, pieces = (Learner(N, BESIDE, mixed=False) for _ in range(2))
    expected = whole.progress(X, y, importance)
    found = [pieces.progress(X[:50], y[:50], importance[:50])]
    save(tmp_path / "m", pieces)
    pieces = load(tmp_path / "m").learner
    found.append(pieces.progress(X[50:], y[50:], importance[50:]))
    assert pieces.settings == BESIDE
    assert np.array_equal(np.concatenate(found), expected)
    assert whole.state.numbers.tobytes() == pieces.state.numbers.tobytes()
    for lane, one in enumerate(FILTERS):
        margins, _ = replayed("logistic", X, y, importance, *one, True)
        assert np.allclose(expected[:, 4 + lane], margins, rtol=2e-4, atol=2e-5)
    # The other lanes do not notice.
    ftrl = Learner(N, Settings(alpha=BESIDE.alpha, l1=BESIDE.l1, beta=0.01, rate="scale_free"), mixed=False)
    assert np.array_equal(ftrl.progress(X, y, importance), expected[:, :4])


@pytest.mark.parametrize("power", [-100, 60])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usefixtures("interpreted")
def test_units_of_features_do_not_matter(power):
    units = np.float32([2.0**power, 1, 1, 1, 1, 2.0**-power])
    (X, y, _), (other, _, _) = stream(), stream(units=units)
    settings = Settings(algorithm="filter", alpha=(3.0, 0.1), beta=(1.0, 0.0))
    one, two = (Learner(N, settings, mixed=False) for _ in range(2))
    assert np.array_equal(one.progress(X, y), two.progress(other, y))
    assert np.array_equal(one.weights, two.weights * units[:, None])


@pytest.mark.usefixtures("interpreted")
def test_a_filter_learns_each_class_against_the_rest():
    X, _, _ = stream()
    y = np.argmax(X[:, :3], axis=1)
    both = Learner(N, Settings(algorithm="filter", alpha=(1.0, 0.1)), classes=3, dtype=np.float64, mixed=False)
    found = both.progress(X, y)
    for label in range(3):
        margins, _ = replayed("logistic", X, y == label, np.ones(ROUNDS), 0.1, 1.0, 1.0, True)
        assert np.allclose(found[:, 2 * label + 1], margins, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_loss_floors_use_the_slopes_of_filters_as_well():
    """Weights of a filter are fixed in each round, so that its slopes are dual values like any other learner's."""
    X, y, _ = stream()
    settings = Settings(alpha=0.01, rate="scale_free", filters=FILTERS)
    model, without = (
        Learner(N, s, dtype=np.float64, certified=True, mixed=False) for s in (settings, settings.only(0))
    )
    for one in (model, without):
        one.learn(X, y)
    for norm in (0.1, 1.0, 10.0):
        w = norm * model.weights[:, 3] / np.linalg.norm(model.weights[:, 3] * abs(X).max(axis=0))
        margins = X @ w
        assert (
            without.loss_floor().at(norm)
            <= model.loss_floor().at(norm)
            <= np.mean(np.logaddexp(0, margins) - y * margins)
        )
    assert model.loss_floor().at(10.0) > without.loss_floor().at(10.0) + 0.01
    with pytest.raises(ValueError, match="lane: got 1, expected 0: filters have no bound"):
        model.certificate(1)


def test_what_filters_do_not_have_is_refused():
    for bad, message in (
        ({"loss": "hinge"}, "loss: got 'hinge', expected logistic or squared"),
        ({"l1": 1.0}, "l1: got 1.0, expected 0 where algorithm='filter'"),
        ({"radius": 1.0}, "radius: got 1.0, expected None where"),
        ({"memory": 1.5}, "memory: got .1.5., expected numbers above 0 and at most 1"),
        ({"memory": 0.9}, "memory < 1 needs loss='squared'"),
        (
            {"loss": "squared", "algorithm": "mirror", "memory": 0.9},
            "memory: got 0.9; memory is only used by algorithm='filter'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            Settings(**{"algorithm": "filter", **bad})
    with pytest.raises(ValueError, match="unless algorithm='proximal' and rate='scale_free'"):
        Settings(filters=FILTERS)
    for bad in ((0.0, 1.0), (1.0, -1.0), (1.0, 0.0, 0.0)):
        with pytest.raises(ValueError, match=r"filters: got|memory: got"):
            Settings(rate="scale_free", filters=[bad])
    with pytest.raises(ValueError, match="classes: got 3, expected None with filters"):
        Learner(N, Settings(rate="scale_free", filters=FILTERS), classes=3, mixed=False)
    with pytest.raises(ValueError, match="certified: got True, expected False where algorithm='filter'"):
        Learner(N, Settings(algorithm="filter"), certified=True)
