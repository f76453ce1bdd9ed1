"""River models in files: saved, loaded and continued to the same bits; and slots as in models trained from files."""

import numpy as np
import pytest

import forel
from forel.losses import Quantile

pytest.importorskip("river", reason="river is an extra: pip install 'forel[river]'")

from forel.learner.grid import default_grid
from forel.river import LinearClassifier, LinearRegressor, model_of


def stream(rows, labels):
    rng = np.random.default_rng(0)
    for k in range(rows):
        x = {f"f{j}": float(v) for j, v in zip(rng.permutation(30)[:5], rng.normal(size=5), strict=True)}
        yield {**x, ("pair", k % 3): 1.0, k % 2: 0.5, "straße": 1, "\ud800": 1}, labels[k % len(labels)]


def state(model):
    """All that a model knows; lanes that wait for a class are not part of it."""
    learner = model._learner
    lanes, mixture = learner.narrow().state, learner.learner.mixture
    arrays = [array.tobytes() for array in (lanes.records, lanes.last_round, lanes.sums)]
    counts = lanes.rounds, lanes.total_importance, lanes.n_lanes, learner.state.n_lanes
    ledger = None if mixture is None else mixture.ledger.array.tolist()
    return arrays, counts, ledger, learner.names, learner.codes, learner.class_starts, learner.options


MODELS = [
    (lambda: LinearClassifier(alpha=0.5, l1=0.01, certified=True), ("ham", "spam")),
    (lambda: LinearClassifier(alpha=1, rate="scale_free", dtype="float32", seed=7), (False, True)),
    (lambda: LinearClassifier(alpha=0.1, algorithm="mirror", penalty_weight="every", l1=0.01), "abc"),
    (lambda: LinearClassifier(alpha=0.1, loss="hinge", bits=8), (1, "two", 3.5, ("a", 4))),
    (lambda: LinearClassifier(alpha=0.1, bits=6), [f"class {k}" for k in range(70)]),
    (lambda: LinearClassifier(certified=True), ("ham", "spam")),
    (lambda: LinearClassifier(bits=8), "abcde"),
    (lambda: LinearClassifier(loss="hinge", l1=0.01), "abc"),
    (lambda: LinearRegressor(dtype="float32"), (1.0, 2.5, -3)),
    (lambda: LinearRegressor(loss=Quantile(0.7), alpha=2.0), (1.0, 2.5, -3)),
    (lambda: LinearRegressor(alpha=0.1, bits=8, radius=2.0), (0.5,)),
]


@pytest.mark.parametrize(("make", "labels"), MODELS)
def test_a_saved_model_continues_to_the_same_bits(make, labels, tmp_path, interpreted):
    model, data = make(), list(stream(max(40, len(labels) + 10), labels))
    for x, y in data[:-10]:
        model.learn_one(x, y)
    forel.save(tmp_path / "m.forel", model)
    loaded = model_of(forel.load(tmp_path / "m.forel"))
    assert type(loaded) is type(model)
    assert loaded._get_params() == model._get_params()
    assert state(loaded) == state(model)
    for x, y in data[-10:]:
        assert loaded.predict_one(x) == model.predict_one(x)
        model.learn_one(x, y)
        loaded.learn_one(x, y)
    assert state(loaded) == state(model)
    forel.save(tmp_path / "again.forel", model_of(forel.load(tmp_path / "m.forel")))
    assert (tmp_path / "again.forel").read_bytes() == (tmp_path / "m.forel").read_bytes()


def test_an_untrained_model_and_one_with_more_names_than_slots_are_restored(tmp_path, interpreted):
    for model in (LinearClassifier(), LinearRegressor(alpha=0.1)):
        forel.save(tmp_path / "m.forel", model)
        assert state(model_of(forel.load(tmp_path / "m.forel"))) == state(model)
    model.learn_one({f"f{k}": 1.0 for k in range(3000)}, 1.0)
    forel.save(tmp_path / "m.forel", model)
    stored = forel.load(tmp_path / "m.forel")
    assert model_of(stored).weights == model.weights
    assert (stored.names[1], stored.names[3000]) == ("f0", "f2999")


CLICKS = [
    {"site": f"site {k % 7}", "age": k % 5 + 0.1, "": "x", "zip": 1000 + k % 3, "click": int(k * k % 11 < 4)}
    for k in range(200)
]
SETTINGS = {"alpha": 0.3, "l1": 0.02}


def rows(clicks):
    return [({name: value for name, value in x.items() if name != "click"}, x["click"]) for x in clicks]


