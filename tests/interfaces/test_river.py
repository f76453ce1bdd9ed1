"""The river door: river's own checks, its tools around the models, and the fast learner inside, to the bit."""

import copy
import functools
import gc
import itertools
import math
import pickle

import numpy as np
import pytest

from forel.learner.learner import Learner
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.losses import Quantile

river = pytest.importorskip("river", reason="river is an extra: pip install 'forel[river]'")
pd = pytest.importorskip("pandas")

from river import checks, compose, datasets, evaluate, linear_model, metrics, multiclass, preprocessing  # noqa: E402

from forel.river import LinearClassifier, LinearRegressor  # noqa: E402

MODELS = [
    LinearClassifier(alpha=0.1),
    LinearClassifier(alpha=0.1, bits=12),
    LinearClassifier(loss="squared_hinge", algorithm="mirror", alpha=0.01, bits=12),
    LinearRegressor(alpha=0.1),
    LinearRegressor(alpha=0.1, loss=Quantile(0.7), rate="scale_free", bits=12),
]
CHECKS = [pytest.param(m, c, id=f"{i}-{c.__name__}") for i, m in enumerate(MODELS) for c in checks.yield_checks(m)]


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_rivers_checks(model, check, request):
    if check.__name__ == "check_bounded_memory_growth":
        gc.freeze()  # it collects garbage twice, which would walk through all imported libraries and compiled kernels
    if model.rate is not None:  # no other test uses these kernels, so that they run uncompiled
        request.getfixturevalue("interpreted")
        if "dataset" in getattr(check, "keywords", ()):  # 60 of 200 or 2,000 rows; they have every class
            rows = list(itertools.islice(check.keywords["dataset"], 60))
            check = functools.partial(check, dataset=rows)
    assert not model._unit_test_skips()
    check(model.clone())


