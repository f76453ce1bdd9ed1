"""The fast learner against the reference engine, and what it does with bad input."""

import copy
import itertools
import math
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from forel.learner import kernels
from forel.learner.kernels import kernel
from forel.learner.linear import Linear, Rows, Settings, rows_of
from forel.losses import Choice, Example, Huber, Interval, Logistic, MulticlassExample, Quantile, Softmax, by_name
from forel.losses import Linear as LinearLoss
from forel.losses.vocabulary import VOCABULARY
from forel.theory.algorithms import FTRL, Implicit, MirrorDescent
from forel.theory.geometries import Diagonal, Euclidean
from forel.theory.penalties import ElasticNet
from forel.theory.rates import Constant, DiagonalAdaGrad, InverseSqrt, ScaleFree
from forel.theory.sets import Box, Reals
from forel.theory.weights import EveryRound, Once

N, ROUNDS = 8, 200
SINGLE = [name for name, loss in VOCABULARY.items() if not loss.joint]


def stream(loss, seed=0, rounds=ROUNDS, n=N):
    """Sparse rows of which some are empty, with features of different frequency and size."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rounds, n)) * (rng.random((rounds, n)) < np.linspace(0.9, 0.05, n)) * np.linspace(1, 3, n)
    labels = rng.integers(0, 2, rounds)
    domain = by_name(loss).labels
    labels = 2 * labels - 1 if isinstance(domain, Choice) else labels
    return dense, labels + (rng.normal(size=rounds) if domain == Interval() else 0)


def reference(settings, n):
    """The same algorithm, assembled from the vocabulary; the bias is a last coordinate without a penalty."""
    bias = settings.bias
    free = [1.0] * n + [0.0] * bias
    penalty = ElasticNet(np.multiply(settings.l1, free), np.multiply(settings.l2, free))
    weights = Once() if settings.penalty_weight == "once" else EveryRound()
    region = Reals() if settings.radius is None else Box(-settings.radius, settings.radius)
    rate = {
        "adagrad": lambda: DiagonalAdaGrad(settings.alpha, beta=settings.beta),
        "scale_free": lambda: ScaleFree(settings.alpha, settings.beta),
        "constant": lambda: Constant(settings.alpha),
        "root": lambda: InverseSqrt(settings.alpha, 1),
    }[settings.rate]()
    geometry = Diagonal() if rate.shape == "diagonal" else Euclidean()
    if settings.algorithm in ("mirror", "implicit"):
        kind = MirrorDescent if settings.algorithm == "mirror" else Implicit
        return kind(rate, geometry, penalty, weights, region)
    return FTRL(rate, geometry, settings.algorithm == "proximal", penalty=penalty, weights=weights, feasible=region)


def replay(settings, dense, labels):
    """Play the reference engine; return its margins before each round, its last weights and its losses."""
    algorithm, loss = reference(settings, dense.shape[1]), settings.loss_function
    rows = np.hstack([dense, np.ones((len(dense), 1))]) if settings.bias else dense
    state, margins, losses = algorithm.init(rows.shape[1]), [], 0.0
    for a, y in zip(rows, labels, strict=True):
        state = algorithm.observe(state, a)
        margins.append(a @ algorithm.play(state))
        losses += float(loss(margins[-1], y))
        state = algorithm.update(state, Example(loss, a, y))
    return np.array(margins), algorithm.play(state), losses


def combinations():
    """Every combination of settings that is allowed."""
    for algorithm, rate, weight, penalty, radius, bias in itertools.product(
        ("proximal", "centered", "mirror", "implicit"),
        ("adagrad", "scale_free", "constant", "root"),
        ("once", "every"),
        ((0.0, 0.0), (0.02, 0.0), (0.0, 0.05), (0.02, 0.05)),
        (None, 0.3),
        (False, True),
    ):
        options = {"l1": penalty[0], "l2": penalty[1], "radius": radius, "bias": bias, "penalty_weight": weight}
        yield Settings("logistic", algorithm, rate, alpha=0.4, **options)


ALL = list(combinations())


def check(settings, model, dense, labels):
    margins, weights, losses = replay(settings, dense, labels)
    found, rows = [], sparse.csr_array(dense)
    for r, y in enumerate(labels):
        row = rows[[r]]
        # reading may not change anything; a scale-free prediction looks at the features first, as learning does
        found.append(model.margins(row)[0, 0])
        model.learn(row, [y])
    mine = model.weights.ravel()
    if settings.bias:
        mine = np.append(mine, model.bias)
    assert np.allclose(found, margins, rtol=1e-12, atol=1e-12)
    assert np.allclose(mine, weights, rtol=1e-12, atol=1e-13)
    assert ((mine == 0) == (weights == 0)).all()
    assert model.loss[0] == pytest.approx(losses, rel=1e-12)
    assert model.rounds == len(labels)


@pytest.mark.parametrize("settings", ALL, ids=str)
def test_the_same_source_uncompiled_equals_the_reference(settings, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    dense, labels = stream(settings.loss, rounds=80)  # in which the rarest feature still comes and goes
    check(settings, Linear(N, settings, dtype=np.float64), dense, labels)


@pytest.mark.parametrize("settings", [s for s in ALL if s.l1 and s.l2 and s.bias and s.radius], ids=str)
def test_lanes_uncompiled_equal_the_models_they_would_be_alone(settings, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    dense, labels = stream(settings.loss, rounds=60)
    rows, alphas = sparse.csr_array(dense), (settings.alpha, 0.1)
    certified = settings.algorithm != "implicit"
    together = Linear(N, replace(settings, alpha=alphas), dtype=np.float64, certified=certified)
    margins = together.progress(rows, labels)
    for k, alpha in enumerate(alphas):
        alone = Linear(N, replace(settings, alpha=alpha), dtype=np.float64, certified=certified)
        assert np.allclose(alone.progress(rows, labels)[:, 0], margins[:, k], rtol=1e-12, atol=1e-13)
        assert np.allclose(alone.state[:, :, 0], together.state[:, :, k], rtol=1e-12, atol=1e-13)
        assert np.allclose(alone._lanes.totals, together._lanes.totals[k::2], rtol=1e-12, atol=1e-13)
        assert np.array_equal(alone.weights[:, 0] == 0, together.weights[:, k] == 0)
        assert np.allclose(alone.margins(rows)[:, 0], together.margins(rows)[:, k], rtol=1e-12, atol=1e-13)


COVERING = [
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.02, l2=0.05),
    Settings("squared", "centered", "adagrad", 0.1, l1=0.02, penalty_weight="every", radius=0.3),
    Settings("hinge", "mirror", "adagrad", 0.2, l1=0.01, l2=0.02, penalty_weight="every", bias=False),
    Settings("squared_hinge", "centered", "root", 0.1, l2=0.05, penalty_weight="every"),
    Settings("absolute", "proximal", "scale_free", 0.3, l1=0.02, radius=0.3),
    Settings("logistic", "mirror", "constant", 0.05, l1=0.02, bias=False, penalty_weight="every"),
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", COVERING, ids=str)
def test_compiled_kernels_equal_the_reference(settings):
    dense, labels = stream(settings.loss)
    check(settings, Linear(N, settings, dtype=np.float64), dense, labels)


# One lane works on blocks of 64 coordinates, eight at a time; in some of these rows the bias has a block of its own.
LENGTHS = [0, 1, 7, 8, 9, 62, 63, 64, 65, 127, 128, 129, 3, 130, 64, 0, 128]
LONG = [
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.02, l2=0.05),
    Settings("logistic", "proximal", "scale_free", 0.3, l1=0.02, bias=False),
    Settings("logistic", "mirror", "adagrad", 0.2, l1=0.01, l2=0.02, penalty_weight="every"),
    Settings("logistic", "implicit", "root", 0.2, l1=0.01, penalty_weight="every"),
]


def long_rows():
    rng = np.random.default_rng(5)
    dense = rng.normal(size=(len(LENGTHS), 130)) / 8
    for row, length in zip(dense, LENGTHS, strict=True):
        row[rng.permutation(130)[length:]] = 0
    return dense, rng.integers(0, 2, len(LENGTHS))


def check_long(settings, certified):
    dense, labels = long_rows()
    margins, weights, losses = replay(settings, dense, labels)
    model = Linear(130, settings, dtype=np.float64, certified=certified)
    assert np.allclose(model.progress(sparse.csr_array(dense), labels).ravel(), margins, rtol=1e-12, atol=1e-13)
    mine = np.append(model.weights, model.bias) if settings.bias else model.weights.ravel()
    assert np.allclose(mine, weights, rtol=1e-12, atol=1e-13)
    assert ((mine == 0) == (weights == 0)).all()
    assert model.loss[0] == pytest.approx(losses, rel=1e-12)
    assert np.allclose(model.margins(sparse.csr_array(dense))[:, 0], dense @ mine[:130] + model.bias, rtol=1e-12)


@pytest.mark.parametrize("settings", LONG, ids=str)
def test_rows_of_any_length_equal_the_reference(settings, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    check_long(settings, certified=settings.algorithm != "implicit")


@pytest.mark.slow
def test_rows_of_any_length_equal_the_reference_compiled():
    check_long(LONG[0], certified=True)


@pytest.mark.parametrize("loss", SINGLE)
def test_every_loss_equals_its_twin(loss, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    settings = Settings(loss, alpha=0.1, l1=0.01)
    dense, labels = stream(loss)
    check(settings, Linear(N, settings, dtype=np.float64), dense, labels)


@pytest.mark.parametrize("loss", SINGLE)
def test_kernel_losses_are_those_of_the_vocabulary(loss):
    from forel.learner.kernels import losses

    twin, shape = by_name(loss), Settings(loss).shape(np.float64)
    for m, y in itertools.product([-1e30, -700.0, -40.0, -1.0, -1e-9, 0.0, 0.5, 1.0, 40.0, 1e4, 1e30], [-1.0, 1.0]):
        label = (y + 1) / 2 if getattr(twin.labels, "low", -1) >= 0 else y
        value, slope = getattr(losses, twin.twin)(m, label, shape)
        assert value == pytest.approx(float(twin(m, label)), rel=1e-12)
        assert slope == pytest.approx(float(twin.slope(m, label)), rel=1e-12, abs=1e-300)


@pytest.mark.slow
def test_lanes_are_the_models_they_would_be_alone():
    dense, labels = stream("logistic")
    alphas = (0.05, 0.3, 1.0)
    together = Linear(N, Settings(alpha=alphas, l1=(0.0, 0.1, 0.2)), dtype=np.float64)
    together.learn(dense, labels)
    for k, (alpha, l1) in enumerate(zip(alphas, (0.0, 0.1, 0.2), strict=True)):
        alone = Linear(N, Settings(alpha=alpha, l1=l1), dtype=np.float64)
        alone.learn(dense, labels)
        assert np.allclose(together.weights[:, k], alone.weights[:, 0], rtol=1e-12)
        assert together.loss[k] == pytest.approx(alone.loss[0])


@pytest.mark.slow
def test_classes_are_one_against_the_rest():
    dense, _ = stream("logistic")
    classes = np.argmax(dense[:, :3], axis=1)
    together = Linear(N, Settings(alpha=0.3), classes=3, dtype=np.float64)
    together.learn(dense, classes)
    for k in range(3):
        alone = Linear(N, Settings(alpha=0.3), dtype=np.float64)
        alone.learn(dense, (classes == k).astype(float))
        assert np.allclose(together.weights[:, k], alone.weights[:, 0], rtol=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_rows_may_come_in_pieces_sparse_or_dense_in_any_type_and_order():
    dense, labels = stream("logistic")
    settings = Settings(alpha=0.3, l1=0.05)
    whole, pieces, shuffled = (Linear(N, settings, dtype=np.float64) for _ in range(3))
    whole.learn(dense, labels)
    csr = sparse.csr_array(dense)
    for start in range(0, ROUNDS, 37):
        pieces.learn(csr[start : start + 37], labels[start : start + 37])
    assert np.array_equal(whole.state, pieces.state)
    wide = sparse.csr_matrix(dense)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    other = sparse.csr_array((np.r_[1.0, 1.0, 2.0], np.r_[2, 0, 2], np.r_[0, 3]), shape=(1, N))  # unsorted, twice
    shuffled.learn(wide, labels)
    assert np.array_equal(whole.state, shuffled.state)
    assert np.allclose(whole.margins(other), whole.margins(other.toarray()))


def test_rows_of_the_right_type_are_not_copied():
    matrix = sparse.random_array((10, 5), density=0.5, format="csr", dtype=np.float32, random_state=0)
    matrix.sort_indices()
    assert np.shares_memory(rows_of(matrix, 5, np.float32).values, matrix.data)


@pytest.mark.usefixtures("interpreted")
def test_importance_multiplies_the_loss_and_is_not_seeing_a_row_twice():
    row, label = [[1.0, 2.0]], [1]
    settings = Settings("squared", rate="constant", algorithm="mirror", alpha=0.1, bias=False)
    once, double, twice = (Linear(2, settings, dtype=np.float64) for _ in range(3))
    once.learn(row, label)
    double.learn(row, label, importance=[2.0])
    twice.learn(row * 2, label * 2)
    assert np.allclose(double.weights, 2 * once.weights)
    assert not np.allclose(double.weights, twice.weights)
    assert double.loss == pytest.approx(2 * once.loss)
    none = Linear(2, settings, dtype=np.float64)
    none.learn(row, label, importance=[0.0])
    assert not none.weights.any()


def broken(**parts):
    matrix = sparse.csr_array(np.eye(3))
    for name, value in parts.items():
        setattr(matrix, name, np.asarray(value))
    return matrix


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("X", "y", "importance", "message"),
    [
        ([[math.nan, 0, 0]], [1], None, "X: got nan in row 0, column 0, expected finite numbers"),
        ([[0, 1.0, 0], [0, 0, math.inf]], [1, 0], None, "X: got inf in row 1, column 2"),
        (broken(indices=[0, 7, 2]), [1, 0, 1], None, "X: got the column index 7, expected 0 to 2"),
        (broken(indices=[0, -1, 2]), [1, 0, 1], None, "X: got the column index -1"),
        (broken(indptr=[0, 2, 1, 3]), [1, 0, 1], None, "indptr that does not rise"),
        (broken(indptr=[0, 1, 2, 9]), [1, 0, 1], None, "of other lengths than indptr says"),
        (broken(data=[1.0, 2.0]), [1, 0, 1], None, "of other lengths"),
        ([[1.0, 2.0]], [1], None, "X: got 2 features, expected 3"),
        ([1.0, 2.0, 3.0], [1], None, r"X: got shape \(3,\), expected two dimensions"),
        (np.eye(3), [1, 0], None, "y: got shape .*expected one label for each of 3 rows"),
        (np.eye(3), [1, 0, 2], None, "y: got 2.0 at index 2, expected a finite number of at least 0 and at most 1"),
        (np.eye(3), [1, 0, math.nan], None, "y: got nan at index 2"),
        (np.eye(3), ["a", "b", "c"], None, "y: got .*encode classes as numbers"),
        (np.eye(3), [1, 0, 1], [1.0], "importance: got shape"),
        (np.eye(3), [1, 0, 1], [1.0, -1.0, 0.0], "importance: got -1.0 in row 1"),
        (np.eye(3), [1, 0, 1], [1.0, 1.0, math.inf], "importance: got inf in row 2"),
        (np.eye(3), [1, 0, 1], [1.0, 1e39, 1.0], "importance: got 1e\\+39 in row 1, expected .*range of float32"),
        (np.eye(3), np.float32([1, 2, 1]), None, "y: got 2.0 at index 1"),
        (np.eye(3), np.float32([1, 0, math.nan]), None, "y: got nan at index 2"),
        (np.eye(3), np.float32([1, 0, 1]), np.float32([1, -1, 0]), "importance: got -1.0 in row 1"),
        (np.eye(3), np.float32([1, 0, 1]), np.float32([1, 1, math.inf]), "importance: got inf in row 2"),
        (np.eye(3), np.float32([1, 0, 1]), np.float32([math.nan, 1, 1]), "importance: got nan in row 0"),
        (np.eye(3) * 1e39, [1, 0, 1], None, "X: got 1e\\+39 in row 0, column 0"),
    ],
)
def test_bad_input_is_refused_before_anything_changes(X, y, importance, message):
    model = Linear(3, Settings())
    model.learn(np.eye(3), [1, 0, 1])
    before = model.state.tobytes(), model.rounds
    with pytest.raises(ValueError, match=message):
        model.learn(X, y, importance)
    assert (model.state.tobytes(), model.rounds) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Settings(loss="log"), "loss: got 'log', expected one of logistic, hinge, squared_hinge, squared"),
        (lambda: Settings(algorithm="sgd"), "algorithm: got 'sgd', expected one of proximal"),
        (lambda: Settings(alpha=0), "alpha: got 0.0, expected positive numbers"),
        (lambda: Settings(l1=-1), "l1: got -1.0, expected numbers of at least 0"),
        (lambda: Settings(alpha=(1.0, 2.0), l1=(1.0, 2.0, 3.0)), r"got \[2, 3\], expected sequences of one length"),
        (lambda: Settings(loss=3), "loss: got 3, expected one of logistic"),
        (lambda: Settings(loss=lambda m: m), "or a function of margin and label"),
        (lambda: Settings(loss="softmax", algorithm="implicit"), "a loss of one margin where algorithm='implicit'"),
        (
            lambda: Linear(2, Settings(loss="softmax")),
            "classes: got None, expected the number of classes, for the loss 'softmax'",
        ),
        (lambda: Linear(0, Settings()), "features: got 0"),
        (lambda: Linear(1, Settings(alpha=1e-300)), "expected 1/alpha and the others to be at most 1e\\+18"),
        (lambda: Settings(alpha="0.1"), "alpha: got '0.1', expected positive numbers"),
        (lambda: Settings(alpha=None), "alpha: got None, expected positive numbers"),
        (lambda: Linear(3, Settings(), dtype="half"), "dtype: got 'half', expected float32 or float64"),
        (lambda: Linear(3, Settings(), dtype=np.float16), "expected float32 or float64"),
    ],
)
def test_settings_that_cannot_work_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.slow
def test_extreme_margins_and_gradients_leave_a_finite_model():
    model = Linear(2, Settings("squared", alpha=1.0))
    model.learn([[1e30, 1.0], [1e30, -1.0], [1e-30, 1e30]], [1e30, -1e30, 0.0])
    model.learn([[1.0, 1.0]] * 50, [0.5] * 50)
    assert np.isfinite(model.state).all()
    assert np.isfinite(model.weights).all()


@pytest.mark.slow
def test_float32_stays_close_to_float64():
    dense, labels = stream("logistic", rounds=3000, n=20)
    losses = []
    for dtype in (np.float32, np.float64):
        model = Linear(20, Settings(alpha=0.3, l1=0.1), dtype=dtype)
        model.learn(dense, labels)
        losses.append(model.loss[0] / 3000)
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_importing_the_package_does_not_import_numba():
    code = "import sys, forel.learner.linear, forel.theory.algorithms; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert kernels.__doc__


@pytest.mark.slow
def test_the_second_process_does_not_compile_and_the_first_says_so(tmp_path):
    code = (
        "import numpy as np; from forel.learner.linear import Linear, Settings; m = Linear(3, Settings());"
        "m.learn(np.eye(3), [1, 0, 1]); m._lanes.kernel.learn_one; import sys;"
        "from forel.learner.kernels.kernel import compiled_kernel;"
        "print(compiled_kernel(m._lanes.spec).learn.stats.cache_misses and 1)"
    )
    environment = {"FOREL_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        for _ in range(2)
    ]
    assert [run.stdout.strip() for run in runs] == ["1", "Counter()"]
    assert [run.stderr.strip() for run in runs] == [
        f"forel: compiling a kernel, once; it is kept in {tmp_path / 'code'}",
        "",
    ]


CERTIFIED = [
    Settings("logistic", "proximal", "adagrad", 0.4),
    Settings("logistic", "centered", "adagrad", 0.4, l1=0.02, radius=0.5),
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.02, l2=0.05),
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.01, penalty_weight="every", radius=0.5, bias=False),
    Settings("squared", "centered", "adagrad", 0.1, l2=0.05, penalty_weight="every"),
    Settings("hinge", "centered", "root", 0.3, bias=False),
    Settings("logistic", "proximal", "constant", 0.1, radius=0.5),
    Settings("logistic", "proximal", "root", 0.1, l1=0.02, l2=0.05),
    Settings("logistic", "mirror", "adagrad", 0.4, l1=0.02, l2=0.05, penalty_weight="every"),
    Settings("squared", "mirror", "root", 0.1, radius=0.5),
    Settings("logistic", "mirror", "constant", 0.1, l1=0.01, penalty_weight="every", bias=False),
]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", CERTIFIED, ids=str)
def test_the_certificate_is_what_the_theory_says_of_the_same_game(settings):
    """Regret, bound and worst case from running sums equal those of the reference trace."""
    from forel.theory.analysis import play, strong_ftrl_lemma, theorem_1, theorem_10, theorem_12
    from forel.theory.sets import l1_ball, l2_ball

    dense, labels = stream(settings.loss)
    model = Linear(N, settings, dtype=np.float64, certified=True)
    model.learn(dense, labels)
    proof = model.certificate()
    rows = np.hstack([dense, np.ones((ROUNDS, 1))]) if settings.bias else dense
    algorithm = reference(settings, N)
    trace = play(algorithm, [Example(settings.loss_function, a, y) for a, y in zip(rows, labels, strict=True)])
    theorem = theorem_10 if algorithm.proximal and settings.rate != "constant" else theorem_1
    theorem = theorem_12 if settings.algorithm == "mirror" else theorem
    for x in (trace.points[-1], np.zeros(rows.shape[1]), np.clip(np.linspace(-1, 1, rows.shape[1]), -0.5, 0.5)):
        assert proof.regret(x) == pytest.approx(trace.regret(x, linearized=True), rel=1e-9, abs=1e-9)
        limit = theorem(trace, x, "losses").total
        if theorem is theorem_12:
            assert proof.bound(x) == pytest.approx(limit, rel=1e-9)
        else:
            # The lemma is what the theorems are proved from, and the same as these without a penalty or a box.
            # Theorem 1 may leave out the last round's regularizer, which the lemma keeps.
            assert proof.bound(x) == pytest.approx(strong_ftrl_lemma(trace, x, "losses").bound, rel=1e-9)
            assert proof.bound(x) <= limit * (1.05 if theorem is theorem_1 else 1) + 1e-9
            if theorem is theorem_10 and settings.l1 == settings.l2 == 0 and settings.radius is None:
                assert proof.bound(x) == pytest.approx(limit, rel=1e-9)
        assert proof.regret(x) <= proof.bound(x) + 1e-9
    assert proof.worst(l2=1.0) == pytest.approx(trace.worst_regret(l2_ball(1.0), linearized=True))
    assert proof.worst(l1=1.0) == pytest.approx(trace.worst_regret(l1_ball(1.0), linearized=True))
    assert proof.worst(box=1.0) == pytest.approx(trace.worst_regret(Box(-1, 1), linearized=True))
    best = trace.best(l2_ball(1.0))
    average = np.mean([loss(best) for loss in trace.losses])
    assert proof.loss_floor(l2=1.0) <= average + 1e-9


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [*CERTIFIED, Settings(rate="scale_free", alpha=0.4, l1=0.02)], ids=str)
def test_the_certificate_among_seen_coordinates_says_the_same(settings):
    dense, labels = stream(settings.loss)
    wide = np.zeros((ROUNDS, 3 * N))
    wide[:, 1::3] = dense
    model = Linear(3 * N, settings, dtype=np.float64, certified=True)
    model.learn(wide, labels)
    seen, every = model.seen, model.certificate()
    assert set(seen) == {*np.flatnonzero(wide.any(axis=0)), *([3 * N] if settings.bias else [])}
    proof, x = model.certificate(among=seen), model.weights_at(seen).ravel()
    whole = np.append(model.weights, model.bias) if settings.bias else model.weights.ravel()
    assert np.array_equal(x, whole[seen])
    assert proof.summary(x) == every.summary(whole) == model.summary()
    for ball in ({"l2": 2.0}, {"l1": 2.0}, {"box": 2.0}):
        assert proof.worst(**ball) == pytest.approx(every.worst(**ball), rel=1e-12)
    for part in (x, 0 * x, 0.3 * np.sign(x)):
        padded = np.zeros(whole.size)
        padded[seen] = part
        assert proof.regret(part) == pytest.approx(every.regret(padded), rel=1e-12)
        assert proof.bound(part) == pytest.approx(every.bound(padded), rel=1e-12)
    # A model told by a few coordinates is 0 in all others, where the learner was not.
    few = seen[::2]
    padded = np.zeros(whole.size)
    padded[few] = 0.2
    some = model.certificate(among=few)
    assert some.bound(np.full(few.size, 0.2)) == pytest.approx(every.bound(padded), rel=1e-9)
    assert some.regret(np.full(few.size, 0.2)) == pytest.approx(every.regret(padded), rel=1e-9)


@pytest.mark.slow
def test_the_certificate_in_float32_and_lanes():
    dense, labels = stream("logistic", rounds=2000)
    model = Linear(N, Settings(alpha=(0.1, 0.5), l1=0.05), certified=True)
    model.learn(dense, labels)
    plain = Linear(N, Settings(alpha=(0.1, 0.5), l1=0.05))
    plain.learn(dense, labels)
    assert np.allclose(model.state[:, :2], plain.state, rtol=1e-3, atol=1e-3)  # other instructions, other rounding
    for lane in range(2):
        proof = model.certificate(lane)
        x = np.append(model.weights[:, lane], model.bias[lane])
        assert proof.regret(x) <= proof.bound(x) * (1 + 1e-4)
        true = model.loss[lane] - sum(
            float(Logistic()(a @ x[:-1] + x[-1], y)) for a, y in zip(dense, labels, strict=True)
        )
        assert true <= proof.regret(x) + 1e-2


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: Linear(2, Settings()).certificate(), "expected a model made with certified=True"),
        (lambda m: m.certificate(3), "lane: got 3, expected 0 to 0"),
        (lambda m: m.certificate().worst(), "got 0 of them, expected exactly one"),
        (lambda m: m.certificate().worst(l1=1.0, l2=1.0), "got 2 of them"),
        (lambda m: m.certificate().worst(l2=-1.0), "l2: got -1.0"),
        (lambda m: m.certificate().regret([1.0]), "model: got shape"),
        (lambda m: m.certificate().bound([9.0, 0.0]), "outside the radius 0.5, where Lemma 5 is void"),
    ],
)
def test_certificates_that_cannot_be_given_are_refused(call, message):
    model = Linear(2, Settings(radius=0.5, bias=False), certified=True, dtype=np.float64)
    model.learn(np.eye(2), [1, 0])
    with pytest.raises(ValueError, match=message):
        call(model)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
def test_softmax_equals_the_reference(algorithm):
    dense, _ = stream("logistic")
    classes = np.argmax(dense[:, :3] + 0.3 * np.random.default_rng(1).normal(size=(ROUNDS, 3)), axis=1)
    settings = Settings("softmax", algorithm, alpha=0.3, l1=0.02, penalty_weight="every", bias=False)
    model = Linear(N, settings, classes=3, dtype=np.float64, certified=True)
    model.learn(dense, classes)
    twin = reference(settings, N * 3)
    state, losses = twin.init(N * 3), 0.0
    played = []
    for a, y in zip(dense, classes, strict=True):
        example = MulticlassExample(Softmax(3), a, int(y))
        losses += float(example(twin.play(state)))
        played.append((example.subgradient(twin.play(state)), twin.play(state)))
        state = twin.update(state, example)
    assert np.allclose(model.weights, twin.play(state).reshape(N, 3), rtol=1e-12, atol=1e-13)
    assert model.loss == pytest.approx([losses], rel=1e-12)
    proof, x = model.certificate(), model.weights.T.ravel()
    regret = sum(float(g @ (p - model.weights.ravel())) for g, p in played)
    assert proof.regret(x) == pytest.approx(regret, rel=1e-9)
    assert proof.regret(x) <= proof.bound(x)
    assert proof.summary(x) == model.summary()


def asymmetric(m, y):
    """A loss of one's own: squared, and three times as much above the label."""
    d = m - y
    factor = 3.0 if d > 0 else 1.0
    return 0.5 * factor * d * d, factor * d


