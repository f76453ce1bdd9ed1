"""Explanations of mixtures: contributions are integrated derivatives, and add up to the mixture's own prediction."""

import math

import numpy as np
import pytest

import forel
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.mixture import Mixture
from forel.learner.rows import rows_of
from forel.learner.settings import Settings
from forel.store.explaining import path_weights
from forel.store.serving import ClippedMean, LogisticMixture, lane_mixture


def logistic(rng, odd):
    mixers = rng.normal(size=(2, 4))
    return LogisticMixture(rng.dirichlet(np.ones(5)), mixers, clip=4.0 if odd else math.inf, limit=30.0)


def clipped(rng, odd):
    limits = (-1.0, 2.5) if odd else (-20.0, 30.0)
    return ClippedMean(rng.dirichlet(np.ones(5)), rng.normal(size=(2, 4)), *limits)


def clipped_classes(rng, odd):
    limits = (-math.inf, 0.5) if odd else (-math.inf, math.inf)
    return ClippedMean(rng.dirichlet(np.ones(3)), np.zeros((0, 4)), *limits, classes=2)


def classes(rng, odd):
    """A mixture of three classes by Bayes' rule after some losses, jointly or each class against the rest."""
    mixture = Mixture(Settings("softmax" if odd else "logistic", alpha=(0.1, 1.0)), 3)
    mixture.ledger.losses[:] = rng.random(2)
    return mixture


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [logistic, clipped, clipped_classes, classes])
@pytest.mark.usefixtures("interpreted")
def test_contributions_are_integrated_derivatives(make, seed):
    rng = np.random.default_rng(seed)
    mixture = make(rng, seed % 2 == 1)
    mix = mixture.mixed if make is classes else mixture.margins
    lanes = 3 if make in (logistic, clipped) else 6
    output = 0 if lanes == 3 else 1
    coefficients, bias, x = rng.normal(size=(6, lanes)), rng.normal(size=lanes), rng.normal(size=6)

    def margin(values):
        return mix(bias + np.atleast_2d(values) @ coefficients)[:, output]

    found = coefficients @ path_weights(mix, bias, bias + x @ coefficients, output) * x
    steps, h = 400, 1e-5
    path = (np.arange(steps) + 0.5)[:, None] / steps * x
    slow = [
        x[k] * np.sum(margin(path + h * unit) - margin(path - h * unit)) / 2 / h for k, unit in enumerate(np.eye(6))
    ]
    assert found == pytest.approx(np.array(slow) / steps, rel=1e-3, abs=0.02 if make is clipped else 2e-3)
    assert found.sum() == pytest.approx(np.diff(margin([0 * x, x]))[0], rel=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        default_grid(),
        default_grid(loss="squared"),
        Settings("squared", alpha=(0.1, 1.0, 3.0)),
        Settings("absolute", alpha=(0.1, 1.0)),
        Settings("poisson", alpha=(0.1, 0.3)),
    ],
    ids=lambda settings: f"{settings.loss}-{settings.n_settings}",
)
@pytest.mark.parametrize("rows", [0, 1, 60])
@pytest.mark.usefixtures("interpreted")
def test_margins_are_those_of_the_mixture(settings, rows):
    rng = np.random.default_rng(rows)
    X, y = rng.normal(size=(rows, 5)), rng.integers(2 if settings.loss == "logistic" else 9, size=rows)
    model = Learner(5, settings, dtype=np.float64)
    model.learn(X, y)
    test = np.vstack([rng.normal(size=(20, 5)), 30 * rng.normal(size=(20, 5)), np.zeros((1, 5))])
    bias = model.model_weights_at(np.array([5]))[0]
    lanes = np.array([bias + values @ model.row_weights(np.arange(5), values) for values in test])
    kept, mixture = lane_mixture(model, 0.0)
    assert np.allclose(mixture.margins(lanes[:, kept]), model.margins(test), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("interpreted")
def test_weights_of_values_beyond_those_of_training_are_those_of_the_prediction():
    """Of two columns far from 0, one alone is beyond the margins of full-covariance filters, the row is not."""
    rng = np.random.default_rng(0)
    X = 10 + rng.normal(size=(80, 2))
    model = Learner(2, default_grid(), dtype=np.float64)
    for _ in range(3):
        model.learn(X, X[:, 0] > X[:, 1], np.full(80, 40.0))
    row = np.array([15.0, 14.0])
    lanes = model.model_weights_at(np.array([2]))[0] + row @ model.row_weights(np.arange(2), row)
    full = model.mixture.full_filters.margins(rows_of(row[None], 2, np.float64))[0]
    expected = np.concatenate([model.unmixed.margins(row[None])[0], full])
    assert np.abs(full).max() < 30
    assert np.allclose(lanes, expected, rtol=1e-9, atol=1e-9)


def numbers(rng):
    return [
        {"x": v, "site": s, "y": 3 * v + 2 * (s == "a")} for v, s in zip(rng.normal(size=60), "ab" * 30, strict=True)
    ]


def kinds(rng):
    return [{"x": v, "site": s, "y": s if v > 0 else "c"} for v, s in zip(rng.normal(size=60), "ab" * 30, strict=True)]


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (numbers, {"loss": "squared"}),
        (numbers, {"settings": Settings("squared", alpha=(0.1, 1.0))}),
        (numbers, {"settings": Settings("quantile", alpha=(0.1, 1.0))}),
        (kinds, {}),
        (kinds, {"loss": "softmax"}),
        (kinds, {"settings": Settings("hinge", alpha=(0.1, 1.0))}),
    ],
)
@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore:the rows differ")
def test_explanations_add_up_to_the_prediction(make, options):
    rows = make(np.random.default_rng(1))
    trained = forel.train(rows, label="y", bits=6, **options)
    for row in ({"site": "a", "x": 0.5}, {"x": -1.0}, {"x": 90.0}, {}, rows[0]):
        found = trained.explain_one(row)
        margins = np.ravel(forel.predict(trained, [row], margins=True))
        assert found.margin == pytest.approx(float(margins.max()), rel=1e-4, abs=1e-5)
        assert found.margin == pytest.approx(found.bias + sum(part.contribution for part in found.contributions))
        empty = np.ravel(forel.predict(trained, [{}], margins=True))
        assert found.bias == pytest.approx(float(empty[np.argmax(margins)]), rel=1e-4, abs=1e-5)
        expected = trained.predict_one(row)
        if isinstance(expected, float):
            assert found.prediction == pytest.approx(expected, rel=1e-4, abs=1e-5)
        else:
            assert found.label == expected
            if options.get("settings") is None:
                assert found.prediction == pytest.approx(math.exp(found.margin), rel=1e-6)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("options", [{}, {"features": "linear"}, {"settings": Settings(alpha=(0.1, 100.0))}])
@pytest.mark.filterwarnings("ignore:the rows differ")
def test_an_explained_margin_is_that_of_the_model_where_probabilities_round_to_1(options):
    rows = [{"x": float(k % 2 * 2 - 1), "y": k % 2} for k in range(300)]
    trained = forel.train(rows, label="y", bits=4, **options)
    for x in (1.0, -1.0, 1e3, -1e3, 1e9, -1e20):
        (margin,) = forel.predict(trained, [{"x": x}], margins=True).tolist()
        found = trained.explain_one({"x": x})
        assert found.margin == pytest.approx(margin, rel=1e-6)
        assert found.margin == pytest.approx(found.bias + sum(part.contribution for part in found.contributions))
