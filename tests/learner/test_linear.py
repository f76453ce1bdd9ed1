"""The fast learner against the reference engine, compiled and uncompiled."""

import copy
import itertools
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from forel.learner import kernels
from forel.learner.kernels import kernel
from forel.learner.learner import Learner
from forel.learner.rows import rows_of
from forel.learner.settings import Settings
from forel.losses import Example, Softmax, by_name
from forel.losses import Linear as LinearLoss
from tests.learner.reference import ROUNDS, SINGLE, N, replay, stream


def combinations():
    """Every combination of settings that is allowed."""
    for algorithm, rate, weight, penalty, radius, bias in itertools.product(
        ("proximal", "centered", "mirror"),
        ("adagrad", "scale_free"),
        ("once", "every"),
        ((0.0, 0.0), (0.02, 0.0), (0.0, 0.05), (0.02, 0.05)),
        (None, 0.3),
        (False, True),
    ):
        options = {"l1": penalty[0], "l2": penalty[1], "radius": radius, "bias": bias, "penalty_weight": weight}
        yield Settings("logistic", algorithm, rate, alpha=0.4, **options)


ALL = list(combinations())
STEP = 5  # rows learned in one call


def check(settings, model, dense, labels):
    margins, weights, losses = replay(settings, dense, labels)
    found, rows = [], rows_of(dense, dense.shape[1], np.float64)
    for start in range(0, len(labels), STEP):
        ends = rows.indptr[start : start + STEP + 1]
        part = type(rows)(ends - ends[0], rows.indices[ends[0] : ends[-1]], rows.values[ends[0] : ends[-1]])
        first = type(rows)(part.indptr[:2], part.indices, part.values)
        # Predicting changes nothing. It clips values to the scales, where learning would raise the scales first.
        scales, expected = np.abs(dense[:start]).max(axis=0, initial=0), margins[start]
        if settings.rate == "scale_free" and (np.abs(dense[start]) > scales).any():
            expected = np.clip(dense[start], -scales, scales) @ model.weights[:, 0] + model.bias[0]
        assert model.margins(first)[0, 0] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        found.extend(model.progress(part, labels[start : start + STEP])[:, 0])
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
    check(settings, Learner(N, settings, dtype=np.float64, mixed=False), dense, labels)


