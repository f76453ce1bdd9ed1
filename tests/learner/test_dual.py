"""Points of the dual problem: bounds from running sums against conjugates of every row, and against a solver."""

import re

import numpy as np
import pytest

from forel.learner.dual import Concavity, DualPoint
from forel.learner.kernels import concavity
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import Huber, Logistic, Poisson
from forel.losses.margin import DualShape
from tests.fuzz import oracle

ROWS, N = 80, 4


def stream(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, N)) * [1.0, 10.0, 0.1, 1.0]
    signal = X @ [1.0, -0.1, 5.0, 0.0] + rng.normal(size=ROWS)
    y = {"logistic": signal > 0, "poisson": rng.poisson(2, ROWS)}.get(loss, signal)
    y = np.where(signal > 0, 1.0, -1.0) if oracle.LOSSES[loss].sign else np.asarray(y, float)
    return X, y, rng.exponential(size=ROWS)


def trained(loss, **options):
    X, y, weight = stream(loss)
    model = Learner(N, Settings(loss, alpha=0.3, **options), dtype=np.float64, certified=True, mixed=False)
    return model, X, y, weight, model.progress(X, y, weight)[:, 0]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("loss", oracle.LOSSES)
def test_the_energy_is_bounded_by_the_conjugates_of_all_rows(loss):
    model, _, y, weight, margins = trained(loss)
    function, point = model.settings.loss_function, model.loss_floor().points[0]
    slopes, thetas = function.slope(margins, y), np.array([0.0, 0.03, 0.4, 0.9, 1.0])
    exact = np.array([-float(weight @ function.conjugate(theta * slopes, y)) for theta in thetas])
    found = point.energy(thetas)
    assert found[-1] == pytest.approx(exact[-1], rel=1e-9)
    assert point.shrinks == (function.dual_shape is not DualShape.LINEAR)
    if loss == "logistic":
        assert (found <= exact).all()
        assert found == pytest.approx(exact, rel=0.03)
    elif loss == "poisson":
        chord = exact[0] + thetas * (exact[-1] - exact[0])
        assert (found <= exact).all()
        assert found[[0, -1]] == pytest.approx(exact[[0, -1]], rel=1e-9)
        assert (found - chord >= 0.5 * (exact - chord) - 1e-6).all()
    else:
        assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("loss", [Huber(0.7), Poisson(), Logistic()], ids=lambda loss: loss.name)
