"""The hash: compiled and plain are one function, and slots are as even as chance would have them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data.features.hashing import START, hash_name, hash_names, slot


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 2**64 - 1)), max_size=20))
def test_compiled_and_plain_are_one_function(names):
    found = hash_names([name for name, _ in names], np.array([start for _, start in names], np.uint64))
    assert found.tolist() == [hash_name(name, start) for name, start in names]


PATTERNS = {
    "numbered": lambda k: f"f{k}",
    "plain numbers": str,
    "long": lambda k: f"a_long_common_prefix_{k}",
    "long, other end": lambda k: f"{k:08d}_a_long_common_suffix",
    "even": lambda k: f"x{2 * k}",
    "words": lambda k: " ".join("abcdefghij"[int(d)] for d in str(k)),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("bits", [8, 18, 22])
def test_slots_are_as_even_as_chance(pattern, bits):
    n, size = 100_000, 1 << bits
    hashes = hash_names([PATTERNS[pattern](k).encode() for k in range(n)], np.full(n, START, np.uint64))
    counts = np.bincount((hashes & np.uint64(size - 1)).astype(np.int64), minlength=size)
    # Pearson's statistic has mean size − 1 and variance about 2 size; five deviations are past chance.
    statistic = ((counts - n / size) ** 2).sum() / (n / size)
    assert abs(statistic - (size - 1)) < 5 * np.sqrt(2 * size)
    upper = np.bincount((hashes >> np.uint64(34)).astype(np.int64) % 4093, minlength=4093)
    assert abs(((upper - n / 4093) ** 2).sum() / (n / 4093) - 4092) < 5 * np.sqrt(2 * 4093)


def test_names_differ_by_length_namespace_and_trailing_zeros():
    names = [slot(name, namespace, 31) for name in ("a", "a\0", "aa", "") for namespace in ("", "a", "b", "a\0")]
    assert len(set(names)) == len(names)
    assert slot("é", "ü") == slot("é".encode(), "ü".encode())
