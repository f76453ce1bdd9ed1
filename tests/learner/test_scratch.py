"""Memory of a kernel's own: zeros that begin with a cache line, and are given back."""

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python

from forel.learner.kernels.intrinsics.memory import allocate, release
from forel.learner.learner import Learner
from forel.learner.settings import Settings


@numba.njit
def used(like, count):
    """Return the initial content of new memory, its address, and its content after writing."""
    array = allocate(like, count)
    before, address = array.sum(), array.ctypes.data % 64
    for k in range(array.size):
        array[k] = k
    after = array.sum()
    release(array)
    return before, address, after


@pytest.fixture
def balance():
    """Return a function that counts allocations that are not released."""
    _nrt_python.memsys_enable_stats()
    yield lambda: _nrt_python.memsys_get_stats_alloc() - _nrt_python.memsys_get_stats_free()
    _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_memory_is_zero_aligned_and_given_back(dtype, count, balance):
    used(np.ones(1, dtype), np.uint64(count))
    held = balance()
    for _ in range(20):
        assert used(np.ones(1, dtype), np.uint64(count)) == (0, 0, count * (count - 1) / 2)
    assert balance() == held


@pytest.mark.parametrize("alpha", [0.1, (0.1, 0.2)], ids=["one lane", "two lanes"])
def test_kernels_give_back_what_they_take(alpha, balance):
    model, X = Learner(5, Settings(alpha=alpha), mixed=False), np.eye(3, 5, dtype=np.float32)

    def turn():
        model.learn(X, [1, 0, 1])
        model.margins(X)
        return model.weights

    turn()  # compiles
    held = balance()
    for _ in range(20):
        turn()
    assert balance() == held
