"""Functions that are compiled only for enough work: which of two runs, and that both have the same results."""

import numba
import numpy as np
import pytest

from forel.jit import CachedFunction, files
from forel.jit.deferred import AT_ONCE, Deferred
from forel.training import counting


@pytest.fixture
def deferred(tmp_path, monkeypatch):
    """A function of which two items are left to numpy, in a new code cache; compiled, it returns a float."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path))
    monkeypatch.delenv(AT_ONCE, raising=False)
    new = CachedFunction("summed", str(tmp_path), lambda: numba.njit(lambda x: x.sum() * 1.0))
    return Deferred(lambda: new, lambda x: int(x.sum()), items=2)


def test_items_are_counted_until_compiling_pays(deferred):
    one = np.ones(1, np.int64)
    assert [type(deferred(one)) for _ in range(4)] == [int, int, float, float]


def test_compiled_code_is_used_at_once(deferred):
    deferred.compiled()(np.ones(1, np.int64))
    assert type(deferred(np.ones(1, np.int64))) is float
    assert type(deferred(np.ones(1, np.int32))) is int  # other types


def test_files_of_other_processes_are_looked_for_once(deferred, monkeypatch):
    found, path_of = [], files.path_of
    monkeypatch.setattr(files, "path_of", lambda *given: found.append(given) or path_of(*given))
    compiled, one = deferred.compiled(), np.ones(1, np.int64)
    assert not any(compiled.cached(one) for _ in range(3))
    assert [name for name, _ in found] == ["summed", "summed.bitcode"]
    compiled(one)
    assert compiled.cached(one)


def test_all_is_compiled_at_once_for_an_installation(deferred, monkeypatch):
    monkeypatch.setenv(AT_ONCE, "1")
    assert type(deferred(np.ones(1, np.int64))) is float


def rows(count=3000, dtype=np.float64):
    rng = np.random.default_rng(0)
    extremes = [0.0, -0.0, 708.0, -708.0, 709.0, -709.0, 1e30, -1e30, 1e-30]
    margins = np.append(rng.normal(size=count) * 10.0 ** rng.integers(-3, 4, count), extremes).astype(dtype)
    labels = rng.choice([0.0, 1.0, 0.25], margins.size).astype(dtype)
    return margins, labels, rng.random(margins.size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_losses_of_numpy_have_the_bits_of_compiled_code(dtype):
    margins, labels, _ = rows(dtype=dtype)
    plain, compiled = np.empty((2, 2, margins.size))
    counting._log_losses(margins, labels, *plain)
    counting.log_losses.compiled()(margins, labels, *compiled)
    assert plain.tobytes() == compiled.tobytes()


def test_the_loss_of_a_margin_that_is_no_number_is_none_either():
    margins, labels, found = np.full(3, np.nan), np.array([0.0, 1.0, 0.25]), np.empty((2, 2, 3))
    counting._log_losses(margins, labels, *found[0])
    counting.log_losses.compiled()(margins, labels, *found[1])
    assert np.isnan(found[:, 0]).all()
    assert np.array_equal(found[0, 1], found[1, 1], equal_nan=True)


@pytest.mark.parametrize("bins", [1, 64])
def test_sums_of_numpy_have_the_bits_of_compiled_code(bins):
    margins, labels, importance = rows()
    losses, predictions = np.random.default_rng(1).random((2, margins.size))
    found = []
    for function in (counting._tally, counting.tally.compiled()):
        sums, counted = np.arange(5) / 3, np.arange(3.0 * bins).reshape(bins, 3) / 7
        function(margins, labels, labels / 3, importance, losses, predictions, sums, counted, 30.0)
        found.append(sums.tobytes() + counted.tobytes())
    assert found[0] == found[1]