def stream(rows=300, names=40, seed=0):
    """Dicts with values of either sign, and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=names) * 2
    found = []
    for _ in range(rows):
        chosen = rng.permutation(names)[: rng.integers(0, 9)]
        x = {f"f{k}": float(v) for k, v in zip(chosen, rng.normal(size=chosen.size), strict=True)}
        margin = sum(truth[int(k[1:])] * v for k, v in x.items())
        found.append((x, bool(rng.random() < 1 / (1 + math.exp(-margin)))))
    return found


def rows_of(data, names):
    """The same rows for the fast learner, in the same order of entries."""
    place = {name: k for k, name in enumerate(names)}
    ends = np.cumsum([0] + [len(x) for x, _ in data])
    flat = [(place[name], value) for x, _ in data for name, value in x.items()]
    return Rows(ends, np.array([p for p, _ in flat]), np.array([v for _, v in flat]))


# One of each kind of number that is kept beside z and n, all of which have to grow with the names.
FAMILY = [
    ({"l1": 0.3, "l2": 0.1, "radius": 1.0}, "float32"),
    ({}, "float64"),
    ({"rate": "scale_free", "bias": False}, "float64"),
    ({"algorithm": "mirror", "penalty_weight": "every", "l1": 0.01}, "float64"),
    ({"algorithm": "mirror", "penalty_weight": "every", "l2": 0.1}, "float64"),
]


@pytest.mark.parametrize(("options", "dtype"), FAMILY, ids=str)
def test_weights_are_those_of_the_fast_learner_to_the_bit(options, dtype, monkeypatch, request):
    if dtype == "float64":  # one kernel is compiled, the others run from the same source
        request.getfixturevalue("interpreted")
    monkeypatch.setattr("forel.river.dict_learner.SLOTS", 2)  # so that the state grows five times
    data = stream()
    model = LinearClassifier(alpha=0.1, **options, dtype=dtype, certified=True)
    for k, (x, y) in enumerate(data):
        model.learn_one(x, y, w=1 + k % 3)
    names = list(model.weights)
    rows = rows_of(data, names)
    rows = rows._replace(values=rows.values.astype(dtype))
    linear = Learner(len(names), Settings(**options), dtype=dtype, certified=True, mixed=False)
    linear.learn(rows, [y for _, y in data], 1 + np.arange(len(data)) % 3)
    assert list(model.weights.values()) == linear.weights[:, 0].tolist()
    assert model.intercept == linear.bias[0]
    assert np.count_nonzero(linear.weights) > 5
    found = np.array([model._learner.margins(x)[0] for x, _ in data])
    assert np.array_equal(found, linear.margins(rows)[:, 0])
    mine, its = model.certificate(), linear.certificate()
    used = [*range(len(names)), *([len(names)] if options.get("bias", True) else [])]
    assert (mine.loss, mine.lower, mine.constant) == pytest.approx((its.loss, its.lower, its.constant))
    assert np.array_equal(mine.gradients, its.gradients[used])
    assert np.array_equal(mine.strength, its.strength[used])
    weights = [*model.weights.values(), *([model.intercept] if options.get("bias", True) else [])]
    assert mine.regret(weights) == pytest.approx(its.regret(weights))


def test_a_regression_is_the_fast_learners_too():
    data = [(x, 3.0 * y + sum(x.values())) for x, y in stream()]
    model = LinearRegressor(alpha=0.5)
    for x, y in data:
        model.learn_one(x, y)
    names = list(model.weights)
    linear = Learner(len(names), Settings("squared", alpha=0.5), dtype=np.float64)
    linear.learn(rows_of(data, names), [y for _, y in data])
    assert list(model.weights.values()) == linear.weights[:, 0].tolist()
    assert model.predict_one(data[3][0]) == linear.margins(rows_of(data[3:4], names))[0, 0]


@pytest.mark.parametrize("bits", [None, 3, 16])
@pytest.mark.parametrize(
    ("kind", "dtype"), [("bool", "float32"), ("bool", "float64"), ("names", "float64"), ("number", "float64")]
)
def test_frames_are_the_same_as_one_row_at_a_time_to_the_bit(kind, bits, dtype, request):
    if (kind, dtype) != ("bool", "float64"):
        request.getfixturevalue("interpreted")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 11)).round(1), columns=[f"c{k}" for k in range(11)])
    score = frame["c0"] - frame["c3"]
    y = {"bool": score > 0, "names": score.round().clip(-2, 2).map("is {}".format), "number": score}[kind]
    make = LinearRegressor if kind == "number" else LinearClassifier
    one, many = make(alpha=0.1, bits=bits, dtype=dtype), make(alpha=0.1, bits=bits, dtype=dtype)
    w = pd.Series(rng.random(90))
    for x, label, weight in zip(frame.to_dict("records"), y.tolist(), w.tolist(), strict=True):
        one.learn_one(x, label, weight)
    for k in range(0, 90, 40):
        many.learn_many(frame[k : k + 40], y[k : k + 40], w[k : k + 40])
    assert one.weights == many.weights
    assert one.intercept == many.intercept
    assert np.array_equal(one._learner.state.numbers, many._learner.state.numbers)
    frame["new"] = 5.0
    found = many.predict_many(frame)
    assert found.index.equals(frame.index)
    expected = [one.predict_one(x) for x in frame.to_dict("records")]
    assert found.tolist() == expected if kind != "number" else np.allclose(found, expected)


def test_classes_may_appear_at_any_time_and_each_has_its_own_model(interpreted):
    rng = np.random.default_rng(0)
    centers = {"a": 0.0, "b": 2.0, "c": -2.0, "d": 4.0, "e": -4.0, "f": 6.0}
    order = [*"aab", *"abbaab", *(rng.choice(list("abc"), 40)), *(rng.choice(list("abcdef"), 200))]
    data = [({"x": centers[y] + rng.normal() / 4, f"k{y}": 1.0}, str(y)) for y in order]
    model = LinearClassifier(alpha=0.5, certified=True)
    alone = {}
    for x, y in data:
        model.learn_one(x, y)
        # As river's own one-vs-rest does it; the first two have been there from the start, since they are one model.
        for label in ("a", "b") if not alone else (y,):
            alone.setdefault(label, LinearClassifier(alpha=0.5, certified=True))
        for label, each in alone.items():
            each.learn_one(x, y == label)
    assert model.classes == list(alone)
    assert model._learner.state.n_lanes == 16
    for label, each in alone.items():
        for name, weight in each.weights.items():
            assert model.weights[label][name] == pytest.approx(weight, rel=1e-9, abs=1e-12)
        assert model.intercept[label] == pytest.approx(each.intercept, rel=1e-9)
        mine, its = model.certificate(label), each.certificate()
        assert (mine.rounds, mine.loss, mine.lower) == pytest.approx((its.rounds, its.loss, its.lower))
    for x, y in data[-50:]:
        found = model.predict_proba_one(x)
        each = {label: m.predict_proba_one(x)[True] for label, m in alone.items()}
        assert found == pytest.approx({label: p / sum(each.values()) for label, p in each.items()})
        assert model.predict_one(x) == y
    with pytest.raises(ValueError, match="label: got 'z', expected one of the classes"):
        model.certificate("z")


def test_a_late_class_has_no_bound_where_time_counts(interpreted):
    model = LinearClassifier(alpha=0.1, l1=0.01, penalty_weight="every", certified=True)
    for y in "aabbc":
        model.learn_one({"x": 1.0}, y)
    assert "first occurred after 4 rows" in model.certificate("c").void
    assert not model.certificate("a").void


def test_before_and_with_one_class():
    model = LinearClassifier(alpha=0.1)
    assert model.predict_one({"x": 1}) is None
    assert model.predict_proba_one({"x": 1}) == {}
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    assert model.predict_many(frame).tolist() == [None, None]
    assert model.predict_proba_many(frame).shape == (2, 0)
    model.learn_one({"x": 1}, "only")
    assert model.predict_proba_one({"x": 1}) == {"only": 1.0}
    assert model.predict_many(frame).tolist() == ["only", "only"]
    other = LinearClassifier(alpha=0.1)
    other.learn_one({"x": 1}, np.True_)
    assert other.classes == [False, True]
    assert other.predict_one({"x": 1}) is True


def state(model):
    return pickle.dumps(model)


@pytest.mark.parametrize("bits", [None, 5, 1])
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"new": 1.0, "age": math.inf}, r"x\['age'\]: got inf, expected a finite number within the range of float64"),
        ({"age": -math.inf, "new": 1.0}, r"x\['age'\]: got -inf"),
        ({"new": 1.0, "age": np.float32("inf")}, r"x\['age'\]: got .*inf"),
        (
            {"new": 1.0, "city": "Delft"},
            r"x\['city'\]: got 'Delft', expected a number; with bits=22, words are categories, or put river's",
        ),
        ({"new": 1.0, "city": "3"}, r"x\['city'\]: got '3'"),
        ({"new": 1.0, "age": 1j}, r"x\['age'\]: got 1j, expected a finite"),
        ({"new": 1.0, "age": 10**400}, r"x\['age'\]: got 1000"),
        ({"a": 10**400, "b": 1.0, "c": 1.0}, r"x\['a'\]: got 1000"),
        ({"a": "1", "b": 1.0, "c": "1"}, r"x\['a'\]: got '1'"),
    ],
)
def test_values_that_are_not_finite_numbers_are_refused_by_name_and_change_nothing(x, message, bits):
    if bits is not None and any(isinstance(value, str) for value in x.values()):
        pytest.skip("text is a category where names are hashed")
    for model, y in (
        (LinearClassifier(alpha=0.1, bits=bits), "new class"),
        (LinearRegressor(alpha=0.1, bits=bits), 1.0),
    ):
        model.learn_one({"a": 1, "b": True, "c": np.float32(2)}, 0)
        model.predict_one({"a": 1})
        before = state(model)
        for label in (0, y):
            with pytest.raises(ValueError, match=message):
                model.learn_one(x, label)
        with pytest.raises(ValueError, match=message):
            model.predict_one(x)
        assert state(model) == before
        model.learn_one({"new": 1.0, "other": 1.0}, 0)
        if bits is None:
            assert list(model.weights) == ["a", "b", "c", "new", "other"]
            assert sorted(model._learner.names.values()) == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("bits", [None, 8])
def test_missing_values_are_features_that_a_row_does_not_have(bits):
    frame = pd.DataFrame({"a": [1.0, math.nan, 3.0], "b": [math.nan, math.nan, -1.0], "c": [2, 3, 4]})
    absent = [{"a": 1.0, "c": 2.0}, {"c": 3.0}, {"a": 3.0, "b": -1.0, "c": 4.0}]
    one, many, wanted = (LinearRegressor(alpha=0.1, bits=bits, dtype="float64") for _ in range(3))
    nulls = [None, math.nan, np.float32("nan"), pd.NA, pd.NaT]
    for x, known, y, null in zip(frame.to_dict("records"), absent, (1.0, -1.0, 2.0), nulls, strict=False):
        one.learn_one({**x, "new": null}, y)
        wanted.learn_one(known, y)
    many.learn_many(frame, pd.Series([1.0, -1.0, 2.0]))
    weights = {name: value for name, value in one.weights.items() if value}
    assert weights == {name: value for name, value in wanted.weights.items() if value}
    assert weights == {name: value for name, value in many.weights.items() if value}
    assert "new" not in one.weights
    assert one.predict_one({"a": math.nan, "c": 1.0}) == wanted.predict_one({"c": 1.0})
    assert many.predict_many(frame).tolist() == [wanted.predict_one(x) for x in absent]


def test_values_whose_sum_is_too_large_are_accepted():
    model = LinearRegressor(alpha=0.1)
    model.learn_one({"a": 1e308, "b": 1e308}, 0.0)
    assert math.isfinite(model.predict_one({"a": 1.0}))
    with pytest.raises(ValueError, match=r"x\['a'\]: got 1e\+300, expected .* float32"):
        LinearRegressor(alpha=0.1, dtype="float32").learn_one({"a": 1e300}, 0.0)


FRAME, LABELS = pd.DataFrame({"a": [1.0, 2.0], "b": [0, 1]}), pd.Series([True, False])


@pytest.mark.parametrize("unit", [1e-30, 1e-20, 1e20])
def test_default_models_learn_from_features_in_any_unit(unit):
    def right(unit):
        rng, model, found = np.random.default_rng(3), LinearClassifier(), 0
        for a, b in rng.normal(size=(200, 2)):
            row = {"a": float(a) * unit, "b": float(b) * unit}
            found += model.predict_one(row) == (a > b)
            model.learn_one(row, bool(a > b))
        return found

    assert right(unit) == pytest.approx(right(1.0), abs=4)
    assert right(unit) > 170


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m.learn_one({"a": 1}, None), "y: got None, expected a class"),
        (lambda m: m.learn_one({"a": 1}, math.nan), "y: got nan, expected a class"),
        (lambda m: m.learn_one({"a": 1}, True, w=-1), "w: got -1, expected a number of at least 0"),
        (lambda m: m.learn_many(FRAME, LABELS[:1]), "y: got '1 targets', expected one for each of 2 rows"),
        (lambda m: m.learn_many(FRAME, LABELS, LABELS[:1] * 1.0), "w: got '1 numbers', expected one for each"),
        (lambda m: m.learn_many(FRAME, pd.Series(["x", None])), "y: got .*, expected a class"),
        (lambda m: m.learn_many(FRAME.assign(c=[1.0, math.inf]), LABELS), r"X\['c'\]: got inf in row 1, expected fin"),
        (lambda m: m.predict_many(FRAME.assign(c=["1", "2"])), r"x\['c'\]: got '1', expected a number"),
        (lambda m: m.certificate(), "certified: got False"),
        (lambda m: LinearClassifier(alpha=[0.1, 1.0]), "alpha.*: got a sequence"),
        (lambda m: LinearClassifier(alpha=-1), "alpha: got -1.0, expected positive numbers"),
        (lambda m: LinearClassifier(loss="squared"), "loss: got 'squared', expected one of logistic, hinge"),
        (lambda m: LinearRegressor(loss="logistic"), "loss: got 'logistic', expected one of squared, squared_error"),
        (lambda m: LinearRegressor(bits=40), "bits: got 40, expected 1 to 31"),
        (lambda m: LinearRegressor(alpha=0.1).learn_one({"a": 1}, "3"), "y: got '3', expected a finite number"),
        (lambda m: LinearRegressor(alpha=0.1).learn_one({"a": 1}, math.nan), "y: got nan, expected a finite number"),
    ],
)
def test_invalid_arguments_raise(act, message):
    model = LinearClassifier(alpha=0.1)
    before = state(model)
    with pytest.raises(ValueError, match=message):
        act(model)
    assert state(model) == before


def test_hinges_have_no_probabilities():
    with pytest.raises(NotImplementedError, match="loss='hinge' has no probabilities"):
        LinearClassifier(loss="hinge").predict_proba_one({"a": 1})


def test_pipelines_and_evaluations():
    model = preprocessing.StandardScaler() | LinearClassifier(alpha=0.5)
    peer = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    score, other = (
        evaluate.progressive_val_score(datasets.Phishing(), m, metrics.ROCAUC()).get() for m in (model, peer)
    )
    assert score > other > 0.9
    several = preprocessing.StandardScaler() | LinearClassifier(alpha=0.5)
    assert evaluate.progressive_val_score(datasets.ImageSegments().take(1000), several, metrics.Accuracy()).get() > 0.8
    counts = compose.Pipeline(preprocessing.OneHotEncoder(), LinearClassifier(alpha=0.1))
    counts.learn_one({"city": "Delft"}, True)
    assert list(counts["LinearClassifier"].weights) == ["city_Delft"]
    rest = multiclass.OneVsRestClassifier(LinearClassifier(alpha=0.5))
    assert evaluate.progressive_val_score(datasets.ImageSegments().take(300), rest, metrics.Accuracy()).get() > 0.5
    scaled = preprocessing.StandardScaler() | LinearRegressor(alpha=3.0)
    assert evaluate.progressive_val_score(datasets.TrumpApproval(), scaled, metrics.MAE()).get() < 2


@pytest.mark.parametrize(
    "duplicate", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_copies_continue_independently(duplicate):
    data = stream(200, 2000)
    model, whole = LinearClassifier(alpha=0.1, l1=0.1), LinearClassifier(alpha=0.1, l1=0.1)
    for x, y in data[:100]:
        model.learn_one(x, y)
    other = duplicate(model)
    for x, y in data[100:]:
        other.learn_one(x, y)
    for x, y in data:
        whole.learn_one(x, y)
    assert other.weights == whole.weights
    assert len(model.weights) < len(other.weights)
    assert model.clone().weights == {}


def test_values_of_hashed_names_that_share_a_slot_are_added():
    model, same = LinearRegressor(alpha=0.1, bits=1), LinearRegressor(alpha=0.1, bits=1)
    model.learn_one({"a": 1.0, "c": 2.0}, 1.0)  # both have slot 1
    same.learn_one({"a": 3.0}, 1.0)
    assert model.weights == same.weights
    assert list(model.weights) == [1]
    assert not model._learner.names
    assert model._learner.state.features == 2


def test_rows_longer_than_the_buffers_and_empty_rows():
    model = LinearRegressor(alpha=0.1)
    model.learn_one({}, 1.0)
    model.learn_one(dict.fromkeys(range(5000), 1.0), 1.0)
    model.learn_one({("a", 1): 1.0}, 1.0)
    assert len(model.weights) == 5001
    assert model._learner.state.features == 8192


def test_other_frames_and_sparse_columns():
    polars = pytest.importorskip("polars")
    model, other, third = LinearClassifier(alpha=0.1), LinearClassifier(alpha=0.1), LinearClassifier(alpha=0.1)
    model.learn_many(FRAME, LABELS)
    other.learn_many(polars.DataFrame(FRAME.to_dict("list")), polars.Series(LABELS.tolist()))
    third.learn_many(FRAME.astype(pd.SparseDtype(float, 0.0)), LABELS)
    assert model.weights == other.weights == third.weights
    found = other.predict_proba_many(polars.DataFrame(FRAME.to_dict("list")))
    assert isinstance(found, polars.DataFrame)
    assert found.columns == ["False", "True"]


def test_bytes_are_no_numbers():
    for given in ({"y": b"1"}, {"y": bytearray(b"1")}, {"w": b"1"}, {"x": {"a": b"1"}}):
        row = {"x": {"a": 1.0}, "y": 1.0, **given}
        with pytest.raises(ValueError, match=r"got .*b'1'.* expected a .*number"):
            LinearRegressor().learn_one(**row)
