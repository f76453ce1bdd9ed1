"""Weights and columns in the order of how much what they add to a margin varies, over a sample of the rows."""

import io
import json
import re
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.cli.explain import explain
from forel.cli.inspect import inspect
from forel.learner.settings import Settings
from forel.report import page
from forel.training.history import History
from forel.training.row_sample import LeakWarning

RNG = np.random.default_rng(0)
AGE, INCOME = RNG.normal(40, 10, 80).round(1), RNG.normal(0, 30000, 80).round(0)
CITY = RNG.choice(["Rome", "Oslo"], 80)
ROWS = [
    {"age": float(a), "income": float(i), "city": str(c), "buys": int(i > 0)}
    for a, i, c in zip(AGE, INCOME, CITY, strict=True)
]


def csv():
    lines = ["age,income,city,buys", *(",".join(map(str, row.values())) for row in ROWS)]
    return io.BytesIO("\n".join(lines).encode())


@pytest.mark.parametrize("settings", [Settings(alpha=1.0), Settings(alpha=1.0, rate="scale_free")])
def test_contributions_are_standard_deviations_over_the_rows(settings, interpreted):
    for source in (ROWS, csv()):
        form = {} if source is ROWS else {"format": "csv"}
        trained = forel.train(source, settings, label="buys", bits=12, names=True, **form)
        found = {one.name: one for one in trained.inspect().weights}
        spreads = {"income": INCOME.std(), "age": AGE.std()}
        spreads |= {f"city^{name}": (name == CITY).std() for name in ("Rome", "Oslo")}
        weights = trained.learner.weights[:, 0]
        for name, one in found.items():
            assert one.weight == weights[one.slot]
            assert one.spread == pytest.approx(spreads[name], rel=1e-6)
            assert one.contribution == one.weight * one.spread
        sizes = [abs(one.contribution) for one in found.values()]
        assert sizes == sorted(sizes, reverse=True)
        assert sum(weights != 0) == len(found)
        columns = {one.column: one for one in trained.training.columns}
        city = sum(
            (name == CITY) * found[f"city^{name}"].weight for name in ("Rome", "Oslo") if f"city^{name}" in found
        )
        assert columns["city"].features == 2
        assert columns["city"].spread == pytest.approx(float(np.std(city)), rel=1e-6)
        for name in {"income", "age"} & set(found):
            assert columns[name].spread == pytest.approx(abs(found[name].contribution), rel=1e-6)
        assert [one.spread for one in trained.training.columns] == sorted(
            (one.spread for one in trained.training.columns), reverse=True
        )


def test_units_do_not_decide_the_order(interpreted):
    def order(factor):
        rows = [{**row, "income": row["income"] * factor} for row in ROWS]
        settings = Settings(alpha=1.0, rate="scale_free")
        return forel.train(rows, settings, label="buys", bits=12, names=True).inspect().weights

    small, large = order(1.0), order(2.0**-20)
    assert [one.name for one in small] == [one.name for one in large]
    assert small[0].name == "income"
    assert [one.contribution for one in small] == pytest.approx([one.contribution for one in large], rel=1e-4)


def test_one_bad_row_and_a_constant_do_not_decide_the_order(interpreted):
    """The bad row has a value a million times as large as others, and 5,000 rows are more than the sample has."""
    rng = np.random.default_rng(1)
    good, noise = rng.normal(size=5000), rng.normal(100, 0.1, 5000)
    y = rng.random(5000) < 1 / (1 + np.exp(-2 * good))
    bad = rng.normal(size=5000)
    bad[17] = 1e6
    rows = [
        {"good": a, "noise": b, "bad": c, "y": int(d)}
        for a, b, c, d in zip(good.tolist(), noise.tolist(), bad.tolist(), y.tolist(), strict=True)
    ]
    trained = forel.train(rows, Settings(alpha=0.5, rate="scale_free"), label="y", bits=12)
    assert trained.training.columns[0].column == trained.inspect().weights[0].name == "good"