@pytest.mark.slow
def test_a_loss_of_ones_own_is_one_function():
    dense, _ = stream("squared")
    y = dense[:, 0] - dense[:, 1] + np.random.default_rng(2).normal(size=ROUNDS)

    def halved(m, y):
        return 0.25 * (m - y) ** 2, 0.5 * (m - y)

    for own in (asymmetric, halved):  # one that a later process can import, and one that it cannot
        model = Linear(N, Settings(own, alpha=0.3), dtype=np.float64)
        model.learn(dense, y)
        x, total = np.zeros(N + 1), 0.0
        twin = reference(Settings("squared", alpha=0.3), N)
        state = twin.init(N + 1)
        for a, label in zip(np.hstack([dense, np.ones((ROUNDS, 1))]), y, strict=True):
            x = twin.play(state)
            value, slope = own(a @ x, label)
            total += value
            state = twin.update(state, LinearLoss(slope * a))
        assert model.loss[0] == pytest.approx(total, rel=1e-12)
        assert np.allclose(np.append(model.weights, model.bias), twin.play(state), rtol=1e-12)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("loss", "name"), [(Quantile(0.9), "quantile"), (Huber(0.3), "huber")])
def test_losses_of_the_vocabulary_may_be_given_themselves(loss, name):
    dense, labels = stream("squared")
    model = Linear(N, Settings(loss, alpha=0.3), dtype=np.float64)
    model.learn(dense, labels)
    twin = reference(Settings(name, alpha=0.3), N)
    state = twin.init(N + 1)
    for a, y in zip(np.hstack([dense, np.ones((ROUNDS, 1))]), labels, strict=True):
        state = twin.update(state, Example(loss, a, y))
    assert np.allclose(np.append(model.weights, model.bias), twin.play(state), rtol=1e-12)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_strong_ftrl_lemma_is_an_equality_from_the_kernels_sums(l2):
    """At x* = x_{T+1}, without a threshold, nothing is lost between regret and bound."""
    dense, labels = stream("logistic")
    for settings in (Settings(alpha=0.4, l2=l2), Settings(alpha=0.4, rate="root", bias=False, l2=l2)):
        model = Linear(N, settings, dtype=np.float64, certified=True)
        model.learn(dense, labels)
        x = np.append(model.weights, model.bias)[: N + settings.bias]
        proof = model.certificate()
        assert proof.regret(x) == pytest.approx(proof.bound(x), rel=1e-11)
        assert proof.regret(x) < proof.bound(x + 0.01)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(algorithm="implicit"), "no bound for implicit updates; use algorithm='mirror'"),
        (Settings(rate="root", l1=0.1, penalty_weight="every"), "use penalty_weight='once' or rate='adagrad'"),
    ],
)
def test_a_void_bound_says_why_and_regret_is_still_known(settings, reason):
    dense, labels = stream("logistic")
    model = Linear(N, settings, dtype=np.float64, certified=True)
    model.learn(dense, labels)
    proof, x = model.certificate(), np.full(N + 1, 0.1)
    with pytest.raises(ValueError, match=reason):
        proof.bound(x)
    rows = np.hstack([dense, np.ones((ROUNDS, 1))])
    best = sum(float(Logistic()(a @ x, y)) for a, y in zip(rows, labels, strict=True))
    assert model.loss[0] - best <= proof.regret(x)


