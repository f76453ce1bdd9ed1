"""Generated clicks: the same bytes on every processor, and the documented properties."""

import hashlib
import io

import numpy as np
import pytest

from forel.data import clicks as module
from forel.data.clicks import clicks, write_clicks

# `make test` computes these once more with the processor's vector instructions switched off.
CHECKSUMS = {
    ("vw", 0): "8882d0b4f4fdf73b687349c8869077c1eaf4219b2eb246568dfa86229440aad3",
    ("csv", 0): "b941dd46e6cab50a9a4320920753baf2f21f0fa766422f08a46886a4b63fb2a1",
    ("vw", 7): "e0c17abfbe63287e743a518dfc5397e611408a9e14140f812da0bbfe31ae280e",
}


@pytest.mark.parametrize(("format", "seed"), CHECKSUMS)
def test_files_are_the_same_on_every_processor(format, seed):
    file = io.BytesIO()
    write_clicks(file, 10_000, format, seed)
    assert hashlib.sha256(file.getvalue()).hexdigest() == CHECKSUMS[format, seed]


@pytest.fixture(scope="module")
def drawn():
    blocks = list(clicks(60_000, seed=2))
    return tuple(np.concatenate([getattr(b, name) for b in blocks]) for name in ("categories", "labels", "chances"))


def test_powers_of_two_are_those_of_float64():
    x = np.random.default_rng(0).uniform(-100, 100, 100_000).astype(np.float32)
    np.testing.assert_allclose(module._exp2(x), np.exp2(x.astype(np.float64)), rtol=3e-7)
    whole = np.arange(-100, 101, dtype=np.float32)
    np.testing.assert_array_equal(module._exp2(whole), np.exp2(whole.astype(np.float64)))


def test_logarithms_of_categories_are_uniform(drawn):
    categories, _, _ = drawn
    bits = 4 + 16 * np.arange(39) / 38
    assert np.all(categories.max(axis=0) < np.exp2(bits))
    for column in (0, 12, 25, 38):
        for share in (0.25, 0.5, 0.75):
            # Categories below 2^k − 1 are as many as their numbers' logarithms are below k.
            k = np.floor(share * bits[column])
            below = np.mean(categories[:, column] < 2**k - 1)
            assert below == pytest.approx(k / bits[column], abs=0.01)  # five standard errors


def test_one_weight_in_ten_is_not_zero_and_those_are_normal():
    truth = module._truth(np.random.default_rng(0))
    weights = truth[truth != 0] * module.LN2 / module.UNIT
    assert weights.size / truth.size == pytest.approx(0.1, abs=0.0015)  # five standard errors, as below
    assert weights.mean() == pytest.approx(0, abs=0.016)
    assert weights.std() == pytest.approx(1, abs=0.012)
    # A normal distribution has 0.6827, 0.9545 and 0.9973 within one, two and three standard deviations.
    for width, share in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert np.mean(np.abs(weights) < width) == pytest.approx(share, abs=0.008)


def test_the_reported_loss_is_that_of_the_true_probabilities(drawn):
    _, labels, chances = drawn
    truth = write_clicks(io.BytesIO(), 60_000, "csv", seed=2)
    assert truth.clicks == labels.sum()
    assert truth.loss == pytest.approx(-np.mean(np.log(np.where(labels, chances, 1 - chances))), rel=1e-12)
