"""Shortcuts of the compiler: the same results, nothing left behind in numba, and none taken if numba is different."""

import gc

import numba
import numpy as np
import pytest
from numba.extending import overload

from forel.jit import shortcuts as module
from forel.jit.shortcuts import REPLACED, REQUIRED, shortcuts, signatures, with_shortcuts


def functions():
    """Return new dispatchers of the same functions: one for Python, which calls one for compiled code only."""

    @numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, fastmath={"contract"})
    def clipped(x, low, high):
        return min(max(x * 2 + 1, low), high)

    @numba.njit(error_model="numpy")
    def total(array, low, high):
        found = 0.0
        for i in range(array.shape[0]):
            found += clipped(array[i], low, high) / (1 + abs(array[i])) + (i // 3) % 2
        return found + array.min() + np.sqrt(array.max())

    return total


def originals():
    return [getattr(owner, name) for owner, name, _ in REPLACED]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_results_are_the_same_to_the_bit(dtype):
    array = np.arange(-20, 30).astype(dtype)
    before, collecting = originals(), gc.isenabled()
    plain, short = functions(), with_shortcuts(functions())
    assert short(array, -3, 7.5) == plain(array, -3, 7.5)
    assert originals() == before
    assert gc.isenabled() == collecting


def test_numba_links_later_what_was_compiled_with_shortcuts():
    @numba.njit
    def spread(array):
        return array.max() - array.min(), np.median(array)

    array = np.arange(7, dtype=np.int16)
    with shortcuts():
        numba.njit(lambda array: array.max() + np.median(array) - array.min()).compile((numba.typeof(array),))
    assert spread(array) == (6, 3.0)


def test_functions_are_inlined_at_each_call_without_copies(monkeypatch):
    @numba.njit(inline="always")
    def scaled(x, factor):
        if x > 0:
            return x * factor
        return x

    def total(x):
        return scaled(scaled(x, 2.0), 3) + scaled(-x, 5)

    copies = []
    monkeypatch.setattr(module.inlining.copy, "deepcopy", lambda block: copies.append(block))
    assert with_shortcuts(numba.njit(total))(7.0) == 35.0
    assert not copies


def twice(x):
    """A function of Python, which numba replaces by the overload below."""


@overload(twice)
def _twice(x):
    return lambda x: x + x


def test_types_of_operators_are_resolved_once_and_those_of_overloads_each_time():
    compiled = with_shortcuts(numba.njit(lambda x: twice(x) + x))
    assert (compiled(2.0), compiled(3)) == (6.0, 9)
    names = {str(function.key[0]) for function, _, _ in signatures}
    assert any("add" in name for name in names)
    assert not any("twice" in name for name in names)


def test_errors_are_raised_and_numba_is_restored():
    before = originals()
    failing = with_shortcuts(numba.njit(lambda x: x.no_such_attribute))
    with pytest.raises(numba.TypingError, match="no_such_attribute"):
        failing(1.0)
    assert originals() == before
    assert gc.isenabled()


@pytest.mark.parametrize("method", REPLACED, ids=lambda method: method[1])
def test_numba_with_other_parameters_compiles_as_usual(method, monkeypatch):
    owner, name, _ = method
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given, **named: original(*given, **named))
    monkeypatch.setattr(module, "_replacements", lambda *originals: pytest.fail("replaced"))
    assert with_shortcuts(functions())(np.ones(3), 0.0, 1.0) > 0


def test_numba_without_a_part_that_replacements_use_compiles_as_usual(monkeypatch):
    monkeypatch.setattr(module, "REQUIRED", (*REQUIRED, (numba, "no_such_part")))
    before = originals()
    with shortcuts():
        assert originals() == before
