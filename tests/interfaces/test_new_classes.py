"""Classes that come late to FTRLClassifier: the others keep what they learned, and the new one starts from nothing."""

import numpy as np
import pytest

import forel
from forel import FTRLClassifier
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.sklearn import estimator_of

RNG = np.random.default_rng(0)
CENTERS = {"b": [2.0, 0.0], "d": [-2.0, 0.0], "a": [0.0, 3.0], "c": [0.0, -3.0]}


def rows(labels):
    return np.array([CENTERS[label] for label in labels]) + RNG.normal(size=(len(labels), 2)) / 3


BATCHES = [list("bd" * 15), list("bda" * 10), list("bdac" * 10)]
DATA = [(rows(labels), labels) for labels in BATCHES]


@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax"])
def test_each_class_is_the_model_against_the_rest_that_started_with_it(loss, interpreted):
    model = FTRLClassifier(alpha=0.5, loss=loss, dtype="float64", add_classes=True)
    for X, y in DATA:
        model.partial_fit(X, y)
    assert model.classes_.tolist() == list("abcd")
    assert model.score(*DATA[-1]) > 0.9
    assert model.t_ == sum(map(len, BATCHES))
    if loss == "softmax":
        return
    low = -1.0 if loss == "hinge" else 0.0
    for k, label in enumerate("abcd"):
        alone = Learner(2, Settings(loss, alpha=0.5), dtype=np.float64)
        for X, y in DATA:
            if label in y:
                alone.learn(X, [1.0 if one == label else low for one in y])
        assert model.coef_[k] == pytest.approx(alone.weights[:, 0], rel=1e-9)
        assert model.intercept_[k] == pytest.approx(alone.bias[0], rel=1e-9)


def test_the_default_mixture_continues_with_its_settings(interpreted, tmp_path):
    model = FTRLClassifier(add_classes=True)
    for X, y in DATA:
        model.partial_fit(X, y)
    assert model.score(*DATA[-1]) > 0.9
    assert model.predict_proba(DATA[-1][0]).sum(axis=1) == pytest.approx(1.0)
    assert model.guarantee_.measured <= model.guarantee_.bound
    assert model.guarantee_.bound == pytest.approx(np.log(13), rel=1e-5)  # of thirteen experts four continue
    forel.save(tmp_path / "m.forel", model)
    loaded = estimator_of(forel.load(tmp_path / "m.forel"))
    assert loaded.add_classes
    for one in (model, loaded):
        one.partial_fit(*DATA[-1])
    assert loaded.coef_.tolist() == model.coef_.tolist()


def test_new_classes_are_an_error_by_default_and_a_failed_call_changes_nothing(interpreted):
    model = FTRLClassifier(alpha=0.5).partial_fit(*DATA[0], classes=["b", "d"])
    with pytest.raises(ValueError, match="y: got the new class 'a', expected one of the classes"):
        model.partial_fit(*DATA[1])
    with pytest.raises(ValueError, match="classes: got"):
        model.partial_fit(*DATA[1], classes=["a", "b", "d"])
    model.set_params(add_classes=True)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="sample_weight: got"):
        model.partial_fit(*DATA[1], sample_weight=[-1.0] * 30)
    assert model.classes_.tolist() == ["b", "d"]
    assert model.coef_.tolist() == before.tolist()
    certified = FTRLClassifier(alpha=0.5, certified=True, add_classes=True).partial_fit(*DATA[0])
    with pytest.raises(ValueError, match="certified: got True, expected False where classes are added"):
        certified.partial_fit(*DATA[1])
