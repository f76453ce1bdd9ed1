"""Shortcuts of the compiler: the same results, nothing left behind in numba, and none taken if numba is different."""

import gc
import subprocess
import sys
from functools import cache, reduce
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import event
from numba.extending import overload, register_jitable

from forel.jit.shortcuts import SHORTCUTS, apply, inference, passes, shortcuts, with_shortcuts
from forel.jit.shortcuts.shortcut import Shortcut

METHODS = [method for each in SHORTCUTS for method in each.methods]


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
    return [method.original for method in METHODS]


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
    monkeypatch.setattr(passes.inlining.copy, "deepcopy", lambda block: copies.append(block))
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
    names = {str(function.key[0]) for function, _, _ in inference.signatures}
    assert any("add" in name for name in names)
    assert not any("twice" in name for name in names)


def test_errors_are_raised_and_numba_is_restored():
    before = originals()
    failing = with_shortcuts(numba.njit(lambda x: x.no_such_attribute))
    with pytest.raises(numba.TypingError, match="no_such_attribute"):
        failing(1.0)
    assert originals() == before
    assert gc.isenabled()


@cache
def total_without_shortcuts():
    return functions()(np.ones(3), 0.0, 1.0)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_numba_with_other_parameters_compiles_without_the_shortcut(method, monkeypatch):
    original = method.original
    monkeypatch.setattr(method.owner, method.name, lambda *given, **named: original(*given, **named))
    before = originals()
    own = next(each.methods for each in SHORTCUTS if method in each.methods)
    with shortcuts():
        kept = [each for each, now in zip(METHODS, before, strict=True) if each.original is now]
    assert kept == list(own)
    assert with_shortcuts(functions())(np.ones(3), 0.0, 1.0) == total_without_shortcuts()


@pytest.mark.parametrize(
    "shortcut", [each for each in SHORTCUTS if each.required], ids=lambda each: each.methods[0].name
)
def test_a_shortcut_is_left_out_without_a_part_that_it_uses(shortcut):
    assert shortcut.usable
    assert not Shortcut(shortcut.methods, (*shortcut.required, (numba, "no_such_part"))).usable


def test_all_shortcuts_are_used_with_this_version_of_numba():
    assert all(each.usable for each in SHORTCUTS)


def branches(x, n):
    total, sign = 0.0, 1
    for k in range(n):
        if k % 3 == 0:
            total, sign = total + x, -sign
        elif total > 5:
            total -= k
            continue
        x = x / 2 if sign > 0 else x + 1
    while total > 1:
        total /= 2
    return total, x, sign


def closures(x, n):
    def scaled(y):
        return y * n

    squares = [k * k for k in range(n)]
    return scaled(x) + sum(squares) + reduce(lambda a, b: a - b, squares)


def array_expressions(x, n):
    a = np.arange(n) * x
    b = np.array([1, 2, n])
    return (a + a * 2 - 1).sum() + b[2] + (a[::2] > 1).sum()


def records(x, n):
    a = np.zeros(n, RECORD)
    a[0]["x"], a[n - 1]["n"] = x, n
    return a["x"].sum() + a[n - 1]["n"]


RECORD = np.dtype([("x", "f8"), ("n", "i8")])


@pytest.mark.parametrize("function", [branches, closures, array_expressions, records])
def test_passes_that_are_left_out_are_not_needed(function):
    short, plain = with_shortcuts(numba.njit(function)), numba.njit(function)
    for x, n in ((0.75, 9), (-2.0, 4), (3.5, 17)):
        assert short(x, n) == plain(x, n) == function(x, n)


def test_rewrites_of_typed_code_run_only_where_needed(monkeypatch):
    ran, apply_rewrites = [], passes.registry.RewriteRegistry.apply

    def recorded(own, kind, state):
        ran.append(kind)
        return apply_rewrites(own, kind, state)

    monkeypatch.setattr(passes.registry.RewriteRegistry, "apply", recorded)
    with_shortcuts(functions())(np.ones(3), 0.0, 1.0)
    assert set(ran) == {"before-inference"}


def test_listeners_hear_the_events_they_are_registered_for():
    with event.install_recorder("numba:run_pass") as heard:
        with_shortcuts(numba.njit(lambda x: x + 1))(1.0)
    assert {each.is_start for _, each in heard.buffer} == {True, False}


def test_overloads_registered_after_compiling_are_found():
    with_shortcuts(numba.njit(lambda x: x + 1))(1.0)

    def thrice(x):
        """A function of Python."""

    overload(thrice)(lambda x: lambda x: 3 * x)
    assert with_shortcuts(numba.njit(lambda x: thrice(x)))(2.0) == 6.0


def test_functions_of_compiled_code_may_be_values():
    @register_jitable
    def doubled(x):
        return 2 * x

    @numba.njit
    def applied(function, x):
        return function(x)

    assert with_shortcuts(numba.njit(lambda x: applied(doubled, x)))(4.0) == 8.0


def test_scipy_is_imported_by_the_first_function_that_uses_a_blas():
    code = """
import sys, numba, numpy as np
from forel.jit.shortcuts import with_shortcuts
with_shortcuts(numba.njit(lambda x: x + 1))(1.0)
before = "scipy.linalg" in sys.modules
ones = np.ones((2, 2))
product = with_shortcuts(numba.njit(lambda a, b: a @ b))(ones, ones)
print(before, "scipy.linalg" in sys.modules, product.sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "8.0"]


@pytest.mark.parametrize("frozen", [0, 5])
def test_objects_of_the_compiler_are_collected_now_and_then(frozen, monkeypatch):
    calls = []
    recorded = {name: lambda name=name: calls.append(name) for name in ("disable", "freeze", "unfreeze", "enable")}
    fake = SimpleNamespace(isenabled=lambda: True, get_freeze_count=lambda: frozen, **recorded)
    monkeypatch.setattr(apply, "gc", fake)
    for _ in range(apply.COLLECTED):
        with shortcuts():
            pass
    # Objects that were frozen before are not unfrozen.
    assert calls.count("freeze") == calls.count("unfreeze") == (0 if frozen else apply.COLLECTED - 1)
    assert calls.count("disable") == calls.count("enable") == apply.COLLECTED
