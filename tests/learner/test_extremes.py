"""Numbers at the limits of their types: a model never contains NaN or infinity, and keeps what it learned."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from forel.learner.grid import default_grid
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier
from forel.training.model import save
from forel.training.train import train

N = 4
ALGORITHMS = ("proximal", "centered", "mirror")
RATES = ("adagrad", "scale_free")
LARGE = (1e15, 1e18, 1e23, 1e30, 3.4e38)
EXTREMES = [
    *((v, 1.0, 1.0) for v in (0.0, 1e-30, 1e-45, 6e4, 7e4, -1e18, *LARGE)),
    *((1.0, v, 1.0) for v in (1e-45, -1e18, 1e30, 3.4e38)),
    *((1.0, 1.0, v) for v in (0.0, 1e-45, 1e18, 3.4e38)),
    (1e18, -1e18, 1.0),
    (-3.4e38, 3.4e38, 3.4e38),
]


def seed(*numbers):
    return np.random.default_rng(numbers)


def ordinary(model, rounds=2, column=2):
    """Rows of two of the columns, which extreme rows do not have, and a class of each."""
    y = np.arange(rounds) % 2
    X = np.zeros((rounds, N), model.dtype)
    X[:, column] = 1 + np.arange(rounds)
    model.learn(X, y)


def finite(model):
    """Check everything that a file would store, and all predictions; return the weights."""
    lanes, weights = model.state, model.weights
    mixed = () if model.mixture is None else model.mixture.pack().values()
    arrays = (lanes.records, *lanes.tables.values(), lanes.scales, lanes.totals, weights, model.bias, *mixed)
    assert all(np.isfinite(array).all() for array in arrays)
    if model.certified:
        proof = model.certificate()
        assert proof.void or all(np.isfinite(v).all() for v in (proof.gradients, proof.strength, proof.constant))
    probes = np.eye(N + 1, N, dtype=model.dtype)
    probes[0] = 3.4e38
    assert np.isfinite(model.margins(probes)).all()
    return weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize(
    ("algorithm", "rate"), [*itertools.product(ALGORITHMS, RATES), ("filter", "scale_free"), ("both", "scale_free")]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_number_of_a_row_leaves_a_state_that_is_not_finite(algorithm, rate, lanes, dtype, interpreted):
    room = 1.0 if dtype == np.float32 else 1e269  # the ends of float64 are as far again
    alpha = 0.5 if lanes == 1 else (0.5, 2.0)
    for loss, (v, y, w) in itertools.product(("logistic", "squared"), EXTREMES):
        beyond = [float(x) * room if abs(x) > 1e20 else float(x) for x in (v, y, w)]
        label = beyond[1] if loss == "squared" else min(max(beyond[1], 0.0), 1.0)
        every = "every" if v > 1e20 else "once"
        penalties = {"l1": 0.01, "l2": 0.02, "penalty_weight": every}
        if algorithm == "filter":
            penalties = {"beta": 0.0}  # no shrinkage, so that every change of a mean changes the weight
        if algorithm == "both":
            penalties["filters"] = ((1e6, 1.0), (0.01, 0.0))
        settings = Settings(loss, "proximal" if algorithm == "both" else algorithm, rate, alpha, **penalties)
        certified = (v != 1.0) == (lanes == 2) and algorithm != "filter"
        model = Learner(N, settings, dtype=dtype, certified=certified, mixed=False)
        ordinary(model)
        row = np.array([[beyond[0], 1.0, 0.0, 0.0]], dtype)
        for _ in range(2):
            model.learn(row, np.array([label]), np.array([beyond[2]]))
        before = finite(model)[3]
        ordinary(model, 3, column=3)
        after = finite(model)[3]
        assert model.rounds == (7 if beyond[2] > 0 else 5)  # rows of importance 0 do not count
        assert (after != before).any(), (loss, v, y, w)


COMPILED = [  # kernels that other tests compile as well
    (Settings(alpha=0.5), np.float32, False),
    (Settings(alpha=0.5), np.float32, True),
    (Settings("squared", rate="scale_free", alpha=0.5), np.float32, False),
]


@pytest.mark.parametrize(("settings", "dtype", "certified"), COMPILED)
def test_compiled_kernels_likewise(settings, dtype, certified):
    for v, y, w in EXTREMES:
        model = Learner(N, settings, dtype=dtype, certified=certified, mixed=False)
        ordinary(model)
        label = y if settings.loss == "squared" else min(max(y, 0.0), 1.0)
        for _ in range(3):
            model.learn(np.array([[v, 1.0, 0.0, 0.0]], dtype), [label], [w])
        before = model.weights[3, 0]
        ordinary(model, 3, column=3)
        finite(model)
        assert model.weights[3, 0] != before


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_softmax_likewise(interpreted):
    for (v, _, w), rate in itertools.product(EXTREMES, ("adagrad", "scale_free")):
        model = Learner(N, Settings("softmax", rate=rate, alpha=0.5), 3, certified=True)
        ordinary(model)
        for label in (2, 0):
            model.learn(np.array([[v, 1.0, 0.0, 0.0]], np.float32), [label], [w])
        finite(model)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
@pytest.mark.parametrize("power", [-120, -60, 60, 100])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_scale_free_models_do_not_mind_any_power_of_two(power, algorithm, lanes, interpreted):
    """Margins have the same bits for every unit of a feature, and weights are in the inverse unit."""
    rng = seed(1)
    X = rng.normal(size=(40, N)).astype(np.float32)
    y = rng.integers(0, 2, 40)
    units = np.float32([2.0**power, 1, 1, 1])
    alpha = 0.5 if lanes == 1 else (0.1, 0.5, 2.0)
    settings = Settings("logistic", algorithm, "scale_free", alpha, beta=0.1)
    plain, other = (Learner(N, settings, certified=True, mixed=False) for _ in range(2))
    assert np.array_equal(plain.progress(X, y), other.progress(X * units, y))
    assert np.array_equal(plain.weights, other.weights * units[:, None])
    assert np.array_equal(plain.loss, other.loss)
    assert not other.state.clipped.any()
    if plain.certified:
        proofs = [model.certificate() for model in (plain, other)]
        assert np.allclose(proofs[0].gradients * np.append(units, 1), proofs[1].gradients, rtol=1e-12)
        w = np.ones(N + 1)
        assert proofs[1].regret(w / np.append(units, 1)) == pytest.approx(proofs[0].regret(w), rel=1e-9)
        if algorithm != "mirror":  # whose bound is void
            assert proofs[1].bound(w / np.append(units, 1)) == pytest.approx(proofs[0].bound(w), rel=1e-9)


def timestamps(rounds=400):
    """Nanoseconds since 1970, of which the label does not depend, beside a feature on which it does."""
    rng = seed(2)
    x = rng.integers(0, 2, rounds)
    when = 1.7e18 + 1e9 * np.arange(rounds)
    return np.column_stack([when, x, np.ones(rounds)]).astype(np.float32), x


def test_timestamps_in_nanoseconds_do_not_prevent_learning(interpreted):
    X, y = timestamps()
    model = Learner(3, Settings(rate="scale_free", alpha=0.5), certified=True)
    losses = [model.learn(X[a : a + 100], y[a : a + 100])[0] for a in range(0, 400, 100)]
    assert losses[-1] < 0.3 * losses[0]
    assert not model.state.clipped.any()
    proof = model.certificate()
    assert proof.void == ""
    # The floor, from the rows alone: what a model of this norm loses is no less.
    for w in ([0, 4, 0, -2], [0, 6, -1, -2], [1e-18, 5, 0, -3]):
        margins = np.column_stack([X, np.ones(400)]).astype(np.float64) @ w
        lost = np.logaddexp(0, margins) - y * margins
        assert proof.loss_floor(l2=float(np.linalg.norm(w))) <= lost.mean()
        assert proof.regret(w) >= proof.loss - lost.sum()


def test_clipped_rows_void_certificates_with_the_reason(interpreted):
    """Bytes of 1e10 and labels as large: the gradients of squared loss are beyond float32 without scale-free rates."""
    rng = seed(3)
    X = (1e10 * rng.random((50, 1))).astype(np.float32)
    y = 3 * X[:, 0]
    model = Learner(1, Settings("squared", alpha=1.0), certified=True)
    model.learn(X, y)
    assert model.state.clipped[0] > 0
    proof = model.certificate()
    with pytest.raises(ValueError, match=r"no loss floor: gradients of \d+ rows left the range of float32"):
        proof.loss_floor(l2=4.0)
    assert proof.regret([3.0, 0.0]) == np.inf
    assert "nothing is proved of the losses" in model.summary()
    with pytest.raises(ValueError, match=r"void: gradients of \d+ rows left the range of float32 and were clipped"):
        proof.bound([3.0, 0.0])
    wide = Learner(1, Settings("squared", alpha=1.0), dtype=np.float64, certified=True)
    wide.learn(X, y)
    assert not wide.state.clipped.any()
    assert wide.certificate().bound([3.0, 0.0]) >= wide.certificate().regret([3.0, 0.0]) >= wide.loss[0] * 0.99
    free = Learner(1, Settings("squared", rate="scale_free", alpha=1e10), certified=True)
    losses = [free.learn(X, y)[0] for _ in range(4)]
    assert not free.state.clipped.any()
    assert losses[-1] < 0.01 * losses[0]


def test_one_sentinel_does_not_cost_the_model():
    rng = seed(4)
    X = rng.normal(size=(2000, 5)).astype(np.float32)
    y = (X @ [3, -2, 1, 0, 0] > 0).astype(int)
    X[700, 3] = -3.4e38
    model = FTRLClassifier().fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(np.delete(X, 700, 0), np.delete(y, 700)) > 0.95


def test_one_large_value_of_a_file_does_not_cost_the_training(tmp_path):
    lines = [f"{1 if k % 3 else -1} | {'a' if k % 3 else 'b'} x:{k % 7}" for k in range(3000)]
    lines[1500] = "1 | a x:1e30"
    (tmp_path / "rows.vw").write_text("\n".join(lines) + "\n")
    trained = train(tmp_path / "rows.vw", default_grid(), bits=10)
    save(tmp_path / "model", trained.learner)
    assert trained.learner.rounds == 3000
    assert trained.report.loss < 0.05


def broken(margin, label):
    """Squared loss, but for one label."""
    d = margin - label
    return 0.5 * d * d, (d if label != 7 else np.nan)


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_user_defined_loss_that_is_not_finite_names_the_row_and_keeps_earlier_rows(lanes, interpreted):
    rng = seed(5)
    X, y = rng.normal(size=(9, N)), rng.normal(size=9)
    y[[5, 8]] = 7
    settings = Settings(broken, alpha=0.5 if lanes == 1 else (0.5, 1.0))
    model, other = (Learner(N, settings, dtype=np.float64, mixed=False) for _ in range(2))
    held = np.arange(9) == 2
    with pytest.raises(ValueError, match=r"loss: got a value or slope that is not finite in row 5, whose label is 7"):
        model.progress(X, y, held_out=held)
    other.progress(X[:5], y[:5], held_out=held[:5])
    assert model.rounds == other.rounds == 4
    assert model.state.numbers.tobytes() == other.state.numbers.tobytes()
    assert np.array_equal(model.loss, other.loss)
    model.learn(X[6:8], y[6:8])
    assert np.isfinite(model.weights).all()


def test_mixtures_of_the_default_settings_learn_whatever_the_unit(interpreted):
    rng = seed(6)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    models = []
    for size in (1.0, 2.0**60, 2.0**-60):
        model = Learner(2, default_grid(lanes=4, l1=0.0))  # a penalty has a unit
        model.learn(sparse.csr_array(X * np.float32([size, 1])), y)
        models.append(model)
    assert models[0].loss == models[1].loss == models[2].loss
    assert models[0].loss < 0.8 * 60 * np.log(2)


def test_parameters_out_of_range_are_refused():
    for bad in ({"alpha": 1e-20}, {"beta": 1e20}, {"l1": 1e20}, {"l2": 1e20}):
        with pytest.raises(ValueError, match="expected 1/alpha and the others to be at most 1e\\+18"):
            Learner(1, Settings(**bad), mixed=False)
        Learner(1, Settings(**bad), dtype=np.float64, mixed=False)
