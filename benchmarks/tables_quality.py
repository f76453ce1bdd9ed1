"""Held-out quality on tables, without options: forel, LightGBM, scikit-learn's gradient boosting, and linear models.

Peers: LightGBM with 200 trees and rate 0.05 (if installed), ``HistGradientBoosting`` with its defaults, and logistic or
ridge regression on one-hot and scaled columns.
Input: the tables in ``FOREL_DATA/tables``, two streams there as shuffled rows, rows that scikit-learn bundles and
generates, and tables given as ``--table PATH LABEL [POSITIVE]``; 80 % of the rows, in random order, are for training.
Log-loss for words, classes and 0/1, R² otherwise.
Output: a Markdown table with seconds of processor time; ``ratio`` is forel's log-loss divided by the peer's, or the
difference of R². Set ``OMP_NUM_THREADS=1`` where other processes run, as threads of boosted trees wait by spinning.
"""

import argparse
import importlib.util
import os
import pathlib
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import forel

DATA = pathlib.Path(os.environ.get("FOREL_DATA", pathlib.Path(__file__).parents[1].parent / "shared" / "data"))
# Label and positive class; True for several classes, None for numbers.
TABLES = {
    "adult": ("income_status", ">50K"), "phishing_websites": ("result", "1"), "phoneme": ("5", "1"),
    "mammography": ("6", "'1'"), "ames": ("SalePrice", None), "melbourne_house_prices": ("Price", None),
    "elevators": ("y", None), "house_16h": ("y", None), "cpu_act": ("22", None), "abalone": ("8", None),
    "winequality-white": ("11", None), "contraceptive": ("y", True), "waveform": ("41", True),
}  # fmt: skip
STREAMS = {"bike_sharing": ("cnt", None), "elec2": ("class", "1")}
# Row numbers and identifiers of ames and bike_sharing, and two parts of the label of the latter.
LEFT_OUT = ("Order", "PID", "instant", "casual", "registered")


def hastie():
    X, y = datasets.make_hastie_10_2(8000, random_state=1)
    return X, (y > 0) * 1


def product_of_three():
    X = np.random.default_rng(1).normal(size=(6000, 3))
    return X, ((np.abs(X).prod(axis=1) > 0.3) ^ (X[:, 0] > 0)) * 1


# Rows, and what TABLES has for a label.
GENERATED = {
    "breast_cancer": (partial(datasets.load_breast_cancer, return_X_y=True), "1"),
    "digits": (partial(datasets.load_digits, return_X_y=True), True),
    "diabetes": (partial(datasets.load_diabetes, return_X_y=True), None),
    "hastie": (hastie, "1"),
    "classification": (
        partial(
            datasets.make_classification, 6000, 20, n_informative=8, n_redundant=4, flip_y=0.05, random_state=1,
        ),
        "1",
    ),
    "moons": (partial(datasets.make_moons, 3000, noise=0.25, random_state=1), "1"),
    "friedman1": (partial(datasets.make_friedman1, 4000, noise=1, random_state=1), None),
    "friedman2": (partial(datasets.make_friedman2, 4000, noise=100, random_state=1), None),
    "friedman3": (partial(datasets.make_friedman3, 4000, noise=0.1, random_state=1), None),
    "product_of_three": (product_of_three, "1"),
}  # fmt: skip


def load(path, label, positive):
    """Rows of training and of test, and their labels."""
    header = None if label.isdigit() and path.name.split(".")[0] not in ("cpu_act", "waveform") else 0
    table = pd.read_csv(path, header=header, encoding="utf-8-sig")
    table.columns = [str(name) for name in table.columns]
    table = table.drop(columns=[name for name in LEFT_OUT if name in table])
    labels = table.pop(label)
    if isinstance(positive, str):
        labels = (labels.astype(str) == positive) * 1
    return train_test_split(table, labels, test_size=0.2, random_state=0)


