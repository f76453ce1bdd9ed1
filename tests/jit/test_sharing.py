"""Functions that copies of modules share: those with the same code, options, constants and functions, and no others."""

import sys
from types import ModuleType

import numba
import numpy as np
import pytest
from numba.core.environment import Environment

from forel.jit.compiling import use_code_cache
from forel.jit.sharing import share
from forel.learner.kernels.kernel import compiled_kernel
from forel.learner.kernels.spec import KernelSpec
from forel.learner.layout import Layout

SOURCE = """
@inline
def outer(x):
    return inner(x) + inner(x)

@inline
def inner(x):
    return x * FACTOR

@inline
def other(x):
    return x + 1

def plain(x):
    return outer(x)
"""
CODE = compile(SOURCE, "copies", "exec")
INLINE = numba.njit(no_cpython_wrapper=True)


def copy(factor, inline=INLINE):
    names = {"inline": inline, "FACTOR": factor}
    exec(CODE, names)
    share(names)
    return names


def test_equal_functions_are_one():
    first, second = copy(3), copy(3)
    assert all(first[name] is second[name] for name in ("outer", "inner", "other"))
    assert first["plain"] is not second["plain"]


@pytest.mark.parametrize("factor", [4, 3.0, np.float32(3), np.int64(3), True, (3,)])
def test_a_constant_of_another_value_or_type_makes_others_of_all_that_use_it(factor):
    first, second = copy(3), copy(factor)
    assert first["inner"] is not second["inner"]
    assert first["outer"] is not second["outer"]  # although its own code has no constant
    assert first["other"] is second["other"]


def test_zeros_of_either_sign_are_different():
    assert copy(0.0)["inner"] is not copy(-0.0)["inner"]


def test_other_options_make_other_functions():
    assert copy(3)["other"] is not copy(3, numba.njit(no_cpython_wrapper=True, fastmath=True))["other"]


def test_each_copy_computes_with_its_own_constant():
    entries = [numba.njit(copy(factor)["plain"]) for factor in (3, 5, 3)]
    assert [entry(7) for entry in entries] == [42, 70, 42]


def test_functions_that_are_cached_stay():
    class Cache:
        """Stands for the code cache."""

    def cached(function):
        dispatcher = INLINE(function)
        dispatcher._cache = Cache()
        return dispatcher

    assert copy(3, cached)["inner"] is not copy(3, cached)["inner"]


def test_cached_code_with_shared_functions_loads_in_a_process_without_the_other_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("FOREL_CACHE", str(tmp_path))
    for name in ("first_copy", "second_copy"):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        vars(module).update(inline=INLINE, FACTOR=9)
        exec(CODE, vars(module))
        share(vars(module))
        entry = use_code_cache(numba.njit(module.plain), "source")
        assert entry(7) == 126
    assert module.outer is sys.modules["first_copy"].outer
    ((types, result),) = entry.overloads.items()
    monkeypatch.delitem(sys.modules, "first_copy")
    monkeypatch.setattr(Environment, "_memo", {})  # as in a new process
    *_, environments = entry._cache.parts(types, result.codegen)
    assert len(environments) > 1
    assert all(each.globals is vars(module) for each in environments)


def test_recursive_functions_are_compiled_in_each_copy():
    def recursive():
        names = {"inline": INLINE}
        exec("@inline\ndef down(x):\n    return 0 if x <= 0 else down(x - 1)\n", names)
        share(names)
        return names["down"]

    assert recursive() is not recursive()


def test_kernels_of_two_losses_share_all_that_does_not_depend_on_them():
    layout = Layout("proximal", "adagrad", "once")
    first, second = (vars_of(KernelSpec(loss, layout)) for loss in ("logistic", "squared"))
    assert all(first[name] is second[name] for name in ("gather_row", "step_row", "begin_row", "add_losses"))
    assert first["row_losses"] is not second["row_losses"]
    assert first["learn"] is not second["learn"]


def test_kernels_of_two_numbers_of_lanes_share_none_of_the_loops():
    first, second = (vars_of(KernelSpec("logistic", Layout("proximal", "adagrad", "once", lanes))) for lanes in (2, 12))
    assert first["noise_of"] is second["noise_of"]
    assert not any(first[name] is second[name] for name in ("begin_row", "gather_row", "step_row", "row_losses"))


def vars_of(spec):
    return compiled_kernel(spec).learn.py_func.__globals__
