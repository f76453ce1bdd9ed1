"""Curves and pairs of ``forel inspect --json``: predictions of the file for serving, recomputed from the JSON alone."""

import csv
import json
from bisect import bisect_right

import numpy as np
import pytest
from typer.testing import CliRunner

from forel.cli.app import app

COLUMNS = "a", "b", "k"


def table(path, rows=2500, missing=0.03):
    """A function of a curve, a product and a category, as decimals; quantiles of a and k are far from evenly spread."""
    rng = np.random.default_rng(0)
    a, b, k = rng.exponential(2.0, rows), rng.normal(size=rows), rng.lognormal(0, 1, rows)
    colour = rng.choice(["red", "green", "blue"], rows)
    y = np.sin(a) + b * np.log(k) + (colour == "red") * a + 0.05 * rng.normal(size=rows)
    found = []
    for each in zip(a, b, k, colour, y, strict=True):
        cells = [one if isinstance(one, str) else f"{one:.4f}" for one in each]
        cells[:3] = ["" if rng.random() < missing else one for one in cells[:3]]
        found.append([str(one) for one in cells])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([(*COLUMNS, "colour", "y"), *found])
    return found


def place(knots, x):
    """The number of the knot, linear between knots and constant beyond."""
    if x <= knots[0] or x >= knots[-1]:
        return 0.0 if x <= knots[0] else len(knots) - 1.0
    left = bisect_right(knots, x) - 1
    return left + (x - knots[left]) / (knots[left + 1] - knots[left])


def linear(values, u):
    """Values at whole numbers, linear between them; a value may be a list."""
    left = min(int(u), len(values) - 2)
    low, high = values[left], values[left + 1]
    if isinstance(low, list):
        return [(1 - (u - left)) * p + (u - left) * q for p, q in zip(low, high, strict=True)]
    return (1 - (u - left)) * low + (u - left) * high


def margin(curves, row):
    """The formula of the JSON, for a row of decimals."""
    total, places = curves["constant"], {}
    knots = {one["column"]: one["knots"] for one in curves["columns"]}
    for one in curves["columns"]:
        if (cell := row[one["column"]]) == "":
            total += one["missing"]
            continue
        x, own = float(cell), one["knots"]
        places[one["column"]] = u = place(own, x)
        beyond = max(min(x, own[-1] + (own[-1] - own[0]) / 2), own[0] - (own[-1] - own[0]) / 2)
        total += linear(one["alone"], u) + one["slope"] * (beyond - min(max(beyond, own[0]), own[-1]))
    name = f"colour^{row['colour']}"
    total += curves["categories"][name]
    for pair in curves["pairs"]:
        sides = []
        for which, functions in (("first", len(pair["grid"]) - 1), ("second", len(pair["grid"][0]) - 1)):
            if pair[which] in knots:
                known = places.get(pair[which])
                sides.append(None if known is None else known * functions / (len(knots[pair[which]]) - 1))
            else:
                sides.append(1.0 if pair[which] == name else None)
        if None not in sides:
            total += linear(linear(pair["grid"], sides[0]), sides[1])
    return total


@pytest.mark.filterwarnings("ignore:the rows differ")
def test_a_prediction_is_recomputed_from_the_json_alone(tmp_path):
    rows = table(tmp_path / "rows.csv")

    def run(*words):
        done = CliRunner().invoke(app, [str(one) for one in words])
        assert done.exit_code == 0, done.output
        return done.stdout

    model, served = tmp_path / "m.forel", tmp_path / "s.forel"
    options = ["--loss", "squared", "--features", "pairs", "--names", "-b", 12, "--quiet"]
    run("train", tmp_path / "rows.csv", "--label", "y", *options, "--model", model)
    curves = json.loads(run("inspect", model, "--json", "--top", 1000))["curves"]
    assert f"Serving: {curves['expert']} alone" in " ".join(
        run("convert", model, "--serving", "--output", served).split()
    )
    more = [["25.0", "0.5", "1.5", "red", "0"], ["2.5", "-0.25", "0.001", "blue", "0"], ["", "", "", "green", "0"]]
    shown = [*rows[:200], *more]
    with (tmp_path / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows([(*COLUMNS, "colour", "y"), *shown])
    predicted = [float(one) for one in run("predict", tmp_path / "new.csv", "--model", served).split()]
    labels = [float(row[-1]) for row in rows]  # predictions of squared loss are within those of training
    margins = [margin(curves, dict(zip((*COLUMNS, "colour"), row, strict=False))) for row in shown]
    assert [min(max(one, min(labels)), max(labels)) for one in margins] == pytest.approx(predicted, rel=1e-4, abs=1e-4)
    assert "the number of the knot" in curves["formula"]
