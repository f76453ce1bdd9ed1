"""Train estimators of scikit-learn and river on random streams, and check their certificates and guarantees."""

import numpy as np

from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.river import LinearClassifier, LinearRegressor
from forel.sklearn import FTRLClassifier, FTRLRegressor
from tests.fuzz import oracle
from tests.fuzz.checks import coded, full_margins, guarantee_violations, proof_violations, scales_of, with_constant
from tests.fuzz.streams import BINARY, FEATURES, NAMES, stream


def scikit(loss, options, X, y, weight):
    """Certificate, learned model, guarantee, type and columns of an estimator of scikit-learn, trained in two calls."""
    known = {"classes": [0.0, 1.0]} if loss in BINARY else {}
    model = (FTRLClassifier if loss in BINARY else FTRLRegressor)(loss=loss, certified=True, **options)
    for part in np.array_split(np.arange(len(y)), 2):
        model.partial_fit(X[part], y[part], sample_weight=weight[part], **known)
    guarantee = getattr(model, "guarantee_", None)
    return model.certificate_, np.append(model.coef_, model.intercept_), guarantee, np.float32, np.arange(FEATURES)


def river(loss, options, X, y, weight):
    """The same of a river model, whose columns are the names that occurred, in the order in which they did."""
    model = (LinearClassifier if loss in BINARY else LinearRegressor)(loss=loss, certified=True, **options)
    for row, label, importance in zip(X.tolist(), y.tolist(), weight.tolist(), strict=True):
        features = {name: value for name, value in zip(NAMES, row, strict=True) if value}
        model.learn_one(features, bool(label) if loss in BINARY else label, w=importance)
    columns = np.array([NAMES.index(name) for name in model.weights], np.intp)
    learned = np.append(list(model.weights.values()), model.bias)
    return model.certificate(), learned, model.guarantee(), np.float64, columns


def door_violations(rng, loss, kind):
    """The reasons why statements of an estimator are false, with the default experts or one model."""
    X, y, weight = stream(rng, loss, kind)
    usual = default_grid(loss=loss)
    options = {} if usual.filters else {"alpha": float(10.0 ** rng.uniform(-2, 1))}
    door = scikit if loss == "poisson" or rng.random() < 0.5 else river
    proof, learned, guarantee, dtype, columns = door(loss, options, X, y, weight)
    without = {"full_filters": ()} if door is river else {}
    settings, labels = default_grid(loss=loss, **options, **without), coded(loss, y)
    X, labels, weight = (column[weight > 0] for column in (X, labels, weight))
    alone = Learner(FEATURES, settings, dtype=dtype, mixed=False).progress(X, labels, weight).astype(float)
    violations, margins = [], alone[:, 0]
    if settings.n_settings > 1:
        mixture = Learner(FEATURES, settings, dtype=dtype)
        margins = mixture.progress(X, labels, weight)[:, 0].astype(float)
        full = full_margins(settings, loss, X.astype(dtype).astype(float), labels, weight)
        violations += guarantee_violations(str(guarantee), mixture, loss, margins, alone, full, labels, weight)
    elif guarantee is not None:
        violations.append(f"{guarantee}: it is of one model")
    features, own = with_constant(X[:, columns], settings), oracle.average(loss, margins, labels, weight)
    scales, words = scales_of(X[:, columns], settings), proof.summary(learned)
    why = oracle.certificate_violation(words, loss, features, labels, weight, own, learned, scales)
    violations += [f"{words}: {why}"] if why else []
    if not proof.floor_void:
        double = dtype is np.float64
        violations += proof_violations(rng, proof, loss, features, labels, weight, own, scales, double)
    return settings, [f"{door.__name__}: {one}" for one in violations]
