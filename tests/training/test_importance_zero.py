"""Rows of importance 0: they are predicted, and count nowhere as rows that were learned from."""

import re

import numpy as np
import pytest

import forel
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.training.result import scores

pytestmark = pytest.mark.usefixtures("interpreted")

SCALE_FREE = Settings(alpha=1.0, rate="scale_free", bias=False)


def rows_with(largest, importance=0.0, count=120):
    """Coin flips, of which every third has a large value and this importance."""
    rng = np.random.default_rng(0)
    return [
        {"x": largest if k % 3 == 0 else 1.0, "y": int(rng.random() < 0.7), "w": importance if k % 3 == 0 else 1.0}
        for k in range(count)
    ]


def test_their_values_are_not_in_the_norm_of_a_certificate():
    options = {"label": "y", "importance": "w", "bits": 4, "certificate": True}
    found = forel.train(rows_with(1000.0), SCALE_FREE, **options)
    without = forel.train([row for row in rows_with(1000.0) if row["w"]], SCALE_FREE, **options)
    assert found.training.certificate == without.training.certificate
    assert found.training.floor == without.training.floor
    assert "on these 80 rows" in found.training.certificate
    assert "per unit of importance" not in found.training.certificate


@pytest.mark.parametrize("settings", [None, SCALE_FREE])
def test_they_are_not_among_the_rows_of_any_score(settings):
    options = {"label": "y", "importance": "w", "bits": 4, "holdout": 5, "slices": ["x"], "passes": 2}
    trained = forel.train(rows_with(1.0), settings, **options)
    rows = [row for k, row in enumerate(rows_with(1.0), 1) if row["w"] and k % 5]
    assert [int(re.search(r"(\d+) rows", str(one))[1]) for one in scores(trained)] == [64, 64, 16, 16]
    assert not any("importance" in str(one) for one in scores(trained))
    assert trained.report.rows == len(rows) == 64
    assert trained.learner.rounds == 2 * 64
    assert sum(one.report.rows for one in trained.training.slices[0].slices) == 64
    assert forel.evaluate(trained, rows_with(1.0)).report.rows == 80
    if settings is None:
        assert trained.learner.guarantee().rounds == 64


def test_they_are_not_among_the_rows_of_a_key_or_a_class():
    options = {"label": "y", "importance": "w", "bits": 4}
    keyed = forel.train([{**row, "by": "a"} for row in rows_with(1.0)], SCALE_FREE, by="by", **options)
    assert [one.report.rows for one in keyed.training.slices[0].slices] == [80]
    softmax = Settings("softmax", alpha=1.0)
    assert forel.train(rows_with(1.0), softmax, classes=2, **options).report.rows == 80


def test_knots_of_curves_know_nothing_of_them():
    rng = np.random.default_rng(0)
    rows = [{"x": x, "y": int(x + e > 0), "w": 1.0} for x, e in rng.normal(size=(300, 2)).tolist()]
    mixed = [one for row in rows for one in (row, {**row, "x": 100.0 + row["x"], "w": 0.0})]
    options = {"label": "y", "importance": "w", "bits": 4, "features": "curves"}
    some, every = forel.train(rows, **options), forel.train(mixed, **options)
    assert np.array_equal(every.predict(rows), some.predict(rows))


def test_they_do_not_change_a_learner():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(60, 3)), rng.random(60) < 0.5, np.arange(60) % 4 > 0
    X[~w] *= 1000
    for settings in (SCALE_FREE, Settings(alpha=(0.1, 1.0), penalty_weight="every", l2=0.1)):
        some, every = Learner(3, settings), Learner(3, settings)
        some.learn(X[w], y[w].astype(float))
        every.learn(X, y.astype(float), w.astype(float))
        assert every.rounds == some.rounds
        assert np.array_equal(every.weights, some.weights)


def test_river_models_do_not_count_them():
    from forel.river import LinearClassifier

    some, every, many = (LinearClassifier(certified=True, alpha=0.5) for _ in range(3))
    rows = [({"x": row["x"]}, bool(row["y"]), row["w"]) for row in rows_with(1000.0)]
    for x, y, w in rows:
        every.learn_one(x, y, w=w)
        if w:
            some.learn_one(x, y)
    pandas = pytest.importorskip("pandas")
    x, y, w = zip(*rows, strict=True)
    many.learn_many(pandas.DataFrame(x), pandas.Series(y), pandas.Series(w))
    assert every.weights == some.weights == many.weights
    words = {one.certificate().summary([*one.weights.values(), one.bias]) for one in (some, every, many)}
    assert len(words) == 1
