"""Progressive log-loss of experts for several classes: what filters, mixers and a joint loss would change.

Input: tables of scikit-learn and river, and the words of ``classes.py``.
Output: a Markdown table. *Grid* is the default, 16 settings of each class against the rest, and *softmax* the same with
the joint loss. The others are the default experts of two classes, learned for each class against the rest: *lanes*
mixes their settings and diagonal filters as the default mixes its settings, *mixers* uses the whole mixture of each
class without full-covariance filters, *full filters* with them; the probabilities of classes are normalized.
"""

import argparse

import classes
import numpy as np
from river import datasets
from scipy.special import log_expit, log_softmax
from sklearn.datasets import load_digits, load_iris, load_wine

from forel.learner.grid import default_grid, without_filters
from forel.learner.learner import Learner


def of_arrays(load):
    """Rows of a data set of scikit-learn in random order."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order].astype(np.float32), y[order]


def segments():
    """Rows of the image segments of river, in their order."""
    rows = list(datasets.ImageSegments())
    names, columns = sorted({label for _, label in rows}), list(rows[0][0])
    X = np.array([[features[name] for name in columns] for features, _ in rows], np.float32)
    return X, np.array([names.index(label) for _, label in rows])


SETS = {
    "digits": lambda: of_arrays(load_digits),
    "wine": lambda: of_arrays(load_wine),
    "iris": lambda: of_arrays(load_iris),
    "image segments": segments,
    "words of 20 classes": lambda: classes.documents(2500),
}


def losses(learner, settings, X, y):
    """Loss of each row and lane, of learners of each class against the rest, with normalized probabilities."""
    labels = [(y == c).astype(float) for c in range(y.max() + 1)]
    margins = np.stack([learner(X.shape[1], settings).progress(X, one) for one in labels], axis=1).astype(float)
    return -log_softmax(log_expit(margins), axis=1)[np.arange(len(y)), y]


def bayes(each):
    """Average loss of Bayes' rule over lanes."""
    return (np.log(each.shape[1]) - np.logaddexp.reduce(-each.sum(axis=0))) / len(each)


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print("| data | classes | grid | softmax | lanes | mixers | full filters |\n|---|---:|---:|---:|---:|---:|---:|")
    lanes, whole = default_grid(full_filters=()), default_grid()
    for name, load in SETS.items():
        X, y = load()
        joint = Learner(X.shape[1], default_grid(loss="softmax"), classes=int(y.max()) + 1)
        joint.learn(X, y)
        found = [bayes(losses(Learner, without_filters(whole), X, y)), joint.loss / len(y)]
        found += [bayes(losses(Learner, lanes, X, y)), *(losses(Learner, s, X, y).mean() for s in (lanes, whole))]
        print(f"| {name} | {y.max() + 1} | {' | '.join(f'{one:.4f}' for one in found)} |", flush=True)


if __name__ == "__main__":
    main()