@pytest.mark.parametrize("bits", [4, 18])
@pytest.mark.parametrize("zips", [(), ("zip",)], ids=["numbers", "categories"])
def test_a_model_trained_from_files_is_the_river_model_to_the_bit_and_either_continues_the_other(bits, zips, tmp_path):
    """Float32 with noise in its rounding, collisions of slots, categories, and numbers that are codes."""
    options = {"label": "click", "bits": bits, "categories": zips}
    half = forel.train(CLICKS[:100], forel.Settings(**SETTINGS), **options)
    half.save(tmp_path / "half.forel")
    whole = forel.train(CLICKS, forel.Settings(**SETTINGS), **options)
    model = model_of(forel.load(tmp_path / "half.forel"))
    other = LinearClassifier(**SETTINGS, bits=bits, dtype="float32")
    for x, y in rows(CLICKS[:100]):
        other.learn_one(x, bool(y))
    for x, y in rows(CLICKS[100:]):
        model.learn_one(x, y)
        other.learn_one(x, y)
    margins = forel.predict(whole, CLICKS, margins=True)
    for each in (model,) if zips else (model, other):
        assert each.classes == [False, True]
        assert np.array_equal(each._learner.state.records, whole.learner.state.records)
        assert [each._learner.margins(x)[0] for x, _ in rows(CLICKS)] == margins.tolist()
        forel.save(tmp_path / "river.forel", each)
        unlabelled = [x for x, _ in rows(CLICKS)]
        assert forel.predict(tmp_path / "river.forel", unlabelled, margins=True).tolist() == margins.tolist()


def test_a_model_of_crosses_is_no_river_model(interpreted):
    crossed = forel.train(CLICKS[:9], label="click", bits=8, interactions=["site*age"])
    with pytest.raises(ValueError, match=r"stored: got a model trained with interactions, expected one without"):
        model_of(crossed)


def test_the_default_mixture_of_files_continues_as_a_river_model(interpreted, tmp_path):
    """Both have the same margins, of dicts that Python reads and of those that compiled code reads."""
    options = {"settings": default_grid(full_filters=()), "label": "click", "bits": 12}
    half, whole = forel.train(CLICKS[:60], **options), forel.train(CLICKS[:120], **options)
    model = model_of(half)
    for x, y in rows(CLICKS[60:120]):
        model.learn_one(x, y)
    margins = forel.predict(whole, CLICKS[:40], margins=True)
    assert [model._learner.margins(x)[0] for x, _ in rows(CLICKS[:40])] == pytest.approx(margins.tolist(), rel=1e-6)
    assert model.guarantee().loss == pytest.approx(whole.learner.loss)
    full = forel.train(CLICKS[:60], label="click", bits=12)  # with experts that river models do not have
    assert model_of(full).guarantee().other == pytest.approx(full.learner.losses[[*range(8), 10, 11]].min())
    forel.save(tmp_path / "m.forel", model)
    unlabelled = [x for x, _ in rows(CLICKS[:40])]
    assert forel.predict(tmp_path / "m.forel", unlabelled, margins=True) == pytest.approx(margins, rel=1e-6)
    assert forel.load(tmp_path / "m.forel").predict_one(unlabelled[0]) == model.predict_proba_one(unlabelled[0])[True]


def test_classes_of_a_saved_model_are_predicted_by_name(interpreted, tmp_path):
    for make in (lambda: LinearClassifier(bits=10), lambda: LinearClassifier(alpha=1.0, bits=10)):
        model = make()
        for k in range(60):
            model.learn_one({"kind": "uvw"[k % 3], "size": k % 5}, "abc"[k % 3])
        forel.save(tmp_path / "m.forel", model)
        events = [{"kind": kind, "size": 2} for kind in "wuv"]
        assert forel.load(tmp_path / "m.forel").predict_many(events).tolist() == ["c", "a", "b"]
        assert [model.predict_one(x) for x in events] == ["c", "a", "b"]


def test_columns_of_a_trained_model_keep_their_kinds(interpreted, tmp_path):
    csv = tmp_path / "a.csv"
    csv.write_text("click,zip,age\n" + "".join(f"{k % 2},z{k % 3},{k % 4}\n" for k in range(40)))
    trained = forel.train(str(csv), forel.Settings("hinge", alpha=1.0), label="click", bits=10)
    model = model_of(trained)
    assert model._learner.options.kinds == {"age": "number", "zip": "category"}
    odd = [{"zip": 7, "age": "3"}, {"zip": "z1", "age": "old"}, {"zip": True, "age": None}, {"zip": "", "age": "NA"}]
    with pytest.warns(UserWarning, match="1 of the values of 'age' are words"):
        wanted = forel.predict(trained, odd, margins=True).tolist()
    assert [model._learner.margins(x)[0] for x in odd] == wanted
    model.learn_one({"zip": "z1", "age": 1.0}, False)
    forel.save(tmp_path / "m.forel", model)
    assert forel.load(tmp_path / "m.forel").extra["reading"] == {
        "bits": 10,
        "label": "click",
        "kinds": {"age": "number", "zip": "category"},
    }


