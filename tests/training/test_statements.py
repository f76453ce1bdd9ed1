"""Intervals and alarms of runs: recomputed from progressive predictions, resumed, stored, served, and refused."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.evidence import Alarms, Coverage
from forel.learner.settings import Settings
from forel.store import choose_serving
from forel.training.model import Model

SETTINGS = Settings("squared", alpha=1.0)


def rows(count=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2)).round(3)
    noise = rng.normal(size=count) * np.where(np.arange(count) < count // 2, 0.3, 1.0)
    return [
        {"a": float(a), "b": float(b), "y": round(float(2 * a - b + 1 + e), 4)}
        for (a, b), e in zip(x, noise, strict=True)
    ]


def table(path, given):
    path.write_text("a,b,y\n" + "".join(f"{row['a']},{row['b']},{row['y']}\n" for row in given))
    return str(path)


def state(model):
    return model.extra["interval"]["state"]


def test_intervals_are_those_of_the_progressive_predictions(tmp_path):
    given, seen = rows(), []
    path = table(tmp_path / "rows.csv", given)
    model = forel.train(path, SETTINGS, label="y", bits=8, interval=0.9, progress=lambda m: seen.append(m.margins))
    labels = np.array([row["y"] for row in given])
    coverage = Coverage(0.9)
    widths = coverage.add(np.concatenate(seen).astype(float), labels)
    assert state(model) == coverage.state.tolist()
    covered = np.abs(labels - np.concatenate(seen)) <= widths
    assert model.training.statements.coverage.covered == covered.sum()
    assert abs(covered.mean() - 0.9) < 0.01
    # Widths follow the noise, which grew by a factor of 3.
    assert widths[2000:].mean() > 2 * widths[1000:1500].mean()
    alarms = Alarms(numbers=True)
    alarms.add(np.abs(labels - np.concatenate(seen)))
    assert model.training.statements.alarms.found == alarms.found
    assert 1400 < alarms.found[-1].since < 1600


def test_the_same_for_other_blocks_and_where_a_run_was_resumed(tmp_path):
    given = rows()
    path = table(tmp_path / "rows.csv", given)
    options = {"label": "y", "bits": 8, "interval": 0.8}
    whole = forel.train(path, SETTINGS, **options)
    small = forel.train(path, SETTINGS, **options, block_bytes=4096)
    assert state(small) == state(whole)

    def stop(moment):
        if moment.rows > 1500:
            raise KeyboardInterrupt

    saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 500, "block_bytes": 4096}
    with pytest.raises(KeyboardInterrupt):
        forel.train(path, SETTINGS, **options, **saving, progress=stop)
    resumed = forel.train(path, SETTINGS, **options, **saving, resume=True)
    assert state(resumed) == state(whole)
    assert resumed.training.statements.alarms.found == whole.training.statements.alarms.found
    first = forel.train(table(tmp_path / "first.csv", given[:1700]), SETTINGS, **options)
    both = forel.train(table(tmp_path / "rest.csv", given[1700:]), model=first)
    assert state(both) == state(whole)


def test_alarms_are_at_rows_of_the_source_though_others_are_held_out_or_have_no_weight():
    given = [{**row, "w": float(k % 4 > 0)} for k, row in enumerate(rows())]  # they change in the middle
    options = {"label": "y", "bits": 8, "importance": "w"}
    model = forel.train(given, SETTINGS, holdout=3, **options)
    for found in (model.training.statements.alarms.found, model.evaluate(given).statements.alarms.found):
        assert 1400 < found[0].since < 1600
        assert found[0].since < found[0].row <= 3000


def test_predictions_come_with_the_stored_interval_everywhere(tmp_path):
    given = rows()
    model = forel.train(given, SETTINGS, label="y", bits=8, interval=0.9)
    model.save(tmp_path / "m.forel")
    predictions, ends = forel.load(tmp_path / "m.forel").predict(given[:50], interval=0.9)
    width = model.training.statements.coverage.half_width
    np.testing.assert_allclose(ends, np.add.outer(predictions.astype(float), [-width, width]))
    served = Model(choose_serving(model.learner).model, model.extra)
    np.testing.assert_allclose(served.predict(given[:50], interval=0.9)[1], ends, rtol=1e-5, atol=1e-5)
    path = table(tmp_path / "rows.csv", given)
    done = CliRunner().invoke(app, ["predict", path, "--model", str(tmp_path / "m.forel"), "--interval", "0.9"])
    np.testing.assert_allclose(
        np.array([list(map(float, line.split())) for line in done.output.splitlines()])[:50],
        np.column_stack([predictions, ends]), rtol=1e-7,
    )  # fmt: skip
    found = json.loads(
        CliRunner().invoke(app, ["evaluate", path, "--model", str(tmp_path / "m.forel"), "--json"]).output
    )["interval"]
    assert found["level"] == 0.9
    assert abs(found["covered"] - 0.9 * found["rows"]) <= found["deviation_bound"]


def test_counts_have_intervals_that_do_not_go_below_0():
    rng = np.random.default_rng(1)
    given = [{"a": int(a), "y": int(rng.poisson(0.5 + a))} for a in rng.integers(0, 4, 1500)]
    model = forel.train(given, loss="poisson", label="y", bits=6, interval=0.8)
    _, ends = model.predict(given, interval=0.8)
    assert ends.min() == 0
    labels = np.array([row["y"] for row in given])
    assert abs(((ends[:, 0] <= labels) & (labels <= ends[:, 1])).mean() - 0.8) < 0.08


def test_what_has_no_intervals_is_refused():
    clicks = [{"a": k % 3, "y": k % 2} for k in range(60)]
    with pytest.raises(ValueError, match=r"interval: got 0\.9, expected none: intervals are for predicted numbers"):
        forel.train(clicks, Settings(alpha=1.0), label="y", bits=4, interval=0.9)
    with pytest.raises(ValueError, match=r"interval: got 1\.5, expected a level between 0 and 1"):
        forel.train(clicks, SETTINGS, label="y", bits=4, interval=1.5)
    model = forel.train(clicks, SETTINGS, label="y", bits=4)
    with pytest.raises(ValueError, match="trained without intervals"):
        model.predict(clicks, interval=0.9)
    with pytest.raises(ValueError, match=r"expected 0\.5, with which the model was trained"):
        forel.train(clicks, SETTINGS, label="y", bits=4, interval=0.5).predict(clicks, interval=0.9)


def test_a_change_is_said_in_one_line(tmp_path):
    rng = np.random.default_rng(2)
    lines = ["site,click"]
    for k in range(16_000):
        site = rng.choice(["news", "shop"])
        p = {"news": 0.9, "shop": 0.1}[site]
        lines.append(f"{site},{int(rng.random() < (1 - p if k >= 12_000 else p))}")
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(lines) + "\n")
    command = [
        "train",
        str(path),
        "--label",
        "click",
        "--alpha",
        "0.5",
        "--quiet",
        "--model",
        str(tmp_path / "m.forel"),
    ]
    done = CliRunner().invoke(app, command)
    (line,) = [line for line in done.output.splitlines() if "alarm" in line]
    assert line.startswith(
        (
            "1 alarm in 16,000 rows: loss increased, most likely after row 12,0",
            "1 alarm in 16,000 rows: loss increased, most likely after row 11,9",
        )
    )
    assert line.endswith("at most 1 false alarm in 1,000,000 rows is expected.")
    found = json.loads(
        CliRunner().invoke(app, ["evaluate", str(path), "--model", str(tmp_path / "m.forel"), "--json"]).output
    )
    assert found["mean_loss"]["low"] < found["loss"] < found["mean_loss"]["high"]


def test_features_that_no_row_before_had_are_watched_in_training_and_evaluation(tmp_path):
    rng = np.random.default_rng(3)
    lines, shares, numbers, seen = [], [], [], set()
    for k in range(6000):
        words = {f"w{rng.integers(50)}" for _ in range(4)}
        words = sorted(words | ({f"n{k}", f"m{k}"} if k >= 4000 or k % 50 == 0 else set()))
        lines.append(f"{rng.integers(2)} {k % 7 != 0:d} |f {' '.join(words)}")
        if k % 7:  # rows of importance 0 are read, and do not count
            shares.append(sum(word not in seen for word in words) / len(words))
            numbers.append(k + 1)
        seen |= set(words)
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(lines) + "\n")
    model = forel.train(path, Settings(alpha=0.01), bits=22)
    first = model.training.statements.alarms.found[0]
    assert first.what == "new features"
    alarms = Alarms()
    alarms.add(np.zeros(len(shares)), None, shares, numbers)
    assert (alarms.found[0].row, alarms.found[0].since) == (first.row, first.since)
    assert abs(first.since - 4000) < 20
    assert "features that no row before had became more frequent, most likely after row " in str(first)
    found = model.evaluate(path).statements.alarms.found
    assert (found[0].what, found[0].row) == ("new features", first.row)

    def stop(moment):
        if moment.rows > 2000:
            raise KeyboardInterrupt

    saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 500, "block_bytes": 4096}
    with pytest.raises(KeyboardInterrupt):
        forel.train(path, Settings(alpha=0.01), bits=22, **saving, progress=stop)
    resumed = forel.train(path, Settings(alpha=0.01), bits=22, **saving, resume=True)
    assert resumed.training.statements.alarms.found == model.training.statements.alarms.found


def test_estimators_and_river_models_keep_intervals_in_files(tmp_path):
    given = rows()
    X, y = np.array([[row["a"], row["b"]] for row in given]), np.array([row["y"] for row in given])
    model = forel.FTRLRegressor(alpha=1.0, interval=0.9).partial_fit(X[:2000], y[:2000])
    same = forel.FTRLRegressor(alpha=1.0, interval=0.9)
    hits = []
    for part in np.array_split(np.arange(2000), 40):
        if hits or part[0]:
            predictions, ends = same.predict(X[part], interval=0.9)
            hits.append((ends[:, 0] <= y[part]) & (y[part] <= ends[:, 1]))
            np.testing.assert_array_equal(predictions, same.predict(X[part]))
        same.partial_fit(X[part], y[part])
    assert abs(np.concatenate(hits).mean() - 0.9) < 0.04
    np.testing.assert_array_equal(same.predict(X, interval=0.9)[1], model.predict(X, interval=0.9)[1])
    forel.save(tmp_path / "e.forel", model)
    loaded = forel.sklearn.estimator_of(tmp_path / "e.forel")
    np.testing.assert_array_equal(loaded.predict(X, interval=0.9)[1], model.predict(X, interval=0.9)[1])
    assert loaded.get_params()["interval"] == 0.9
    with pytest.raises(ValueError, match="trained without intervals"):
        forel.FTRLRegressor(alpha=1.0).fit(X, y).predict(X, interval=0.9)

    river = pytest.importorskip("forel.river").LinearRegressor(alpha=1.0, interval=0.8)
    inside = []
    for row in given[:1000]:
        x = {"a": row["a"], "b": row["b"]}
        inside.append(row["y"] in river.predict_one(x, with_interval=True))
        river.learn_one(x, row["y"])
    assert abs(np.mean(inside) - 0.8) < 0.03
    forel.save(tmp_path / "r.forel", river)
    x = {"a": 1.0, "b": -1.0}
    again = forel.river.model_of(tmp_path / "r.forel").predict_one(x, with_interval=True)
    assert again == river.predict_one(x, with_interval=True)
