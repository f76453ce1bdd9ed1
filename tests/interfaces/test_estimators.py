"""The estimators: scikit-learn's own checks, its tools around them, and the fast learner inside."""

import pickle
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_regressors_train, parametrize_with_checks

import forel
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import Huber, Quantile
from forel.sklearn import FTRLClassifier, FTRLRegressor, estimator_of, shared

CONFIGURATIONS = [
    FTRLClassifier(),
    FTRLClassifier(loss="hinge", algorithm="mirror", alpha=0.01),
    FTRLClassifier(loss="squared_hinge", algorithm="centered", alpha=0.1, dtype="float64"),
    FTRLRegressor(),
    FTRLRegressor(algorithm="centered", dtype="float64", lanes=2, passes=2),
]
STEPS = "one step of weight 1000 fits a class, and hinge losses then have no slope that would move its boundary"
REPEATED = "a row of weight 2 is not the row twice: the second time, the model has learned from the first"


def expected(estimator):
    """Which checks cannot hold, and why."""
    found = {f"check_sample_weight_equivalence_on_{kind}_data": REPEATED for kind in ("dense", "sparse")}
    if isinstance(estimator, FTRLClassifier) and Settings(estimator.loss).signed:  # a hinge loss
        found["check_class_weight_classifiers"] = STEPS
    if isinstance(estimator, FTRLRegressor):
        # With 100 passes the check succeeds all the same, and so does one with the default alpha: see the tests below.
        found["check_regressors_train"] = "the check sets alpha to 0.01 for a weak penalty; here alpha is the rate"
    return found


@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=expected)
def test_scikit_learns_checks(estimator, check, request):
    # No other test uses the kernels of other settings than the default, nor those for read-only arrays, of which one
    # is enough: that of the classifier.
    read_only = isinstance(estimator, FTRLRegressor) and check.keywords.get("readonly_memmap", False)
    if estimator.alpha is not None or estimator.lanes is not None or read_only:
        request.getfixturevalue("interpreted")
    check(estimator)


@pytest.mark.parametrize("options", [{}, {"readonly_memmap": True}, {"readonly_memmap": True, "X_dtype": np.float32}])
def test_a_hundred_passes_succeed_at_the_low_rate_of_scikit_learns_check(options):
    check_regressors_train("FTRLRegressor", FTRLRegressor(passes=100), **options)


@pytest.mark.parametrize("options", [{}, {"algorithm": "centered", "dtype": "float64", "lanes": 4}])
def test_the_default_regressor_scores_what_scikit_learns_check_asks(options, request):
    if options:
        request.getfixturevalue("interpreted")
    X, y = make_regression(200, 10, n_informative=1, bias=5.0, noise=20, random_state=42)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    assert FTRLRegressor(**options).fit(X, y).score(X, y) > 0.7


def test_parameters_are_settings_and_options_of_fit():
    fitting = {"fit_intercept", "passes", "shuffle", "random_state", "dtype", "warm_start", "certified", "lanes"}
    fitting |= {"features"}
    classifier, regressor = FTRLClassifier().get_params(), FTRLRegressor().get_params()
    settings = set(regressor) - fitting - {"interval"}
    assert settings <= {field.name for field in fields(Settings)}
    assert fitting < set(regressor)
    assert set(classifier) - set(regressor) == {"class_weight", "add_classes"}
    assert set(regressor) - set(classifier) == {"interval"}
    assert {name for name in classifier if name in regressor and classifier[name] != regressor[name]} == {"loss"}


