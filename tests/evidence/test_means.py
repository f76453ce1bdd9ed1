"""Confidence sequences: against a slow twin, and looked at after every row."""

import numpy as np
import pytest

from forel.evidence import MeanSequence
from tests.evidence.streams import ROWS, RUNS, allowed, log_evidence, nulls


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
        np.testing.assert_allclose(once.means[k], x[groups == k].mean())


def test_no_null_is_rejected_more_often_than_stated_with_a_look_after_every_row():
    rng = np.random.default_rng(2)
    wrong, one = {}, MeanSequence(-0.5, 0.5, level=0.1)  # each side has half of it
    for _ in range(RUNS):
        for name, x in nulls(rng):
            x = np.clip(x, -0.5, 0.5)
            one.state[:] = 0
            rejected = [one.proves(sums, variation).any() for _, sums, variation in one.follow(x)]
            wrong[name] = wrong.get(name, 0) + any(rejected)
    assert len(wrong) == 7
    assert max(wrong.values()) <= allowed(0.05), wrong


def test_a_mean_that_is_not_in_the_interval_is_found():
    rng = np.random.default_rng(3)
    for _ in range(5):
        one = MeanSequence(-0.5, 0.5)
        one.add(np.clip(rng.normal(0.05, 0.1, ROWS), -0.5, 0.5))
        assert one.interval()[0][0] > 0.03


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.5])
def test_bad_numbers_are_named(value):
    with pytest.raises(ValueError, match="values: got"):
        MeanSequence(0, 1).add([0.5, value])
