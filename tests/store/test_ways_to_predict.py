"""All ways to predict give the same number, for rows inside and outside the range of training."""

import copy
import pickle

import numpy as np
import pytest

import forel
from forel.data import slot
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.store import choose_serving, serving_model
from forel.training.model import Model

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:the rows? differ:UserWarning"),
]

rng = np.random.default_rng(3)
ROWS = [
    {"a": float(x), "flat": -1.0, "site": "uvw"[k % 3], "y": int(x + rng.normal() > 0)}
    for k, x in enumerate(rng.normal(size=80))
]
INSIDE = [{"a": 0.5, "flat": -1.0, "site": "u"}, {"a": -0.25, "site": "w"}, {}]
# A column that was constant, a value larger than any before, a category and a column that are new.
OUTSIDE = [
    {"a": 0.5, "flat": 200.0, "site": "u"},
    {"a": 1e6, "flat": -1.0, "site": "v"},
    {"a": -1e30, "flat": 1e38, "site": "v"},
    {"a": 1.0, "site": "new", "other": 5.0},
]
SETTINGS = {
    "scale-free": forel.Settings(rate="scale_free", alpha=1.0),
    "adagrad": forel.Settings(alpha=1.0),
    "squared": forel.Settings("squared", rate="scale_free", alpha=1.0),
    "default": None,
}


@pytest.fixture(params=SETTINGS)
def model(request):
    return forel.train(ROWS, SETTINGS[request.param], label="y", bits=8)


@pytest.mark.parametrize("rows", [INSIDE, OUTSIDE], ids=["inside", "outside"])
def test_predictions_of_files_rows_and_explanations_agree(model, rows, tmp_path):
    expected = forel.predict(model, rows)
    model.save(tmp_path / "m.forel")
    ways = {"trained": model, "loaded": forel.load(tmp_path / "m.forel")}
    best = Model(model.learner.select_setting(), model.extra)
    for name, own, mixed in (("best", best, False), ("mixture", model, True)):
        if mixed and model.learner.guarantee() is None:
            continue
        forel.save(tmp_path / "s.forel", serving_model(own.learner, mixed=mixed), own.extra)
        ways[name] = forel.load(tmp_path / "s.forel")
    for name, way in ways.items():
        wanted = forel.predict(best, rows) if name == "best" else expected
        # A served mixture leaves out experts of a total weight of 1e-4.
        close = {"rel": 1e-3, "abs": 1e-4} if name == "mixture" else {"rel": 1e-5, "abs": 1e-6}
        assert forel.predict(way, rows) == pytest.approx(wanted, **close), name
        assert way.predict_many(rows) == pytest.approx(wanted, **close), name
        assert [way.predict_one(row) for row in rows] == pytest.approx(wanted, **close), name
        found = list(way.explain(rows))
        assert [one.prediction for one in found] == pytest.approx(wanted, **close), name
    for way in (model, ways["loaded"]):
        exact = way.predict_many(rows)
        assert [way.predict_one(row) for row in rows] == pytest.approx(exact, rel=1e-14, abs=0)
        assert np.array_equal(forel.predict(way, rows), exact)


def test_numbers_inside_of_objects_are_explained_and_served_as_they_are_predicted():
    drawn = rng.uniform((20, -2), (80, 2), (250, 2)).tolist()
    rows = [{"user": {"age": age}, "x": x, "y": int(x + age / 20 > 2)} for age, x in drawn]
    model = forel.train(rows, label="y", bits=8)
    assert model.learner.curves is not None
    expected = model.predict_many(rows[:9])
    assert [one.prediction for one in model.explain(rows[:9])] == pytest.approx(expected, abs=1e-6)
    served = Model(serving_model(model.learner, mixed=True), model.extra)
    assert served.predict_many(rows[:9]) == pytest.approx(expected, rel=1e-3, abs=1e-4)


HUGE = [{"a": 3e38, "flat": 3e38}, {"a": 3e38, "flat": -3e38}, {"a": -1e36, "site": "v"}, {"a": 0.5, "flat": 3e38}]


@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_values_near_the_largest_number_give_the_same_margin(loss, rate):
    model = forel.train(ROWS, forel.Settings(loss, rate=rate, alpha=1.0), label="y", bits=8)
    small, expected = Model(serving_model(model.learner), model.extra), model.margins(HUGE)
    assert np.abs(expected).max() <= 1.001e30
    for way in (model, small):
        assert way.margins(HUGE) == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert [one.margin for one in way.explain(HUGE)] == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert [way.predict_one(row) for row in HUGE] == pytest.approx(way.predict_many(HUGE), rel=1e-6)


def test_a_value_beyond_its_scale_counts_as_the_scale():
    model = forel.train(ROWS, SETTINGS["scale-free"], label="y", bits=8)
    one, far = forel.predict(model, [{"flat": -1.0}, {"flat": -200.0}])
    assert one == far != 0.5
    assert model.learner.state.scales[slot("flat", bits=8)] == 1.0


