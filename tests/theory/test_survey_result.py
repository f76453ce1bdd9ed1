"""Outcomes: one that fails is never masked by one that holds, in any order."""

import itertools
import math

import pytest

from forel.theory.survey import Outcome, Result
from forel.theory.survey.result import largest

BOUND = Result("Theorem 0", "", "forel.validation", lambda: Outcome(0.0, 0.0))
FINE = [
    Outcome(0.5, 1.0),
    Outcome(1.0, 1.0),
    Outcome(-3.0, 2.0),
    Outcome(0.0, 0.0),
    Outcome(1e-12, 0.0),
    Outcome(-2.0, -1.0),
]
WRONG = [
    Outcome(1.1, 1.0),
    Outcome(1.0, 0.0),
    Outcome(-0.5, -1.0),
    Outcome(1e-3, -1e-3),
    Outcome(9e-9, 1e-10),
    Outcome(math.nan, 1.0),
    Outcome(1.0, math.nan),
    Outcome(math.inf, 1.0),
    Outcome(math.nan, math.nan),
    Outcome(math.inf, math.inf),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_failing_outcome_is_found_at_any_position(wrong):
    assert not BOUND.holds(wrong)
    for place in range(len(FINE) + 1):
        assert largest([*FINE[:place], wrong, *FINE[place:]]) is wrong
    for other in WRONG:
        assert not BOUND.holds(largest([wrong, other]))
        assert not BOUND.holds(largest([other, *FINE, wrong]))


def test_among_outcomes_that_hold_the_tightest_is_reported():
    for order in itertools.permutations(FINE[:4]):
        assert largest(order) == Outcome(1.0, 1.0)
    assert all(BOUND.holds(outcome) for outcome in FINE)
    assert BOUND.tight(largest(FINE))
    assert not BOUND.tight(Outcome(-2.0, -1.0))


@pytest.mark.parametrize(
    ("measured", "bound", "ratio"),
    [
        (1.0, 2.0, 0.5),
        (-1.0, 2.0, -0.5),
        (1e-15, 0.0, 0.0),
        (1.0, 0.0, math.inf),
        (-1.0, -2.0, math.inf),
        (-3.0, -2.0, 0.0),
    ],
)
def test_ratios_of_bounds_that_are_not_positive(measured, bound, ratio):
    assert Outcome(measured, bound).ratio == ratio


def test_identities_fail_where_one_side_is_not_a_number():
    identity = Result("Lemma 0", "", "forel.validation", lambda: Outcome(0.0, 0.0), "=")
    assert identity.holds(Outcome(1.0, 1.0 + 1e-9))
    for outcome in (Outcome(0.9, 1.0), Outcome(math.nan, 1.0), Outcome(1.0, math.nan), Outcome(math.inf, math.inf)):
        assert not identity.holds(outcome)