def test_a_column_that_predicts_nearly_all_is_a_leak(interpreted):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(1000, 5)), rng.integers(0, 2, 1000)
    rows = [
        {**{f"x{k}": float(v) for k, v in enumerate(row)}, "copy": 1e-3 * label, "y": label}
        for row, label in zip(x, y.tolist(), strict=True)
    ]
    with pytest.warns(LeakWarning, match="the column 'copy' alone predicts nearly all labels; leave it out"):
        trained = forel.train(rows, Settings(alpha=0.5, rate="scale_free"), label="y", bits=12)
    assert {one.column: one.alone > 0.999 for one in trained.training.columns}["copy"]
    for row, value in zip(rows, rng.normal(size=1000).tolist(), strict=True):
        row["y"] = value
        row["copy"] = value + 1e-3
    with pytest.warns(LeakWarning, match="the column 'copy' alone"):
        forel.train(rows, Settings("squared", alpha=0.5, rate="scale_free"), label="y", bits=12)
    for row in rows:
        del row["copy"]
    forel.train(rows, Settings("squared", alpha=0.5, rate="scale_free"), label="y", bits=12)


@pytest.mark.parametrize("block_bytes", [300, 100_000])
def test_the_sample_does_not_depend_on_blocks_or_interruptions(block_bytes, interpreted, tmp_path):
    class Stop(Exception):
        pass

    def stop(moment):
        if moment.rows > 1500:
            raise Stop

    rng = np.random.default_rng(3)
    lines = [f"{rng.integers(0, 2)},{rng.normal():.3f},{rng.choice(['a', 'b', 'c'])}" for _ in range(4000)]
    (tmp_path / "r.csv").write_text("\n".join(["y,x,k", *lines]) + "\n")
    options = {"label": "y", "bits": 8, "settings": Settings(alpha=0.1)}
    whole = forel.train(tmp_path / "r.csv", **options)
    saved = {"checkpoint": tmp_path / "c", "checkpoint_every": 500, "block_bytes": block_bytes}
    with pytest.raises(Stop):
        forel.train(tmp_path / "r.csv", progress=stop, **saved, **options)
    again = forel.train(tmp_path / "r.csv", resume=True, **saved, **options)
    assert np.array_equal(again.training.moments, whole.training.moments)
    assert again.training.columns == whole.training.columns


