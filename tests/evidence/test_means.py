"""Confidence sequences: against a slow twin, and looked at after every row."""

import math

import numpy as np
import pytest

from forel.evidence import MeanSequence
from tests.evidence.streams import ROWS, RUNS, allowed, log_evidence, log_evidence_of_weighted, nulls


def test_the_interval_is_where_the_evidence_is_small():
    x = np.random.default_rng(0).beta(2, 5, 700)
    sequence = MeanSequence(0, 1, level=0.1)
    sequence.add(x)
    (low,), (high,) = sequence.interval()
    assert low < x.mean() < high
    for mean, sign in ((low, 1), (high, -1)):
        inside, outside = (mean + sign * 1e-6, mean - sign * 1e-6)
        values, ends = (x, (0, 1)) if sign > 0 else (-x, (-1, 0))
        evidence = [log_evidence(values, *ends, sign * m)[-1] for m in (inside, outside)]
        assert evidence[0] < np.log(2 / 0.1) < evidence[1]


def test_blocks_give_the_same_bits_and_groups_are_separate():
    rng = np.random.default_rng(1)
    x, groups = rng.uniform(-1, 1, 30_000), rng.integers(0, 3, 30_000)
    once, blocks = MeanSequence(-1, 1, groups=3), MeanSequence(-1, 1, groups=3)
    once.add(x, groups)
    for part in np.array_split(np.arange(x.size), 17):
        blocks.add(x[part], groups[part])
    assert np.array_equal(once.state, blocks.state)
    for k in range(3):
        alone = MeanSequence(-1, 1)
        alone.add(x[groups == k])
        assert np.array_equal(alone.state[0], once.state[k])
        np.testing.assert_allclose(once.sums.total[k] / once.sums.weight[k], x[groups == k].mean())


def test_no_null_is_rejected_more_often_than_stated_with_a_look_after_every_row():
    rng = np.random.default_rng(2)
    wrong, one = {}, MeanSequence(-0.5, 0.5, level=0.1)  # each side has half of it
    for _ in range(RUNS):
        for name, x in nulls(rng):
            x = np.clip(x, -0.5, 0.5)
            one.state[:] = 0
            rejected = [one.proves(sums.total, sums).any() for sums in one.follow(x)]
            wrong[name] = wrong.get(name, 0) + any(rejected)
    assert len(wrong) == 7
    assert max(wrong.values()) <= allowed(0.05), wrong


def test_a_mean_that_is_not_in_the_interval_is_found():
    rng = np.random.default_rng(3)
    for _ in range(5):
        one = MeanSequence(-0.5, 0.5)
        one.add(np.clip(rng.normal(0.05, 0.1, ROWS), -0.5, 0.5))
        assert one.interval()[0][0] > 0.03


def test_weighted_numbers_have_the_evidence_of_the_twin():
    rng = np.random.default_rng(5)
    x, w = rng.beta(2, 5, 400), np.exp(rng.normal(size=400))
    w[300:] *= 3
    once, blocks = MeanSequence(0, 1, level=0.1), MeanSequence(0, 1, level=0.1)
    once.add(np.append(x, 1.0), weights=np.append(w, 0.0))
    for part in np.array_split(np.arange(400), 9):
        blocks.add(x[part], weights=w[part])
    assert np.array_equal(once.state, blocks.state)
    (low,), (high,) = once.interval()
    assert once.sums.total[0] / once.sums.weight[0] == pytest.approx(w @ x / w.sum())
    assert low < once.sums.total[0] / once.sums.weight[0] < high
    for values, ends, mean in ((x, (0, 1), low), (-x, (-1, 0), -high)):
        assert log_evidence_of_weighted(values, w, *ends, mean)[-1] == pytest.approx(math.log(20), abs=1e-6)
    (sums,) = MeanSequence(0, 1, level=0.1).follow(x, weights=w)
    twin = log_evidence_of_weighted(x, w, 0, 1, 0.2)
    assert once.proves(sums.total - 0.2 * sums.weight, sums).tolist() == (twin >= math.log(20)).tolist()
    # A weight that is 10,000 times the first ends all rates.
    once.add([0.5], weights=[1e6])
    assert once.interval() == ([0], [1])


@pytest.mark.parametrize("weights", ["lognormal", "growing", "after losses"])
def test_no_null_of_weighted_numbers_is_rejected_more_often_than_stated(weights):
    # Weights are chosen before their numbers: here also larger ones after a bad number, as an adversary would.
    rng, one = np.random.default_rng(4), MeanSequence(-0.5, 0.5, level=0.1)
    wrong = {}
    for _ in range(RUNS):
        for name, x in nulls(rng, 600):
            if "early" in name or "follows" in name:  # whose weighted mean may be above 0
                continue
            x = np.clip(x, -0.5, 0.5)
            before = np.append(0, x[:-1])
            w = {
                "lognormal": np.exp(rng.normal(size=x.size)),
                "growing": np.geomspace(1, 300, x.size),
                "after losses": np.where(before < 0, 5.0, 1.0),
            }[weights]
            one.state[:] = 0
            rejected = [one.proves(sums.total, sums).any() for sums in one.follow(x, weights=w)]
            wrong[name] = wrong.get(name, 0) + any(rejected)
    assert max(wrong.values()) <= allowed(0.05), wrong


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.5])
def test_bad_numbers_are_named(value):
    with pytest.raises(ValueError, match="values: got"):
        MeanSequence(0, 1).add([0.5, value])
