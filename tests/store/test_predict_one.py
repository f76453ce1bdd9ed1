"""Predictions and explanations of single rows: those of the slow path, at every door."""

import json
import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.data import slot
from forel.store import serving_model
from forel.store.explaining import Explanation
from forel.training.model import Model

OPTIONS = {
    "label": "y", "ignore": ["id"], "log": ["amount"], "categories": ["code"], "bits": 12,
    "kinds": {"age": "number", "city": "category"},
}  # fmt: skip
SERVING = {}


def stored(**options):
    """Return a serving model with a random weight in every slot."""
    from forel.learner.learner import Learner

    key = json.dumps(options)
    if key not in SERVING:
        small = serving_model(Learner(1 << 12, forel.Settings(alpha=1.0)))
        rng = np.random.default_rng(5)
        from dataclasses import replace

        weights = rng.normal(size=(1 << 12, 1)).astype(np.float32)
        small = replace(
            small, slots=np.arange(1 << 12, dtype=np.uint32), weights=weights, bias=np.float32([0.25])
        )  # fmt: skip
        SERVING[key] = Model(small, {"reading": {**OPTIONS, **options}})
    return SERVING[key]


def reference(model, row):
    """Return the prediction by arrays."""
    return forel.predict(model, [row])[0]


VALUES = (
    st.none() | st.booleans() | st.integers(-50, 50) | st.floats(-1e3, 1e3, width=32)
    | st.sampled_from(["", "Rome", "31", " 4.5 ", "NA", "?", "7", "7.0", "Zürich", "true", "x,y"])
    | st.lists(st.sampled_from(["red", "shoe", ""]), max_size=2) | st.just({"city": "Oslo", "visits": 3})
)  # fmt: skip
KEYS = st.sampled_from(["age", "city", "code", "amount", "price", "id", "other", "y", ""])


@given(st.dictionaries(KEYS, VALUES, max_size=6), st.booleans())
@settings(max_examples=300, deadline=None)
def test_one_row_has_the_prediction_of_arrays(row, constant):
    model = stored(constant=True) if constant else stored()
    expected, message = None, ""
    try:
        expected = reference(model, row)
    except ValueError as error:
        message = str(error)
    if message:
        with pytest.raises(ValueError, match=re.escape(message)):
            model.predict_one(row)
        return
    assert model.predict_one(row) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert model.predict_one(row) == pytest.approx(expected, rel=1e-4, abs=1e-6)  # remembered
    assert model.predict_many([row, row]) == pytest.approx([expected, expected], rel=1e-4, abs=1e-6)
    found = model.explain_one(row)
    assert found.prediction == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert found.margin == pytest.approx(found.bias + sum(part.contribution for part in found.contributions))


@pytest.mark.parametrize("value", [math.inf, 1e39, -1e300, 10**60])
@pytest.mark.parametrize("key", ["age", "other", "code", "amount"])
def test_numbers_out_of_range_are_errors_as_elsewhere(key, value):
    if key == "code":
        assert stored().predict_one({key: 7}) == stored().predict_one({key: 7.0}) == stored().predict_one({key: "7"})
        return
    with pytest.raises(ValueError, match="within the range of float32"):
        stored().predict_one({key: value})


def test_crosses_are_predicted_too():
    model = stored(interactions=["city*code"])
    row = {"city": "Rome", "code": 7, "age": 3}
    assert model.predict_one(row) == pytest.approx(reference(model, row), rel=1e-5)
    assert "city^Rome*code^7" in {part.name for part in model.explain_one(row).contributions}


def test_contributions_have_names_values_and_weights():
    model = stored()
    found = model.explain_one({"age": "31", "city": "Rome", "amount": 9.0, "y": "maybe", "id": 4})
    assert isinstance(found, Explanation)
    parts = {part.name: part for part in found.contributions}
    assert parts.keys() == {"age", "city^Rome", "amount"}
    assert parts["age"].value == 31
    assert parts["age"].weight == pytest.approx(float(model.learner.weights[slot("age", bits=12), 0]))
    assert parts["amount"].value == pytest.approx(math.log(10))
    sizes = [abs(part.contribution) for part in found.contributions]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "poisson"])
