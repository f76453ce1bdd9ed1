"""Lean margins have the bits of the normal path, whatever a learner mixes and however many rows there are."""

import numpy as np
import pytest

from forel.learner.experts import FullFilter
from forel.learner.grid import default_grid
from forel.learner.lean import LeanMargins
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings

CASES = {
    "one": (Settings(alpha=0.5), {}),
    "one, certified": (Settings(alpha=0.5, l1=0.01), {"certified": True}),
    "default": (default_grid(full_filters=()), {}),
    "full filters": (default_grid(full_filters=(FullFilter(1.0),)), {}),
    "grid": (Settings(alpha=(0.1, 1.0)), {}),
    "share": (Settings(alpha=(0.1, 1.0)), {"share": 0.1}),
    "squared": (Settings("squared", alpha=(0.1, 1.0)), {}),
    "classes": (Settings("softmax", alpha=0.5), {"classes": 3}),
}


def some_rows(rng, count):
    slots = [rng.permutation(16)[: rng.integers(0, 6)] for _ in range(count)]
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in slots]))).astype(np.int64)
    indices = np.concatenate([np.empty(0, int), *slots]).astype(np.int32)
    return CoalescedRows(indptr, indices, rng.choice([1.0, 1.0, 0.37, -2.5], indices.size).astype(np.float32))


@pytest.mark.parametrize("name", CASES)
def test_lean_margins_have_the_same_bits(name, interpreted):
    settings, options = CASES[name]
    rng, learner = np.random.default_rng(3), Learner(16, settings, **options)
    lean = LeanMargins(learner)
    for count in (0, 1, 1, 5, 80, 200, 3):
        rows = some_rows(rng, count)
        before = learner.copy()
        assert lean(rows).tobytes() == learner.margins(rows).tobytes()
        assert lean(rows).shape == learner.margins(rows).shape
        if learner.mixture is not None:
            assert learner.mixture.ledger.array.tobytes() == before.mixture.ledger.array.tobytes()
        labels = rng.integers(0, options.get("classes", 2), count)
        learner.learn(rows, labels)


def test_lean_margins_follow_a_mixture_whose_full_filters_leave(interpreted):
    rng, learner = np.random.default_rng(3), Learner(16, default_grid(full_filters=(FullFilter(1.0),)))
    lean, rows = LeanMargins(learner), some_rows(rng, 9)
    learner.learn(rows, rng.integers(0, 2, 9))
    assert lean(rows).tobytes() == learner.margins(rows).tobytes()
    learner.mixture.drop_full_filters()
    assert lean(rows).tobytes() == learner.margins(rows).tobytes()


def test_lean_margins_compiled():
    rng, learner = np.random.default_rng(3), Learner(16, default_grid(full_filters=()))
    lean, rows = LeanMargins(learner), some_rows(rng, 200)
    learner.learn(rows, rng.integers(0, 2, 200))
    for count in (1, 64, 200):
        part = rows.take(np.arange(count))
        assert lean(part).tobytes() == learner.margins(part).tobytes()


def test_a_whole_copy_is_equal_and_independent(interpreted):
    rng, learner = np.random.default_rng(3), Learner(16, default_grid(full_filters=()), certified=True)
    rows = some_rows(rng, 30)
    learner.learn(rows, rng.integers(0, 2, 30))
    copy, expected = learner.copy(whole=True), learner.margins(rows)
    learner.learn(rows, rng.integers(0, 2, 30))
    assert copy.margins(rows).tobytes() == expected.tobytes() != learner.margins(rows).tobytes()
    assert copy.rounds == 30
