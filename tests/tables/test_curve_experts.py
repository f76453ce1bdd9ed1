"""Experts on curves: filters by their information form, the same bits in any blocks, and all ways to predict."""

import io

import numpy as np
import pandas as pd
import pytest

import forel
from forel import FTRLClassifier, FTRLRegressor
from forel.data.features.curves import Curves
from forel.learner import curve_experts
from forel.learner.curve_experts import CurveExperts, CurveFilter
from forel.learner.learner import Learner
from forel.learner.rows import Examples, Rows
from forel.learner.settings import Settings
from forel.store import serving_model
from forel.training.model import Model


def frame(rows=900, seed=0):
    """A curve of a, a pair of a and c, missing values, codes, and labels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=rows),
            "b": rng.integers(0, 5, rows),
            "c": rng.choice(list("xyz"), rows),
            "d": rng.gamma(1, size=rows),
            "code": rng.integers(0, 100, rows),
        }
    )
    table.loc[::7, "d"] = np.nan
    margin = 2 * np.sin(2 * table.a) + table.a * (table.c == "x") - table.d.fillna(3)
    table["y"] = (margin + 0.3 * rng.logistic(size=rows) > 0) * 1
    return table


@pytest.fixture(scope="module")
def trained():
    table = frame()
    return forel.train(table[:700], label="y", features="pairs", names=True, bits=12), table[700:]


def dense_filter(X, y, importance, prior, logistic, threshold):
    """Margins by the precision matrix, which is solved with in every round, and the number of rows added to it."""
    mean, precision, margins, chance, added = np.zeros(len(prior)), np.diag(1 / prior), [], 0.0, 0
    for x, label, weight in zip(X, y, importance, strict=True):
        m = float(mean @ x)
        m = min(max(m, -30), 30) if logistic else m
        margins.append(m)
        if weight < 0:
            continue
        p = 1 / (1 + np.exp(-m))
        slope, curvature = (p - label, max(p * (1 - p), 1e-6)) if logistic else (m - label, 1.0)
        slope, curvature = weight * slope, weight * curvature
        direction = np.linalg.solve(precision, x)
        mean = mean - slope / (1 + curvature * direction @ x) * direction
        probability = min(curvature * direction @ x / threshold, 1)
        chance += probability
        if chance >= 1:
            precision += curvature / probability * np.outer(x, x)
            chance, added = chance - 1, added + 1
    return np.array(margins), added


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-6), (np.float32, 1e-3)])
@pytest.mark.parametrize("threshold", [1e-9, 0.3])
@pytest.mark.parametrize("logistic", [True, False])
def test_filters_are_those_of_the_precision_form(logistic, threshold, dtype, error, monkeypatch):
    """With all rows in the precision, and with those of much information, divided by their probabilities."""
    monkeypatch.setattr(curve_experts, "LIMITS", (1e12, 0.0, threshold))
    rng, rows = np.random.default_rng(3), 300
    values = rng.normal(size=(rows, 2)).astype(np.float32)
    given = Rows(np.arange(0, 2 * rows + 1, 2), np.tile([5, 9], rows), values.ravel())
    curves = Curves.of(given, [5, 9])
    y, importance = (values[:, 0] ** 2 > 1) * 1.0, np.resize([1.0, 2.0, 0.5, -1.0], rows)
    settings = Settings("logistic" if logistic else "squared", rate="scale_free", alpha=(1.0, 2.0))
    filters = CurveFilter(3.0, 0.5), CurveFilter(2.0, 0.0)
    experts = CurveExperts(curves, settings, logistic, dtype, filters)
    found = experts.learn(Examples(given, y, importance), None)[:, 2:]
    indptr, indices, weights = curves.expand(*given)
    X = np.zeros((rows, curves.width))
    X[np.repeat(np.arange(rows), np.diff(indptr)), indices] = weights
    prior = np.full(curves.width, 0.5)
    prior[: curves.single], prior[0] = 3.0, 100.0
    expected, added = dense_filter(X, y, importance, prior, logistic, threshold)
    np.testing.assert_allclose(found[:, 0], expected, rtol=error, atol=error / 10)
    prior[1:] = 2.0
    alone = dense_filter(X[:, : curves.single], y, importance, prior[: curves.single], logistic, threshold)[0]
    np.testing.assert_allclose(found[:, 1], alone, rtol=error, atol=error / 10)
    assert added == (225 if threshold < 0.1 else pytest.approx(150, abs=70))


def test_filters_learn_as_long_as_their_limits_allow(monkeypatch):
    rows = Rows(np.arange(401), np.full(400, 5), np.linspace(0, 1, 400, dtype=np.float32))
    curves, y = Curves.of(rows, [5]), np.ones(400)
    counts = []
    for limits in ((1e12, 0.0, 0.1), (1e4, 0.0, 0.1), (1e4, 20.0, 0.1)):
        monkeypatch.setattr(curve_experts, "LIMITS", limits)
        experts = CurveExperts(curves, Settings("squared", rate="scale_free", alpha=(1.0, 2.0)), False)
        experts.learn(Examples(rows, y, np.ones(400)), None)
        counts.append(experts.filtered[0].counts[1])
        assert experts.filtered[0].counts[0] == 400
    assert counts[1] < counts[2] < counts[0]
    assert counts[1] < 1.1e4
    assert counts[2] < 1e4 + 20 * 400 + 1e3


def test_curves_and_pairs_win_where_labels_have_them(trained):
    model, test = trained
    linear = forel.train(frame()[:700], label="y", bits=12, features="linear").predict(test)
    found = model.predict(test)
    losses = [-np.log(np.where(test.y == 1, p, 1 - p)).mean() for p in (found, linear)]
    assert losses[0] < 0.6 * losses[1]
    assert model.learner.guarantee().loss <= model.learner.guarantee().other + model.learner.guarantee().bound


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_labels_that_rows_say_nothing_about_have_their_mean_predicted(loss):
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(1500, 6)), columns=list("abcdef"))
    table["y"] = (rng.random(1500) < 0.1) * 1 if loss == "logistic" else rng.normal(size=1500) + 5
    model, test = forel.train(table[:1000], label="y", loss=loss, bits=12), table[1000:]
    y, mean, found = test.y.to_numpy(), table.y[:1000].mean(), model.predict(test)
    if loss == "logistic":
        losses = [-np.log(np.where(y == 1, p, 1 - p)).mean() for p in (found, mean)]
    else:
        losses = [((y - p) ** 2).mean() for p in (found, mean)]
    assert losses[0] < 1.005 * losses[1]
    assert "base rate" in model.learner.names
    with pytest.warns(UserWarning, match="all 500 rows have the same prediction"):
        served = Model(serving_model(model, mixed=False), model.extra, model.names).predict(test)
    np.testing.assert_allclose(served, mean, rtol=0.02)
    assert all(one.spread > 0 for one in model.inspect().curves.columns)


def test_all_ways_to_predict_agree(trained, tmp_path):
    model, test = trained
    rows = [{k: v for k, v in row.items() if k != "y"} for row in test.to_dict("records")]
    found = model.predict(test)
    np.testing.assert_allclose([model.predict_one(row) for row in rows[:30]], found[:30], rtol=1e-6)
    np.testing.assert_array_equal(model.predict(io.BytesIO(test.to_csv(index=False).encode()), format="csv"), found)
    model.save(tmp_path / "m.forel")
    np.testing.assert_array_equal(forel.load(tmp_path / "m.forel").predict(test), found)
    for mixed, limit in ((True, 3e-4), (False, 1)):
        small = serving_model(model, mixed=mixed)
        Model(small, model.extra, model.names).save(tmp_path / "s.forel")
        served = forel.load(tmp_path / "s.forel")
        np.testing.assert_allclose(served.predict(test), found, atol=limit)
        np.testing.assert_allclose([served.predict_one(row) for row in rows[:9]], served.predict(test)[:9], rtol=1e-5)
        for one, row in zip(served.predict(test), rows[:9], strict=False):
            explained = served.explain_one(row)
            assert explained.prediction == pytest.approx(one, rel=1e-5)


def test_explanations_add_up_by_column_and_pair(trained):
    model, test = trained
    for row in test.to_dict("records")[:20]:
        explained = model.explain_one({k: v for k, v in row.items() if k != "y" and v == v})
        total = explained.bias + sum(part.contribution for part in explained.contributions)
        assert total == pytest.approx(explained.margin)
        names = [part.name for part in explained.contributions]
        assert len(set(names)) == len(names)
        own = {"a", "b", "d", "code", f"c^{row['c']}"}
        assert all(set(name.split("*")) <= own for name in names)
    assert any("*" in name for name in names)


def test_models_do_not_depend_on_blocks_and_resume_with_the_same_bits(tmp_path):
    path, table = tmp_path / "t.csv", frame()
    table.to_csv(path, index=False)
    options = {"label": "y", "features": "pairs", "bits": 12, "holdout": 9}
    whole = forel.train(path, **options)
    small = forel.train(path, **options, block_bytes=2000, threads=0)
    np.testing.assert_array_equal(whole.predict(table), small.predict(table))

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.rows > 400:
            raise Stop

    run = {**options, "block_bytes": 2000, "checkpoint": tmp_path / "c.forel", "checkpoint_every": 100}
    with pytest.raises(Stop):
        forel.train(path, **run, progress=stop)
    resumed = forel.train(path, **run, resume=True)
    np.testing.assert_array_equal(whole.predict(table), resumed.predict(table))
    assert whole.learner.losses.tolist() == resumed.learner.losses.tolist()


def test_loaded_models_continue_with_the_same_bits(trained, tmp_path):
    model, test = trained
    model.save(tmp_path / "m.forel")
    more = [forel.train(test, model=one).predict(test) for one in (model, tmp_path / "m.forel")]
    np.testing.assert_array_equal(*more)


def test_knots_do_not_depend_on_held_out_rows():
    table = frame()
    changed = table.copy()
    changed.loc[8::9, "a"] = 1e6
    curves = [
        forel.train(one, label="y", features="curves", bits=12, holdout=9).learner.curves for one in (table, changed)
    ]
    np.testing.assert_array_equal(curves[0].pack(), curves[1].pack())
    assert not curves[0].pairs.size


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_estimators_of_frames_and_arrays(library, tmp_path):
    table = frame().drop(columns="d")
    X, y = table.drop(columns="y"), table.y.to_numpy()
    if library == "polars":
        X = pytest.importorskip("polars").from_pandas(X)
    model = FTRLClassifier(features="pairs").fit(X, y)
    assert model.progressive_loss_ < FTRLClassifier(features="linear").fit(X, y).progressive_loss_
    forel.save(tmp_path / "m.forel", model)
    np.testing.assert_array_equal(forel.load(tmp_path / "m.forel").margins(X), model.decision_function(X))
    numbers = table[["a", "b"]].to_numpy()
    regression = FTRLRegressor(features="curves", dtype="float64").fit(numbers, np.sin(2 * table.a))
    assert regression.score(numbers, np.sin(2 * table.a)) > 0.9


def test_words_and_new_categories_later_are_predicted(trained):
    model, _ = trained
    row = {"a": 0.5, "b": 1, "c": "new", "d": 1.0, "code": 500}
    with pytest.warns(UserWarning, match="differ"):
        found = model.predict([row, {**row, "a": "word"}])
    assert np.isfinite(found).all()


def test_refusals_have_a_remedy(trained):
    table = frame(300)
    with pytest.raises(ValueError, match=r"features: got 'curve', expected one of .*; did you mean 'curves'"):
        forel.train(table, label="y", features="curve")
    with pytest.raises(ValueError, match="features: got 'pairs', expected 'linear' or 'auto' for other losses"):
        forel.train(table, label="y", features="pairs", loss="hinge")
    with pytest.raises(ValueError, match="features: got 'curves', expected 'linear' or 'auto' for rows without"):
        forel.train(table[["c", "y"]], label="y", features="curves")
    with pytest.raises(ValueError, match="features: got 'curves', expected none with by"):
        forel.train(table, label="y", features="curves", by="c")
    start = forel.train(table, label="y", features="linear", bits=12)
    with pytest.raises(ValueError, match="features: got 'curves', expected 'auto': training continues"):
        forel.train(table, model=start, features="curves")
    with pytest.raises(ValueError, match="features: got 'linear', expected 'auto': training continues"):
        forel.train(trained[1], model=trained[0], features="linear")
    with pytest.raises(ValueError, match="curves: got 'curves', expected None but for a mixture"):
        Learner(9, Settings(), curves=start)


def test_certificates_cover_linear_models(trained):
    table = frame()
    model = forel.train(table, label="y", features="pairs", bits=12, certificate=True)
    assert model.certificate
    assert model.learner.loss == pytest.approx(forel.train(table, label="y", features="pairs", bits=12).learner.loss)


def test_other_libraries_have_no_curves(trained):
    """ONNX refuses; river continues without them, within the guarantee."""
    from forel.river import model_of

    model, test = trained
    pytest.importorskip("onnx")
    from forel.onnx import to_onnx

    with pytest.raises(ValueError, match="model: got 'curves and pairs of columns', expected plain features"):
        to_onnx(model)
    plain = model_of(model)
    row = {k: v for k, v in test.iloc[0].drop("y").items() if v == v}
    assert 0 < plain.predict_proba_one(row)[True] < 1
    without = model.learner.without_full_filters()
    assert without.curves is None
    assert without.guarantee().loss <= without.guarantee().other + without.guarantee().bound


def test_models_are_inspected(trained, tmp_path):
    model, _ = trained
    small = Model(serving_model(model, mixed=True), model.extra, model.names)
    for one in (model, small):
        assert {"a", "b", "d"} & {weight.name for weight in one.inspect().weights}
    assert "curve" in {kind.kind for kind in model.inspect().mixture.kinds}


def test_curves_are_shown_with_knots_from_which_margins_follow(trained, tmp_path):
    """A margin of the best expert on curves, from what ``forel inspect --json`` prints, for a model without pairs."""
    import json

    from typer.testing import CliRunner

    from forel.cli.app import app

    table = frame()[["a", "d", "y"]]
    model = forel.train(table, label="y", features="curves", bits=12)
    model.save(tmp_path / "m.forel")
    done = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.forel"), "--json"])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)["curves"]
    assert [one["column"] for one in shown["columns"]] == ["a", "d"]
    rows = [{"a": float(np.float32(x)), "d": float(np.float32(d))} for x, d in ((0.1, 0.5), (-0.7, 1.2), (0.9, 0.1))]
    expert = model.learner.names.index(shown["expert"]) - model.learner.settings.n_settings
    block = next(iter(forel.read(rows, bits=12)))
    group = model.learner.mixture.curve_experts
    margins = group.predict(Rows(*block.rows), None)[:, expert - 2]
    curves = {one["column"]: one for one in shown["columns"]}
    sums = [sum(np.interp(row[c], curves[c]["knots"], curves[c]["values"]) for c in row) for row in rows]
    np.testing.assert_allclose(np.diff(margins), np.diff(sums), atol=1e-5)  # without the constant
    text = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.forel")]).stdout
    assert "curves: " in text
    assert any(mark in text for mark in "▁█")
    assert not trained[0].inspect().curves.pairs  # of an expert without pairs
    assert forel.train(frame(3000), label="y", bits=12).inspect().curves.pairs[0].spread > 0
