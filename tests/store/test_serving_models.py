"""Serving models predict as the learner does, from its nonzero weights."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import forel
from forel.data import slot
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import Poisson, Quantile
from forel.store import ServingModel, serving_model
from forel.store.header import settings_to_json
from forel.training.model import load, save
from tests.store.cases import learned, reader_of, stream, user_loss

USUAL = settings_to_json(Settings())

pytestmark = pytest.mark.usefixtures("interpreted", "unsynced")  # the content of a file does not depend on compiling


@pytest.mark.parametrize("dense", [0, 1 << 24])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("classes", [None, 3])
def test_serving_predicts_as_the_learner_does(classes, dtype, dense, tmp_path, monkeypatch):
    monkeypatch.setattr("forel.store.serving.MAX_DENSE", dense)
    model = learned(40, Settings(alpha=0.5, l1=0.05), classes, rounds=30)
    save(tmp_path / "s", serving_model(model, dtype=dtype))
    small, rows = load(tmp_path / "s").learner, stream(20, 40, seed=1)[0]
    tolerance = 1e-6 if dtype == "float32" else 3e-3
    assert np.allclose(small.margins(rows), model.margins(rows), rtol=tolerance, atol=tolerance)
    kept = np.flatnonzero(model.weights.any(axis=1))
    assert 0 < kept.size < 40
    assert small.slots.tolist() == kept.tolist()
    assert np.array_equal(small.margins(sparse.csr_array(rows)), small.margins(rows))


def test_serving_without_weights_predicts_from_the_bias(monkeypatch, tmp_path):
    for dense in (0, 1 << 24):
        monkeypatch.setattr("forel.store.serving.MAX_DENSE", dense)
        save(
            tmp_path / "s",
            ServingModel(4, np.empty(0, np.uint32), np.empty((0, 1), np.float32), np.ones(1, "f4"), "sign", USUAL),
        )
        assert load(tmp_path / "s").learner.predict(np.ones((2, 4))).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("loss", "classes", "link"),
    [
        ("logistic", None, "probability"),
        ("logistic", 3, "rest"),
        ("softmax", 3, "softmax"),
        ("hinge", None, "sign"),
        ("squared_hinge", 3, "largest"),
        ("poisson", None, "exponential"),
        (Quantile(0.9), None, "identity"),
        (user_loss, None, "identity"),
    ],
)
def test_the_link_maps_margins_to_predictions(loss, classes, link):
    model, rows = learned(options=Settings(loss), classes=classes), stream()[0]
    small = serving_model(model)
    assert small.link == link
    margins, found = model.margins(rows), small.predict(rows)
    if link in ("rest", "softmax"):
        assert np.allclose(found.sum(axis=1), 1)
        assert np.array_equal(found.argmax(axis=1), margins.argmax(axis=1))
    elif classes is None and not callable(loss):
        assert np.allclose(found, forel.losses.by_name(loss).link(margins), rtol=1e-5)


@pytest.mark.parametrize(("cap", "dtype", "largest"), [(60.0, "float32", 60.0), (80.0, "float32", 80.0),
                                                       (500.0, "float64", 88.0)])  # fmt: skip
def test_means_of_counts_have_the_cap_of_the_loss(tmp_path, cap, dtype, largest):
    model = Learner(1, Settings(Poisson(cap), alpha=0.1, bias=False), dtype=dtype, mixed=False)
    model.learn([[1.0]] * 30, [9.0] * 30)
    far = np.array([[1e9]])
    assert model.settings.link(model.margins(far)) == np.exp(cap)
    save(tmp_path / "s", serving_model(model))
    for small in (serving_model(model), load(tmp_path / "s").learner):
        assert small.predict(far) == np.exp(np.float32(largest))  # in float32, which has no larger powers of e


def test_one_of_several_models_is_selected_first():
    model = Learner(5, Settings(alpha=(0.1, 0.9)), mixed=False)
    with pytest.raises(ValueError, match="several models that are not mixed"):
        serving_model(model)
    assert serving_model(model.select_setting(1)).n_outputs == 1


def test_weights_out_of_range_of_half_precision_are_refused():
    model = Learner(1, Settings("squared", "mirror", alpha=1e5, beta=0.0, bias=False))
    model.learn([[1.0]], [1e5])
    with pytest.raises(ValueError, match="dtype: got 'float16', expected a type that can represent the weight 100000"):
        serving_model(model, dtype="float16")
    assert serving_model(model).weights.tolist() == [[1e5]]


def test_serving_files_hold_names_of_nonzero_weights_only(tmp_path):
    names = reader_of(1 << 20)
    model = Learner(1 << 12, Settings())
    at = slot("x3", "a", bits=12)
    model.learn(sparse.csr_array(([1.0], ([0], [at])), shape=(1, 1 << 12)), [1])
    save(tmp_path / "s", serving_model(model), names=names)
    stored = load(tmp_path / "s")
    assert {k: stored.names[k] for k in stored.names} == {at: "a^x3"}


def test_predicting_with_a_serving_model_does_not_import_numba(tmp_path):
    save(
        tmp_path / "s",
        ServingModel(4, np.empty(0, np.uint32), np.empty((0, 1), np.float32), np.ones(1, "f4"), "identity", USUAL),
    )
    code = "import sys, forel; print('safetensors' in sys.modules or 'numpy' in sys.modules);"
    code += (
        "forel.load(sys.argv[1]).learner.predict([[1.0] * 4]); print('numba' in sys.modules, 'sklearn' in sys.modules)"
    )
    command = [sys.executable, "-c", code, tmp_path / "s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False"] * 3