def test_learners_and_serving_files_agree(loss, tmp_path, interpreted):
    rows = [{"site": site, "x": 0.5, "y": y} for site, y in (("news", 1), ("shop", 0))] * 20
    trained = forel.train(rows, forel.Settings(loss, alpha=0.5), label="y", bits=6)
    trained.save(tmp_path / "m.forel")
    forel.save(tmp_path / "s.forel", serving_model(trained.learner), trained.extra)
    row = {"site": "news", "x": 0.5}
    expected = forel.predict(trained, [row])[0]
    for model in (trained, forel.load(tmp_path / "m.forel"), forel.load(tmp_path / "s.forel")):
        assert model.predict_one(row) == pytest.approx(expected, rel=1e-5)
        assert model.predict_many([row])[0] == pytest.approx(expected, rel=1e-5)
        assert model.explain_one(row).prediction == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "options",
    [{"settings": forel.Settings(alpha=(0.1, 1.0))}, {}, {"fixed_share": 0.01}],
    ids=["grid", "default", "share"],
)
def test_a_mixture_is_explained_by_its_own_margin(options, tmp_path, interpreted):
    rng = np.random.default_rng(0)
    rows = [
        {"site": "news" if y else rng.choice(["news", "shop"]).item(), "x": rng.normal() + y, "big": 1000.0, "y": y}
        for y in (rng.random(60) < 0.4).astype(int).tolist()
    ]
    trained = forel.train(rows, label="y", bits=6, **options)
    forel.save(tmp_path / "s.forel", serving_model(trained.learner, mixed=True), trained.extra)
    for row in ({"site": "news", "x": 2.5}, {"x": -2.0}, {}, rows[0]):
        expected = forel.predict(trained, [row])[0]
        assert trained.predict_one(row) == pytest.approx(expected, rel=1e-5)
        for model in (trained, forel.load(tmp_path / "s.forel")):
            found = model.explain_one(row)
            assert found.prediction == pytest.approx(expected, rel=1e-3 if model is not trained else 1e-4)
            assert found.margin == pytest.approx(found.bias + sum(part.contribution for part in found.contributions))
            alone = forel.predict(model, [{}], margins=True)[0]
            assert found.bias == pytest.approx(alone, rel=1e-4, abs=1e-5)


def test_new_keys_are_warned_about_once(tmp_path, interpreted):
    rows = [{"site": site, "age": 3.5, "note": "a b", "y": y, "id": 1} for site, y in (("news", 1), ("shop", 0))] * 20
    options = {"label": "y", "bits": 6, "text": ["note"], "ignore": ["id"]}
    trained = forel.train(rows, forel.Settings(alpha=0.5), **options)
    model = Model(serving_model(trained.learner), trained.extra)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = model.predict_one(rows[0])
        assert model.predict_one({"site": "news", "note": "c"}) > 0
    with pytest.warns(UserWarning, match="'sit' is new; did you mean 'site'"):
        model.predict_one({**rows[0], "sit": "news"})
    with pytest.warns(UserWarning, match="'color' is new$"):
        assert model.predict_one({**rows[0], "color": "red"}) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_one({**rows[0], "color": "red", "sit": "shop"})


@pytest.mark.parametrize("classes", [2, 3])
def test_models_that_learn_warn_of_new_keys_too(classes, interpreted):
    rows = [{"site": "abc"[k % 3], "age": 3.5, "y": "uvw"[k % classes], "id": 1} for k in range(30)]
    stored = forel.train(rows, forel.Settings(alpha=0.5), label="y", bits=6, ignore=["id"])
    with pytest.warns(UserWarning, match="'ages' is new; did you mean 'age'") as found:
        expected = stored.predict_one({"site": "a", "ages": 3.5})
    assert [one.filename for one in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stored.predict_one({"site": "a", "ages": 3.5}) == expected
        stored.predict_one({**rows[0], "id": 7})


def test_the_command_line_explains_rows(tmp_path, interpreted):
    (tmp_path / "a.csv").write_text("y,city,age\n" + "yes,Rome,3\nno,Oslo,4\n" * 20)
    model = tmp_path / "m.forel"
    forel.train(tmp_path / "a.csv", forel.Settings(alpha=1.0), label="y", bits=6).save(model)
    run = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke
    shown = run(app, ["explain", str(tmp_path / "a.csv"), "--model", str(model), "--rows", "2"])
    assert shown.exit_code == 0, shown.stderr
    for text in ("row 1", "row 2", "city^Rome", "city^Oslo", "bias", "contribution"):
        assert text in shown.stdout
    lines = run(app, ["explain", str(tmp_path / "a.csv"), "--model", str(model), "--rows", "2", "--json"]).stdout
    first, second = map(json.loads, lines.splitlines())
    assert first["prediction"] > 0.5 > second["prediction"]
    assert {part["name"] for part in first["contributions"]} == {"city^Rome", "age"}


def test_keys_of_lists_are_not_new(interpreted, recwarn):
    rows = [{"tags": ["a", "bc"[k % 2]], "x": float(k % 7), "y": k % 2} for k in range(60)]
    model = forel.train(rows, label="y", bits=8)
    recwarn.clear()
    assert model.predict_one(rows[0]) == model.predict([rows[0]])[0]
    assert not recwarn.list
