"""The river interface: one dict at a time, then frames.

Peer: river's ``LogisticRegression`` with ``FTRLProximal`` and the same parameters. The mixture is forel's default.
Input: 3,000 dicts of 39 names like "f12345" with value 1.0 and log-uniform popularity; every row has its own string
objects, as a file reader creates them. Every repeat starts from a new model.
Output: medians per row in turns, and river's time over forel's.
"""

import argparse

import numpy as np
import pandas as pd
from river import linear_model, optim
from timing import medians

from forel.river import LinearClassifier

PER_ROW = 39


def clicks(rows, features, seed=0):
    """Dicts of 39 distinct names each, and labels of a logistic model with sparse weights."""
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


PARAMETERS = {"alpha": 0.05, "beta": 1.0, "l1": 0.0, "l2": 1.0}  # river's defaults, for both


def river_model():
    return linear_model.LogisticRegression(optimizer=optim.FTRLProximal(**PARAMETERS))


def forel_model(**options):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--l1", type=float, default=0.0, help="a large value leaves river little to update")
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
        "forel": forel_model,
        "forel, float32": lambda: forel_model(dtype="float32"),
        "forel, 22 bits": lambda: forel_model(bits=22),
        "forel, mixture": LinearClassifier,
    }
    for make in makers.values():  # compile the kernels
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
        "learn_many, frames of 100 rows": lambda make: (
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
            print(f"  {name:16} {1e6 * seconds / options.rows:8.2f} µs per row   {ratio:6.2f} times as fast as river")


if __name__ == "__main__":
    main()