@pytest.mark.parametrize("settings", [s for s in ALL if s.l1 and s.l2 and s.bias and s.radius], ids=str)
def test_lanes_uncompiled_equal_the_models_they_would_be_alone(settings, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", lambda spec: kernel.uncompiled_kernel(spec, pad=True))
    dense, labels = stream(settings.loss, rounds=60)
    rows, alphas = sparse.csr_array(dense), (settings.alpha, 0.1)
    certified = True
    together = Learner(N, replace(settings, alpha=alphas), dtype=np.float64, certified=certified, mixed=False)
    margins = together.progress(rows, labels)
    for k, alpha in enumerate(alphas):
        alone = Learner(N, replace(settings, alpha=alpha), dtype=np.float64, certified=certified, mixed=False)
        assert np.allclose(alone.progress(rows, labels)[:, 0], margins[:, k], rtol=1e-12, atol=1e-13)
        assert np.allclose(alone.state.numbers[:, :, 0], together.state.numbers[:, :, k], rtol=1e-12, atol=1e-13)
        assert np.allclose(alone.state.totals, together.state.totals[k::2], rtol=1e-12, atol=1e-13)
        assert np.array_equal(alone.weights[:, 0] == 0, together.weights[:, k] == 0)
        assert np.allclose(alone.margins(rows)[:, 0], together.margins(rows)[:, k], rtol=1e-12, atol=1e-13)


COVERING = [
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.02, l2=0.05),
    Settings("squared", "centered", "adagrad", 0.1, l1=0.02, penalty_weight="every", radius=0.3),
    Settings("hinge", "mirror", "adagrad", 0.2, l1=0.01, l2=0.02, penalty_weight="every", bias=False),
    Settings("squared_hinge", "centered", "adagrad", 0.1, l2=0.05, penalty_weight="every"),
    Settings("absolute", "proximal", "scale_free", 0.3, l1=0.02, radius=0.3),
    Settings("logistic", "mirror", "scale_free", 0.05, l1=0.02, bias=False, penalty_weight="every"),
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", COVERING, ids=str)
def test_compiled_kernels_equal_the_reference(settings):
    dense, labels = stream(settings.loss)
    check(settings, Learner(N, settings, dtype=np.float64, mixed=False), dense, labels)


# One lane works on blocks of 64 coordinates, eight at a time; in some of these rows the bias has a block of its own.
LENGTHS = [0, 1, 7, 8, 9, 62, 63, 64, 65, 127, 128, 129, 3, 130, 64, 0, 128]


LONG = [
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.02, l2=0.05),
    Settings("logistic", "proximal", "scale_free", 0.3, l1=0.02, bias=False),
    Settings("logistic", "mirror", "adagrad", 0.2, l1=0.01, l2=0.02, penalty_weight="every"),
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
    model = Learner(130, settings, dtype=np.float64, certified=certified, mixed=False)
    assert np.allclose(model.progress(sparse.csr_array(dense), labels).ravel(), margins, rtol=1e-12, atol=1e-13)
    mine = np.append(model.weights, model.bias) if settings.bias else model.weights.ravel()
    assert np.allclose(mine, weights, rtol=1e-12, atol=1e-13)
    assert ((mine == 0) == (weights == 0)).all()
    assert model.loss[0] == pytest.approx(losses, rel=1e-12)
    assert np.allclose(model.margins(sparse.csr_array(dense))[:, 0], dense @ mine[:130] + model.bias, rtol=1e-12)


@pytest.mark.parametrize("settings", LONG, ids=str)
def test_rows_of_any_length_equal_the_reference(settings, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    check_long(settings, certified=True)


@pytest.mark.slow
def test_rows_of_any_length_equal_the_reference_compiled():
    check_long(LONG[0], certified=True)


@pytest.mark.parametrize("loss", SINGLE)
def test_every_loss_equals_its_reference(loss, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    settings = Settings(loss, alpha=0.1, l1=0.01)
    dense, labels = stream(loss)
    check(settings, Learner(N, settings, dtype=np.float64, mixed=False), dense, labels)


@pytest.mark.parametrize("loss", SINGLE)
def test_kernel_losses_are_those_of_the_vocabulary(loss):
    from forel.learner.kernels import losses

    plain, shape = by_name(loss), Settings(loss).shape(np.float64)
    for m, y in itertools.product([-1e30, -700.0, -40.0, -1.0, -1e-9, 0.0, 0.5, 1.0, 40.0, 1e4, 1e30], [-1.0, 1.0]):
        label = (y + 1) / 2 if getattr(plain.labels, "low", -1) >= 0 else y
        value, slope = getattr(losses, plain.kernel)(np.float64(m), np.float64(label), shape)
        assert value == pytest.approx(float(plain(m, label)), rel=1e-12)
        assert slope == pytest.approx(float(plain.slope(m, label)), rel=1e-12, abs=1e-300)


@pytest.mark.slow
def test_lanes_are_the_models_they_would_be_alone():
    dense, labels = stream("logistic")
    alphas = (0.05, 0.3, 1.0)
    together = Learner(N, Settings(alpha=alphas, l1=(0.0, 0.1, 0.2)), dtype=np.float64, mixed=False)
    together.learn(dense, labels)
    for k, (alpha, l1) in enumerate(zip(alphas, (0.0, 0.1, 0.2), strict=True)):
        alone = Learner(N, Settings(alpha=alpha, l1=l1), dtype=np.float64, mixed=False)
        alone.learn(dense, labels)
        assert np.allclose(together.weights[:, k], alone.weights[:, 0], rtol=1e-12)
        assert together.loss[k] == pytest.approx(alone.loss[0])


@pytest.mark.slow
def test_classes_are_one_against_the_rest():
    dense, _ = stream("logistic")
    classes = np.argmax(dense[:, :3], axis=1)
    together = Learner(N, Settings(alpha=0.3), classes=3, dtype=np.float64)
    together.learn(dense, classes)
    for k in range(3):
        alone = Learner(N, Settings(alpha=0.3), dtype=np.float64)
        alone.learn(dense, (classes == k).astype(float))
        assert np.allclose(together.weights[:, k], alone.weights[:, 0], rtol=1e-12)


@pytest.mark.slow
def test_extreme_margins_and_gradients_leave_a_finite_model():
    model = Learner(2, Settings("squared", alpha=1.0))
    model.learn([[1e30, 1.0], [1e30, -1.0], [1e-30, 1e30]], [1e30, -1e30, 0.0])
    model.learn([[1.0, 1.0]] * 50, [0.5] * 50)
    assert np.isfinite(model.state.numbers).all()
    assert np.isfinite(model.weights).all()


@pytest.mark.slow
def test_float32_stays_close_to_float64():
    dense, labels = stream("logistic", rounds=3000, n=20)
    losses = []
    for dtype in (np.float32, np.float64):
        model = Learner(20, Settings(alpha=0.3, l1=0.1), dtype=dtype)
        model.learn(dense, labels)
        losses.append(model.loss[0] / 3000)
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_importing_the_package_does_not_import_numba():
    code = "import sys, forel.learner.learner, forel.theory.algorithms; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert kernels.__doc__


@pytest.mark.slow
def test_the_first_process_prints_a_notice_and_the_second_does_not_compile(tmp_path):
    code = (
        "import numpy as np; from forel import Learner, Settings; m = Learner(3, Settings());"
        "m.learn(np.eye(3), [1, 0, 1]); m.state.kernel.learn_one; import sys;"
        "from forel.learner.kernels.kernel import compiled_kernel;"
        "print(compiled_kernel(m.state.spec).learn.stats.cache_misses and 1)"
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


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
def test_softmax_equals_the_reference(algorithm):
    dense, _ = stream("logistic")
    classes = np.argmax(dense[:, :3] + 0.3 * np.random.default_rng(1).normal(size=(ROUNDS, 3)), axis=1)
    settings = Settings("softmax", algorithm, alpha=0.3, l1=0.02, penalty_weight="every", bias=False)
    model = Learner(N, settings, classes=3, dtype=np.float64, certified=True, mixed=False)
    model.learn(dense, classes)
    theory = settings.reference(N * 3)
    state, losses = theory.init(N * 3), 0.0
    played = []
    for a, y in zip(dense, classes, strict=True):
        example = Example(Softmax(3), a, int(y))
        losses += float(example(theory.play(state)))
        played.append((example.subgradient(theory.play(state)), theory.play(state)))
        state = theory.update(state, example)
    assert np.allclose(model.weights, theory.play(state).reshape(N, 3), rtol=1e-12, atol=1e-13)
    assert model.loss == pytest.approx([losses], rel=1e-12)
    proof, x = model.certificate(), model.weights.T.ravel()
    regret = sum(float(g @ (p - model.weights.ravel())) for g, p in played)
    assert proof.regret(x) == pytest.approx(regret, rel=1e-9)
    assert proof.regret(x) <= proof.bound(x)
    assert proof.summary(x) == model.summary()


def asymmetric(m, y):
    """A user-defined loss: squared, and three times as large above the label."""
    d = m - y
    factor = 3.0 if d > 0 else 1.0
    return 0.5 * factor * d * d, factor * d


@pytest.mark.slow
def test_a_user_defined_loss_is_one_function():
    dense, _ = stream("squared")
    y = dense[:, 0] - dense[:, 1] + np.random.default_rng(2).normal(size=ROUNDS)

    def halved(m, y):
        return 0.25 * (m - y) ** 2, 0.5 * (m - y)

    for own in (asymmetric, halved):  # one that a later process can import, and one that it cannot
        model = Learner(N, Settings(own, alpha=0.3), dtype=np.float64)
        model.learn(dense, y)
        x, total = np.zeros(N + 1), 0.0
        theory = Settings("squared", alpha=0.3).reference(N)
        state = theory.init(N + 1)
        for a, label in zip(np.hstack([dense, np.ones((ROUNDS, 1))]), y, strict=True):
            x = theory.play(state)
            value, slope = own(a @ x, label)
            total += value
            state = theory.update(state, LinearLoss(slope * a))
        assert model.loss[0] == pytest.approx(total, rel=1e-12)
        assert np.allclose(np.append(model.weights, model.bias), theory.play(state), rtol=1e-12)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("algorithm", ["proximal", "centered", "mirror"])
@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("lanes", [1, 2])
def test_copies_continue_as_the_model_does_with_its_scales(algorithm, certified, lanes):
    dense, labels = stream("logistic")
    half, settings = ROUNDS // 2, Settings(rate="scale_free", algorithm=algorithm, alpha=(0.5, 0.2)[:lanes], l1=0.02)
    model = Learner(N, settings, dtype=np.float64, certified=certified, mixed=False)
    model.learn(dense[:half], labels[:half])
    assert model.state.scales[:-1].tolist() == abs(dense[:half]).max(axis=0).tolist()
    assert model.state.scales[-1] == 1
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.select_setting(0)]
    for one in (model, *copies):
        one.learn(dense[half:], labels[half:])
    for other in copies:
        assert np.array_equal(other.state.numbers[:, :, 0], model.state.numbers[:, :, 0])
        assert np.array_equal(other.state.scales, model.state.scales)
        assert np.array_equal(other.weights[:, 0], model.weights[:, 0])


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_made_is_done_without(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path / "file"))
    model = Learner(3, Settings(alpha=0.7, algorithm="mirror", bias=False))
    kernel.compiled_kernel.cache_clear()
    model.learn(np.eye(3), [1, 0, 1])
    assert (model.weights.ravel() > 0).tolist() == [True, False, True]
    kernel.compiled_kernel.cache_clear()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("rate", ["adagrad", "scale_free"])
def test_weights_that_are_not_zero_are_counted_with_and_without_scales(rate):
    dense, labels = stream("logistic", rounds=20, n=12)
    dense[:, 3] = 0.0
    model = Learner(12, Settings(alpha=[0.3, 0.1], l1=[2.0, 0.1], rate=rate), mixed=False)
    model.learn(dense, labels)
    assert 0 < model.nonzeros == np.count_nonzero(model.weights) < 24


def test_counting_weights_that_are_not_zero_needs_no_table(monkeypatch, interpreted):
    monkeypatch.setattr("forel.learner.state.BLOCK", 7)
    dense, labels = stream("logistic", rounds=50, n=40)
    model = Learner(40, Settings(alpha=[0.3, 0.1], l1=[2.0, 0.1]), mixed=False)
    model.learn(dense, labels)
    assert 0 < model.nonzeros == np.count_nonzero(model.weights) < 80
    assert np.array_equal(model.weights, model.state.weights_at(np.arange(40)))
