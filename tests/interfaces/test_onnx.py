"""Exported graphs, run by onnxruntime, predict as the model for serving does."""

import numpy as np
import pytest

import forel
from forel.learner.settings import Settings
from forel.store import serving_model
from forel.training.model import Model

onnx = pytest.importorskip("onnx", reason="onnx is an extra: pip install 'forel[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime")

from forel.onnx import to_onnx  # noqa: E402

RNG = np.random.default_rng(0)
ROWS = [
    {"city": city, "site": f"s{k % 5}", "age": float(age), "income": float(income)}
    for k, (city, age, income) in enumerate(
        zip(RNG.choice(["Rome", "Oslo", "Köln"], 90), RNG.normal(40, 9, 90), RNG.normal(0, 2, 90), strict=True)
    )
]
EVENTS = [*ROWS[:5], {"city": "Paris", "age": 30.0}, {"site": "s1", "income": -1.0}, {"city": "", "age": 50.0}, {}]


def run(model, events):
    """Run the graph on dicts; what a dict does not have is missing."""
    proto = to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {}
    for one in session.get_inputs():
        text = one.type == "tensor(string)"
        column = [event.get(one.name, "" if text else np.nan) for event in events]
        feed[one.name] = np.array(column, object if text else np.float32)[:, None]
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, feed), strict=True))


def served(trained):
    return Model(serving_model(trained.learner), trained.extra, trained.names)


@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson", "hinge"])
def test_numbers_and_categories_have_the_predictions_of_the_serving_model(loss, interpreted, tmp_path):
    labels = [abs(round(row["income"])) if loss in ("squared", "poisson") else int(row["income"] > 0) for row in ROWS]
    rows = [{**row, "y": label} for row, label in zip(ROWS, labels, strict=True)]
    trained = forel.train(rows, Settings(loss, alpha=0.5), label="y", bits=14, names=True)
    found = run(trained, EVENTS)["prediction"][:, 0]
    expected = served(trained).predict_many(EVENTS)
    assert found == pytest.approx(expected, rel=2e-4, abs=1e-6)
    assert np.ptp(found) > 0
    trained.save(tmp_path / "m.forel")
    assert run(str(tmp_path / "m.forel"), EVENTS)["prediction"][:, 0].tolist() == found.tolist()


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_several_classes_have_probabilities_and_names(loss, interpreted):
    rows = [{**row, "y": ["low", "mid", "high"][int(np.clip(round(row["income"]) + 1, 0, 2))]} for row in ROWS]
    trained = forel.train(rows, Settings(loss, alpha=0.5), label="y", classes="auto", bits=14, names=True)
    found = run(trained, EVENTS)
    assert found["label"].tolist() == served(trained).predict_many(EVENTS).tolist()
    expected = forel.predict(served(trained), EVENTS, probabilities=True)
    assert found["probabilities"] == pytest.approx(np.asarray(expected), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("labels", [2, 3])
def test_estimators_have_one_input(labels, interpreted):
    X = RNG.normal(size=(60, 4)).astype(np.float32)
    y = np.array(["a", "b", "c"])[(np.digitize(X[:, 0], [-0.5, 0.5]) if labels == 3 else (X[:, 0] > 0).astype(int))]
    model = forel.FTRLClassifier(alpha=1.0).fit(X, y)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    first = session.run(None, {"X": X})[0]
    expected = model.predict_proba(X)
    assert first == pytest.approx(expected if labels == 3 else expected[:, 1:], rel=1e-4, abs=1e-6)
    if labels == 3:
        assert session.run(["label"], {"X": X})[0].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": False}, "column city: got 'categories without names', expected a model trained with names"),
        ({"names": True, "log": ["age"]}, r"model: got .*log=\['age'\].*, expected columns of numbers and categories"),
        ({"names": True, "bits": 2}, "model: got .names that share the slot of .*, expected one name for each slot"),
    ],
)
def test_what_a_graph_cannot_do_is_refused(options, message, interpreted):
    rows = [{**row, "y": int(row["income"] > 0)} for row in ROWS]
    trained = forel.train(rows, Settings(alpha=0.5), label="y", **{"bits": 14, **options})
    with pytest.raises(ValueError, match=message):
        to_onnx(trained)
    with pytest.raises(ValueError, match="model: got 'models by city', expected that of one key"):
        to_onnx(forel.train(rows, Settings(alpha=0.5), label="y", by="city", bits=10))
    lines = forel.train([{"a": 1, "y": 1}] * 3, Settings(alpha=0.5), label="y", bits=4).learner
    with pytest.raises(ValueError, match="model: got 'rows without named columns'"):
        to_onnx(lines)


def test_a_served_mixture_is_refused(interpreted):
    rows = [{**row, "y": k % 2} for k, row in enumerate(ROWS[:20])]
    stored = forel.train(rows, Settings(rate="scale_free", alpha=(0.3, 0.31)), label="y", bits=10, names=True)
    mixed = Model(serving_model(stored.learner, mixed=True), stored.extra, stored.names)
    with pytest.raises(ValueError, match="model: got 'a file with the mixture', expected one model"):
        to_onnx(mixed)


def test_columns_of_numbers_that_share_a_slot_are_refused_without_names(interpreted):
    """The model clips the sum of their values, a graph each of them."""
    names = [f"c{k}" for k in range(6)]
    rows = [
        {**dict(zip(names, row, strict=True)), "y": k % 2} for k, row in enumerate(RNG.normal(size=(40, 6)).tolist())
    ]
    trained = forel.train(rows, Settings(alpha=0.5, rate="scale_free"), label="y", bits=2)
    with pytest.raises(ValueError, match="columns c1 and c3 that share the slot of a feature"):
        to_onnx(trained)
    to_onnx(forel.train(rows, Settings(alpha=0.5, rate="scale_free"), label="y", bits=12))
