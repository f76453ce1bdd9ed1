"""Models of MLflow: saved, logged and loaded in local folders, with the predictions of forel."""

import warnings

import numpy as np
import pandas as pd
import pytest

import forel
from forel.learner.settings import Settings
from forel.mlflow import load_model, log_model, save_model

pytestmark = [pytest.mark.usefixtures("interpreted"), pytest.mark.filterwarnings("ignore")]

FRAME = pd.DataFrame(
    {"plan": ["a", "b", "a", "c"] * 10, "age": np.arange(40), "churn": ["yes", "no", "yes", "no"] * 10}
)
ONE = Settings(alpha=1.0)


@pytest.fixture(scope="module")
def mlflow():
    """MLflow, which takes a second to import, with runs in local folders."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow's own type hints
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        yield pytest.importorskip("mlflow", reason="MLflow is an extra: pip install 'forel[mlflow]'")


@pytest.fixture
def pyfunc(mlflow):
    return pytest.importorskip("mlflow.pyfunc")


@pytest.fixture
def store(mlflow, tmp_path, monkeypatch):
    """The folder of the runs."""
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(before)


def test_a_saved_model_predicts_frames_and_continues_learning(pyfunc, tmp_path):
    trained = forel.train(FRAME, ONE, label="churn", bits=12, names=True)
    save_model(trained, tmp_path / "churn")
    model = pyfunc.load_model(str(tmp_path / "churn"))
    rows = FRAME.drop(columns="churn")
    assert model.predict(rows).tolist() == forel.predict(trained, rows).tolist()
    assert (tmp_path / "churn" / "requirements.txt").read_text().splitlines()[-1] == f"forel=={forel.__version__}"
    again = load_model(tmp_path / "churn")
    assert again.names is not None
    more = forel.train(FRAME, model=again)
    assert more.learner.rounds == 80
    # Also what was loaded, and files.
    save_model(again, tmp_path / "again", pip_requirements=["forel"])
    forel.save(tmp_path / "file.forel", again)
    save_model(tmp_path / "file.forel", tmp_path / "file")
    for name in ("again", "file"):
        assert pyfunc.load_model(str(tmp_path / name)).predict(rows).tolist() == model.predict(rows).tolist()


def test_a_logged_model_is_found_by_its_address(mlflow, pyfunc, store):
    trained = forel.train(FRAME, ONE, label="churn", bits=12)
    with mlflow.start_run():
        address = log_model(trained, "churn").model_uri
    assert pyfunc.load_model(address).predict(FRAME).tolist() == forel.predict(trained, FRAME).tolist()
    assert load_model(address).learner.rounds == 40


def test_classes_and_params(pyfunc, tmp_path):
    trained = forel.train(FRAME, Settings("softmax", alpha=1.0), label="plan", bits=12)
    save_model(trained, tmp_path / "plans")
    model = load_model(tmp_path / "plans")
    assert model.predict_many(FRAME).tolist() == forel.predict(trained, FRAME).tolist()
    loaded = pyfunc.load_model(str(tmp_path / "plans"))
    assert set(loaded.predict(FRAME)) <= {"a", "b", "c"}
    inner = loaded._model_impl
    assert np.allclose(inner.predict(FRAME, {"probabilities": True}).sum(axis=1), 1)
    with pytest.raises(ValueError, match="params: got 'proba', expected margins or probabilities"):
        inner.predict(FRAME, {"proba": True})


def test_estimators_predict_as_themselves(pyfunc, tmp_path):
    X, y = FRAME[["age"]], FRAME["churn"]
    model = forel.FTRLClassifier(alpha=1.0).fit(X, y)
    save_model(model, tmp_path / "m")
    loaded = pyfunc.load_model(str(tmp_path / "m"))
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert np.allclose(loaded._model_impl.predict(X, {"probabilities": True}), model.predict_proba(X))
    assert np.allclose(loaded._model_impl.predict(X, {"margins": True}), model.decision_function(X))


def test_rows_that_differ_are_warned_about(pyfunc, tmp_path):
    save_model(forel.train(FRAME, ONE, label="churn", bits=12), tmp_path / "m")
    with pytest.warns(UserWarning, match="column 'plan' is missing"):
        pyfunc.load_model(str(tmp_path / "m")).predict(FRAME[["age"]])


def test_what_is_not_a_model_is_refused(pyfunc, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"rows\.csv: not a model of forel"):
        save_model(tmp_path / "rows.csv", tmp_path / "m")
    with pytest.raises(ValueError, match="model: got"):
        save_model({"a": 1}, tmp_path / "m")
    other = {"loader_module": "json", "data_path": str(tmp_path / "rows.csv"), "pip_requirements": ["forel"]}
    pyfunc.save_model(str(tmp_path / "other"), **other)
    with pytest.raises(ValueError, match=r"uri: got a model of json, expected one of forel\.mlflow"):
        load_model(tmp_path / "other")