def prepared(table, scaled):
    """Columns for a peer: numbers and encoded words."""
    words = list(table.select_dtypes(exclude="number"))
    numbers = [name for name in table if name not in words]
    scale = make_pipeline(SimpleImputer(), StandardScaler()) if scaled else "passthrough"
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    encode = OneHotEncoder(handle_unknown="ignore") if scaled else OrdinalEncoder(**unknown)
    return make_column_transformer((scale, numbers), (encode, words), sparse_threshold=0)


def peers(regression):
    """Models by name, each with whether columns are scaled and one-hot."""
    found = {}
    if importlib.util.find_spec("lightgbm"):
        import lightgbm

        kind = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
        found["LightGBM"] = kind(n_estimators=200, learning_rate=0.05, verbose=-1, n_jobs=1), False
    found["gradient boosting"] = (
        HistGradientBoostingRegressor() if regression else HistGradientBoostingClassifier(),
        False,
    )
    found["linear"] = RidgeCV(np.logspace(-2, 3, 6)) if regression else LogisticRegression(max_iter=1000), True
    return found


def generated(name):
    """Rows of training and of test, and their labels."""
    X, y = GENERATED[name][0]()
    return train_test_split(pd.DataFrame(X).add_prefix("c"), pd.Series(y), test_size=0.2, random_state=0)


def scores(X, X_test, y, y_test, positive):
    """Seconds of training and the score of each model."""
    regression, found = positive is None, {}

    def score(model, rows, seconds):
        value = r2_score(y_test, model.predict(rows)) if regression else log_loss(y_test, model.predict_proba(rows))
        return float(value), seconds

    start = time.process_time()
    own = forel.FTRLRegressor() if regression else forel.FTRLClassifier()
    trained = forel.train(X.assign(label=y), label="label", loss="squared" if regression else None,
                          classes="auto" if positive is True else None)  # fmt: skip
    seconds = time.process_time() - start
    if regression:
        found["forel"] = float(r2_score(y_test, trained.predict(X_test))), seconds
    else:
        p = np.asarray(trained.predict(X_test, probabilities=True), np.float64)
        if positive is True:
            names = list(trained.classes)
            p = p[:, np.argsort(names)]
            found["forel"] = float(log_loss(y_test.astype(str), p, labels=sorted(names))), seconds
        else:
            found["forel"] = float(log_loss(y_test, p)), seconds
    if X.notna().all().all():
        start = time.process_time()
        own.fit(X, y)
        found["estimator"] = score(own, X_test, time.process_time() - start)
    for name, (model, scaled) in peers(regression).items():
        columns, start = prepared(X, scaled).fit(X), time.process_time()
        model.fit(columns.transform(X), y)
        found[name] = score(model, columns.transform(X_test), time.process_time() - start)
    return regression, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", nargs="+", action="append", default=[], metavar=("PATH LABEL", "POSITIVE"))
    parser.add_argument("--only", nargs="*", help="names of tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    given = [(pathlib.Path(path), label, *(rest or [None])) for path, label, *rest in options.table]
    known = [(DATA / "tables" / f"{name}.csv.gz", *about) for name, about in TABLES.items()]
    known += [(DATA / f"{name}.csv.gz", *about) for name, about in STREAMS.items()]
    sets = {path.name.split(".")[0]: (partial(load, path, label, kind), kind) for path, label, kind in given or known}
    if not given:
        sets |= {name: (partial(generated, name), kind) for name, (_, kind) in GENERATED.items()}
    print("| table | model | score | seconds | ratio |\n|---|---|---|---|---|")
    for name, (rows, positive) in sets.items():
        if options.only and name not in options.only:
            continue
        try:
            loaded = rows()
        except FileNotFoundError:
            print(f"| {name} | not there | | | |")
            continue
        regression, found = scores(*loaded, positive)
        base = found["forel"][0]
        for model, (value, seconds) in found.items():
            ratio = "" if model == "forel" else f"{base - value:+.3f}" if regression else f"{base / value:.3f}"
            print(f"| {name} | {model} | {value:.4f} | {seconds:.2f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