@pytest.mark.usefixtures("interpreted")
def test_progress_is_what_was_predicted_before_learning():
    dense, labels = stream("logistic")
    whole, single = (Linear(N, Settings(alpha=(0.1, 0.3)), dtype=np.float64) for _ in range(2))
    found = whole.progress(dense, labels)
    for a, y, margins in zip(dense, labels, found, strict=True):
        assert np.allclose(single.margins([a])[0], margins)
        single.learn([a], [y])
    assert np.array_equal(whole.state, single.state)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("lanes", [1, 2])
def test_copies_go_on_as_the_model_itself_scales_and_all(algorithm, certified, lanes):
    dense, labels = stream("logistic")
    half, settings = ROUNDS // 2, Settings(rate="scale_free", algorithm=algorithm, alpha=(0.5, 0.2)[:lanes], l1=0.02)
    model = Linear(N, settings, dtype=np.float64, certified=certified)
    model.learn(dense[:half], labels[:half])
    assert model._lanes.reach[:-1].tolist() == abs(dense[:half]).max(axis=0).tolist()
    assert model._lanes.reach[-1] == 1
    twins = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.only(0)]
    for one in (model, *twins):
        one.learn(dense[half:], labels[half:])
    for twin in twins:
        assert np.array_equal(twin.state[:, :, 0], model.state[:, :, 0])
        assert np.array_equal(twin._lanes.reach, model._lanes.reach)
        assert np.array_equal(twin.weights[:, 0], model.weights[:, 0])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("rate", ["adagrad", "scale_free", "root"])
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
@pytest.mark.parametrize("penalty_weight", ["once", "every"])
def test_rows_held_out_are_predicted_in_turn_and_leave_nothing_behind(rate, algorithm, penalty_weight):
    dense, labels = stream("logistic")
    held = np.arange(ROUNDS) % 4 == 2
    settings = Settings(rate=rate, algorithm=algorithm, penalty_weight=penalty_weight, l1=0.02, alpha=0.5)
    whole, without, before = (Linear(N, settings, dtype=np.float64, certified=True) for _ in range(3))
    margins = whole.progress(dense, labels, held=held)
    without.learn(dense[~held], labels[~held])
    assert whole.state.tobytes() == without.state.tobytes()
    assert whole._lanes.reach.tobytes() == without._lanes.reach.tobytes()
    assert (whole.rounds, whole.loss.tolist()) == (without.rounds, without.loss.tolist())
    last = np.flatnonzero(held)[-1]
    before.learn(dense[:last][~held[:last]], labels[:last][~held[:last]])
    assert np.array_equal(before.margins(dense[last : last + 1]), margins[last : last + 1])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (Rows(np.array([0, 1]), np.array([7]), np.ones(1, np.float32)), "X: got the column index 7, expected 0 to 2"),
        (Rows(np.array([0, 1]), np.array([-1]), np.ones(1, np.float32)), "X: got the column index -1"),
        (Rows(np.array([0, 9]), np.array([1]), np.ones(1, np.float32)), "fewer indices or values than indptr says"),
    ],
)
def test_rows_for_another_number_of_features_are_refused(rows, message):
    model = Linear(3, Settings())
    with pytest.raises(ValueError, match=message):
        model.learn(rows, [1])
    with pytest.raises(ValueError, match=message):
        model.margins(rows)
    assert model.rounds == 0


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_made_is_done_without(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path / "file"))
    model = Linear(3, Settings(alpha=0.7, rate="constant", algorithm="mirror", bias=False))
    kernel.compiled_kernel.cache_clear()
    model.learn(np.eye(3), [1, 0, 1])
    assert (model.weights.ravel() > 0).tolist() == [True, False, True]
    kernel.compiled_kernel.cache_clear()


def test_counting_weights_that_are_not_zero_needs_no_table(monkeypatch):
    monkeypatch.setattr("forel.learner.lanes.BLOCK", 7)
    dense, labels = stream("logistic", rounds=200, n=40)
    model = Linear(40, Settings(alpha=[0.3, 0.1], l1=[2.0, 0.1]))
    model.learn(dense, labels)
    assert 0 < model.nonzeros == np.count_nonzero(model.weights) < 80
    assert np.array_equal(model.weights, model._lanes.gather(np.arange(40)))
