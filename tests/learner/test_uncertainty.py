"""Standard errors: variances of filters, scores of FTRL, the law of total variance, and what is refused."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from forel.learner.filters import Filter
from forel.learner.linear import Linear, Settings, rows_of
from forel.learner.mixture import Mixture
from forel.learner.uncertainty import intervals, lane_variances, standard_errors
from forel.sklearn import FTRLClassifier, FTRLRegressor

N, ROUNDS = 5, 80
FILTERS = (Filter(3.0), Filter(0.3, 1.0))


def stream(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROUNDS, N)) * (rng.random((ROUNDS, N)) < 0.6) * np.float32([1, 1, 1, 2.0**30, 2.0**-40])
    score = (X != 0) @ rng.normal(size=N)
    y = 5 + 3 * score + rng.normal(size=ROUNDS) if loss == "squared" else 1.0 * (rng.random(ROUNDS) < expit(score))
    return X, y


def filtered(X, y, one, loss):
    """Margins and information of a diagonal Gaussian filter, each row before it is learned, in plain numpy."""
    mean, n, scale = np.zeros(N + 1), np.zeros(N + 1), np.append(np.zeros(N), 1.0)
    for row, label in zip(X, y, strict=True):
        a = np.append(row, 1.0)
        scale = np.maximum(scale, abs(a))
        V = 1 / np.maximum(scale**2 / one.variance + n, 1e-300)
        cut = one.shrinkage * np.append(np.ones(N), 0) * V
        w = mean * np.maximum(mean**2 - cut, 0) / np.maximum(mean**2 + cut, 1e-300)
        m, S = a @ w, V @ a**2
        p = expit(m)
        g, h = (m - label, 1.0) if loss == "squared" else (p - label, p * (1 - p))
        mean = mean - V * a * g / (1 + h * S)
        n = n + h * a**2 / (1 + h * (S - V * a**2))
    return n, scale


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.usefixtures("interpreted")
def test_variances_and_scores_are_those_of_the_formulas(loss):
    X, y = stream(loss)
    settings = Settings(loss, alpha=(0.5, 5.0), beta=0.1, rate="scale_free", filters=FILTERS)
    model = Linear(N, settings, dtype=np.float64)
    model.learn(X, y)
    new = X[:20] * 3  # beyond the scales of some features
    found = lane_variances(model.copied_lanes(), rows_of(new, N, np.float64))
    a = np.column_stack([new, np.ones(len(new))])
    for lane, one in enumerate(FILTERS):
        n, scale = filtered(X, y, one, loss)
        beyond = np.maximum(scale, abs(a))
        expected = np.sum(a**2 / (beyond**2 / one.variance + n), axis=1)
        assert found[:, 2 + lane] == pytest.approx(expected, rel=1e-6)
        alone = model.only(2 + lane)
        noise = 2 * alone.loss[0] / ROUNDS if loss == "squared" else 1.0
        assert standard_errors(alone, new) == pytest.approx(np.sqrt(expected * noise), rel=1e-6)
    margins, squares = Linear(N, settings, dtype=np.float64).progress(X, y)[:, 0], np.zeros(N + 1)
    slopes = margins - y if loss == "squared" else expit(margins) - y
    squares = np.sum((slopes[:, None] * np.column_stack([X, np.ones(ROUNDS)])) ** 2, axis=0)
    scale = np.maximum(np.append(abs(X).max(axis=0), 1.0), abs(a))
    score = np.sum(a**2 * 0.5 / np.maximum(scale * (0.1 * scale + np.sqrt(squares)), 1e-300), axis=1)
    assert found[:, 0] == pytest.approx(score, rel=1e-6)
    assert standard_errors(model.only(0), new) == pytest.approx(score, rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usefixtures("interpreted")
def test_units_of_features_do_not_matter():
    X, y = stream("squared")
    X = np.float32(np.sign(X) * np.linspace(1, 2, N))
    units = np.float32([1, 2.0**60, 2.0**-60, 1, 1])
    settings = Settings("squared", rate="scale_free", filters=FILTERS)
    one, two = Linear(N, settings), Linear(N, settings)
    one.learn(X, y)
    two.learn(X * units, y)
    expected = lane_variances(one.copied_lanes(), rows_of(X, N, np.float32))
    assert lane_variances(two.copied_lanes(), rows_of(X * units, N, np.float32)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.usefixtures("interpreted")
def test_a_mixture_has_the_variance_of_an_expert_drawn_by_weight(loss):
    X, y = stream(loss)
    model = Mixture(N, Settings(loss, alpha=(0.5, 5.0), rate="scale_free", filters=FILTERS), dtype=np.float64)
    model.learn(X, y)
    new, ledger = X[:9], model.ledger
    margins = model.linear.margins(new)
    variances = lane_variances(model.linear.copied_lanes(), rows_of(new, N, np.float64))
    unit, middle = 1.0, 0.0
    if loss == "squared":
        variances = variances * 2 * model.losses[:4] / ROUNDS
        low, high = y.min(), y.max()
        margins, unit, middle = np.clip(margins, low, high), high - low, (low + high) / 2
    best = variances[:, 2 + np.argmin(model.losses[2:4])]
    moments, weights = [(margins[:, k], best if k < 2 else variances[:, k]) for k in range(4)], model.posterior
    if loss == "logistic":  # the last expert draws one of the others by the weights of fixed share
        weights = weights[:-1] + weights[-1] * ledger.weights
    for state in ledger.mixer_states:
        x = np.column_stack(
            [np.clip(margins, -4, 4) if loss == "logistic" else (margins - middle) / unit, np.full(9, 0.3)]
        )
        own = np.array([row @ state[1:] @ row for row in x]) * unit**2
        moments.append((middle + x @ state[0] * unit, own + best))
    mean = sum(w * m for w, (m, _) in zip(weights, moments, strict=True))
    second = sum(w * (m**2 + v) for w, (m, v) in zip(weights, moments, strict=True))
    assert standard_errors(model, new) == pytest.approx(np.sqrt(second - mean**2), rel=1e-6)


@pytest.mark.usefixtures("interpreted")
def test_intervals_are_links_of_margins_and_estimators_return_their_ends():
    X, y = stream("logistic")
    model = FTRLClassifier(shuffle=False).fit(X, y)
    low, high = model.predict_interval(X, level=0.5, scale=2.0)
    error, margin = standard_errors(model._model, X), model._model.margins(X)[:, 0].astype(float)
    assert low == pytest.approx(expit(margin - 2 * 0.6744897501960817 * error), rel=1e-6)
    assert high == pytest.approx(expit(margin + 2 * 0.6744897501960817 * error), rel=1e-6)
    found = intervals(model._model, X, 0.5, 0.0)
    assert np.array_equal(found.low, found.high)
    assert np.array_equal(found.low, found.prediction)
    lows, highs = FTRLRegressor().fit(X, y).predict_interval(X)
    assert (lows < highs).all()
    with pytest.raises(NotFittedError):
        FTRLRegressor().predict_interval(X)


@pytest.mark.usefixtures("interpreted")
def test_what_has_no_standard_error_is_refused():
    with pytest.raises(ValueError, match="classes: got 3, expected None"):
        standard_errors(Linear(2, Settings(), classes=3), np.eye(2))
    with pytest.raises(ValueError, match="lanes: got 2, expected one model"):
        standard_errors(Linear(2, Settings(alpha=(0.1, 1.0))), np.eye(2))
    model = Linear(2, Settings(algorithm="filter"))
    for bad in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="level: got"):
            intervals(model, np.eye(2), level=bad)
    with pytest.raises(ValueError, match="scale: got -1"):
        intervals(model, np.eye(2), scale=-1.0)
