"""Small tables of two classes for ``benchmarks/quality.py``, as lines of VW text: those in scikit-learn and river.

The full-covariance filters among the default experts were chosen on the tables of ``CHOSEN``.
"""

from functools import partial

import numpy as np
from river import datasets
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

CHOSEN = (
    "breast cancer", "digits, even or odd", "digits, 8 or not", "wine", "iris", "phishing", "image segments",
)  # fmt: skip


def of_arrays(load, positive):
    """Rows of a data set of scikit-learn in random order; ``positive`` is true for labels that become 1."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    yield from map(line, (dict(enumerate(row)) for row in X[order].tolist()), positive(y[order]))


def of_river(load, positive):
    """Rows of a data set of river in its order."""
    for features, label in load():
        yield line(features, positive(label))


def line(features, positive):
    """One row as VW text, with numbers that are not 0 as values."""
    values = " ".join(f"{name}:{value:g}" for name, value in features.items() if value)
    return f"{1 if positive else -1} | {values}\n"


def sets():
    """Functions that return the lines of each table."""
    return {
        "breast cancer": partial(of_arrays, load_breast_cancer, lambda y: y == 1),
        "digits, even or odd": partial(of_arrays, load_digits, lambda y: y % 2 == 1),
        "wine": partial(of_arrays, load_wine, lambda y: y == 1),
        "iris": partial(of_arrays, load_iris, lambda y: y == 1),
        "phishing": partial(of_river, datasets.Phishing, bool),
        "image segments": partial(of_river, datasets.ImageSegments, lambda y: y in ("grass", "path", "sky")),
        "shuttle": partial(of_river, datasets.Shuttle, bool),
        "yeast, first class": partial(of_river, datasets.Yeast, lambda y: y["Class1"]),
        "yeast, second class": partial(of_river, datasets.Yeast, lambda y: y["Class2"]),
        "digits, 8 or not": partial(of_arrays, load_digits, lambda y: y == 8),
    }
