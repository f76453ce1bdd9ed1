import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.theory.weights import EveryRound, Given, Once

ALL = [Once(), EveryRound(), Given([3.0, 2.0, 2.0, 0.5]), Given([0.0, 1.0]), Given(2.0)]


@pytest.mark.parametrize("weights", ALL)
def test_total_is_the_sum_of_the_weights(weights):
    assert weights.total(0) == weights(0) == 0
    for t in range(1, 12):
        assert weights.total(t) == pytest.approx(math.fsum(weights(s) for s in range(1, t + 1)), rel=1e-15)


@pytest.mark.parametrize("weights", ALL)
def test_non_increasing_describes_the_weights(weights):
    values = [weights(t) for t in range(1, 12)]
    assert weights.non_increasing == all(later <= earlier for earlier, later in pairwise(values))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.integers(0, 30))
def test_given_stays_at_its_last_value(values, t):
    weights = Given(values)
    padded = values + [values[-1]] * 30
    assert weights(t + 1) == padded[t]
    assert weights.total(t) == pytest.approx(math.fsum(padded[:t]), rel=1e-12)
    assert weights.non_increasing == (sorted(values, reverse=True) == values)


def test_named_sequences():
    assert [Once()(t) for t in (1, 2, 3)] == [1, 0, 0]
    assert [Once().total(t) for t in (0, 1, 1000)] == [0, 1, 1]
    assert [EveryRound()(t) for t in (1, 2, 3)] == [1, 1, 1]
    assert EveryRound().total(10**9) == 10**9


def test_given_keeps_its_own_values():
    values = np.array([2.0, 1.0])
    weights = Given(values)
    values[:] = 7
    assert (weights(1), weights.total(2)) == (2, 3)
    with pytest.raises(ValueError, match="read-only"):
        weights.values[0] = 7


@pytest.mark.parametrize("weights", ALL)
@pytest.mark.parametrize("t", [-1, 1.5, math.nan, math.inf, "now", True])
def test_rounds_are_whole(weights, t):
    for ask in (weights, weights.total):
        with pytest.raises(ValueError, match=r"t: got .*, expected a whole number of at least 0"):
            ask(t)


@pytest.mark.parametrize("weights", ALL)
def test_whole_floats_count_as_rounds(weights):
    assert weights(2.0) == weights(2)
    assert weights.total(6.0) == weights.total(6)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, -2], "values: got -2.0 at index 1, expected numbers of at least 0"),
        ([1, math.nan], "values: got nan at index 1"),
        ([math.inf], "values: got inf at index 0"),
        ([], "values: got shape"),
        ([[1.0]], "values: got shape"),
        ("often", "values: got 'often'"),
    ],
)
def test_given_refuses(values, message):
    with pytest.raises(ValueError, match=message):
        Given(values)
