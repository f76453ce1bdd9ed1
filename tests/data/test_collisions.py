"""The expected number of shared slots, from the number of used ones, is close to what names show."""

import numpy as np
import pytest

from forel.data import Names
from forel.data.features.hashing import START, expected_collisions, hash_names


@pytest.mark.parametrize("names", [1000, 20_000, 60_000])
def test_the_expected_collisions_are_those_of_names(names):
    bits = 16
    words = [b"user%d" % k for k in range(names)]
    hashes = hash_names(words, np.full(names, START, np.uint64))
    slots = (hashes & np.uint64((1 << bits) - 1)).astype(np.int64)
    recorded = Names(bits)
    recorded.add(slots, hashes, words.__getitem__)
    expected = expected_collisions(len(recorded), bits)
    assert abs(expected - recorded.collisions) <= 5 * np.sqrt(expected) + 2
