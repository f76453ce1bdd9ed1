"""Tables of several classes: a mixture for each class, the same bits after saving, and explanations that add up."""

import numpy as np
import pandas as pd
import pytest

import forel
from forel import FTRLClassifier


def frame(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    a, b = np.clip(rng.normal(size=rows), -2, 2), np.minimum(rng.gamma(1, size=rows), 3)
    table = pd.DataFrame({"a": a, "b": b, "c": rng.choice(list("xyz"), rows)})
    noise = rng.gumbel(size=(rows, 3)) * 0.3
    scores = np.column_stack((np.abs(table.a), np.ones(rows), table.b * (table.c == "x")))
    table["y"] = np.array(["left", "middle", "right"])[(scores + noise).argmax(axis=1)]
    return table


@pytest.fixture(scope="module")
def trained():
    table = frame()
    return forel.train(table[:450], label="y", classes="auto", bits=12, names=True), table[450:]


def loss(model, test):
    found = model.predict(test, probabilities=True)
    return -np.log(found[np.arange(len(test)), [model.classes.index(y) for y in test.y]]).mean()


def test_a_mixture_of_each_class_is_an_expert(trained):
    model, test = trained
    assert model.learner.names[-1] == "mixture of each class"
    assert loss(model, test) < 0.9 * loss(
        forel.train(frame()[:450], label="y", classes="auto", bits=12, features="linear"), test
    )
    guarantee = model.learner.guarantee()
    assert guarantee.loss <= guarantee.other + guarantee.bound


def test_saved_models_predict_and_continue_with_the_same_bits(trained, tmp_path):
    model, test = trained
    model.save(tmp_path / "m.forel")
    again = forel.load(tmp_path / "m.forel")
    np.testing.assert_array_equal(again.predict(test, probabilities=True), model.predict(test, probabilities=True))
    rows = test.drop(columns="y").to_dict("records")[:20]
    assert [again.predict_one(row) for row in rows] == model.predict(test)[:20].tolist()
    more = [forel.train(test, model=one).predict(test, margins=True) for one in (model, again)]
    np.testing.assert_array_equal(*more)


def test_explanations_add_up(trained):
    model, test = trained
    for row in test.drop(columns="y").to_dict("records")[:5]:
        found = model.explain_one(row)
        assert found.bias + sum(part.contribution for part in found.contributions) == pytest.approx(found.margin)
        assert found.margin == pytest.approx(model.margins([row]).max(), rel=1e-4)
        assert found.label == model.predict_one(row)


def test_blocks_and_estimators():
    table = frame()
    text = table.to_csv(index=False).encode()
    options = {"format": "csv", "label": "y", "classes": "auto", "bits": 12}
    import io

    losses = [forel.train(io.BytesIO(text), block_bytes=size, **options).learner.loss for size in (1 << 20, 2000)]
    assert losses[0] == losses[1]
    model = FTRLClassifier().fit(table.drop(columns="y"), table.y)
    linear = FTRLClassifier(features="linear").fit(table.drop(columns="y"), table.y)
    assert model.progressive_loss_ < linear.progressive_loss_


def test_new_classes_continue_without_the_expert():
    table = frame()
    X, y = table[["a", "b"]].to_numpy(), table.y.to_numpy()
    model = FTRLClassifier(add_classes=True).partial_fit(X[:400], y[:400])
    y[500:] = "up"
    model.partial_fit(X[400:], y[400:])
    assert model.predict_proba(X).shape[1] == 4
    assert model.guarantee_.loss <= model.guarantee_.other + model.guarantee_.bound
