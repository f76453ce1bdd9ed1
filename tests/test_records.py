"""Eight records at a time: the same numbers at the same places as one after the other, and no others touched."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.kernels import plain, records

APART = 9


def both(parts):
    """Return a round trip compiled, of records of so many parts, and its slow twin."""

    def make(fetch, spread, give):
        def trip(desk, zn, indices, values, j, count, bias, unit):
            fetch(desk, np.uint64(1), APART, zn, parts, indices, j, count, bias)
            spread(desk, np.uint64(1 + 4 * APART), values, j, count, unit)
            if count == np.uint64(8) and parts > 1:
                for i in range(4 * APART):
                    desk[i] += 1
                give(desk, np.uint64(1), APART, zn, parts, indices, j)

        return trip

    fast = numba.njit(make(records.fetch, records.spread, records.give))
    return fast, make(plain.fetch, plain.spread, plain.give)


TRIPS = {parts: both(parts) for parts in (1, 2, 3, 4)}


@pytest.mark.parametrize("parts", TRIPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint32])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_records_arrive_where_they_would_one_by_one(parts, dtype, index, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count, before = data.draw(st.integers(1, 8)), data.draw(st.integers(0, 3))
    # The arrays end with the last index that may be looked at.
    indices = rng.permutation(12)[: before + count].astype(index)
    values, zn = rng.normal(size=before + count).astype(dtype), rng.normal(size=13 * parts).astype(dtype)
    state = []
    for trip in TRIPS[parts]:
        desk, records_of = np.full(6 * APART, 7, dtype), zn.copy()
        trip(desk, records_of, indices, values, np.uint64(before), np.uint64(count), np.uint64(12), dtype(1))
        # Other parts than z are anybody's after the bias.
        kept = [APART * part + 1 + i for part in range(1, parts) for i in range(count + 1, 8)]
        desk[kept] = 0
        state.append((desk.tobytes(), records_of.tobytes()))
    assert state[0] == state[1]