def test_files_serving_models_and_formats_without_columns(interpreted, tmp_path, capsys):
    trained = forel.train(ROWS, Settings(alpha=1.0), label="buys", bits=12, names=True)
    trained.save(tmp_path / "m.forel")
    loaded = forel.load(tmp_path / "m.forel")
    assert loaded.inspect().weights == trained.inspect().weights
    assert len(loaded.inspect(top=2).weights) == 2
    inspect(str(tmp_path / "m.forel"), 20, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert [one["contribution"] for one in shown["weights"]] == [one.contribution for one in loaded.inspect().weights]
    assert [one["column"] for one in shown["columns"]] == [one.column for one in trained.training.columns]
    inspect(str(tmp_path / "m.forel"), 20)
    printed = capsys.readouterr().out
    assert "largest contributions" in printed
    assert "largest columns" in printed
    vw = io.BytesIO(b"1 |f size:300 red\n-1 |f size:-100 blue\n")
    lines = forel.train(vw, Settings(alpha=1.0, rate="scale_free"), bits=12, names=True).inspect().weights
    assert {one.name: one.spread for one in lines} == {"f^size": 200.0, "f^red": 0.5, "f^blue": 0.5}


def test_several_classes_show_the_class_of_the_largest_contribution(interpreted):
    rows = [{**row, "buys": ("few", "some", "many")[k % 3]} for k, row in enumerate(ROWS)]
    found = forel.train(rows, Settings("softmax", alpha=1.0), label="buys", bits=12, names=True).inspect().weights
    assert {one.label for one in found} <= {"few", "some", "many"}
    assert found[0].name == "income"


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("names", [False, True])
def test_slots_without_names_say_how_to_keep_them(names, tmp_path, capsys):
    rows = [{"site": "abc"[k % 3], "y": k % 2} for k in range(30)]
    forel.train(rows, Settings(alpha=0.5), label="y", bits=8, names=names).save(tmp_path / "m.forel")
    inspect(str(tmp_path / "m.forel"), 20)
    assert ("Slots without a name: forel train --names keeps names." in capsys.readouterr().out) != names


def test_tables_have_names_without_slots_and_large_numbers_have_few_digits(interpreted, tmp_path, capsys):
    rng = np.random.default_rng(1)
    ages, noise = rng.uniform(20, 80, 250), rng.normal(size=250) * 9e4
    rows = [
        {"age": a, "city": "abc"[k % 3], "y": 4321.987 * a + e}
        for k, (a, e) in enumerate(zip(ages, noise, strict=True))
    ]
    model = forel.train(rows, loss="squared", label="y", bits=12)
    assert model.learner.curves is not None
    model.save(tmp_path / "m.forel")
    inspect(str(tmp_path / "m.forel"))
    (tmp_path / "r.jsonl").write_text(json.dumps(rows[0]))
    explain([str(tmp_path / "r.jsonl")], model=str(tmp_path / "m.forel"))
    shown = capsys.readouterr().out
    assert "slot" not in shown
    assert "city^a" in shown
    assert not re.findall(r"[0-9]{4}\.[0-9]|,[0-9]{3}\.[0-9]{3}", shown)


def test_a_model_that_predicts_nearly_all_is_warned_of(interpreted, tmp_path, capsys):
    """Two columns together are the label, and neither is alone."""
    rng = np.random.default_rng(5)
    parts = rng.normal(size=(3000, 1)) * 3
    y = rng.integers(0, 2, 3000)
    rows = [
        {"a": float(p), "b": float(p) + (0.5 if label else -0.5), "y": label}
        for (p,), label in zip(parts, y.tolist(), strict=True)
    ]
    settings = Settings(alpha=3.0, rate="scale_free")
    start = forel.train(rows, settings, label="y", bits=12, passes=3)
    with pytest.warns(LeakWarning, match="the AUC of the rows held out is 1.0000: check that all columns are known"):
        trained = forel.train(rows, model=start, label="y", bits=12, holdout=3, passes=2)
    assert trained.training.leak.startswith("the AUC of the rows held out is")
    with pytest.warns(LeakWarning, match="the AUC of these rows is 1.0000"):
        trained.evaluate(rows, label="y")
    assert f"Warning: {trained.training.leak}." in page(trained, History())
    few = [*[row for row in rows if not row["y"]][:300], *[row for row in rows if row["y"]][:19]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained.evaluate(few, label="y")
        trained.evaluate(rows[:199], label="y")


@pytest.mark.parametrize(("rate", "measure"), [("scale_free", "largest |value|"), ("adagrad", "unit")])
def test_models_without_a_sample_say_by_what_weights_are_ordered(rate, measure, interpreted, tmp_path, capsys):
    trained = forel.train(ROWS, Settings(alpha=1.0, rate=rate), label="buys", bits=12, names=True)
    bare = forel.Model(trained.learner, trained.extra, trained.names)
    small = forel.Model(forel.store.serving_model(trained.learner), trained.extra, trained.names)
    assert [one.inspect().measure for one in (trained, bare, small)] == ["std. dev.", measure, measure]
    spreads = {one.name: one.spread for one in small.inspect().weights}
    assert spreads == {one.name: one.spread for one in bare.inspect().weights}
    assert spreads["income"] == (np.abs(INCOME).max() if rate == "scale_free" else 1.0)
    small.save(tmp_path / "s.forel")
    inspect(str(tmp_path / "s.forel"), 20)
    printed = capsys.readouterr().out
    assert ("largest weights: no sample of rows was kept" in printed) is (measure == "unit")
    assert measure in printed


def test_the_floor_and_columns_are_in_json_and_on_the_page(interpreted, tmp_path, capsys):
    rng = np.random.default_rng(6)
    rows = [
        {"site": str(s), "x": float(rng.normal()), "y": int(rng.integers(0, 2))} for s in rng.choice(list("ab"), 400)
    ]
    (tmp_path / "r.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = f"--label y --bits 8 --alpha 0.5 --certificate --json --model {tmp_path}/m.forel".split()
    done = CliRunner(env={"FOREL_QUIET": "1"}).invoke(app, ["train", str(tmp_path / "r.jsonl"), *options])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    stored = forel.load(tmp_path / "m.forel")
    assert shown["floor"] == stored.floor
    assert shown["floor"]["norm"] > 0
    assert {one["column"] for one in shown["columns"]} == {"site", "x"}
    inspect(str(tmp_path / "m.forel"), 20, as_json=True)
    again = json.loads(capsys.readouterr().out)
    assert (again["floor"], again["columns"]) == (shown["floor"], shown["columns"])
    trained = forel.train(rows, Settings(alpha=0.5), label="y", bits=8, certificate=True)
    text = page(trained, History())
    assert "<h2>Largest columns</h2>" in text
    assert "Loss of other linear models" in text
