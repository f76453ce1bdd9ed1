"""Fixed share: Bayes over sequences of experts, and its bound."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.experts import (
    FixedShare,
    best_switching,
    mix,
)
from tests.experts.forecasts import SEEDS, sequences


def path_cost(rule, n, path):
    """−log of the prior probability of a sequence of experts, from its definition."""
    total = math.log(n)
    for t, (before, after) in enumerate(itertools.pairwise(path), start=2):
        share = 1 / t if rule.share is None else rule.share
        total -= math.log(1 - share) if before == after else math.log(share / (n - 1))
    return total


SHARES = pytest.mark.parametrize("rule", [FixedShare(share=0.1), FixedShare(share=0.5), FixedShare()], ids=str)


@SHARES
def test_fixed_share_is_bayes_over_all_sequences_of_experts(rule):
    p, y = sequences("certain", 8, 6, 3)
    given_to_it = np.where(y[:, None] == 1, p, 1 - p)
    paths = list(itertools.product(range(3), repeat=6))
    prior = np.array([math.exp(-path_cost(rule, 3, path)) for path in paths])
    assert prior.sum() == pytest.approx(1.0)
    joint = prior * np.array([math.prod(given_to_it[t, k] for t, k in enumerate(path)) for path in paths])
    mixed = mix(p, y, rule=rule)
    assert mixed.loss == pytest.approx(-math.log(joint.sum()), rel=1e-12)
    last = np.array([path[-1] for path in paths])
    ends = np.array([joint[last == k].sum() for k in range(3)]) / joint.sum()
    share = 1 / 7 if rule.share is None else rule.share
    assert mixed.posterior == pytest.approx((1 - share) * ends + share / 2 * (1 - ends), rel=1e-12)


@SHARES
@given(st.integers(2, 8), st.integers(2, 5))
def test_the_cost_is_that_of_the_least_likely_sequence_with_that_many_switches(rule, rounds, n):
    by_switches = {}
    for path in itertools.product(range(2), repeat=rounds):  # the prior only asks where the switches are
        m = sum(a != b for a, b in itertools.pairwise(path))
        by_switches[m] = max(by_switches.get(m, 0.0), path_cost(rule, n, path))
    for m, cost in by_switches.items():
        assert rule.cost(n, rounds, m) == pytest.approx(cost, rel=1e-12)
    costs = [rule.cost(n, rounds, m) for m in range(rounds)]
    assert (np.diff(costs) >= -1e-12).all()  # so that "at most m" holds too


@SHARES
@pytest.mark.parametrize("name", ["random", "certain", "sorted", "changing"])
@given(SEEDS, st.integers(2, 40), st.integers(2, 6))
def test_fixed_share_stays_near_the_best_sequence_of_experts(rule, name, seed, rounds, n):
    p, y = sequences(name, seed, rounds, n)
    mixed = mix(p, y, rule=rule)
    best = best_switching(mixed.expert_losses, rounds - 1)
    for m in range(rounds):
        assert mixed.loss - best[m] <= rule.bound(mixed.state, m)[0] + 1e-11 * max(1.0, mixed.loss)
    for m in {1, rounds // 2, rounds - 1}:  # each finds the best sequence anew
        proof = mixed.guarantee(switches=m)
        assert (proof.other, proof.bound) == (best[m], rule.bound(mixed.state, m)[0])


@SHARES
def test_fixed_share_pays_its_bound_in_full_when_one_sequence_alone_is_left(rule):
    y = np.array([0] * 20 + [1] * 3)  # expert k says k, for certain
    mixed = mix(np.tile([0.0, 1.0], (23, 1)), y, rule=rule)
    assert mixed.totals.tolist() == [math.inf, math.inf]
    measured, bound = mixed.guarantee(switches=1).pair
    assert measured == pytest.approx(path_cost(rule, 2, y), rel=1e-12)
    assert measured <= bound * (1 + 1e-12)
    if rule.share is not None:
        assert measured == pytest.approx(bound, rel=1e-12)
    late = mix(np.tile([0.0, 1.0], (23, 1)), [0] * 22 + [1], rule=rule)
    assert late.guarantee(switches=1).measured == pytest.approx(bound, rel=1e-12)


def test_fixed_share_follows_a_drift_that_exponential_weights_cannot():
    p = np.where(np.arange(1000)[:, None] < 500, [[0.9, 0.1]], [[0.1, 0.9]])
    y = np.ones(1000)
    fixed, shared = mix(p, y), mix(p, y, rule=FixedShare())
    assert shared.loss < fixed.loss / 2
    assert shared.guarantee(switches=1).measured > 0.3 * shared.guarantee(switches=1).bound


@given(SEEDS, st.integers(1, 7), st.integers(1, 3), st.integers(0, 4))
def test_best_switching_is_what_trying_every_sequence_finds(seed, rounds, n, m):
    table = np.random.default_rng(seed).exponential(size=(rounds, n))
    table[table > 2] = np.inf
    found = best_switching(table, m)
    for j in range(m + 1):
        paths = (
            p for p in itertools.product(range(n), repeat=rounds) if sum(a != b for a, b in itertools.pairwise(p)) <= j
        )
        assert found[j] == pytest.approx(min(sum(table[t, k] for t, k in enumerate(path)) for path in paths))