def test_dual_values_are_bounded_between_two_points(loss):
    rng = np.random.default_rng(0)
    for _ in range(400):
        label = {"poisson": rng.poisson(1.5) * rng.choice([0.1, 1.0, 10.0]), "logistic": rng.uniform()}.get(
            loss.name, rng.normal()
        )
        slope = float(loss.slope(3 * rng.normal(), label))
        least, *rest = getattr(concavity, loss.name)(slope, label)
        point = DualPoint(-float(loss.conjugate(slope, label)), 0.0, Concavity(least, *rest))
        thetas = np.array([0.0, 1e-5, 0.01, 0.3, 0.8, 0.99, 1.0])
        exact = -loss.conjugate(thetas * slope, label)
        rounding = 1e-12 * (1 + np.abs(exact))
        assert (point.energy(thetas) <= exact + rounding).all()
        assert point.energy(thetas[[0, -1]]) == pytest.approx(exact[[0, -1]], abs=1e-12)
        assert (point.energy(thetas) > thetas * exact[-1] + (1 - thetas) * exact[0] - rounding).all()
        if loss.name == "huber" or label == 0:
            assert point.energy(thetas) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def softmax_energy(margins, y, weight, theta):
    p = np.exp(margins - margins.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    hit = np.eye(p.shape[1])[y]
    shrunken = hit + theta * (p - hit)
    return float(weight @ -np.sum(shrunken * np.log(np.where(shrunken > 0, shrunken, 1.0)), axis=1))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("alpha", [0.3, (0.1, 0.3)])
def test_the_energy_of_several_classes_is_bounded_by_the_entropies_of_all_rows(alpha):
    X, _, weight = stream("logistic")
    y = np.random.default_rng(3).integers(0, 3, ROWS)
    model = Learner(N, Settings("softmax", alpha=alpha), classes=3, dtype=np.float64, certified=True, mixed=False)
    margins = model.progress(X, y, weight)[:, model.settings.n_settings - 1 :: model.settings.n_settings]
    point = model.loss_floor(model.settings.n_settings - 1).points[-1]
    thetas = np.array([0.01, 0.2, 0.9, 1.0])
    exact = [softmax_energy(margins, y, weight, theta) for theta in thetas]
    assert (point.energy(thetas) <= np.array(exact) * (1 + 1e-12)).all()
    assert point.energy(thetas) == pytest.approx(exact, rel=0.05)
    alone = model.select_setting(model.settings.n_settings - 1).loss_floor()
    assert alone.points[0].energy(thetas) == pytest.approx(point.energy(thetas), rel=1e-12)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_labels_between_0_and_1_leave_the_bound_valid(shared):
    X, y, weight = stream("logistic")
    y = np.where(np.arange(ROWS) < shared * ROWS, 0.25 + y / 2, y)
    model = Learner(N, Settings(alpha=0.3), dtype=np.float64, certified=True)
    margins = model.progress(X, y, weight)[:, 0]
    function, point = model.settings.loss_function, model.loss_floor().points[0]
    thetas = np.array([1e-4, 0.03, 0.4, 0.9, 1.0])
    exact = [-float(weight @ function.conjugate(theta * function.slope(margins, y), y)) for theta in thetas]
    assert (point.energy(thetas) <= np.array(exact) * (1 + 1e-12)).all()
    assert point.energy(thetas) == pytest.approx(exact, rel=0.03)
    assert float(point.slopes.weights.sum()) == pytest.approx(weight[y % 1 == 0].sum())
    if shared:
        assert point.least == pytest.approx(float(weight @ -function.conjugate(0.0, y)), rel=1e-9)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
def test_histograms_are_those_of_the_slopes(dtype, rate):
    X, y, weight = stream("logistic")
    settings = Settings(alpha=(0.1, 2.0), rate=rate)
    model = Learner(N, settings, dtype=dtype, certified=True, mixed=False)
    margins = model.progress(X, y, weight).astype(float)
    for lane in range(2):
        sizes = np.abs(1 / (1 + np.exp(-margins[:, lane])) - y)
        slopes = model.certificate(lane).floors["l2"].points[0].slopes
        bins = np.minimum((64 * sizes**0.25).astype(int), 63)
        rel = 1e-12 if dtype == np.float64 else 1e-5
        assert slopes.weights == pytest.approx(np.bincount(bins, weight, minlength=64), rel=rel)
        assert slopes.totals == pytest.approx(np.bincount(bins, weight * sizes, minlength=64), rel=rel)
        alone = model.select_setting(lane).certificate().floors["l2"].points[0].slopes
        assert np.array_equal(alone.weights, slopes.weights)
        assert np.array_equal(alone.totals, slopes.totals)


@pytest.mark.parametrize("curvature", [0.0, 0.5, 7.0])
def test_floors_and_needed_norms_are_those_of_a_fine_search(curvature):
    rng = np.random.default_rng(1)
    thetas = np.append(np.logspace(-8, -5, 1000), np.linspace(1e-5, 1, 200_001)) if curvature else np.ones(1)
    for _ in range(20):
        point = DualPoint(rng.normal(), rng.exponential(), Concavity(curvature=curvature) if curvature else None)
        norm, loss = rng.exponential() * 5, rng.exponential()
        energy = point.energy(thetas)
        assert point.floor(norm) == pytest.approx(
            np.max(energy - thetas * norm * point.gradient_norm), abs=1e-5
        )  # fmt: skip
        needed = np.max((energy - loss) / (thetas * point.gradient_norm))
        assert point.needed_norm(loss) == pytest.approx(max(needed, 0.0), rel=1e-4, abs=1e-9)
        if point.needed_norm(loss):
            assert point.floor(point.needed_norm(loss)) == pytest.approx(loss, abs=1e-4)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute"])
def test_a_mixture_has_the_largest_floor_of_its_settings(loss):
    X, y, weight = stream(loss)
    settings = Settings(loss, alpha=(0.01, 0.3, 3.0), rate="scale_free")
    model = Learner(N, settings, dtype=np.float64, certified=True)
    model.learn(X, y, weight)
    floor = model.loss_floor()
    alone = [model.select_setting(k).loss_floor() for k in range(3)]
    for norm in (0.1, 1.0, 10.0):
        assert floor.at(norm) == pytest.approx(max(one.at(norm) for one in alone), rel=1e-9)
        least = oracle.least_average(loss, np.column_stack([X, np.ones(ROWS)]) / _scales(X), y, weight, norm)
        assert floor.at(norm) <= least + 1e-9
    assert floor.loss == pytest.approx(model.loss)


@pytest.mark.usefixtures("interpreted")
def test_the_scaled_norm_does_not_depend_on_units():
    X, y, weight = stream("logistic")
    found = []
    for unit in (1.0, 2.0**-12):
        model = Learner(N, Settings(alpha=0.3, rate="scale_free"), dtype=np.float64, certified=True)
        model.learn(X * [1.0, unit, 1.0, 1.0], y, weight)
        found.append(model.loss_floor())
    assert found[0].scaled
    assert found[0].norm == pytest.approx(found[1].norm, rel=1e-9)
    assert found[0].at(1.0) == pytest.approx(found[1].at(1.0), rel=1e-6)
    learned = np.append(model.weights, model.bias) * _scales(X * [1.0, unit, 1.0, 1.0])
    assert found[1].norm == pytest.approx(np.linalg.norm(learned), rel=1e-9)


@pytest.mark.usefixtures("interpreted")
def test_the_certificate_has_the_same_scaled_floor():
    X, y, weight = stream("squared")
    model = Learner(N, Settings("squared", alpha=0.3, rate="scale_free"), dtype=np.float64, certified=True)
    model.learn(X, y, weight)
    proof, floor = model.certificate(), model.loss_floor()
    assert proof.summary(np.append(model.weights, model.bias)) == model.summary()
    for norm in (0.2, 2.0):
        assert proof.loss_floor(scaled=norm) == pytest.approx(floor.at(norm), rel=1e-9)
        assert proof.worst(scaled=norm) >= model.loss[0] - proof.weight * proof.loss_floor(scaled=norm) - 1e-6
    assert proof.needed_norm(0.1, "scaled") == pytest.approx(floor.needed_norm(0.1), rel=1e-9)
    plain = Learner(N, Settings("squared", alpha=0.3), dtype=np.float64, certified=True)
    with pytest.raises(ValueError, match="scaled: got a certificate without scales, expected one of rate='scale_free'"):
        plain.certificate().loss_floor(scaled=1.0)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("old", "new"), [(r"at least [\d.]+ times", "at least 999 times"), (r"One below \S+", "One below 0.7")]
)
def test_the_oracle_refutes_a_needed_norm_that_is_too_large(old, new):
    rng = np.random.default_rng(2)
    X, y = np.ones((400, 1)), (rng.random(400) < 0.1).astype(float)
    model = Learner(1, Settings(alpha=0.01, bias=False), dtype=np.float64, certified=True)
    own = oracle.average("logistic", model.progress(X, y)[:, 0], y, np.ones(400))
    words = model.summary()
    assert "would need weights at least" in words
    assert oracle.certificate_violation(words, "logistic", X, y, np.ones(400), own, model.weights[:, 0]) is None
    false = re.sub(old, new, words)
    assert oracle.certificate_violation(false, "logistic", X, y, np.ones(400), own, model.weights[:, 0]) is not None


def _scales(X):
    return np.append(np.abs(X).max(axis=0), 1.0)
