"""Check the guarantee of default mixtures on real data, from raw rows and margins, in orders that are hard to learn.

``python -m tests.fuzz.guarantees --rows 3000`` runs every data set, order and loss; the tests run a part. Data sets are
those of ``FOREL_DATA``, by default ``shared/data`` next to the checkout; missing ones are skipped.
"""

import argparse
import csv
import gzip
import itertools
import os
import pathlib
import time

import numpy as np
from sklearn.feature_extraction import FeatureHasher

from forel.learner.grid import default_grid, without_filters
from forel.learner.learner import Learner
from tests.fuzz import oracle
from tests.fuzz.checks import full_margins, mixture_violations
from tests.fuzz.streams import BINARY

DATA = pathlib.Path(os.environ.get("FOREL_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))
SETS = {
    "a9a": ".svm.gz",
    **dict.fromkeys(("amazon_books", "amazon_dvd", "amazon_electronics", "amazon_kitchen", "rcv1_small"), ".vw.gz"),
    "spambase": ".vw.gz",
    "elec2": ".csv.gz",
    "bike_sharing": ".csv.gz",
    "nyse_o": ".csv.gz",
}
ORDERS = ("shuffled", "sorted", "adversarial")
COLUMNS = {"elec2": "class", "bike_sharing": "cnt"}  # of labels
DROPPED = ("casual", "registered", "instant", "dteday")
SIZE = 1 << 16
CLASSES = ("softmax", "logistic")  # losses of several classes whose mixtures have probabilities


def path_of(name):
    return DATA / f"{name}{SETS[name]}"


def examples(name):
    """Yield label and features by name of each row; of price relatives, the first one of the next day is predicted."""
    with gzip.open(path_of(name), "rt") as file:
        if name in COLUMNS:
            for row in csv.DictReader(file):
                label = float(row.pop(COLUMNS[name]))
                yield label, {key: float(value) for key, value in row.items() if key not in DROPPED}
        elif name == "nyse_o":
            for row, following in itertools.pairwise(csv.reader(file)):
                yield float(following[0]), {str(k): float(value) for k, value in enumerate(row)}
        else:
            for line in file:
                label, *tokens = line.replace("|f", "").split()
                pairs = (token.rpartition(":") for token in tokens)
                yield float(label), {key: float(value) for key, _, value in pairs}


def read(name, rows, longest=None):
    """The first rows of a data set, as a matrix of hashed features, at most ``longest`` a row, and their labels."""
    found = list(itertools.islice(examples(name), rows))
    hasher = FeatureHasher(SIZE, input_type="pair", alternate_sign=False)
    X = hasher.transform(itertools.islice(features.items(), longest) for _, features in found)
    kept = np.unique(X.indices)  # a slot each, which takes less memory and learns the same
    return X[:, kept].astype(np.float32), np.array([label for label, _ in found])


def targets(loss, y):
    """Labels in the domain of a loss, from any real ones."""
    if loss in BINARY:
        return np.where(y > y.mean(), 1.0, -1.0 if oracle.LOSSES[loss].sign else 0.0)
    return np.maximum(np.round(y), 0.0) if loss == "poisson" else y


def ordered(X, y, order, rng):
    places = np.argsort(y, kind="stable") if order == "sorted" else rng.permutation(len(y))
    return X[places], y[places]


def against(model, X, y):
    """Labels that are as far from the mixture's predictions as those of the data allow, and its margins."""
    low, high = y.min(), y.max()
    labels, margins = np.empty(len(y)), np.empty(len(y))
    middle = 0.0 if model.settings.loss_function.link.unitless else (low + high) / 2
    for t in range(len(y)):
        row = X[t : t + 1]
        labels[t] = low if model.margins(row)[0, 0] > middle else high
        margins[t] = model.progress(row, labels[t : t + 1])[0, 0]
    return labels, margins


def violations(name, loss, order, rows, settings=None, seed=0, longest=None):
    """The reasons why the sentence and the table of a mixture are false on a data set."""
    X, y = read(name, rows, longest)
    X, y = ordered(X, targets(loss, y), order, np.random.default_rng(seed))
    settings = default_grid(loss=loss) if settings is None else settings
    model = Learner(X.shape[1], settings)
    if order == "adversarial":
        y, margins = against(model, X, y)
    else:
        margins = model.progress(X, y)[:, 0].astype(float)
    each = Learner(X.shape[1], settings, mixed=False).progress(X, y).astype(float)
    full, nearly = (full_margins(settings, loss, X, y, np.full(len(y), 1 + eps)) for eps in (0.0, 1e-13))
    if order == "adversarial" and np.abs(full - nearly).max(initial=0.0) > 1e-6 * (1 + np.abs(full).max(initial=0.0)):
        return []  # labels against a filter whose margins are ±30 in turn: rounding decides which, in any arithmetic
    return mixture_violations(model, loss, margins, each, full, y, np.ones(len(y)))


def class_violations(name, loss, order, rows, settings=None, seed=0, longest=None):
    """The same for three classes of as many rows each, by the size of labels; the guarantee is that of log-loss."""
    X, y = read(name, rows, longest)
    labels = (np.argsort(np.argsort(y, kind="stable")) * 3 // len(y)).astype(float)
    X, y = ordered(X, labels, order, np.random.default_rng(seed))
    settings = without_filters(default_grid(loss=loss)) if settings is None else settings
    model = Learner(X.shape[1], settings, classes=3)
    mixed = np.empty((len(y), 3))
    for t in range(len(y)) if order == "adversarial" else ():
        y[t] = model.margins(X[t : t + 1])[0].argmin()
        mixed[t] = model.progress(X[t : t + 1], y[t : t + 1])[0]
    if order != "adversarial":
        mixed = model.progress(X, y)
    alone = Learner(X.shape[1], settings, classes=3, mixed=False).progress(X, y).astype(float)
    each = oracle.class_losses(alone.reshape(len(y), 3, settings.n_settings), y, loss == "softmax").mean(axis=0)
    own, words = float(-mixed[np.arange(len(y)), y.astype(int)].mean()), str(model.guarantee())
    why = oracle.guarantee_violation(words, own, each, list(model.names), np.ones(len(y)))
    why = why or oracle.bayes_violation(words, settings.n_settings, np.ones(len(y)))
    return [f"{words}: {why}"] if why else []


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seconds", type=float, help="time limit in seconds")
    parser.add_argument("--seed", type=int, default=0)
    options, begun, played, found = parser.parse_args(), time.monotonic(), 0, []
    checks = [(violations, loss) for loss in oracle.LOSSES] + [(class_violations, loss) for loss in CLASSES]
    for check, loss in checks:
        for name in SETS:
            if not path_of(name).exists():
                print(f"{path_of(name)}: skipped, as there is no such file", flush=True)
                continue
            for order in ORDERS:
                if options.seconds is not None and time.monotonic() > begun + options.seconds:
                    continue
                why = check(name, loss, order, options.rows, seed=options.seed)
                found += [f"{name}, {order}, {loss}: {one}" for one in why]
                played += 1
        print(*found, f"{loss}: {played} streams, {len(found)} violations so far", sep="\n", flush=True)
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
