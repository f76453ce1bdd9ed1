"""``--best``: what is written, and that it is said what it costs."""

import csv
import json
import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table whose label depends on a column in a way that no line follows."""
    path = tmp_path_factory.mktemp("best") / "table.csv"
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (1500, 2))
    y = rng.random(1500) < 1 / (1 + np.exp(-4 * np.cos(2 * x[:, 0]) - x[:, 1]))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("a", "b", "y"), *((a, b, int(c)) for (a, b), c in zip(x.tolist(), y, strict=True))]
        )
    return path


def run(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def progressive_loss(path, model):
    """The average log-loss of predictions before each row, of the one setting that a file has, by training it alone."""
    alone = forel.train(path, model.settings, label="y", bits=10)
    return alone.report.loss


def test_the_loss_of_what_is_written_is_said(table, tmp_path):
    words = ["train", table, "--label", "y", "-b", 10, "--model", tmp_path / "b.forel", "--best"]
    said = run(*words)
    found = re.search(
        r"Best setting: (.+) alone, whose progressive loss was ([\d.]+); that of the mixture was ([\d.]+), "
        r"and of its best expert, (.+), which is not written, ([\d.]+)\.", said,
    )  # fmt: skip
    assert found is not None, said
    own, whole, best = map(float, found.group(2, 3, 5))
    assert whole < own - 0.1
    assert best < own - 0.1
    stored = forel.load(tmp_path / "b.forel")
    assert own == pytest.approx(progressive_loss(table, stored), abs=2e-6)
    whole_model = forel.train(table, label="y", bits=10)
    assert whole == pytest.approx(whole_model.report.loss, abs=2e-3)
    # What is measured of the mixture is not said of the setting.
    assert stored.extra.keys().isdisjoint({"report", "holdout", "final", "certificate", "interval"})
    assert json.loads(run(*words, "--json"))["best"] == found[0].removeprefix("Best setting: ").rstrip(".")
    assert "Best setting" not in run("train", table, "--label", "y", "-b", 10, "--alpha", 0.1, "--best")


def test_without_curves_the_best_expert_may_be_written():
    rows = [{"x": f"v{k % 3}", "y": int(k % 3 == 0)} for k in range(300)]
    settings = forel.Settings(alpha=(0.05, 5.0))
    model = forel.train(rows, settings, label="y", bits=6)
    said = forel.training.result.best_sentence(model)
    assert math.isclose(float(said.split(" was ")[1].split(";")[0]), min(model.learner.averages), abs_tol=1e-6)
    assert forel.training.result.best_sentence(model.best()) is None
    assert model.best().best() is not model
