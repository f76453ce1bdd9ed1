"""Estimators survive a file, and learners become estimators."""

import numpy as np
import pytest

import forel
from forel.learner.settings import Settings
from forel.losses import Quantile
from forel.sklearn import FTRLClassifier, FTRLRegressor, estimator_of
from forel.store import serving_model
from forel.training.model import Model, load, save
from tests.store.cases import learned, parts, stream

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")  # the content of a file does not depend on compiling


@pytest.mark.parametrize("labels", [["ham", "spam"], [3, 7], [1.0, 2.0], [False, True], ["a", "b", "c"], [4, 5, 6]])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax"])
def test_classifiers_survive_and_continue(labels, loss, tmp_path):
    rows, codes = stream(24, classes=len(labels))
    y = np.array(labels)[codes]
    never = FTRLClassifier(alpha=0.5, loss=loss, certified=True).partial_fit(rows[:12], y[:12], classes=labels)
    save(tmp_path / "m", never)
    again = estimator_of(load(tmp_path / "m"))
    assert again.get_params() == never.get_params()
    assert again.classes_.dtype == never.classes_.dtype
    assert np.array_equal(again.predict(rows), never.predict(rows))
    assert again.progressive_loss_ == never.progressive_loss_
    for model in (never, again):
        model.partial_fit(rows[12:], y[12:])
    assert parts(again._model) == parts(never._model)
    assert np.array_equal(again.coef_, never.coef_)
    assert again.progressive_loss_ == never.progressive_loss_
    save(tmp_path / "never", never)
    save(tmp_path / "again", again)
    assert (tmp_path / "never").read_bytes() == (tmp_path / "again").read_bytes()


def test_regressors_survive_with_feature_names_and_parameters(tmp_path):
    import pandas as pd

    rows, codes = stream(12)
    frame = pd.DataFrame(rows, columns=list("abcdef"))
    options = {"loss": Quantile(0.9), "passes": 2, "shuffle": True, "random_state": 3, "dtype": "float64"}
    model = FTRLRegressor(**options, fit_intercept=False, warm_start=True).fit(frame, codes)
    save(tmp_path / "m", model, extra={"note": "x"})
    stored = forel.load(tmp_path / "m")
    again = estimator_of(stored)
    assert stored.extra == {"note": "x"}
    assert again.get_params() == model.get_params()
    assert again.feature_names_in_.tolist() == list("abcdef")
    assert (again.n_iter_, again.t_) == (2, 24)
    assert again.progressive_loss_ == model.progressive_loss_
    assert np.array_equal(again.fit(frame, codes).predict(frame), model.fit(frame, codes).predict(frame))


def test_a_bare_learner_becomes_an_estimator():
    rows = stream()[0]
    for loss, kind, classes in (("logistic", FTRLClassifier, [0, 1]), ("hinge", FTRLClassifier, [-1, 1])):
        made = estimator_of(Model(learned(options=Settings(loss))))
        assert isinstance(made, kind)
        assert made.classes_.tolist() == classes
        made.partial_fit(rows, np.array(classes * 4))
        assert made.t_ == 16
    made = estimator_of(Model(learned(classes=3)))
    assert made.predict(rows).max() <= 2
    made = estimator_of(Model(learned(options=Settings("squared"))))
    assert np.array_equal(made.predict(rows), learned(options=Settings("squared")).margins(rows)[:, 0])
    with pytest.raises(ValueError, match="one model, or a forel"):
        estimator_of(Model(learned(options=Settings(alpha=(0.1, 0.2)))))
    with pytest.raises(ValueError, match="only predicts"):
        estimator_of(Model(serving_model(learned())))


def test_estimators_that_json_cannot_hold_are_refused(tmp_path):
    rows, codes = stream()
    model = FTRLRegressor(shuffle=True, random_state=np.random.RandomState(0)).fit(rows, codes)
    with pytest.raises(ValueError, match=r"random_state: got .* expected a whole number or None"):
        save(tmp_path / "m", model)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(tmp_path / "m", FTRLRegressor())


def test_serving_model_accepts_an_estimator():
    rows, codes = stream()
    model = FTRLClassifier(alpha=0.1).fit(rows, codes)
    assert np.allclose(serving_model(model).predict(rows)[:, 0], model.predict_proba(rows)[:, 1], atol=1e-6)


def test_mixing_estimators_survive_and_continue(tmp_path):
    rows, codes = stream(24)
    never = FTRLClassifier(lanes=4, l1=0.5).partial_fit(rows[:12], codes[:12], classes=[0, 1])
    save(tmp_path / "m", never)
    again = estimator_of(load(tmp_path / "m"))
    assert again.get_params() == never.get_params()
    for model in (never, again):
        model.partial_fit(rows[12:], codes[12:])
    assert np.array_equal(again.predict_proba(rows), never.predict_proba(rows))
    assert str(again.guarantee_) == str(never.guarantee_)
