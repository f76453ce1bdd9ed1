"""The short exponential and logarithm against the library's, in double precision."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from forel.learner.kernels import elementary

ULP, FINER = 2.0**-23, 2.0**-52


@njit
def decays(a):
    return elementary.exp_minus(a)


@njit
def logs(e):
    return elementary.log1p(e)


@given(st.floats(0, 87, width=32))
def test_the_exponential_is_right_to_the_last_place(a):
    assert decays(np.float32(a)) == pytest.approx(np.exp(-np.float64(a)), rel=ULP)


@given(st.floats(0, 1, width=32))
def test_the_logarithm_is_right_to_two_places(e):
    assert logs(np.float32(e)) == pytest.approx(np.log1p(np.float64(e)), rel=2 * ULP)


def test_every_binade_and_its_edges():
    for k, near in itertools.product(range(126), (np.float32(-1e-6), np.float32(0), np.float32(1e-6))):
        a = np.float32((k + 0.5) * np.log(2)) * (1 + near)  # where the nearest whole power of two changes
        assert decays(a) == pytest.approx(np.exp(-np.float64(a)), rel=ULP)
        e = np.float32(2.0**-k)
        assert logs(e) == pytest.approx(np.log1p(np.float64(e)), rel=2 * ULP)


# Doubles have no wider type to be compared with, but the library's are right to the last place.


@given(st.floats(0, 708))
def test_the_exponential_of_doubles_is_right_to_two_places(a):
    assert decays(a) == pytest.approx(np.exp(-a), rel=2 * FINER, abs=0)


@given(st.floats(0, 1))
def test_the_logarithm_of_doubles_is_right_to_two_places(e):
    assert logs(e) == pytest.approx(np.log1p(e), rel=2 * FINER, abs=2.0**-1073)


def test_every_binade_of_doubles_and_its_edges():
    for k, near in itertools.product(range(1020), (-1e-15, 0.0, 1e-15)):
        a = (k + 0.5) * np.log(2) * (1 + near)
        assert decays(a) == pytest.approx(np.exp(-a), rel=2 * FINER, abs=0)
        assert logs(2.0**-k) == pytest.approx(np.log1p(2.0**-k), rel=2 * FINER, abs=0)
    assert (decays(0.0), logs(0.0), decays(708.5), decays(1e300)) == (1, 0, 0, 0)


@pytest.mark.parametrize("a", [87.1, 88.0, 104.0, 1e4, 1e30])
def test_exponentials_below_normal_numbers_are_zero(a):
    assert decays(np.float32(a)) == 0


def test_the_ends_are_exact_and_types_are_kept():
    assert decays(np.float32(0)) == 1
    assert logs(np.float32(0)) == 0
    assert type(decays.py_func(0.5)) is np.float64
    for function, x in ((decays, 0.7), (logs, 0.7)):
        function(np.float32(x)), function(x)
        kinds = {str(kept.signature.args[0]): str(kept.signature.return_type) for kept in function.overloads.values()}
        assert kinds == {"float32": "float32", "float64": "float64"}