def clicks(rows=4000, features=60, seed=0, dtype=np.float32):
    """Sparse rows with labels drawn from a sparse logistic model."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((rows, features), density=0.15, format="csr", dtype=dtype, rng=rng)
    truth = np.random.default_rng(99).normal(size=features) * 3 * (np.arange(features) < 15)
    return X, (rng.random(rows) < expit(X @ truth - 0.5)).astype(int)


def same(one, other):
    return np.array_equal(one.coef_, other.coef_) and np.array_equal(one.intercept_, other.intercept_)


def test_held_out_log_loss_is_close_to_logistic_regression():
    (X, y), (held, labels) = clicks(20_000), clicks(5_000, seed=1)
    mine = FTRLClassifier(alpha=0.3).fit(X, y)
    batch = LogisticRegression().fit(X, y)
    losses = [log_loss(labels, model.predict_proba(held)) for model in (mine, batch)]
    assert losses[0] < 1.05 * losses[1]
    assert losses[0] == pytest.approx(mine.progressive_loss_, rel=0.05)


def test_l1_gives_exact_zeros():
    X, y = clicks()
    model = FTRLClassifier(alpha=0.3, l1=5.0).fit(X, y)
    zeros = int((model.coef_ == 0).sum())
    assert 30 < zeros < 60


def test_many_classes_are_one_model_each():
    X, y = load_digits(return_X_y=True)
    model = FTRLClassifier(alpha=0.3, passes=3).fit(X[:1200] / 16, y[:1200])
    assert model.score(X[1200:] / 16, y[1200:]) > 0.85
    assert model.coef_.shape == (10, 64)
    assert model.intercept_.shape == (10,)
    probabilities = model.predict_proba(X)  # margins 16 times as large, to see that nothing overflows
    assert probabilities.dtype == np.float64
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert np.isfinite(model.predict_log_proba(X * 1e6)).all()
    each = expit(model.decision_function(X[:50] / 16).astype(float))
    assert np.allclose(model.predict_proba(X[:50] / 16), each / each.sum(axis=1, keepdims=True))


def test_a_regression_is_found():
    X, y = make_regression(2000, 10, noise=1.0, random_state=0)
    model = FTRLRegressor(alpha=1.0).fit(X[:1500], y[:1500] / y.std())
    assert model.score(X[1500:], y[1500:] / y.std()) > 0.9
    assert model.coef_.shape == (10,)
    assert model.intercept_.shape == (1,)


def test_a_regression_without_intercept_is_found(interpreted):
    X, y = np.ones((200, 1)), np.random.default_rng(0).exponential(size=200)
    model = FTRLRegressor(alpha=0.3, fit_intercept=False, passes=3).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    assert model.predict([[2.0]])[0] == pytest.approx(2 * y.mean(), rel=0.1)


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_pieces_are_bitwise_one_pass_and_the_fast_learner_itself(kind):
    X, y = clicks()
    y = y if kind == "classifier" else y + 0.25
    make, loss = (FTRLClassifier, "logistic") if kind == "classifier" else (FTRLRegressor, "squared")
    options = {"alpha": 0.2, "l1": 0.3, "l2": 0.1}
    weight = np.random.default_rng(0).random(4000)
    whole, pieces = make(**options, shuffle=False).fit(X, y, weight), make(**options)
    for k in range(0, 4000, 700):
        first = {"classes": [0, 1]} if kind == "classifier" and k == 0 else {}
        pieces.partial_fit(X[k : k + 700], y[k : k + 700], sample_weight=weight[k : k + 700], **first)
    assert same(whole, pieces)
    linear = Learner(60, Settings(loss, **options), mixed=False)
    linear.learn(X, y, weight)
    assert np.array_equal(np.ravel(whole.coef_), linear.weights[:, 0])
    assert np.array_equal(whole.intercept_, linear.bias)
    assert whole.t_ == pieces.t_ == 4000
    assert whole.progressive_loss_ == pytest.approx(linear.loss[0] / weight.sum())
    assert whole.progressive_loss_ == pytest.approx(pieces.progressive_loss_)


def test_classes_may_have_any_names_and_hinges_get_their_signs(interpreted):
    X, y = clicks(400)
    names = np.array(["ham", "spam"])
    options = {"loss": "hinge", "algorithm": "mirror", "alpha": 0.01}
    model = FTRLClassifier(**options, shuffle=False).fit(X, names[y])
    linear = Learner(60, Settings(**options), mixed=False)
    linear.learn(X, 2 * y - 1)
    assert np.array_equal(model.coef_[0], linear.weights[:, 0])
    assert model.classes_.tolist() == ["ham", "spam"]
    assert np.array_equal(model.predict(X), names[(model.decision_function(X) > 0).astype(int)])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as raised:
        model.predict_proba(X)
    assert "loss='hinge' has no probabilities" in str(raised.value.__cause__)
    assert hasattr(FTRLClassifier(), "predict_log_proba")


def test_fit_begins_anew_unless_warm_start():
    X, y = clicks()
    once, twice = FTRLClassifier(shuffle=False).fit(X, y), FTRLClassifier(shuffle=False).fit(X, y)
    passes = FTRLClassifier(passes=2, shuffle=False).fit(X, y)
    assert same(once, twice.fit(X, y))
    warm = FTRLClassifier(warm_start=True, shuffle=False).fit(X, y)
    assert same(once, warm)
    warm.fit(X, y)
    assert same(warm, passes)
    assert not same(once, warm)
    assert (passes.t_, passes.n_iter_, warm.n_iter_) == (8000, 2, 1)
    # Only the first pass measures how well unseen rows are predicted.
    assert passes.progressive_loss_ == once.progressive_loss_


def test_default_experts_make_a_few_passes_over_few_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7000, 2))
    y = (X[:, 0] * X[:, 1] > 0) * 1
    few = FTRLClassifier().fit(X[:600], y[:600])
    once = FTRLClassifier(passes=1).fit(X[:600], y[:600])
    assert (few.n_iter_, once.n_iter_, FTRLClassifier().fit(X, y).n_iter_) == (4, 1, 2)
    assert few.progressive_loss_ == once.progressive_loss_  # of rows that were not learned from
    assert few.guarantee_.loss == once.guarantee_.loss
    losses = [log_loss(y[600:], model.predict_proba(X[600:])) for model in (few, once)]
    assert losses[0] < losses[1]
    for one in (FTRLClassifier(shuffle=False), FTRLClassifier(certified=True), FTRLClassifier(alpha=1.0)):
        assert one.fit(X[:600], y[:600]).n_iter_ == 1
    assert FTRLRegressor().fit(X[:600], y[:600]).n_iter_ == 1
    assert FTRLClassifier().fit(sparse.csr_array(X[:600]), y[:600]).n_iter_ == 1


def test_fit_shuffles_in_blocks_by_the_random_state_and_partial_fit_never(monkeypatch):
    X, y = clicks()
    weight = np.linspace(0, 1, 4000)
    monkeypatch.setattr(shared, "SHUFFLE_BLOCK", 700)
    models = [FTRLClassifier(passes=2, random_state=s).fit(X, y, weight) for s in (0, 0, 1)]
    assert same(models[0], models[1])
    assert same(models[0], FTRLClassifier(passes=2).fit(X, y, weight))  # reproducible by default
    assert not same(models[0], models[2])
    random = np.random.RandomState(0)
    ordered = FTRLClassifier(shuffle=False, warm_start=True)
    for _ in range(2):
        order = random.permutation(4000)
        ordered.fit(X[order], y[order], weight[order])
    assert same(models[0], ordered)
    stream = FTRLClassifier().partial_fit(X, y, classes=[0, 1], sample_weight=weight)
    assert same(stream, FTRLClassifier(shuffle=False).fit(X, y, weight))


def test_rows_sorted_by_class_are_learned():
    X, y = load_iris(return_X_y=True)
    assert FTRLClassifier(passes=10).fit(X, y).score(X, y) > 0.9
    assert FTRLClassifier(shuffle=False).fit(X, y).score(X, y) < 0.5


def test_arrays_sparse_matrices_and_frames_are_the_same_rows():
    X, y = clicks(500, 8)  # in one pass: by default, more are made over columns than over sparse matrices
    model = FTRLClassifier(passes=1).fit(X, y)
    wide = sparse.csr_matrix(X)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    for other in (X.toarray(), X.toarray().tolist(), X.astype(np.float64), sparse.csc_matrix(X), wide):
        assert same(model, FTRLClassifier(passes=1).fit(other, y))
    frame = pd.DataFrame(X.toarray(), columns=list("abcdefgh"))
    named = FTRLClassifier(passes=1).fit(frame, pd.Series(y))
    assert same(model, named)
    assert named.feature_names_in_.tolist() == list("abcdefgh")
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame[list("hgfedcba")])


def test_polars_frames_keep_their_names():
    polars = pytest.importorskip("polars")
    X, y = clicks(100, 3)
    frame = polars.DataFrame(X.toarray(), schema=["a", "b", "c"])
    assert FTRLClassifier().fit(frame, y).feature_names_in_.tolist() == ["a", "b", "c"]


def test_rows_of_the_right_type_reach_the_learner_without_a_copy(monkeypatch):
    X, y = clicks()
    seen = []
    monkeypatch.setattr(Learner, "learn", lambda self, X, y, weight: seen.append(X) or np.zeros(1))
    FTRLClassifier(alpha=0.1, shuffle=False).fit(X, y)
    assert np.shares_memory(seen[0].data, X.data)
    assert np.shares_memory(seen[0].indices, X.indices)


def test_without_a_rate_experts_of_five_kinds_are_mixed():
    X, y = clicks()
    model = FTRLClassifier().fit(X, y)
    assert model.guarantee_.bound == pytest.approx(np.log(13))
    assert "best of 13 experts" in str(model.guarantee_)
    kinds = {one.kind for one in model.explain_mixture().experts}
    assert kinds == {"setting", "filter", "full filter", "mixer", "fixed share"}
    best = model._model.select_setting(model._model.best)
    assert np.allclose(model.coef_[0], best.weights[:, 0], rtol=1e-5, atol=1e-7)


def test_a_grid_of_sixteen_settings_is_mixed(interpreted):
    X, y = clicks(400)
    model = FTRLClassifier(lanes=16).fit(X, y)
    measured, bound = model.guarantee_.pair
    assert measured <= bound + 1e-9
    assert bound == pytest.approx(np.log(16))
    assert model.progressive_loss_ == pytest.approx(model._model.loss / len(y))
    best = model._model.names[model._model.best]
    alpha, l1 = (float(part.split("=")[1]) for part in best.split(", "))
    assert "which is " + best in str(model.guarantee_)
    # The weights shown are those of the best setting, and nearly as good.
    alone = FTRLClassifier(alpha=model._model.settings.alpha[model._model.best], l1=l1, beta=0.01, rate="scale_free")
    assert np.allclose(alone.fit(X, y).coef_, model.coef_, rtol=1e-3, atol=1e-4)
    assert alpha == pytest.approx(alone.alpha, rel=1e-2)
    assert alone.progressive_loss_ * len(y) >= model.guarantee_.other - 1e-2
    with pytest.raises(AttributeError, match="guarantee_ needs a mixture of settings; leave out alpha"):
        _ = alone.guarantee_


def test_given_rates_and_other_losses_are_mixed(interpreted):
    X, y = clicks(150)
    tried = FTRLClassifier(alpha=(0.01, 0.1), l1=0.5).fit(X, y)
    assert tried._model.names == ("alpha=0.01", "alpha=0.1")
    numbers = FTRLRegressor(loss="absolute").fit(X, X @ np.ones(60))
    assert numbers.guarantee_.measured <= numbers.guarantee_.bound


def test_tools_of_scikit_learn_take_the_estimators(request):
    X, y = clicks(2000)
    search = GridSearchCV(make_pipeline(MaxAbsScaler(), FTRLClassifier()), {"ftrlclassifier__alpha": [0.01, 0.3]}, cv=3)
    assert search.fit(X, y).best_params_ == {"ftrlclassifier__alpha": 0.3}
    assert cross_val_score(FTRLClassifier(alpha=0.3), X, y, cv=3, scoring="neg_log_loss").min() > -np.log(2)
    hinge = FTRLClassifier(loss="hinge", algorithm="mirror", alpha=0.01)
    request.getfixturevalue("interpreted")
    assert CalibratedClassifierCV(hinge, cv=3).fit(X[:200], y[:200]).predict_proba(X[:200]).shape == (200, 2)


def test_a_clone_is_unfitted_and_a_pickle_continues_from_its_state(interpreted):
    X, y = clicks(60)
    model = FTRLClassifier(l1=0.1).fit(X, y)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    copy = pickle.loads(pickle.dumps(model))
    assert same(model, copy)
    assert same(model.partial_fit(X, y), copy.partial_fit(X, y))


@pytest.mark.parametrize("name", ["coef_", "intercept_", "t_", "progressive_loss_"])
def test_what_was_learned_is_not_there_before(name):
    assert not hasattr(FTRLRegressor(), name)
    model = FTRLRegressor()
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=-1).fit(np.eye(3), [1, 2, 3])
    with pytest.raises(NotFittedError):
        model.predict(np.eye(3))


X3, Y3 = np.eye(3), [0, 1, 1]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: FTRLClassifier(alpha=[0.1, 1.0], l1=[1.0]).fit(X3, Y3), "expected sequences of one length"),
        (lambda: FTRLClassifier(lanes=0).fit(X3, Y3), "lanes: got 0"),
        (lambda: FTRLClassifier(l1=-1).fit(X3, Y3), "l1: got -1.0, expected numbers of at least 0"),
        (lambda: FTRLClassifier(loss="squared").fit(X3, Y3), "loss: got 'squared', expected one of logistic, hinge"),
        (lambda: FTRLRegressor(loss="hinge").fit(X3, Y3), "loss: got 'hinge', expected one of squared, squared_error"),
        (lambda: FTRLClassifier(dtype="float31").fit(X3, Y3), "dtype: got 'float31', expected float32 or float64"),
        (lambda: FTRLClassifier(dtype="int8").fit(X3, Y3), "dtype: got 'int8', expected float32 or float64"),
        (lambda: FTRLClassifier(passes=0).fit(X3, Y3), "passes: got 0, expected a whole number of at least 1"),
        (lambda: FTRLClassifier().fit(X3, [1, 1, 1]), r"y: got one class, \[1\], expected at least two"),
        (
            lambda: FTRLClassifier().fit(X3, Y3, [1, 1]),
            r"sample_weight: got shape \(2,\), expected a vector of length 3",
        ),
        (lambda: FTRLClassifier().fit(X3, Y3, [1, -1, 1]), "sample_weight: got -1.0 in row 1"),
        (lambda: FTRLClassifier().fit(X3, Y3, [0, 0, 0]), "sample_weight: got only zeros"),
        (lambda: FTRLClassifier().partial_fit(X3, Y3), "classes: got None, expected all classes at the first call"),
        (lambda: started().partial_fit(X3, [0, 7, 9]), r"y: got the new class 7, expected one of the classes \[0, 1\]"),
        (lambda: started().partial_fit(X3, ["0", "1", "1"]), "y: got the new class '0'"),
        (lambda: started().partial_fit(X3, Y3, classes=[0, 1, 2]), r"classes: .*expected \[0, 1\], as at the start"),
        (lambda: started().partial_fit(np.eye(2), [0, 1]), "X has 2 features, but FTRLClassifier is expecting 3"),
        (lambda: started().set_params(alpha=1.0, fit_intercept=False).partial_fit(X3, Y3), "alpha, fit_intercept: got"),
        (lambda: started().set_params(dtype="float64").partial_fit(X3, Y3), "dtype: got another value than before"),
    ],
)
def test_invalid_arguments_raise(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def started():
    return FTRLClassifier(alpha=0.1).partial_fit(X3, Y3, classes=[0, 1])


def test_a_refused_piece_leaves_the_model_as_it_was():
    model, other = started(), started()
    broken = sparse.csr_array(np.eye(3))
    broken.indices = np.array([0, 9, 2], dtype=np.int32)
    with pytest.raises(ValueError, match="column index 9"):
        model.partial_fit(broken, Y3)
    broken.indptr = np.array([0, 1, 2, 5], dtype=np.int32)
    with pytest.raises(ValueError, match="whose lengths do not match indptr"):  # before scipy picks rows by it
        clone(model).set_params(shuffle=True).fit(broken, Y3)
    assert same(model, other)
    assert model.partial_fit(X3, Y3, sample_weight=[0, 0, 0]).t_ == 3
    assert same(model, other)


def test_the_certificate_of_an_estimator():
    X, y = clicks(2_000)
    model = FTRLClassifier(alpha=0.3, certified=True).fit(X, y)
    proof = model.certificate_
    x = np.append(model.coef_, model.intercept_)
    assert proof.rounds == 2_000
    assert proof.loss == pytest.approx(model.progressive_loss_ * 2_000)
    assert proof.regret(x) <= proof.bound(x) * (1 + 1e-4)
    fixed = LogisticRegression(C=0.1).fit(X, y)
    size = float(np.linalg.norm(np.append(fixed.coef_, fixed.intercept_)))
    assert proof.loss_floor(l2=size) <= log_loss(y, fixed.predict_proba(X))
    with pytest.raises(AttributeError, match="certificate_ needs certified=True"):
        _ = FTRLClassifier().fit(X, y).certificate_
    with pytest.raises(ValueError, match="certified: got another value than before"):
        model.set_params(certified=False).partial_fit(X, y)


def test_every_class_has_a_certificate(interpreted):
    X, _ = clicks(300)
    three = FTRLClassifier(certified=True, lanes=2).fit(X, np.arange(300) % 3)
    assert [proof.rounds for proof in three.certificate_] == [300] * 3


@pytest.mark.parametrize("classes", [2, 3])
def test_softmax_has_joint_probabilities(classes, interpreted):
    """The guide to several classes runs a compiled kernel."""
    rng, rows = np.random.default_rng(0), 300
    X = rng.normal(size=(rows, 5))
    truth = rng.normal(size=(5, classes))
    y = np.argmax(X @ truth + rng.gumbel(size=(rows, classes)), axis=1)
    model = FTRLClassifier(loss="softmax", alpha=0.3, passes=3, certified=True).fit(X, y)
    batch = LogisticRegression().fit(X, y)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert log_loss(y, model.predict_proba(X)) < 1.02 * log_loss(y, batch.predict_proba(X))
    assert (model.predict(X) == model.classes_[model.predict_proba(X).argmax(axis=1)]).all()
    shape = (rows,) if classes == 2 else (rows, 3)
    assert model.decision_function(X).shape == shape
    assert model.certificate_.rounds == 3 * rows


def cautious(margin, label):
    """A loss that minds too low a prediction ten times as much as one too high."""
    d = margin - label
    factor = 10.0 if d < 0 else 1.0
    return 0.5 * factor * d * d, factor * d


def test_regression_losses_find_what_they_are_for():
    rng = np.random.default_rng(0)
    X = np.ones((20_000, 1))
    y = rng.exponential(size=20_000)
    at = {}
    for loss in ("squared", "absolute", Quantile(0.9), Huber(0.5), cautious):
        at[loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)] = (
            FTRLRegressor(loss=loss, alpha=0.3, passes=3).fit(X, y).predict([[1.0]])[0]
        )
    assert at["squared"] == pytest.approx(1.0, abs=0.05)
    assert at["absolute"] == pytest.approx(np.log(2), abs=0.05)
    assert at["Quantile"] == pytest.approx(np.log(10), abs=0.15)
    assert at["absolute"] < at["Huber"] < at["squared"] < at["cautious"]
    counts = rng.poisson(3.0, size=20_000)
    model = FTRLRegressor(loss="poisson", alpha=0.3).fit(X, counts)
    assert model.predict([[1.0]])[0] == pytest.approx(3.0, abs=0.15)
    with pytest.raises(ValueError, match="at least 0"):
        FTRLRegressor(loss="poisson").fit(X[:2], [-1.0, 1.0])


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_frames_give_names(frames):
    library = pytest.importorskip(frames)
    X = library.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "size": [0.0, 1.0, 0.0, 1.0]})
    model = FTRLClassifier(passes=5).fit(X, [0, 1, 0, 1])
    assert model.feature_names_in_.tolist() == ["age", "size"]
    assert np.array_equal(model.predict_proba(X), model.predict_proba(X))
    plain = FTRLClassifier(passes=5).fit(X.to_numpy(), [0, 1, 0, 1])
    assert same(model, plain)


@pytest.mark.usefixtures("interpreted")
def test_class_weights_multiply_sample_weights(tmp_path):
    X, y = clicks(200)
    names = np.array(["ham", "spam"])[y]
    weight = np.linspace(0.5, 1.5, 200)
    options = {"alpha": 0.3, "shuffle": False}
    factors = {"spam": 3.0}
    weighted = FTRLClassifier(**options, class_weight=factors).fit(X, names, weight)
    assert same(weighted, FTRLClassifier(**options).fit(X, names, weight * np.where(y == 1, 3.0, 1.0)))
    balanced = FTRLClassifier(**options, class_weight="balanced").fit(X, names)
    each = 200 / (2 * np.bincount(y))
    assert same(balanced, FTRLClassifier(**options).fit(X, names, each[y]))
    with pytest.raises(ValueError, match="class_weight: got 'balanced', expected a dict or None for partial_fit"):
        balanced.partial_fit(X, names)
    for model in (weighted, balanced):
        forel.save(tmp_path / "model.forel", model)
        assert estimator_of(forel.load(tmp_path / "model.forel")).class_weight == model.class_weight
    again = estimator_of(weighted.__model__())
    assert same(again.partial_fit(X, names), weighted.partial_fit(X, names))
