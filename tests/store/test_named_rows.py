"""Files of estimators and river models predict and explain by the names of their columns, as the models do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import forel
from forel.river import LinearClassifier, LinearRegressor

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")


def frame(words=True, rows=40):
    rng = np.random.default_rng(0)
    numbers = {"age": rng.integers(18, 70, rows), "income": 1e4 * rng.random(rows)}
    columns = {"city": np.resize(["Rome", "Oslo", "Bonn"], rows)} if words else {}
    return pd.DataFrame({**columns, **numbers}, index=np.arange(rows) + 7)


def loaded(model, tmp_path):
    forel.save(tmp_path / "m.forel", model)
    return forel.load(tmp_path / "m.forel")


def check_explained(stored, row, prediction):
    found = stored.explain_one(row)
    assert found.margin == pytest.approx(found.bias + sum(part.contribution for part in found.contributions))
    if stored.classes is None:
        assert found.prediction == pytest.approx(prediction, rel=1e-4, abs=1e-6)
    else:
        assert found.label == prediction
    return {part.name for part in found.contributions}


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("options", [{}, {"alpha": 0.5}, {"alpha": 0.5, "loss": "hinge"}])
def test_a_classifier_of_a_frame(words, options, tmp_path):
    X = frame(words)
    y = np.where(X.age > 40, "old", "young")
    model = forel.FTRLClassifier(**options).fit(X, y)
    stored = loaded(model, tmp_path)
    expected = model.decision_function(X) if "loss" in options else model.predict_proba(X)[:, 1]
    shuffled, records = X[X.columns[::-1]].assign(other="x"), X.to_dict("records")
    for rows in (X, shuffled, pl.from_pandas(X), records):
        assert stored.predict_many(rows) == pytest.approx(expected, rel=1e-5)
        assert forel.predict(stored, rows) == pytest.approx(expected, rel=1e-5)
    assert stored.predict_one(records[3]) == pytest.approx(expected[3], rel=1e-5)
    names = check_explained(stored, records[0], expected[0])
    assert names == ({"age", "income", "city^Rome"} if words else {"age", "income"})
    assert {one.name for one in stored.inspect().weights} <= {*model.get_feature_names_out()}
    if words:
        unknown = {**records[0], "city": "Lima"}
        alone = model.decision_function(pd.DataFrame([unknown]))
        assert stored.margins([unknown]) == pytest.approx(alone, rel=1e-5)
        assert stored.margins([{**unknown, "city": None}]) == pytest.approx(alone, rel=1e-5)
        assert stored.margins([{**unknown, "age": str(unknown["age"])}]) == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [4, 5, 6]])
@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array, lambda X: X.tolist()])
def test_several_classes_of_an_array(labels, of, tmp_path):
    X = frame(words=False).to_numpy(float)
    model = forel.FTRLClassifier(alpha=0.5).fit(X, np.resize(labels, len(X)))
    stored = loaded(model, tmp_path)
    expected = [str(label) for label in model.predict(X)]
    assert stored.classes == tuple(map(str, labels))
    assert stored.predict_many(of(X)).tolist() == expected
    assert stored.predict_one(X[0]) == expected[0]
    assert check_explained(stored, X[0], expected[0]) == {"0", "1"}
    found = forel.predict(stored, of(X), probabilities=True)
    assert found == pytest.approx(model.predict_proba(X), rel=1e-5)


def test_a_regressor(tmp_path):
    X = frame()
    model = forel.FTRLRegressor().fit(X, X.age * 2.0)
    stored = loaded(model, tmp_path)
    expected = model.predict(X)
    assert stored.predict_many(X) == pytest.approx(expected, rel=1e-5)
    assert check_explained(stored, X.to_dict("records")[0], expected[0]) == {"age", "income", "city^Rome"}


@pytest.mark.parametrize("options", [{}, {"alpha": 0.5}])
def test_river_models(options, tmp_path):
    rows = [{"age": float(age), ("a", 1): 0.5, 3: float(age % 3)} for age in frame().age]
    two, three, number = LinearClassifier(**options), LinearClassifier(alpha=0.5), LinearRegressor(**options)
    for row in rows:
        two.learn_one(row, row["age"] > 40)
        three.learn_one(row, "abc"[int(row[3])])
        number.learn_one(row, row["age"])
    seen = {**rows[0], "new": 9.0}
    stored = loaded(two, tmp_path)
    assert stored.predict_one(seen) == pytest.approx(two.predict_proba_one(seen)[True], rel=1e-5)
    assert forel.predict(stored, [seen]) == pytest.approx(two.predict_proba_one(seen)[True], rel=1e-5)
    assert check_explained(stored, seen, stored.predict_one(seen)) == {"age", "('a', 1)", "3"}
    stored = loaded(number, tmp_path)
    assert stored.predict_one(seen) == pytest.approx(number.predict_one(seen), rel=1e-5)
    stored = loaded(three, tmp_path)
    assert [stored.predict_one(row) for row in rows] == [three.predict_one(row) for row in rows]
    words = pd.DataFrame([{"age": 31.0}])
    assert stored.predict_many(words)[0] == three.predict_one({"age": 31.0})


def test_weights_of_columns_of_numbers_have_names():
    rows = [{"age": age, "city": "Rome", "y": int(age > 40)} for age in frame().age.tolist()]
    for kept, category in ((None, "city^Rome"), (False, None)):
        model = forel.train(rows, forel.Settings(alpha=1.0), label="y", bits=10, names=kept)
        assert {one.name for one in model.inspect().weights} == {"age", category}


def test_rows_that_do_not_fit_are_refused(tmp_path):
    X = frame()
    y = np.where(X.age > 40, 1, 0)
    stored = loaded(forel.FTRLClassifier(alpha=0.5).fit(X, y), tmp_path)
    with pytest.raises(ValueError, match="rows: got no 'city', expected the columns city, age, income"):
        stored.predict_one({"age": 3, "income": 4})
    with pytest.raises(ValueError, match="rows: got no 'income', expected the columns"):
        stored.predict_many(X[["age", "city"]])
    with pytest.raises(ValueError, match=r"row\['age'\]: got 'x', expected a finite number, as in training"):
        stored.predict_one({"age": "x", "income": 4, "city": "Rome"})
    with pytest.raises(ValueError, match="rows: got 'ndarray', expected a frame or a list of dicts"):
        stored.predict_many(np.ones((2, 3)))
    with pytest.raises(ValueError, match="model: got a scikit-learn estimator or a river model"):
        forel.evaluate(stored, X)
    plain = loaded(forel.FTRLClassifier(alpha=0.5).fit(X[["age", "income"]].to_numpy(), y), tmp_path)
    with pytest.raises(ValueError, match="rows: got 'dicts', expected an array with 2 columns, as in fit"):
        plain.predict_one({"a": 1})
    with pytest.raises(ValueError, match="expected 2"):
        plain.predict_many(np.ones((2, 3)))
