"""Eight records at a time: the same numbers at the same places as one after the other, and no others touched."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.learner.kernels import plain, records
from forel.learner.kernels.recipe import room

APART, SPARE = 9, 50


def both(make, parts):
    """Return a trip compiled, of records of so many parts, and its slow twin."""
    modules = [SimpleNamespace(**{name: getattr(home, name) for name in records.__all__}) for home in (records, plain)]
    return numba.njit(make(modules[0], parts)), make(modules[1], parts)


def whole(home, parts):
    fetch, spread, give = home.fetch, home.spread, home.give

    def trip(desk, zn, indices, values, j, count, bias, unit, extra):
        fetch(desk, np.uint64(1), APART, zn, parts, indices, j)
        spread(desk, np.uint64(1 + 4 * APART), values, j)
        if parts > 1:
            for i in range(4 * APART):
                desk[i] += 1
            give(desk, np.uint64(1), APART, zn, parts, indices, j)

    return trip


def rest(home, parts):
    fetch, spread, give, exempt = home.fetch_rest, home.spread_rest, home.give_rest, home.exempt

    def trip(desk, zn, indices, values, j, count, bias, unit, extra):
        fetch(desk, np.uint64(1), APART, zn, parts, indices, j, count, bias)
        if parts == 1:
            spread(desk, np.uint64(1 + 4 * APART), values, j, count, unit)
            exempt(desk, np.uint64(1 + 2 * APART), count, unit)
        else:
            for i in range(4 * APART):
                desk[i] += 1
            give(desk, np.uint64(1), APART, zn, parts, indices, j, count, bias, extra, np.uint64(SPARE))

    return trip


WHOLE, REST = ({parts: both(make, parts) for parts in (1, 2, 3, 4)} for make in (whole, rest))


@pytest.mark.parametrize("parts", WHOLE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint32])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_records_arrive_where_they_would_one_by_one(parts, dtype, index, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count, before, extra = (data.draw(st.integers(low, high)) for low, high in ((0, 8), (0, 3), (0, 1)))
    # The arrays end with the last index that may be looked at.
    indices = rng.permutation(12)[: before + count].astype(index)
    values, zn = rng.normal(size=before + count).astype(dtype), np.zeros((13, room(parts)), dtype)
    zn[:, :parts] = rng.normal(size=(13, parts))
    state = []
    for trip in (WHOLE if count == 8 else REST)[parts]:
        desk, records_of = np.full(6 * APART, 7, dtype), zn.ravel().copy()
        numbers = np.uint64(before), np.uint64(count), np.uint64(12), dtype(extra), np.uint64(extra)
        trip(desk, records_of, indices, values, *numbers)
        # Other parts than z are anybody's after the bias, and the spare place is anybody's.
        kept = [APART * part + 1 + i for part in range(1, parts) for i in range(count + 1, 8)]
        desk[[*kept, *range(SPARE, SPARE + 4)]] = 0
        state.append((desk.tobytes(), records_of.tobytes()))
    assert state[0] == state[1]
