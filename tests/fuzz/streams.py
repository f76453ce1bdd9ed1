"""Random and adversarial streams, and random settings to learn them with.

Kinds of streams, each with every loss: plain, separable, with labels that flip half way, with an outlier in features
and label, with one setting that leads by far and then errs, with features of different scales (10^±4) and units
(10^±30), with labels against what gradient descent predicts, constant, one row repeated, sorted by label, and
drifting to the opposite model. Importances are 1, 10, random, or random with zeros. :mod:`tests.fuzz.sentences`
learns them directly, by training on dicts (hold-out, passes, interruptions, models to continue from, files), by
estimators and river models; :mod:`tests.fuzz.runs` writes files of decimals, and lists what is combined there.
"""

import itertools

import numpy as np

from forel.data.features.hashing import slot
from forel.learner.grid import default_grid
from forel.learner.settings import Settings

__all__ = ["BITS", "FEATURES", "KINDS", "NAMES", "SLOTS", "settings_for", "stream"]

BITS, FEATURES = 5, 6
KINDS = (
    "plain", "separable", "flips", "outlier", "leader", "scales", "adversary", "constant", "repeated", "sorted",
    "drift", "units",
)  # fmt: skip
BINARY = ("logistic", "hinge", "squared_hinge")
ALGORITHMS, RATES = ("proximal", "centered", "mirror"), ("adagrad", "scale_free")


def names():
    """Names of features that hash to different slots, in the order of these."""
    chosen, taken = [], set()
    for name in (f"x{k}" for k in itertools.count()):
        if slot(name, bits=BITS) not in taken:
            chosen.append(name)
            taken.add(slot(name, bits=BITS))
        if len(chosen) == FEATURES:
            return sorted(chosen, key=lambda name: slot(name, bits=BITS))
    raise AssertionError


NAMES = names()
SLOTS = np.array([slot(name, bits=BITS) for name in NAMES])


def stream(rng, loss, kind):
    """Rows, labels and importances, rounded to float32."""
    rows, binary = int(rng.integers(20, 120)), loss in BINARY
    X = rng.normal(size=(rows, FEATURES)) * (rng.random((rows, FEATURES)) < 0.6)
    if kind == "constant":
        X[:] = 1.0
    if kind in ("scales", "units"):
        largest = 4 if kind == "scales" else 30
        X *= 10.0 ** rng.integers(-largest, largest + 1, FEATURES)
    if kind == "repeated":
        X[:] = X[0]
    truth = rng.normal(size=FEATURES) * (0.0 if kind == "leader" else 1.0) / (np.abs(X).max(axis=0) + 1e-300)
    truth = truth + np.zeros((rows, 1))
    if kind == "drift":  # from one model to its opposite
        truth *= np.linspace(1, -1, rows)[:, None]
    signal = (X * truth).sum(axis=1)
    signal = signal / (np.abs(signal).max() or 1.0) * 3
    if binary:
        y = (signal > 0) if kind == "separable" else rng.random(rows) < 1 / (1 + np.exp(-signal))
        y = y.astype(float)
    elif loss == "poisson":
        y = rng.poisson(np.exp(signal)).astype(float)
    else:
        y = (signal + rng.normal(size=rows)) * 10.0 ** rng.integers(-2, 4)
    if kind == "flips":
        y[rows // 2 :] = 1 - y[rows // 2 :] if binary else y.max() - y[rows // 2 :]
    if kind == "outlier":
        k = int(rng.integers(rows // 2, rows))
        y[k], X[k] = (1 - y[k]) if binary else np.abs(y).max() * 50 + 40, X[k] * 30
    if kind == "leader":  # one setting leads by far, then is confidently wrong on one row
        X[:] = 0
        X[:, 0], y[:] = 1.0, 1.0 if binary else 3.0
        X[-1, 0], y[-1] = 200.0, 0.0 if binary else 90.0
    if kind == "adversary":  # labels against what a plain gradient descent would predict
        w = np.zeros(FEATURES)
        for t in range(rows):
            y[t] = float(X[t] @ w <= 0) if binary else (4.0 if loss == "poisson" else 5.0) * float(X[t] @ w <= 0)
            w += 0.3 * (2 * float(y[t] > 0) - 1) * X[t]
    if kind == "sorted":
        order = np.argsort(y, kind="stable")[:: int(rng.choice([-1, 1]))]
        X, y = X[order], y[order]
    return tuple(each.astype(np.float32).astype(float) for each in (X, y, _importances(rng, rows)))


def _importances(rng, rows):
    one = np.ones(rows)
    varied = rng.exponential(size=rows) * 3
    # Rows of importance 0 do not count as rows, and change nothing.
    return (one, 10 * one, varied, varied * (rng.random(rows) < 0.8))[int(rng.choice(4, p=(0.5, 0.15, 0.25, 0.1)))]


def settings_for(rng, loss):
    """Random settings of one model, of three, of a mixture with Gaussian filters, or the default ones."""
    if _allows_filters(loss) and rng.random() < 0.6:
        return _with_filters(rng, loss)
    if rng.random() < 0.03:
        return default_grid(loss=loss, bias=bool(rng.random() < 0.7))
    several, alphas = bool(rng.random() < 0.6), 10.0 ** rng.uniform(-2, 1, 3)
    return Settings(
        loss=loss,
        algorithm=ALGORITHMS[rng.integers(len(ALGORITHMS))],
        rate=RATES[rng.integers(len(RATES))],
        alpha=tuple(alphas) if several else float(alphas[0]),
        **_shared(rng),
    )


def _shared(rng):
    """Random settings that all lanes share."""
    return {
        "beta": float(rng.choice([0.01, 1.0])),
        "l1": float(rng.choice([0.0, 0.0, 0.3])),
        "l2": float(rng.choice([0.0, 0.0, 0.5])),
        "penalty_weight": str(rng.choice(["once", "once", "every"])),
        "radius": float(rng.choice([0.5, 5.0])) if rng.random() < 0.15 else None,
        "bias": bool(rng.random() < 0.7),
    }


def _allows_filters(loss):
    try:
        return bool(Settings(loss=loss, rate="scale_free", filters=[(1.0, 0.0)]).filters)
    except ValueError:
        return False


def _with_filters(rng, loss):
    """The default settings, if they have filters, or random rates and filters, which mixers mix as well."""
    usual = default_grid(loss=loss, bias=bool(rng.random() < 0.7))
    if usual.filters and rng.random() < 0.5:
        return usual
    settings, filters = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    return Settings(
        loss=loss,
        rate="scale_free",
        alpha=tuple(10.0 ** rng.uniform(-2, 1, settings)),
        filters=tuple(zip(10.0 ** rng.uniform(-3, 2, filters), rng.choice([0.0, 1.0, 4.0], filters), strict=True)),
        **_shared(rng),
    )