def test_frames_with_text_are_read_as_dicts_are(interpreted):
    pd = pytest.importorskip("pandas")
    one, many = LinearClassifier(alpha=0.1, bits=10), LinearClassifier(alpha=0.1, bits=10)
    frame = pd.DataFrame([x for x, _ in rows(CLICKS)])
    labels = pd.Series([bool(y) for _, y in rows(CLICKS)])
    for x, y in zip(frame.to_dict("records"), labels.tolist(), strict=True):
        one.learn_one(x, y)
    many.learn_many(frame, labels)
    assert one.weights == many.weights
    assert many.predict_many(frame).tolist() == [one.predict_one(x) for x in frame.to_dict("records")]


def test_categories_of_frames_are_read_as_words(interpreted):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    words, labels = pd.DataFrame({"city": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]}), pd.Series([True, False, True])
    expected = LinearClassifier(alpha=1, bits=8)
    expected.learn_many(words, labels)
    other = pl.from_pandas(words)
    frames = [words.astype({"city": "category"})]
    frames += [other.with_columns(pl.col("city").cast(kind)) for kind in (pl.Categorical, pl.Enum(["b", "a"]))]
    for frame in frames:
        model = LinearClassifier(alpha=1, bits=8)
        model.learn_many(frame, labels)
        assert state(model) == state(expected)
        with pytest.raises(ValueError, match=r"x\['city'\]: got 'a', expected a number; with bits=22, words are categ"):
            LinearClassifier(alpha=1).learn_many(frame, labels)


def test_a_hashed_model_of_one_setting_predicts_in_every_way_when_compiled(tmp_path):
    model = LinearRegressor(alpha=0.3, bits=14)
    for k in range(50):
        model.learn_one({"a": k / 10, "b": 1.0}, float(k))
    forel.save(tmp_path / "m", model)
    row, loaded = {"a": 1.0, "b": 1.0}, forel.load(tmp_path / "m")
    expected = pytest.approx(model.predict_one(row), rel=1e-6)
    assert loaded.predict_one(row) == expected
    assert forel.predict(loaded, [row]) == expected
    assert loaded.predict_many([row]) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: forel.train(CLICKS, forel.Settings(alpha=(0.1, 1.0)), label="click", bits=6),
            "expected one setting, or the default mixture",
        ),
        (
            lambda: forel.training.model.Model(forel.Learner(4, forel.Settings(alpha=(0.1, 1.0)), share=0.01)),
            "expected one linear model, or a mixture without share; save one of others by only",
        ),
        (
            lambda: forel.training.model.Model(forel.Learner(4, forel.Settings())),
            "stored: got a learner by itself, expected a mod",
        ),
        (
            lambda: forel.training.model.Model(forel.Learner(4, forel.Settings("poisson"))),
            "stored: got 'poisson', expected one mo",
        ),
        (
            lambda: forel.FTRLClassifier(alpha=1.0).fit([[1.0], [2.0]], [0, 1]).__model__(),
            "stored: got 'FTRLClassifier', expected a river model; forel.sklearn.estimator_of",
        ),
    ],
)
def test_what_is_no_river_model_is_refused(make, message, interpreted):
    with pytest.raises(ValueError, match=message):
        model_of(make())


def test_what_a_file_cannot_hold_and_what_names_without_hashes_cannot_do(tmp_path, interpreted):
    path = tmp_path / "m.forel"
    model = LinearClassifier(alpha=0.1)
    model.learn_one({frozenset("a"): 1.0}, "x")
    with pytest.raises(ValueError, match=r"names: got frozenset\(.*, expected text, finite numbers, None or tuples"):
        forel.save(path, model)
    assert not path.exists()
    model = LinearClassifier(alpha=0.1)
    model.learn_one({"a": 1.0}, "x")
    forel.save(path, model, extra={"note": "mine"})
    assert forel.load(path).extra["note"] == "mine"
    named = "model: got a scikit-learn estimator or a river model with columns of its own, expected one of hashed names"
    for act in (
        lambda: forel.evaluate(path, [{"a": 1.0}]),
        lambda: forel.train([{"a": 1.0}], model=forel.load(path), label="y"),
    ):
        with pytest.raises(ValueError, match=named):
            act()
    with pytest.raises(ValueError, match=r"expected an estimator or a learner; forel\.river"):
        forel.sklearn.estimator_of(forel.load(path))
