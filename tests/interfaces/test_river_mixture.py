"""River models without alpha: the mixture of forel.train one dict at a time, its classes, guarantee and threads."""

import math
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.rows import Rows

pytest.importorskip("river", reason="river is an extra: pip install 'forel[river]'")

from forel.river import LinearClassifier, LinearRegressor
from forel.river.dict_learner import DictLearner

NAMES = [f"f{k}" for k in range(12)]


def stream(rows=80, seed=0, scale=1.0):
    """Dicts of names in units of very different size, and a margin that depends on them."""
    rng = np.random.default_rng(seed)
    for _ in range(rows):
        chosen, values = rng.permutation(len(NAMES))[:4], rng.normal(size=4)
        x = {NAMES[k]: float(v * scale ** (k % 3)) for k, v in zip(chosen, values, strict=True)}
        yield x, float(sum((k % 5 - 2) * v for k, v in zip(chosen, values, strict=True)))


def sparse(data, names):
    place = {name: k for k, name in enumerate(names)}
    ends = np.cumsum([0] + [len(x) for x in data])
    return Rows(ends, np.array([place[n] for x in data for n in x]), np.array([v for x in data for v in x.values()]))


@pytest.mark.parametrize(
    ("make", "settings", "label", "scale"),
    [
        (LinearClassifier, default_grid(), lambda m: float(m > 0), 1.0),
        (LinearClassifier, default_grid(), lambda m: float(m > 0), 2.0**40),  # which needs unit arithmetic
        (LinearClassifier, default_grid(loss="hinge", l1=0.01), lambda m: 1.0 if m > 0 else -1.0, 1.0),
        (LinearRegressor, default_grid(loss="squared"), lambda m: m, 1.0),
        (LinearRegressor, default_grid(loss="absolute"), lambda m: m, 1.0),
    ],
)
def test_one_dict_at_a_time_is_the_mixture_to_the_bit(make, settings, label, scale, interpreted, monkeypatch):
    monkeypatch.setattr("forel.river.dict_learner.SLOTS", 2)  # so that the state grows
    settings = replace(settings, full_filters=())
    data = [(x, label(m)) for x, m in stream(50, scale=scale)]
    options = {"l1": 0.01} if settings.loss == "hinge" else {}
    model = make(loss=settings.loss, certified=True, **options)
    for k, (x, y) in enumerate(data):
        model.learn_one(x, bool(y > 0) if make is LinearClassifier else y, w=1 + k % 2)
    names = list(model.weights)
    mixture = Learner(len(names), settings, dtype=np.float64, certified=True)
    rows = sparse([x for x, _ in data], names)
    mixture.learn(rows, [y for _, y in data], 1.0 + np.arange(len(data)) % 2)
    assert model._learner.learner.mixture.ledger.array.tolist() == mixture.mixture.ledger.array.tolist()
    assert list(model.weights.values()) == mixture.weights[:, 0].tolist()
    assert model.intercept == mixture.bias[0]
    assert [model._learner.margins(x)[0] for x, _ in data] == mixture.margins(rows)[:, 0].tolist()
    assert str(model.guarantee()) == str(mixture.guarantee())
    mine, its = model.certificate(), mixture.certificate()
    assert (mine.loss, mine.lower, mine.constant) == pytest.approx((its.loss, its.lower, its.constant), rel=1e-12)


def classes_of(rows, kinds, seed=1):
    """Rows of classes that come one after the other."""
    for k, (x, m) in enumerate(stream(rows, seed)):
        seen = 2 if k < rows // 4 else 3 if k < rows // 2 else kinds
        yield x, f"class {min(seen - 1, int(abs(2 * m)))}"


def test_new_classes_keep_what_was_learned_and_the_guarantee_holds_from_the_first_row(interpreted):
    """Losses are summed here from predictions; each setting is learned alone, one class against the rest."""
    settings, data = default_grid(), list(classes_of(80, 6))
    alone = [
        LinearClassifier(alpha, 0.01, l1, rate="scale_free")
        for alpha, l1 in zip(settings.alpha, settings.l1, strict=True)
    ]
    model, lost, others = LinearClassifier(), 0.0, np.zeros(len(alone))
    for k, (x, y) in enumerate(data):
        if y in model.classes and len(model.classes) > 1:  # the first row of a class has no prediction before it
            lost -= math.log(model.predict_proba_one(x)[y])
            others -= [math.log(each.predict_proba_one(x)[y]) for each in alone]
        for each in (model, *alone):
            each.learn_one(x, y)
        if k % 7 == 0 and len(model.classes) > 2:
            assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)
    assert len(model.classes) == 6
    best = int(np.argmin(others))
    for label in model.classes:
        assert list(model.weights[label].values()) == pytest.approx(list(alone[best].weights[label].values()))
    guarantee = model.guarantee()
    assert not guarantee.void
    # Ten experts at first, of which the four settings remain.
    assert guarantee.bound == pytest.approx(math.log(11), rel=1e-6)
    assert lost - others[best] <= math.log(11)
    assert guarantee.loss > lost  # by the first rows of classes
    assert guarantee.other > others[best]
    assert guarantee.measured <= guarantee.bound


