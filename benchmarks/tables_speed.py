"""Training on a table of columns of numbers: forel with each choice of features, and boosted trees.

Peers: LightGBM with 200 trees and rate 0.05 (if installed) and ``HistGradientBoostingClassifier``, on the threads that
they choose for two cores.
Input: 200,000 generated rows of 20 columns and a label of two classes, as a dataframe in memory.
Output: medians in turns of wall-clock and processor seconds, rows per second, and log-loss of 20,000 more rows.
"""

import argparse
import importlib.util
import os
import statistics
import time

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

import forel

HELD_OUT = 20_000
CORES = min(os.cpu_count() or 1, 2)


def learners():
    """Functions by name, from a table and labels to a function that returns probabilities."""

    def of_forel(features):
        def fit(X, y):
            trained = forel.train(X.assign(label=y), label="label", features=features, progress=False)
            return lambda rows: trained.predict(rows)

        return fit

    def of_estimator(make):
        def fit(X, y):
            model = make().fit(X, y)
            return lambda rows: model.predict_proba(rows)[:, 1]

        return fit

    found = {f"forel, {name}": of_forel(name) for name in ("linear", "curves", "pairs")}
    if importlib.util.find_spec("lightgbm"):
        import lightgbm

        options = {"n_estimators": 200, "learning_rate": 0.05, "verbose": -1, "n_jobs": CORES}
        found["LightGBM"] = of_estimator(lambda: lightgbm.LGBMClassifier(**options))
    else:
        print("LightGBM is not installed (pip install 'forel[bench]'): no comparison")
    found["HistGradientBoosting"] = of_estimator(HistGradientBoostingClassifier)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    X, y = make_classification(options.rows + HELD_OUT, 20, n_informative=10, flip_y=0.05, random_state=1)
    X, rows = pd.DataFrame(X).add_prefix("c"), options.rows
    found, seconds, losses = learners(), {}, {}
    for fit in found.values():
        fit(X[:3000], y[:3000])  # compiles, and imports
    for _ in range(options.repeats):
        for name, fit in found.items():
            wall, used = time.perf_counter(), time.process_time()
            predict = fit(X[:rows], y[:rows])
            taken = time.perf_counter() - wall, time.process_time() - used
            seconds.setdefault(name, []).append(taken)
            losses[name] = log_loss(y[rows:], np.asarray(predict(X[rows:]), np.float64))
    print(f"{rows:,} rows of 20 columns, medians of {options.repeats} in turns\n")
    print("| learner | wall clock | processor | rows a second | held-out log-loss |\n|---|---:|---:|---:|---:|")
    for name, taken in seconds.items():
        wall, used = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"| {name} | {wall:.2f} s | {used:.2f} s | {rows / wall:,.0f} | {losses[name]:.4f} |")


if __name__ == "__main__":
    main()
