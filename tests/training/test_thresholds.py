"""Decisions at thresholds are those counted from the raw predictions, and rules choose the best of them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.losses import Logistic
from forel.training.metrics import Metrics

RNG = np.random.default_rng(0)
LABELS = (RNG.random(3000) < 0.2).astype(float)
MARGINS = (RNG.normal(size=3000) * 2 - 2 + 3 * LABELS).astype(np.float32)
WEIGHTS = RNG.choice([0.5, 1.0, 2.0], 3000)
MARGINS[:5] = -60, 60, -np.inf, np.inf, 0


def found(importance=None):
    metrics = Metrics(Logistic(), "probability")
    metrics.add(MARGINS, LABELS, importance)
    return metrics.report().thresholds


def counted(value, weights):
    flagged = 1 / (1 + np.exp(-MARGINS.astype(float))) >= value
    return [weights[flagged].sum(), (weights * LABELS)[flagged].sum()]


@pytest.mark.parametrize("weights", [np.ones(3000), WEIGHTS])
def test_counts_are_those_of_the_raw_predictions(weights):
    everything = found(weights)
    for one in everything.points():
        assert [one.flagged, one.hits] == pytest.approx(counted(one.value, weights))
        assert (one.positives, one.rows) == pytest.approx(((weights * LABELS).sum(), weights.sum()))
    for value in (0.0, 0.07, 0.5, 0.93, 1.1):
        # A threshold within a bin is as good as the bin's edge: at most the rows of one bin apart.
        assert everything.at(value).flagged == pytest.approx(counted(value, weights)[0], abs=6)
    assert everything.points()[0].recall == 1
    assert everything.points()[-1].false_alarms < 0.01


def test_rules_choose_the_best_of_all_thresholds():
    p, everything = 1 / (1 + np.exp(-MARGINS.astype(float))), found()
    candidates = np.unique(p)
    rates = [(2 * LABELS[p >= c].sum() / ((p >= c).sum() + LABELS.sum()), c) for c in candidates]
    assert everything.best("f1").f1 == pytest.approx(max(rates)[0], abs=1e-3)
    for cost in (0.3, 7.0):
        least = min(cost * LABELS[p < c].sum() + (1 - LABELS)[p >= c].sum() for c in candidates)
        one = everything.best(f"cost:{cost}")
        assert cost * (one.positives - one.hits) + one.flagged - one.hits == pytest.approx(least, abs=2)
    assert everything.best("0.5") == everything.at(0.5)


def test_nothing_is_flagged_where_that_costs_least():
    metrics = Metrics(Logistic(), "probability")
    metrics.add([2.0, 0.0, -1.0, -2.0], [0, 1, 0, 0])
    cheap, dear = (metrics.report().thresholds.best(f"cost:{cost}") for cost in (0.5, 3.0))
    assert (cheap.flagged, cheap.hits, cheap.precision, cheap.value > 1) == (0, 0, 1, True)
    assert (dear.flagged, dear.hits) == (2, 1)


def test_one_class_has_no_thresholds():
    metrics = Metrics(Logistic(), "probability")
    metrics.add([0.0, 1.0], [1, 1])
    assert metrics.report().thresholds is None


def test_commands_decide(tmp_path, monkeypatch, interpreted):
    monkeypatch.chdir(tmp_path)
    rows = [f"{k % 7},{int(k % 7 > 4)}" for k in range(210)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *rows]) + "\n")
    forel.train("t.csv", label="y", bits=6, categories=["a"]).save("m")

    def run(*words):
        return CliRunner().invoke(app, list(words))

    shown = json.loads(run("evaluate", "t.csv", "--model", "m", "--threshold", "f1", "--json").stdout)["decisions"]
    assert (shown["f1"], shown["flagged"]) == (1.0, 60.0)
    assert "precision" in run("evaluate", "t.csv", "--model", "m", "--threshold", "cost:5").stdout
    decided = run("predict", "t.csv", "--model", "m", "--threshold", "cost:1").stdout.split()
    predicted = [float(word) for word in run("predict", "t.csv", "--model", "m").stdout.split()]
    assert decided == ["1" if p >= 0.5 else "0" for p in predicted]
    for words, message in (
        (("predict", "t.csv", "--model", "m", "--threshold", "f1"), "forel evaluate --threshold f1 finds it"),
        (("evaluate", "t.csv", "--model", "m", "--threshold", "best"), "threshold: got 'best', expected f1, cost:5"),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert message in " ".join(done.output.split())
