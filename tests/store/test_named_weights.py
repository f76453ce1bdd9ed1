"""Weights by what their features usually add to a margin: typical values from the rows, whatever the units."""

import io
import json

import numpy as np
import pytest

import forel
from forel.cli.inspect import inspect
from forel.learner.settings import Settings

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
def test_typical_values_are_means_of_the_rows(settings, interpreted, tmp_path):
    for source in (ROWS, csv()):
        form = {} if source is ROWS else {"format": "csv"}
        trained = forel.train(source, settings, label="buys", bits=12, names=True, **form)
        found = {one.name: one for one in trained.inspect().weights}
        if "income" in found:
            assert found["income"].typical == pytest.approx(np.abs(INCOME).mean(), rel=1e-6)
        if "age" in found:
            assert found["age"].typical == pytest.approx(np.abs(AGE).mean(), rel=1e-6)
        assert {one.typical for name, one in found.items() if name.startswith("city^")} <= {1.0}
        sizes = [abs(one.contribution) for one in found.values()]
        assert sizes == sorted(sizes, reverse=True)
        weights = trained.learner.weights[:, 0]
        for one in found.values():
            assert one.weight == weights[one.slot]
            assert one.contribution == one.weight * one.typical
        assert sum(weights != 0) == len(found)


def test_units_do_not_decide_the_order(interpreted):
    def order(factor):
        rows = [{**row, "income": row["income"] * factor} for row in ROWS]
        settings = Settings(alpha=1.0, rate="scale_free")
        return forel.train(rows, settings, label="buys", bits=12, names=True).inspect().weights

    small, large = order(1.0), order(2.0**-20)
    assert [one.name for one in small] == [one.name for one in large]
    assert small[0].name == "income"
    assert [one.contribution for one in small] == pytest.approx([one.contribution for one in large], rel=1e-4)


def test_files_serving_models_and_formats_without_columns(interpreted, tmp_path, capsys):
    trained = forel.train(ROWS, Settings(alpha=1.0), label="buys", bits=12, names=True)
    trained.save(tmp_path / "m.forel")
    loaded = forel.load(tmp_path / "m.forel")
    assert loaded.inspect().weights == trained.inspect().weights
    assert len(loaded.inspect(top=2).weights) == 2
    small = forel.training.model.Model(forel.store.serving_model(trained.learner), loaded.extra, loaded.names)
    assert [one.typical for one in small.inspect().weights] == [one.typical for one in loaded.inspect().weights]
    inspect(str(tmp_path / "m.forel"), 20, as_json=True)
    shown = json.loads(capsys.readouterr().out)["weights"]
    assert [one["contribution"] for one in shown] == [one.contribution for one in loaded.inspect().weights]
    inspect(str(tmp_path / "m.forel"), 20)
    assert "largest contributions" in capsys.readouterr().out
    vw = io.BytesIO(b"1 |f size:300 red\n-1 |f size:-100 blue\n")
    lines = forel.train(vw, Settings(alpha=1.0, rate="scale_free"), bits=12, names=True).inspect().weights
    assert {one.name: one.typical for one in lines} == {"f^size": 300.0, "f^red": 1.0, "f^blue": 1.0}


def test_several_classes_show_the_class_of_the_largest_contribution(interpreted):
    rows = [{**row, "buys": ("few", "some", "many")[k % 3]} for k, row in enumerate(ROWS)]
    found = forel.train(rows, Settings("softmax", alpha=1.0), label="buys", bits=12, names=True).inspect().weights
    assert {one.label for one in found} <= {"few", "some", "many"}
    assert found[0].name == "income"


def test_training_that_continues_keeps_means_and_schemas_of_earlier_versions_have_none(interpreted):
    half = forel.train(ROWS[:30], Settings(alpha=1.0), label="buys", bits=12)
    whole = forel.train(ROWS[30:], model=half)
    assert whole.extra["schema"]["income"]["typical"] == pytest.approx(np.abs(INCOME).mean(), rel=1e-6)
    old = forel.training.model.Model(half.learner, json.loads(json.dumps(half.extra)))
    for column in old.extra["schema"].values():
        column.pop("typical", None)
    assert {one.typical for one in old.inspect().weights} == {1.0}
    assert "typical" not in forel.train(ROWS[30:], model=old).extra["schema"]["income"]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("names", [False, True])
def test_slots_without_names_say_how_to_keep_them(names, tmp_path, capsys):
    rows = [{"site": "abc"[k % 3], "y": k % 2} for k in range(30)]
    forel.train(rows, Settings(alpha=0.5), label="y", bits=8, names=names).save(tmp_path / "m.forel")
    inspect(str(tmp_path / "m.forel"), 20)
    assert ("Slots without a name: forel train --names keeps names." in capsys.readouterr().out) != names