def test_hinges_of_several_classes_are_counted_as_before(interpreted):
    model = LinearClassifier(loss="hinge", l1=0.01)
    for k, (x, y) in enumerate(classes_of(60, 3)):
        before = model._learner.learner.mixture.ledger.losses.copy()
        first = y not in model.classes and len(model.classes) == 2
        model.learn_one(x, y)
        if first:
            assert (model._learner.learner.mixture.ledger.losses >= 2 * before).all()
            assert k
    assert len(model.classes) == 3
    assert model.guarantee().measured <= model.guarantee().bound


def test_copies_and_frames_continue_as_the_model_does(interpreted):
    pd = pytest.importorskip("pandas")
    data = list(classes_of(40, 5))
    model, many = LinearClassifier(), LinearClassifier()
    for x, y in data:
        model.learn_one({name: x.get(name, 0.0) for name in NAMES}, y)
    frame = pd.DataFrame([{name: x.get(name, 0.0) for name in NAMES} for x, _ in data])
    labels = pd.Series([y for _, y in data])
    for k in range(0, 40, 25):
        many.learn_many(frame[k : k + 25], labels[k : k + 25])
    copied = pickle.loads(pickle.dumps(model))
    model.learn_one({"f1": 1.0}, "class 0")
    for each in (copied, many):
        each.learn_one({"f1": 1.0}, "class 0")
        ledgers = [m._learner.learner.mixture.ledger.array.tolist() for m in (each, model)]
        assert ledgers[0] == pytest.approx(ledgers[1], rel=1e-12)
        assert each.predict_proba_one({"f2": 1.0}) == pytest.approx(model.predict_proba_one({"f2": 1.0}), rel=1e-12)
    proba = model.predict_proba_many(frame)
    assert proba.loc[3].to_dict() == pytest.approx(model.predict_proba_one(frame.loc[3].to_dict()))


def test_a_value_of_no_meaning_changes_nothing(interpreted):
    model = LinearClassifier()
    model.learn_one({"a": 1.0}, True)
    before = pickle.dumps(model)
    for x in ({"a": math.inf}, {"b": 1.0, "a": "text"}):
        with pytest.raises(ValueError, match=r"x\['a'\]: got"):
            model.learn_one(x, False)
        with pytest.raises(ValueError, match=r"x\['a'\]: got"):
            model.predict_one(x)
    assert pickle.dumps(model) == before


def test_predictions_during_learning_are_those_of_some_moment():
    """Compiled, with two threads: every probability is that of the model after some number of rows."""
    data = [(x, m > 0) for x, m in stream(150, seed=3)]
    probe, model, moments = {"f1": 1.0, "f3": -0.5}, LinearClassifier(), set()
    for x, y in data:
        model.learn_one(x, y)
        moments.add(model.predict_proba_one(probe)[True])
    shared, seen, done = LinearClassifier(), set(), threading.Event()
    shared.learn_one(*data[0])

    def predict():
        while not done.is_set():
            seen.add(shared.predict_proba_one(probe)[True])

    other = threading.Thread(target=predict)
    other.start()
    for x, y in data[1:]:
        shared.learn_one(x, y)
    done.set()
    other.join()
    assert seen
    assert seen <= moments


def test_a_grid_of_one_setting_is_no_mixture():
    assert LinearClassifier(alpha=0.1)._learner.learner.mixture is None
    assert LinearClassifier(alpha=0.1).guarantee() is None
    assert isinstance(LinearRegressor()._learner, DictLearner)


def test_raw_numbers_need_no_scaler(interpreted):
    """The first rows of the guide's table: numbers in units of their own."""
    from benchmarks import churn

    mixed, raw = (churn.progressive_loss(churn.models()[name], 40) for name in ("forel", "river, LogisticRegression"))
    assert mixed < 1 < raw
