"""Lou, Caruana, Gehrke and Hooker (2013): curves of columns and of pairs reach most of what unrestricted models do."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forel
from forel.theory.plot.style import COLORS, figure_of, styled_axes
from reproduce.claim import Claim, data_files

LEFT_OUT = ["instant", "dteday", "casual", "registered", "atemp"]  # numbers of rows, parts of the label, a second temp
SHARE = 0.8


def compare(table: pd.DataFrame, label: str, shown: tuple[str, str, str]) -> Claim:
    """Return the claim for a table: ``shown`` are two columns and the column that the first is paired with."""
    train, test, target, wanted = train_test_split(
        table.drop(columns=label), table[label], test_size=0.2, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = forel.train(train.assign(**{label: target}), label=label, loss="squared", names=True)
        found = {
            "ridge regression": make_pipeline(StandardScaler(), RidgeCV()).fit(train, target).score(test, wanted),
            "curves and pairs, one pass": model.evaluate(test.assign(**{label: wanted})).report.r2,
            "gradient boosting": HistGradientBoostingRegressor(random_state=0).fit(train, target).score(test, wanted),
        }
    low, own, high = found.values()
    share = (own - low) / (high - low)
    curves = model.inspect(top=99).curves
    return Claim(
        "additive",
        "Curves and pairs of columns",
        "Sums of functions of one column and of two columns reach most of what models of all columns together do, and "
        "can be read.",
        'Lou, Caruana, Gehrke and Hooker, "Accurate intelligible models with pairwise interactions" (2013)',
        f"On {len(test):,} rows held out of {len(table):,}, one pass without tuning closes {share:.0%} of the gap "
        "between ridge regression and gradient boosting, both of scikit-learn with their defaults.",
        share >= SHARE,
        [["model", "R², held out"], *([name, f"{value:.3f}"] for name, value in found.items())],
        lambda: draw(curves, shown),
        f"what the columns {shown[0]} and {shown[1]} add to a prediction, and {shown[0]} together with {shown[2]}",
    )


def draw(curves: Any, shown: tuple[str, str, str]) -> Any:
    """Draw two curves, and one pair as a heat map."""
    columns: Mapping[str, Any] = {one.column: one for one in curves.columns}
    pair = next(one for one in curves.pairs if {one.first, one.second} == {shown[0], shown[2]})
    values = np.array(pair.values) if pair.first == shown[0] else np.transpose(pair.values)
    knots = (pair.first_knots, pair.second_knots) if pair.first == shown[0] else (pair.second_knots, pair.first_knots)
    with styled_axes(None, (10.0, 3.2), columns=3) as first:
        left, middle, right = first.figure.axes
        for axes, name in ((left, shown[0]), (middle, shown[1])):
            axes.plot(columns[name].knots, columns[name].centered, color=COLORS[0], marker="o")
            axes.set_title(name, loc="left")
        left.set_ylabel("added to the prediction")
        right.remove()
        right = left.figure.add_subplot(1, 3, 3)
        most = float(np.abs(values).max())
        image = right.pcolormesh(values.T, cmap="RdBu", vmin=-most, vmax=most)
        for axis, texts in ((right.xaxis, knots[0]), (right.yaxis, knots[1])):
            places = sorted({0, len(texts) // 2, len(texts) - 1})
            axis.set_ticks([k + 0.5 for k in places], [f"{texts[k]:g}" for k in places])
        right.set_title(f"{shown[0]} and {shown[2]}", loc="left")
        right.set_ylabel(shown[2])
        left.figure.colorbar(image, ax=right)
        return figure_of(left)


def additive() -> Claim:
    """Compare on hourly rentals of bikes."""
    (path,) = data_files("bike_sharing.csv.gz")
    table = pd.read_csv(path).drop(columns=LEFT_OUT)
    named = {"hr": "hour", "workingday": "working day", "temp": "temperature", "cnt": "rentals"}
    return compare(table.rename(columns=named), "rentals", ("hour", "temperature", "working day"))
