"""What the error of dithered sums is proportional to, and the seed of their noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from forel.learner.kernels import kernel
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.learner.state import State
from forel.training.model import load, save

N, ROUNDS = 6, 60
RULES = [
    Settings("logistic", "proximal", "adagrad", 0.4, l1=0.02),
    Settings("logistic", "proximal", "scale_free", 0.4, bias=False),
    Settings("logistic", "centered", "adagrad", 0.3),
    Settings("logistic", "mirror", "adagrad", 0.2, l1=0.01, penalty_weight="every"),
    Settings("logistic", "mirror", "adagrad", 0.2, bias=False),
    Settings("logistic", "mirror", "scale_free", 0.2, seed=5),
]


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)


def stream(seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.integers(-3, 4, (ROUNDS, N)) * (rng.random((ROUNDS, N)) < np.linspace(0.9, 0.1, N)) / 2
    return dense, rng.integers(0, 2, ROUNDS)


def sampled(gradient, chosen, round_, bias=0.0, key=0):
    """Σ G² of a row's coordinates: the bias's, and as many times as there are others, that of one in turn."""
    if not len(chosen):
        return bias**2
    return len(chosen) * gradient[chosen[(round_ + (key & 65535)) % len(chosen)]] ** 2 + bias**2


def squares(settings, dense, labels):
    """ΣΣ G² from the margins alone: each row's gradient is (p − y) times the row."""
    model = Learner(dense.shape[1], settings, dtype=np.float64, certified=True, mixed=False)
    rows, total, gradient = sparse.csr_array(dense), 0.0, np.zeros(dense.shape[1] + 1)
    for r, y in enumerate(labels):
        margin = model.progress(rows[[r]], [y])[0, 0]
        full = np.append(dense[r], float(settings.bias))
        gradient += (1 / (1 + np.exp(-margin)) - y) * full
        bias = gradient[-1] if settings.bias else 0.0
        total += sampled(gradient, np.flatnonzero(dense[r]), r, bias, settings.noise_key)
    return total


@pytest.mark.parametrize("settings", RULES, ids=str)
def test_squares_of_gradient_sums_are_those_of_a_slow_reference(settings, interpreted):
    dense, labels = stream()
    alone = Learner(N, settings, dtype=np.float64, certified=True, mixed=False)
    alone.learn(dense, labels)
    assert alone.state.sums[3, 0] == pytest.approx(squares(settings, dense, labels), rel=1e-11)
    together = Learner(
        N, replace(settings, alpha=(0.1, settings.alpha, 0.7)), dtype=np.float64, certified=True, mixed=False
    )
    together.learn(dense, labels)
    assert together.state.sums[3, 1] == pytest.approx(alone.state.sums[3, 0], rel=1e-11)
    assert not together.state.clipped.any()
    assert together.select_setting(1).state.sums[3, 0] == together.state.sums[3, 1]


def test_long_rows_leave_out_what_belongs_to_no_coordinate(interpreted):
    """Rows are worked on in blocks of 64 and eights; places after the last hold numbers of others."""
    for width in (1, 7, 8, 9, 63, 64, 65, 130):
        dense = np.ones((3, width))
        for bias in (False, True):
            settings = Settings(alpha=0.5, bias=bias)
            model = Learner(width, settings, dtype=np.float64, certified=True, mixed=False)
            model.learn(dense, [1, 1, 0])
            assert model.state.sums[3, 0] == pytest.approx(squares(settings, dense, [1, 1, 0]), rel=1e-12)


def test_the_sampled_sum_estimates_the_full_sum(interpreted):
    """What is kept is within a few per cent of the squares of all coordinates, however unlike these are."""
    rng = np.random.default_rng(3)
    dense = (rng.random((3000, N)) < np.linspace(0.9, 0.05, N)).astype(float)
    labels = rng.random(3000) < 0.7
    model, gradient, whole = Learner(N, Settings(alpha=0.1), dtype=np.float64, certified=True), np.zeros(N + 1), 0.0
    margins = model.progress(dense, labels)[:, 0]
    for row, y, m in zip(dense, labels, margins, strict=True):
        full = np.append(row, 1.0)
        gradient += (1 / (1 + np.exp(-m)) - y) * full
        whole += np.sum(gradient[full != 0] ** 2)
    assert model.state.sums[3, 0] == pytest.approx(whole, rel=0.05)


def test_without_a_certificate_nothing_is_summed(interpreted):
    model = Learner(N, Settings())
    model.learn(*stream())
    assert not model.state.sums[[1, 2, 3, 4]].any()


def test_the_sums_of_a_file_are_restored(interpreted, tmp_path):
    model = Learner(N, Settings(alpha=(0.1, 1.0), seed=7), certified=True, mixed=False)
    model.learn(*stream())
    save(tmp_path / "m", model)
    again = load(tmp_path / "m").learner
    assert again.settings.seed == 7
    assert np.array_equal(again.state.sums, model.state.sums)
    assert again.state.sums.shape == (5, 2)


def test_seeds_change_bits_and_the_same_seed_gives_the_same():
    dense, labels = stream()
    dense, labels = np.tile(dense, (20, 1)) / 3, np.tile(labels, 20)
    settings = Settings(alpha=0.5)
    bits = [_bits(replace(settings, seed=seed), dense, labels) for seed in (0, 1, 1, 2**53 - 1)]
    assert bits[1] == bits[2]
    assert len(set(bits)) == 3


def _bits(settings, dense, labels):
    model = Learner(N, settings, mixed=False)
    model.learn(dense, labels)
    return model.state.numbers.tobytes()


def test_seeds_that_are_none_are_refused():
    for bad in (-1, 1.5, 2**53, None, "x", True):
        with pytest.raises(ValueError, match="seed: got "):
            Settings(seed=bad)
    assert State(1, Settings(seed=3), 1).arrays[4] == Settings(seed=3).noise_key
