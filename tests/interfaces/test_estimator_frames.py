"""Frames in estimators: words and categories as features, from pandas, polars and Arrow, in fit and in partial_fit."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import forel
from forel import FTRLClassifier, FTRLRegressor
from forel.sklearn import estimator_of

pytestmark = pytest.mark.usefixtures("interpreted")

RNG = np.random.default_rng(0)
COUNT = 90
FRAME = pd.DataFrame(
    {
        "plan": RNG.choice(["basic", "gold", "Zürich"], COUNT),
        "age": RNG.integers(18, 80, COUNT),
        "rate": RNG.normal(size=COUNT),
        "active": RNG.random(COUNT) < 0.5,
    },
    index=RNG.permutation(COUNT) + 1000,
)
Y = np.where((FRAME["plan"] == "gold") ^ (RNG.random(COUNT) < 0.1), "stays", "leaves")
NAMES = ["plan^Zürich", "plan^basic", "plan^gold", "age", "rate", "active"]
ONE = {"alpha": 1.0}


def test_words_are_the_features_of_a_one_hot_encoding():
    assert sorted(set(FRAME["plan"])) == ["Zürich", "basic", "gold"]
    model = FTRLClassifier(**ONE).fit(FRAME, Y)
    encoded = np.column_stack([FRAME["plan"] == word for word in ("Zürich", "basic", "gold")])
    X = np.column_stack([encoded, FRAME[["age", "rate", "active"]].to_numpy(float)])
    other = FTRLClassifier(**ONE).fit(X, Y)
    assert model.coef_.tolist() == other.coef_.tolist()
    assert model.predict_proba(FRAME).tolist() == other.predict_proba(X).tolist()
    assert model.get_feature_names_out().tolist() == NAMES
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    assert model.n_features_in_ == 4
    assert model.coef_.shape == (1, 6)


@pytest.mark.parametrize("of", [pl.from_pandas, pa.Table.from_pandas, lambda X: X.astype({"plan": "category"})])
def test_every_library_has_the_same_model(of):
    expected = FTRLClassifier(**ONE).fit(FRAME, Y)
    frame = of(FRAME.reset_index(drop=True))
    model = FTRLClassifier(**ONE).fit(frame, Y)
    assert model.coef_.tolist() == expected.coef_.tolist()
    assert model.get_feature_names_out().tolist() == NAMES
    assert model.predict(frame).tolist() == expected.predict(FRAME).tolist()


def test_labels_may_be_a_series_of_polars():
    frame = pl.from_pandas(FRAME.reset_index(drop=True))
    model = FTRLClassifier(**ONE).fit(frame, pl.Series(Y))
    assert model.coef_.tolist() == FTRLClassifier(**ONE).fit(FRAME, Y).coef_.tolist()
    target = FRAME["rate"]
    rows = frame.drop("rate")
    found = FTRLRegressor(**ONE).fit(rows, pl.Series(target.to_numpy()))
    assert found.coef_.tolist() == FTRLRegressor(**ONE).fit(FRAME.drop(columns="rate"), target).coef_.tolist()
    assert found.get_feature_names_out().tolist() == ["plan^Zürich", "plan^basic", "plan^gold", "age", "active"]


@pytest.mark.parametrize("options", [ONE, {**ONE, "certified": True}, {"alpha": (0.1, 1.0)}])
def test_new_categories_continue_as_if_they_had_been_declared(options):
    first, second = FRAME[FRAME["plan"] != "gold"], FRAME[FRAME["plan"] == "gold"]
    labels = [Y[FRAME["plan"] != "gold"], Y[FRAME["plan"] == "gold"]]
    grown, declared = FTRLClassifier(**options), FTRLClassifier(**options)
    kind = pd.CategoricalDtype(["Zürich", "basic", "gold"])
    for rows, y in zip((first, second, FRAME), (*labels, Y), strict=True):
        grown.partial_fit(rows, y, classes=["leaves", "stays"])
        declared.partial_fit(rows.astype({"plan": kind}), y, classes=["leaves", "stays"])
    weights = [dict(zip(m.get_feature_names_out(), m.coef_[0].tolist(), strict=True)) for m in (grown, declared)]
    assert weights[0] == weights[1]
    assert grown.get_feature_names_out()[-1] == "plan^gold"
    assert grown.progressive_loss_ == declared.progressive_loss_
    assert grown.predict_proba(FRAME).tolist() == declared.predict_proba(FRAME).tolist()
    if "certified" in options:
        assert grown._model.summary() == declared._model.summary()


def test_default_mixtures_take_new_categories():
    model = FTRLClassifier().partial_fit(FRAME[:40], Y[:40], classes=["leaves", "stays"])
    model.partial_fit(FRAME[40:].assign(plan="new"), Y[40:])
    assert model.get_feature_names_out()[-1] == "plan^new"
    assert model.coef_.shape == (1, 7)
    assert model.t_ == COUNT


def test_new_classes_and_new_categories_at_once():
    model = FTRLClassifier(**ONE, add_classes=True).partial_fit(FRAME[:40], Y[:40])
    model.partial_fit(FRAME[40:].assign(plan="new"), np.full(COUNT - 40, "returns"))
    assert model.coef_.shape == (3, 7)
    assert set(model.predict(FRAME.assign(plan="new"))) <= set(model.classes_)


def test_missing_and_unknown_categories_have_no_feature():
    model = FTRLClassifier(**ONE).fit(FRAME, Y)
    none = [model.decision_function(FRAME.assign(plan=word)) for word in ("other", None, "")]
    assert none[0].tolist() == none[1].tolist() == none[2].tolist()
    plain = none[0] + model.coef_[0, 2]
    assert np.allclose(model.decision_function(FRAME.assign(plan="gold")), plain, atol=1e-4)


def test_values_are_read_as_the_kind_of_the_column():
    model = FTRLClassifier(**ONE).fit(FRAME, Y)
    assert model.predict(FRAME.assign(age=FRAME["age"].astype(str))).tolist() == model.predict(FRAME).tolist()
    codes = FRAME.assign(plan=(FRAME["plan"] == "gold").astype(int).astype(str))
    coded = FTRLClassifier(**ONE).fit(codes, Y)
    assert coded.predict(codes.assign(plan=codes["plan"].astype(float))).tolist() == coded.predict(codes).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.to_numpy(), "X: got ndarray, expected a frame with the columns of fit"),
        (lambda X: X.drop(columns="plan"), "seen at fit time, yet now missing"),
        (lambda X: X.assign(age="old"), r"X\['age'\]: got words, expected numbers as in fit; convert the column"),
        (lambda X: X.assign(age=np.inf), r"X\['age'\]: got inf in row 0, expected finite numbers"),
        (lambda X: X[:0], "X: got a frame without rows, expected at least one"),
        (lambda X: X.assign(plan=pd.Timestamp("2024-01-01")), r"X\['plan'\]: got a column of type Datetime"),
        (lambda X: X.assign(plan=pd.Timedelta(1)), r"X\['plan'\]: got a column of type Duration"),
    ],
)
def test_other_rows_are_refused_with_a_remedy(change, message):
    model = FTRLClassifier(**ONE).fit(FRAME, Y)
    with pytest.raises(ValueError, match=message):
        model.predict(change(FRAME))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(change(FRAME), Y[: len(change(FRAME))])
    assert model.t_ == COUNT


def test_words_after_numbers_are_refused():
    model = FTRLClassifier(**ONE).fit(FRAME[["age"]], Y)
    assert model.get_feature_names_out().tolist() == ["age"]
    with pytest.raises(ValueError, match="X: got a frame with words, expected numbers as in fit"):
        model.predict(FRAME[["plan"]].rename(columns={"plan": "age"}))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FTRLClassifier(**ONE).fit(FRAME, Y[:-1])
    with pytest.raises(ValueError, match="could not convert string to float"):
        FTRLRegressor(**ONE).fit(FRAME, Y)


WHEN = pd.date_range("2024-01-01", periods=COUNT, freq="7h").to_series(index=FRAME.index)
GAPS = FRAME.assign(age=FRAME["age"].where(RNG.random(COUNT) < 0.8), when=WHEN.where(RNG.random(COUNT) < 0.8))


@pytest.mark.parametrize("of", [lambda X: X, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("columns", [["age"], ["age", "when"], ["plan", "age", "when"]])
def test_missing_numbers_and_dates_have_the_features_of_files(of, columns):
    frame = GAPS[columns].reset_index(drop=True)
    model = FTRLClassifier(**ONE, shuffle=False).fit(of(frame), Y)
    options = {"label": "y", "names": True, "bits": 12}
    trained = forel.train(frame.assign(y=Y), forel.Settings(**ONE), positive="stays", **options)
    assert trained.predict(frame) == pytest.approx(model.predict_proba(of(frame))[:, 1], abs=1e-6)
    assert {trained.names[k] for k in trained.names} == set(model.get_feature_names_out())


def test_curves_of_rows_in_order_have_the_knots_of_files(monkeypatch):
    """Knots come from the first rows, also where later ones differ and some are missing."""
    for module in ("forel.sklearn.shared", "forel.training.curves"):
        monkeypatch.setattr(f"{module}.FIRST", 40)
    frame = GAPS[["age", "when"]].sort_values("age", ignore_index=True).assign(drift=np.arange(COUNT) ** 2.0)
    trained = forel.train(frame.assign(y=Y), label="y", positive="stays", bits=12, features="curves")
    stream = FTRLClassifier(features="curves").partial_fit(frame, Y, classes=["leaves", "stays"])
    for model in (stream, FTRLClassifier(features="curves", shuffle=False).fit(frame, Y)):
        assert model._model.curves.knots.tolist() == trained.learner.curves.knots.tolist()
        assert trained.predict(frame) == pytest.approx(model.predict_proba(frame)[:, 1], abs=1e-5)
        assert model.progressive_loss_ == pytest.approx(trained.report.loss, rel=1e-6)
    spaced = FTRLClassifier(features="curves", passes=1).fit(frame, Y)
    assert spaced._model.curves.knots.max() > trained.learner.curves.knots.max()


def test_dates_without_a_time_have_no_hour_and_new_parts_of_dates_are_learned():
    days = pl.DataFrame({"day": pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 2, 28), eager=True)})
    y = days["day"].dt.month().to_numpy() % 2
    model = FTRLClassifier(**ONE).fit(days, y)
    assert set(model.get_feature_names_out()) == {
        "day", *(f"day^weekday={name}" for name in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")),
        "day^month=1", "day^month=2",
    }  # fmt: skip
    later = days.with_columns(pl.col("day").dt.offset_by("2mo"))
    assert model.predict(later).shape == y.shape
    model.partial_fit(later, y)
    assert "day^month=4" in model.get_feature_names_out()
    with pytest.raises(ValueError, match=r"X\['day'\]: got a column of type Int64, expected a date, as in fit"):
        model.predict(days.with_columns(pl.lit(3, pl.Int64).alias("day")))


def test_every_way_to_predict_knows_missing_values(tmp_path):
    for model, rows in (
        (FTRLClassifier(features="curves").fit(GAPS, Y), GAPS),
        (FTRLClassifier(**ONE).fit(FRAME[["age", "rate"]], Y), GAPS[["age", "rate"]]),
        (FTRLClassifier(features="curves").fit(FRAME[["rate"]].to_numpy(), Y), np.array([[np.nan], [0.5]])),
    ):
        forel.save(tmp_path / "m", model)
        expected = model.predict_proba(rows)[:, 1]
        assert np.isfinite(expected).all()
        stored = forel.load(tmp_path / "m")
        assert stored.predict(rows) == pytest.approx(expected, abs=1e-6)
        if isinstance(rows, pd.DataFrame):
            assert stored.predict_many(rows.to_dict("records")) == pytest.approx(expected, abs=1e-6)
        assert estimator_of(stored).predict_proba(rows)[:, 1] == pytest.approx(expected, abs=1e-6)


def test_missing_numbers_of_arrays_are_0():
    X, empty = FRAME[["age", "rate"]].to_numpy(float), RNG.random((COUNT, 2)) < 0.2
    expected = FTRLClassifier(**ONE).fit(np.where(empty, 0, X), Y)
    for rows in (np.where(empty, np.nan, X), sparse.csr_array(np.where(empty, np.nan, X))):
        model = FTRLClassifier(**ONE).fit(rows, Y)
        assert model.coef_.tolist() == expected.coef_.tolist()
        assert model.predict_proba(rows).tolist() == expected.predict_proba(np.where(empty, 0, X)).tolist()
    with pytest.raises(ValueError, match="infinity"):
        FTRLClassifier(**ONE).fit(np.where(empty, np.inf, X), Y)


def test_missing_numbers_of_arrays_are_those_of_frames(tmp_path):
    X = FRAME[["age", "rate"]].to_numpy(float) - 1.0
    X[RNG.random((COUNT, 2)) < 0.3] = np.nan
    X[:5, 0] = 0.0
    array = FTRLClassifier(features="curves").fit(X, Y)
    frame = FTRLClassifier(features="curves").fit(pd.DataFrame(X, columns=["x0", "x1"]), Y)
    expected = frame.predict_proba(pd.DataFrame(X, columns=["x0", "x1"]))
    assert array.predict_proba(X).tolist() == expected.tolist()
    assert array.predict_proba(X.tolist()).tolist() == expected.tolist()
    assert array.partial_fit(X[:9], Y[:9]).n_features_in_ == 2
    with pytest.raises(ValueError, match="X has 3 features"):
        array.predict(np.ones((2, 3)))
    forel.save(tmp_path / "m", frame)
    assert forel.load(tmp_path / "m").predict_many(X) == pytest.approx(expected[:, 1], abs=1e-6)


def test_fit_begins_again():
    model = FTRLClassifier(**ONE).fit(FRAME, Y).fit(FRAME[["age"]], Y)
    assert model.n_features_in_ == 1
    assert model.predict(FRAME[["age"]]).shape == (COUNT,)
    again = FTRLClassifier(**ONE, warm_start=True).fit(FRAME, Y)
    again.fit(FRAME.assign(plan="new"), Y)
    assert again.coef_.shape == (1, 7)


def test_files_copies_and_searches(tmp_path):
    model = FTRLClassifier(**ONE).fit(FRAME, Y)
    forel.save(tmp_path / "m", model)
    for copy in (estimator_of(forel.load(tmp_path / "m")), pickle.loads(pickle.dumps(model))):
        assert copy.predict_proba(FRAME).tolist() == model.predict_proba(FRAME).tolist()
        assert copy.get_feature_names_out().tolist() == NAMES
        assert copy.n_features_in_ == 4
        copy.partial_fit(FRAME.assign(plan="new"), Y)
        assert copy.coef_.shape == (1, 7)
    assert cross_val_score(clone(model), FRAME, Y, cv=2).shape == (2,)


def test_an_onnx_graph_has_the_columns_of_the_frame():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from forel.onnx import to_onnx

    model = FTRLClassifier(**ONE).fit(FRAME, Y)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {name: FRAME[[name]].to_numpy().astype(object if name == "plan" else np.float32) for name in FRAME}
    (found,) = session.run(None, feed)
    assert found[:, 0] == pytest.approx(model.predict_proba(FRAME)[:, 1], rel=1e-4, abs=1e-6)


def test_dicts_are_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"X: got 'a list of dicts', expected a frame.*pandas.DataFrame\(X\)"):
        FTRLClassifier().fit(FRAME.to_dict("records"), np.arange(COUNT) % 2)
