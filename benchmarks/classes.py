"""Predictions of 20 classes for rows of words, against scikit-learn's ``SGDClassifier``.

Input: 5,000 rows of 150 words each, of 50,000 words with log-uniform popularity; a tenth of a row's words is typical of
its class.
Output: processor time of ``predict`` and ``predict_proba`` as a ratio to SGD's, medians of turns. The mixture is timed
twice: when its weights are not in memory yet, as in the first call after learning, and later.
"""

import argparse
import statistics
import time

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from forel.sklearn import FTRLClassifier

CLASSES, WORDS, PER_ROW = 20, 50_000, 150


def documents(rows, seed=0):
    """Return rows of words as a CSR matrix, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=rows)
    words = (WORDS ** rng.random((rows, PER_ROW))).astype(np.int32) % WORDS
    typical = PER_ROW // 10
    words[:, :typical] = 1000 + 100 * y[:, None] + rng.integers(100, size=(rows, typical))
    ends = np.arange(0, rows * PER_ROW + 1, PER_ROW, dtype=np.int32)
    X = sparse.csr_array((np.ones(rows * PER_ROW, np.float32), words.ravel(), ends), shape=(rows, WORDS))
    X.sum_duplicates()
    return X, y


def processor_times(runs, repeats):
    """Return the processor seconds of each run in each turn."""
    seconds = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return seconds


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    X, y = documents(options.rows)
    sgd = SGDClassifier(loss="log_loss", max_iter=2, tol=None, random_state=0).fit(X, y)
    models = {"one setting": FTRLClassifier(alpha=0.1).fit(X, y), "mixture of 16": FTRLClassifier().fit(X, y)}
    for name in ("predict", "predict_proba"):
        runs = {"SGDClassifier": lambda name=name: getattr(sgd, name)(X)}
        for label, model in models.items():
            runs[label] = lambda name=name, model=model: getattr(model, name)(X)
            getattr(model, name)(X[:10])  # compile, or link compiled code
        mixture = models["mixture of 16"]

        def first(name=name, mixture=mixture):
            mixture._model.unmixed._tables.kept = {}
            getattr(mixture, name)(X)

        seconds = processor_times({**runs, "mixture of 16, first call": first}, options.repeats)
        base = seconds["SGDClassifier"]
        print(f"{name}: SGDClassifier {statistics.median(base) * 1e3:.1f} ms for {options.rows:,} rows")
        for label, mine in seconds.items():
            ratio = statistics.median(a / b for a, b in zip(mine, base, strict=True))
            print(f"  {label:28s}{ratio:6.2f}")


if __name__ == "__main__":
    main()
