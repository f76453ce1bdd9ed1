"""Two coordinates at a time have the bits of one after the other, in rows of any length."""

import numpy as np
import pytest
from scipy import sparse

from forel.learner.filters import Filter
from forel.learner.kernels.reference import constants
from forel.learner.kernels.spec import KernelSpec
from forel.learner.lanes import Lanes
from forel.learner.linear import Linear, Settings

N = 11
FILTERS = (Filter(10.0, 1.0), Filter(0.3, 1.0), Filter(0.3), Filter(0.03))
FORGETFUL = (Filter(10.0, 1.0), Filter(0.3, 1.0), Filter(0.3, memory=0.9), Filter(0.03))


def settings(loss="logistic", filters=FILTERS, alpha=(0.05, 0.3, 1.5, 20.0), **others):
    penalties = {"l1": 0.01, "l2": (0.0, 0.02, 0.1, 0.0), "radius": 5.0} if len(alpha) == 4 else {}
    return Settings(loss, alpha=alpha, beta=0.01, rate="scale_free", filters=filters, **penalties, **others)


def rows(longest, kind):
    """Return rows of all lengths up to ``longest``, features in any order, and labels."""
    rng = np.random.default_rng(longest)
    lengths = rng.permutation(np.repeat(np.arange(longest + 1), 4))
    indices = np.concatenate([rng.permutation(N)[:length] for length in lengths])
    values = rng.integers(-300, 300, indices.size) / 128
    X = sparse.csr_array((values.astype(kind), indices, np.append(0, np.cumsum(lengths))), shape=(lengths.size, N))
    return X, rng.integers(0, 2, lengths.size)


def one_after_the_other(monkeypatch):
    """Use the kernel that supports all units, which has no pairs, from the first row on."""
    monkeypatch.setattr(Lanes, "_with_kernels", lambda lanes, count, process: process(lanes.kernel, 0))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("options", "certified", "kind"),
    [
        ({}, False, np.float32),
        ({"bias": False}, False, np.float32),
        ({"loss": "squared", "filters": FORGETFUL}, False, np.float64),
        ({"penalty_weight": "every"}, False, np.float32),
        ({}, True, np.float32),
        ({"loss": "squared", "filters": FORGETFUL, "bias": False}, True, np.float32),
    ],
)
def test_pairs_have_the_bits_of_one_coordinate_after_the_other(options, certified, kind, monkeypatch):
    X, y = rows(6, kind)
    importance, held_out = np.arange(y.size) % 3 * 0.5, np.arange(y.size) % 7 == 0
    pairs, single = (Linear(N, settings(**options), certified=certified, dtype=kind) for _ in range(2))
    margins = pairs.progress(X, y, importance, held_out)
    weights, predictions = pairs.weights, pairs.margins(X)
    one_after_the_other(monkeypatch)
    assert np.array_equal(margins, single.progress(X, y, importance, held_out))
    for name in ("records", "_scales", "totals"):
        assert getattr(pairs._lanes, name).tobytes() == getattr(single._lanes, name).tobytes()
    assert np.array_equal(weights, single.weights)
    assert np.array_equal(predictions, single.margins(X))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("place", [0, 1, 2])  # of the first row
@pytest.mark.parametrize("value", [2.0**17, 2.0**-40])
def test_any_coordinate_of_a_pair_may_need_another_unit(value, place, monkeypatch):
    X, y = rows(3, np.float32)
    full = np.flatnonzero(np.diff(X.indptr) == 3)
    X, y = X[full], y[full]
    X.data[place] = value
    pairs, single = (Linear(N, settings()) for _ in range(2))
    margins = pairs.progress(X, y)
    one_after_the_other(monkeypatch)
    assert np.array_equal(margins, single.progress(X, y))
    assert pairs._lanes.records.tobytes() == single._lanes.records.tobytes()


@pytest.mark.parametrize(
    ("chosen", "units", "expected"),
    [
        (settings(), False, True),
        (settings(), True, False),
        (settings(alpha=(0.1, 0.2, 0.3)), False, False),
        (settings(filters=FILTERS[:3]), False, False),
        (settings(alpha=(0.1, 0.2, 0.3), filters=(*FILTERS, FILTERS[0])), False, False),
    ],
)
def test_pairs_are_used_where_they_fill_vectors(chosen, units, expected):
    layout = Lanes(N, chosen, chosen.lanes).layout
    assert constants(KernelSpec("logistic", layout, bias=True, units=units))["PAIRS"] is expected
