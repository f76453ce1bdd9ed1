"""One certificate type for every learner: estimators, river models, mixtures, classes, stored."""

import numpy as np
import pytest

import forel
from forel.learner.certificate import Certificate
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.river import LinearClassifier, LinearRegressor
from forel.sklearn import FTRLClassifier, FTRLRegressor
from forel.training.model import load, save
from tests.fuzz import oracle
from tests.learner.test_dual import N, stream

pytestmark = pytest.mark.usefixtures("interpreted")
ALPHAS = (0.05, 0.5)


def rows(X):
    return [dict(zip("abcd", map(float, row), strict=True)) for row in X]


def linear(loss, X, y):
    model = Learner(N, Settings(loss, alpha=0.3), dtype=np.float64, certified=True)
    model.learn(X, y)
    return model.certificate(), np.append(model.weights, model.bias)


def mixture(loss, X, y):
    model = Learner(N, Settings(loss, alpha=ALPHAS), dtype=np.float64, certified=True)
    model.learn(X, y)
    return model.certificate(), np.append(model.weights, model.bias)


def estimator(loss, X, y):
    classes = {"classes": [0.0, 1.0]} if loss == "logistic" else {}
    model = (FTRLClassifier if classes else FTRLRegressor)(loss=loss, alpha=ALPHAS, certified=True)
    model.partial_fit(X, y, **classes)
    return model.certificate_, np.append(model.coef_, model.intercept_)


def river(loss, X, y):
    model = (LinearClassifier if loss == "logistic" else LinearRegressor)(loss=loss, alpha=0.3, certified=True)
    for row, label in zip(rows(X), y, strict=True):
        model.learn_one(row, bool(label) if loss == "logistic" else float(label))
    weights = model.weights
    return model.certificate(), np.array([*(weights[name] for name in weights), model.bias])


DOORS = [linear, mixture, estimator, river]


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_learner_has_the_same_certificate(door, loss):
    X, y, _ = stream(loss)
    X = X.astype(np.float32).astype(float)
    y = y.astype(np.float32).astype(float)
    proof, learned = door(loss, X, y)
    assert type(proof) is Certificate
    features, one = np.column_stack([X, np.ones(len(X))]), np.ones(len(X))
    own = proof.loss / proof.weight
    for norm in (0.2, 2.0):
        assert proof.loss_floor(l2=norm) <= oracle.least_average(loss, features, y, one, norm) + 1e-9
    scales = np.abs(features).max(axis=0) if proof.scales is not None else None
    words = proof.summary(learned)
    why = oracle.certificate_violation(words, loss, features, y, one, own, learned, scales)
    assert why is None, f"{words}: {why}"


@pytest.mark.parametrize("mixed", [False, True])
def test_several_classes_and_stored_models_have_it_too(mixed, tmp_path):
    X, _, weight = stream("logistic")
    y = np.random.default_rng(3).integers(0, 3, len(X))
    settings = Settings("softmax", alpha=ALPHAS)
    model = Learner(N, settings, classes=3, dtype=np.float64, certified=True, mixed=mixed)
    model.learn(X, y, weight)
    save(tmp_path / "m.forel", model)
    again = load(tmp_path / "m.forel").learner
    assert type(again.certificate()) is Certificate
    assert again.summary() == model.summary()
    floor = again.loss_floor()
    assert floor.rows == len(X)
    # A model that predicts the frequency of each class is one of the models.
    shares = np.bincount(y, weight) / weight.sum()
    bias = np.log(shares) - np.log(shares).mean()
    assert floor.at(float(np.linalg.norm(bias))) <= -float(shares @ np.log(shares)) + 1e-9
    assert 0 < floor.at(0.1) <= np.log(3) + 1e-9


def test_inspect_shows_the_certificate_of_several_classes(tmp_path):
    from forel.cli.inspect import _describe

    table = [{"label": name, "a": float(k)} for k, name in enumerate("xyz" * 20)]
    trained = forel.train(table, Settings("softmax", alpha=0.3), label="label", bits=5, certificate=True)
    assert "fixed linear model of these 2^5 hashed features" in _describe(trained, 3)["certificate"]
