"""The river door against river's own FTRL-Proximal: the same dicts, a row at a time, then frames.

Rows of 39 features with the value 1.0 and names like "f12345", log-uniform popularity; every name is a string of its
own in every row, as a reader of files makes them. Models are new in every repeat; all sides are timed in turns.
"""

import argparse
import statistics
import time

import numpy as np
import pandas as pd
from river import linear_model, optim

from forel.doors.river import LinearClassifier

PER_ROW = 39


def clicks(rows, features, seed=0):
    """Return dicts of 39 different names each, and labels of a logistic model with sparse truth."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(features) < 0.1, rng.normal(size=features), 0)
    found, labels = [], []
    for _ in range(rows):
        chosen = []
        while len(chosen) < PER_ROW:
            k = int(features ** rng.random())
            if k not in chosen:
                chosen.append(k)
        found.append({f"f{k}": 1.0 for k in chosen})
        labels.append(bool(rng.random() < 1 / (1 + np.exp(1 - truth[chosen].sum()))))
    return found, labels


PARAMETERS = {"alpha": 0.05, "beta": 1.0, "l1": 0.0, "l2": 1.0}  # river's defaults, on both sides


def river_model():
    return linear_model.LogisticRegression(optimizer=optim.FTRLProximal(**PARAMETERS))


def mine(**options):
    return LinearClassifier(**PARAMETERS, **options)


def learn(model, rows, labels):
    for x, y in zip(rows, labels, strict=True):
        model.learn_one(x, y)


def predict(model, rows):
    for x in rows:
        model.predict_proba_one(x)


def both(model, rows, labels):
    for x, y in zip(rows, labels, strict=True):
        model.predict_proba_one(x)
        model.learn_one(x, y)


def medians(runs, repeats):
    """Return the median seconds of each run, all of them in turns; what a run needs is made outside the clock."""
    seconds = {name: [] for name in runs}
    for _ in range(repeats):
        for name, (prepare, run) in runs.items():
            given = prepare()
            start = time.perf_counter()
            run(given)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(kept) for name, kept in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--l1", type=float, default=0.0, help="where it is large, river has little to update")
    options = parser.parse_args()
    PARAMETERS["l1"] = options.l1
    rows, labels = clicks(options.rows, options.features)
    distinct = len({name for x in rows for name in x})
    print(
        f"\n{options.rows:,} rows of {PER_ROW}, {distinct:,} distinct names, λ1 = {options.l1}, "
        f"medians of {options.repeats}\n"
    )
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(options.rows, PER_ROW))).add_prefix("f")
    series = pd.Series(labels)
    makers = {
        "river": river_model,
        "forel": mine,
        "forel, float32": lambda: mine(dtype="float32"),
        "forel, 22 bits": lambda: mine(bits=22),
    }
    for make in makers.values():  # compile, or load what was compiled
        both(make(), rows[:10], labels[:10])
        make().learn_many(frame[:10], series[:10])

    def learned(make):
        model = make()
        learn(model, rows, labels)
        return model

    tasks = {
        "learn_one": lambda make: (make, lambda model: learn(model, rows, labels)),
        "predict_proba_one": lambda make: (lambda: learned(make), lambda model: predict(model, rows)),
        "predict_proba_one, then learn_one": lambda make: (make, lambda model: both(model, rows, labels)),
        "learn_many, 100 rows a frame": lambda make: (
            make,
            lambda model: [
                model.learn_many(frame[k : k + 100], series[k : k + 100]) for k in range(0, options.rows, 100)
            ],
        ),
    }
    for task, runs in tasks.items():
        found = medians({name: runs(make) for name, make in makers.items()}, options.repeats)
        print(task)
        for name, seconds in found.items():
            ratio = found["river"] / seconds
            print(f"  {name:16} {1e6 * seconds / options.rows:8.2f} µs a row   {ratio:6.2f} times as fast as river")


if __name__ == "__main__":
    main()
