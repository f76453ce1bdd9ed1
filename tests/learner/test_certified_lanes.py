"""Certificates of settings with filters: which lanes they are computed from, and the gradients kept after scales."""

import pickle

import numpy as np
import pytest
from scipy.special import expit

from forel.learner.certificate import bounded_lanes, certified_lanes
from forel.learner.experts import Filter
from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.store import ModelFileError
from forel.training.model import load, save
from tests.store.cases import rewritten

N, ROUNDS = 6, 90
FILTERS = (Filter(10.0, 1.0), Filter(0.3, 1.0), Filter(0.03))
SETTINGS = Settings(alpha=(0.05, 0.3, 1.5, 20.0), l1=0.1, beta=0.01, rate="scale_free", filters=FILTERS)
LANES = (1, 2, 6)

pytestmark = pytest.mark.usefixtures("interpreted")


def stream(seed=0, units=None):
    """Sparse rows with importances; the largest values come late, and some rows are empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROUNDS, N)) * (rng.random((ROUNDS, N)) < 0.5) * np.linspace(0.1, 3, ROUNDS)[:, None]
    X = np.float32(X) * (1 if units is None else units)
    return X, rng.integers(0, 2, ROUNDS).astype(float), rng.choice([0.0, 0.5, 1.0, 4.0], ROUNDS)


@pytest.mark.parametrize(
    ("alphas", "variances", "expected"),
    [
        ((0.05, 0.3, 1.5, 20.0), (10.0, 0.3, 0.3, 0.03), (1, 2, 7)),
        ((20.0, 0.05, 1.5, 0.3), (0.1, 1.0), (2, 3, 4)),
        ((1.0, 30.0, 1000.0), (0.3, 3.0, 3.0, 3.0, 30.0), (1, 3, 5)),
        (0.5, (1.0,), (0, 1)),
        (0.5, (1.0, 0.1), (0, 1, 2)),
        (0.5, (1.0, 0.1, 3.0, 9.0), (0, 2, 3)),
        ((0.1, 0.5), (3.0, 1.0, 2.0), (0, 1, 3)),
    ],
)
def test_middle_rates_and_filters_of_small_variance_are_certified(alphas, variances, expected):
    settings = Settings(alpha=alphas, rate="scale_free", filters=[(v,) for v in variances])
    assert certified_lanes(settings) == expected
    assert bounded_lanes(settings) == tuple(lane for lane in expected if lane < np.size(alphas))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_default_experts_have_three(loss):
    assert certified_lanes(default_grid(loss=loss)) == ((1, 2, 7) if loss == "logistic" else (1, 3, 5))


@pytest.mark.parametrize("power", [0, 30, -60])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_are_the_sums_of_slopes_times_values(power):
    """In whatever unit the records of a feature are, which changes as its values grow."""
    units = 2.0 ** np.array([power, 0, 0, -power, 0, power])
    X, y, importance = stream(units=units)
    model = Learner(N, SETTINGS, dtype=np.float64, certified=True, mixed=False)
    slopes = importance[:, None] * (expit(model.progress(X, y, importance)) - y[:, None])
    lanes, every = model.state, np.arange(N + 1)
    expected = np.column_stack([X, np.ones(ROUNDS)]).T @ slopes[:, LANES]
    found = lanes.gradients * lanes.units(every)[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * units.max())
    assert lanes.layout.parts == 2
    assert lanes.layout.nbytes(1) == 8 * (2 * 7 + 4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [1.0, 2.0**16, 1e-12])
def test_blocks_of_any_size_give_the_same_bits(value):
    X, y, importance = stream()
    X[:, 4] = np.where(np.arange(ROUNDS) == 50, value, 0)
    models = [Learner(N, SETTINGS, certified=True, mixed=False) for _ in range(2)]
    models[0].learn(X, y, importance)
    for part in (slice(0, 51), slice(51, 60), slice(60, None)):
        models[1].learn(X[part], y[part], importance[part])
    for name in ("records", "totals"):
        assert getattr(models[1].state, name).tobytes() == getattr(models[0].state, name).tobytes()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bias", [False, True])
def test_slopes_that_are_too_large_void_the_certificate_and_leave_numbers_finite(bias):
    """In float32, labels of 10²² are beyond the range of gradients, however small the values are."""
    X, y, _ = stream(units=np.float32(1e-6))
    settings = Settings("squared", alpha=(0.1, 1.0), rate="scale_free", filters=[(1.0,)], bias=bias)
    model = Learner(N, settings, certified=True, mixed=False)
    for _ in range(3):
        model.learn(X, 1e22 * y)
    assert np.isfinite(model.state.records).all()
    assert "left the range of float32" in model.summary()
    assert "left the range of float32" in model.certificate(1).floor_void


def test_points_are_those_of_the_same_settings_without_filters():
    X, y, importance = stream()
    model = Learner(N, SETTINGS, dtype=np.float64, certified=True, mixed=False)
    settings = Settings(alpha=SETTINGS.alpha, l1=0.1, beta=0.01, rate="scale_free")
    others = Learner(N, settings, dtype=np.float64, certified=True, mixed=False)
    for one in (model, others):
        one.learn(X, y, importance)
    mine, its = model.loss_floor(1), others.loss_floor(1)
    assert len(mine.points) == 3
    for a, b in zip(mine.points, its.points[1:3], strict=False):
        assert a.lower == b.lower
        assert a.gradient_norm == pytest.approx(b.gradient_norm, rel=1e-13)
        assert np.array_equal(a.slopes.totals, b.slopes.totals)
    for lane in (1, 2):
        first, second = model.certificate(lane), others.certificate(lane)
        np.testing.assert_array_equal(first.gradients, second.gradients)
        np.testing.assert_array_equal(first.linear, second.linear)
        assert first.constant == second.constant
    with pytest.raises(ValueError, match="lane: got 3, expected 1 or 2: filters have no bound, and gradients of other"):
        model.certificate(3)


def test_one_setting_continues_with_its_certificate_if_its_gradients_are_kept():
    X, y, importance = stream()
    model = Learner(N, SETTINGS, dtype=np.float64, certified=True, mixed=False)
    model.learn(X[:60], y[:60], importance[:60])
    alone = model.select_setting(2)
    for one in (model, alone):
        one.learn(X[60:], y[60:], importance[60:])
    assert alone.certified
    (point,) = alone.loss_floor().points
    assert point.lower == model.loss_floor(2).points[1].lower
    assert point.gradient_norm == pytest.approx(model.loss_floor(2).points[1].gradient_norm, rel=1e-13)
    assert [model.select_setting(lane).certified for lane in range(7)] == [
        False,
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_the_bound_is_that_of_the_best_setting_whose_gradients_are_kept():
    X, y, importance = stream()
    model = Learner(N, SETTINGS, dtype=np.float64, certified=True)
    model.learn(X, y, importance)
    best = min((1, 2), key=lambda lane: model.losses[lane])
    expected = model.unmixed.certificate(best)
    assert np.array_equal(model.certificate().gradients, expected.gradients)
    assert model.certificate().loss == model.loss


def test_copies_and_larger_models_keep_the_gradients():
    from forel.learner.state import resize

    X, y, importance = stream()
    model = Learner(N, SETTINGS, certified=True, mixed=False)
    model.learn(X, y, importance)
    lanes = model.state
    assert lanes.copied().records.tobytes() == lanes.records.tobytes()
    same = pickle.loads(pickle.dumps(model))
    for one in (model, same):
        one.learn(X, y)
    assert same.state.records.tobytes() == model.state.records.tobytes()
    lanes = model.state
    larger = resize(lanes, N + 3, lanes.n_lanes, lanes.labels)
    assert np.array_equal(larger.gradients[:N], lanes.gradients[:N])
    assert np.array_equal(larger.gradients[-1], lanes.gradients[-1])
    assert not larger.gradients[N:-1].any()


def test_floors_of_rows_since_a_snapshot():
    X, y, importance = stream()
    model = Learner(N, SETTINGS, dtype=np.float64, certified=True, mixed=False)
    model.learn(X[:50], y[:50], importance[:50])
    before = model.snapshot()
    assert before.gradients.shape[1] == 3
    model.learn(X[50:], y[50:], importance[50:])
    since = model.loss_floor(since=before)
    assert since.rows == np.count_nonzero(importance[50:])
    assert since.at(0.0) <= np.log(2) + 1e-9


def test_files_keep_the_gradients(tmp_path):
    X, y, importance = stream()
    whole, pieces = (Learner(N, SETTINGS, certified=True) for _ in range(2))
    whole.learn(X, y, importance)
    pieces.learn(X[:40], y[:40], importance[:40])
    save(tmp_path / "m", pieces)
    pieces = load(tmp_path / "m").learner
    pieces.learn(X[40:], y[40:], importance[40:])
    for name in ("records", "totals"):
        assert getattr(pieces.state, name).tobytes() == getattr(whole.state, name).tobytes()
    assert pieces.summary() == whole.summary()
    rewritten(tmp_path / "m", lambda header: header.update(gradient_lanes=[0, 1, 2]))
    with pytest.raises(ModelFileError, match=r"gradients of the lanes \[0, 1, 2\] are not those of the settings"):
        load(tmp_path / "m")