@pytest.mark.parametrize("way", ["full", "serving"])
def test_log_loss_beyond_the_range_is_the_same(way):
    model = forel.train(ROWS, SETTINGS["scale-free"], label="y", bits=8)
    rows = [{**row, "flat": 200.0} for row in ROWS]
    near = model.evaluate([{**row, "flat": 1.0} for row in ROWS], label="y").report.loss
    own = model if way == "full" else Model(serving_model(model.learner), model.extra)
    assert own.evaluate(rows, label="y").report.loss == pytest.approx(near, rel=1e-5)


def numbers(rows):
    """Return two columns of rows as numbers, 0 where they are missing."""
    return np.array([[row.get(name, 0.0) for name in ("a", "flat")] for row in rows], np.float64)


@pytest.mark.parametrize("rows", [INSIDE, OUTSIDE], ids=["inside", "outside"])
@pytest.mark.parametrize("options", [{}, {"alpha": 1.0, "rate": "scale_free"}], ids=["default", "one setting"])
def test_estimators_and_their_files_agree(options, rows, tmp_path):
    X, y = numbers(ROWS), [row["y"] for row in ROWS]
    estimator = forel.FTRLClassifier(**options).fit(X, y)
    expected = estimator.predict_proba(numbers(rows))[:, 1]
    forel.save(tmp_path / "m.forel", estimator)
    stored = forel.load(tmp_path / "m.forel")
    assert stored.predict_many(numbers(rows)) == pytest.approx(expected, rel=1e-5)
    assert forel.sklearn.estimator_of(stored).predict_proba(numbers(rows))[:, 1] == pytest.approx(expected, rel=1e-6)
    small = serving_model(stored.learner.select_setting())
    best = stored.learner.select_setting().margins(numbers(rows))
    assert small.margins(numbers(rows)) == pytest.approx(best, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("rows", [INSIDE, OUTSIDE], ids=["inside", "outside"])
@pytest.mark.parametrize("options", [{}, {"alpha": 1.0, "rate": "scale_free"}], ids=["default", "one setting"])
def test_river_models_and_their_files_agree(options, rows, tmp_path):
    pytest.importorskip("river")
    import pandas

    model = forel.river.LinearClassifier(**options)
    for row in ROWS:
        model.learn_one({"a": row["a"], "flat": row["flat"]}, bool(row["y"]))
    chosen = [{"a": a, "flat": b} for a, b in numbers(rows).tolist()]
    expected = [model.predict_proba_one(row)[True] for row in chosen]
    assert model.predict_proba_many(pandas.DataFrame(chosen))[True].tolist() == pytest.approx(expected, rel=1e-9)
    forel.save(tmp_path / "m.forel", model)
    stored = forel.load(tmp_path / "m.forel")
    assert stored.predict_many(chosen) == pytest.approx(expected, rel=1e-6)
    assert [forel.river.model_of(stored).predict_proba_one(row)[True] for row in chosen] == expected


@pytest.mark.parametrize("unit", [1.0, 1e38])
def test_river_margins_do_not_fall_where_a_value_grows(unit):
    pytest.importorskip("river")
    model = forel.river.LinearClassifier()
    for row in ROWS:
        model.learn_one({"a": row["a"]}, bool(row["y"]))
    found = [model.predict_proba_one({"a": unit * k})[True] for k in (1.0, 3.0, 10.0, 1e2, 1e200)]
    assert found == sorted(found)


LOSSES = ["squared", "absolute", "huber", "quantile", "epsilon_insensitive", "poisson"]
REGRESSIONS = {
    **{loss: forel.Settings(loss, rate="scale_free", alpha=(0.3, 3.0)) for loss in LOSSES},
    **{f"{loss}, adagrad": forel.Settings(loss, alpha=(0.3, 3.0)) for loss in LOSSES},
    "squared, default": default_grid(loss="squared"),
}
LABELS = [float(1 + (row["a"] > 0) + (k % 3 == 2)) for k, row in enumerate(ROWS)]  # 1 to 3
FAR = [{"a": 10.0}, {"a": -50.0}, {"a": 1e6, "flat": -1.0, "site": "w"}, {"a": 300.0, "site": "new"}]


@pytest.fixture(params=REGRESSIONS)
def regression(request):
    rows = [{**row, "y": label} for row, label in zip(ROWS, LABELS, strict=True)]
    return forel.train(rows, REGRESSIONS[request.param], label="y", bits=8)


def clipped(settings, margins, low=1.0, high=3.0):
    """Return margins between those of labels; a mixture of Poisson loss does not clip small means."""
    return np.minimum(margins, np.log(high)) if settings.loss == "poisson" else np.clip(margins, low, high)


@pytest.mark.parametrize("rows", [INSIDE, OUTSIDE[:2], FAR], ids=["inside", "outside", "far"])
@pytest.mark.parametrize("mixed", [False, True], ids=["setting", "mixture"])
def test_files_for_serving_clip_to_the_labels_as_the_mixture_does(regression, mixed, rows, tmp_path):
    learner, settings = regression.learner, regression.settings
    best = Model(learner.select_setting(learner.best_model), regression.extra)
    margins = regression.margins(rows) if mixed else clipped(settings, best.margins(rows))
    assert margins == pytest.approx(clipped(settings, margins), rel=1e-9)
    for dtype, error in (("float32", 1e-4), ("float16", 2e-2)):
        forel.save(tmp_path / "s.forel", serving_model(learner, dtype=dtype, mixed=mixed), regression.extra)
        small, close = forel.load(tmp_path / "s.forel"), {"rel": error, "abs": error}
        expected = settings.link(margins)
        assert small.margins(rows) == pytest.approx(margins, **close)
        assert forel.predict(small, rows) == pytest.approx(expected, **close)
        assert small.predict_many(rows) == pytest.approx(expected, **close)
        assert [small.predict_one(row) for row in rows] == pytest.approx(expected, **close)
        found = list(small.explain(rows))
        assert [one.margin for one in found] == pytest.approx(margins, **close)
        assert [one.bias for one in found] == pytest.approx(small.margins([{}] * len(rows)), rel=1e-5)


def test_some_rows_of_these_tests_are_beyond_the_labels(regression):
    alone = regression.learner.select_setting(regression.learner.best_model)
    margins = Model(alone, regression.extra).margins(OUTSIDE[:2] + FAR)
    assert np.abs(margins - clipped(regression.settings, margins)).max() > 0.01


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_of_a_setting_that_is_served_is_that_of_clipped_predictions(loss):
    settings, X = REGRESSIONS[loss], numbers(ROWS)
    model = Learner(2, settings)
    model.learn(X, LABELS)
    choice = choose_serving(model)
    alone = Learner(2, settings.only(model.best)).progress(X, LABELS)[:, 0].astype(np.float64)
    lowest, highest = np.minimum.accumulate(LABELS[:-1]), np.maximum.accumulate(LABELS[:-1])
    first = min(alone[0], 0.0) if loss == "poisson" else 0.0
    before = np.append(first, clipped(settings, alone[1:], lowest, highest))
    assert choice.loss == pytest.approx(np.mean(settings.loss_function(before, np.array(LABELS))), rel=1e-5)
    assert choice.mixed is bool(choice.loss > 1.01 * choice.mixture_loss)


@pytest.mark.parametrize("rows", [INSIDE, OUTSIDE], ids=["inside", "outside"])
def test_graphs_agree(model, rows):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y = numbers(ROWS), [row["y"] for row in ROWS]
    settings = model.settings.only(0) if model.settings.n_settings > 1 else model.settings
    kind = forel.FTRLRegressor if settings.loss == "squared" else forel.FTRLClassifier
    estimator = kind(alpha=settings.alpha, rate=settings.rate).fit(X, y)
    graph = forel.onnx.to_onnx(estimator).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": numbers(rows).astype(np.float32)})
    expected = forel.training.model.as_model(estimator).predict_many(numbers(rows))
    assert found[:, 0] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("rate", [None, "adagrad"])
@pytest.mark.parametrize("loss", LOSSES)
def test_graphs_clip_to_the_labels(loss, rate):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    estimator = forel.FTRLRegressor(loss=loss, rate=rate).fit(numbers(ROWS), LABELS)
    learner = forel.training.model.as_model(estimator).learner
    best, X = learner.select_setting(learner.best_model), numbers(INSIDE + OUTSIDE[:2] + FAR)
    session = runtime.InferenceSession(forel.onnx.to_onnx(estimator).SerializeToString())
    (found,) = session.run(None, {"X": X.astype(np.float32)})
    margins = clipped(learner.settings, best.margins(X)[:, 0])
    assert found[:, 0] == pytest.approx(learner.settings.link(margins), rel=1e-4, abs=1e-5)


def test_mlflow_predicts_as_the_model(model):
    from forel.mlflow.pyfunc import PyfuncModel

    assert (PyfuncModel(model).predict(OUTSIDE) == forel.predict(model, OUTSIDE)).all()


@pytest.mark.parametrize("served", [False, True])
def test_copies_of_a_model_that_has_predicted_predict_and_learn_alone(model, served):
    used = Model(serving_model(model.learner), model.extra) if served else model
    expected = [used.predict_one(row) for row in INSIDE]
    for one in (copy.copy(used), copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        assert [one.predict_one(row) for row in INSIDE] == expected
    if not served:
        other = pickle.loads(pickle.dumps(used)).learn([{**row, "y": 1 - row["y"]} for row in ROWS])
        assert [other.predict_one(row) for row in INSIDE] == pytest.approx(forel.predict(other, INSIDE), rel=1e-5)
        assert [used.predict_one(row) for row in INSIDE] == expected


def test_the_metrics_of_no_rows_have_no_nan(model):
    assert "nan" not in repr(model.evaluate([], label="y"))
    assert "nan" not in repr(model.evaluate([], label="y").report)
