"""Merged full-covariance filters: the posterior of all rows, in any scales, and filters that are dropped."""

import numpy as np
import pytest

from forel.learner.filters import FullFilter
from forel.learner.full_filters import MOST, FullFilters
from forel.learner.grid import default_grid
from forel.learner.merge_full_filters import merged_full_filters
from forel.learner.merge_states import learn_shard, merge, restore
from forel.learner.mixture import Mixture
from forel.learner.rows import CoalescedRows, Rows


def dense_rows(X, slots, kind=Rows):
    count, width = X.shape
    return kind(np.arange(0, count * width + 1, width), np.tile(np.int32(slots), count), X.ravel())


def learned(start, X, slots, y, importance):
    filters = start.copy()
    filters.progress(dense_rows(X, slots), y, importance)
    return filters


@pytest.mark.parametrize("bias", [True, False])
def test_with_squared_loss_merging_is_learning_in_order(interpreted, bias):
    # Shards see new features and larger values, in different orders; rows of one also have a feature that is always 0.
    rng = np.random.default_rng(3)
    base = FullFilters((FullFilter(3.0), FullFilter(0.1)), logistic=False, bias=bias)
    base = learned(base, rng.normal(size=(5, 3)), [9, 4, 2], rng.normal(size=5), np.ones(5))
    parts, in_order = [], base
    for k, slots in enumerate(([4, 2, 30], [2, 11], [30, 5, 9, 4])):
        X = rng.normal(size=(6, len(slots))) * 5.0 ** (k - 1) * rng.choice([1e-3, 1.0, 1e3], len(slots))
        X[:, 0] *= k != 1
        rows = X, slots, rng.normal(size=6), rng.uniform(0.5, 2, 6)
        parts.append((base, learned(base, *rows), 6))
        in_order = learned(in_order, *rows)
    found, slots = merged_full_filters(base, parts), np.array([-1, 2, 4, 5, 9, 11, 30])
    assert np.array_equal(found.slots, in_order.slots)
    scales = in_order.scales_at(slots)
    assert np.array_equal(found.scales_at(slots), scales)
    assert np.allclose(*(one.in_scales(slots[scales > 0], scales[scales > 0]) for one in (found, in_order)), rtol=1e-7)
    X = rng.normal(size=(4, 3))
    assert np.allclose(*(one.margins(dense_rows(X, [4, 11, 30])) for one in (found, in_order)), rtol=1e-7)
    # Both continue alike: the constant and the order of features are where the kernel expects them.
    more = rng.normal(size=(5, 2)), [4, 50], rng.normal(size=5), np.ones(5)
    assert np.allclose(*(learned(one, *more).weights_at(slots, 99) for one in (found, in_order)), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("logistic", [True, False])
def test_filters_that_forget_stay_between_their_rows_and_the_prior(interpreted, logistic):
    rng = np.random.default_rng(4)
    base = FullFilters((FullFilter(2.0, 0.9), FullFilter(2.0)), logistic)
    slots = np.array([-1, 0, 1, 2])

    def rows(count):
        X = rng.normal(size=(count, 3))
        return X, [0, 1, 2], (X[:, 0] > 0).astype(float), np.ones(count)

    base = learned(base, *rows(20))
    parts = [(base, learned(base, *rows(8)), 8) for _ in range(4)]
    found = merged_full_filters(base, parts)
    scales = found.scales_at(slots)
    for state in found.in_scales(slots, scales):
        assert 0 < np.linalg.eigvalsh(state[1:]).min() <= np.linalg.eigvalsh(state[1:]).max() <= 2 * (1 + 1e-9)
    forgetting, remembering = (np.trace(state[1:]) for state in found.in_scales(slots, scales))
    assert remembering < forgetting
    one = merged_full_filters(base, parts[:1])
    own = one.scales_at(slots)
    assert np.allclose(one.in_scales(slots, own), parts[0][1].in_scales(slots, own), rtol=1e-8, atol=1e-12)


def shard(rng, features, flip=False):
    X = rng.normal(size=(6, len(features))).astype(np.float64)
    y = (X.sum(axis=1) > 0).astype(float)
    return dense_rows(X, features, CoalescedRows), 1 - y if flip else y, np.ones(6)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("wide", ["one shard", "all together"])
def test_filters_are_dropped_with_too_many_features_and_the_guarantee_holds(interpreted, loss, wide):
    rng = np.random.default_rng(1)
    model = Mixture(400, default_grid(loss=loss), dtype=np.float64)
    for _ in range(3):
        restore(model, merge(model, [learn_shard(model, *shard(rng, range(5)))[1] for _ in range(3)]))
    assert model.pool.full is not None
    sizes = (4, MOST + 5, 4) if wide == "one shard" else (60, 60, 60)
    parts = []
    for k, size in enumerate(sizes):
        margins, state = learn_shard(model, *shard(rng, np.arange(size) + 61 * k, flip=k == 2))
        assert np.isfinite(margins).all()
        assert model.pool.full is not None  # a shard leaves the model as it was
        parts.append(state)
    assert (parts[1].full is None) == (wide == "one shard")
    lost = model.loss + sum(part.ledger[0] - model.ledger.array[0] for part in parts)
    restore(model, merge(model, parts))
    assert model.pool.full is None
    assert model.loss == pytest.approx(lost, rel=1e-12)
    for _ in range(2):
        restore(model, merge(model, [learn_shard(model, *shard(rng, range(5)))[1] for _ in range(2)]))
        assert model.loss - model.losses.min() <= model.guarantee().bound
    assert model.ledger.rows == model.rounds == 96


def test_a_model_receives_filters_of_a_slice_again(interpreted):
    rng = np.random.default_rng(2)
    model = Mixture(400, default_grid(), dtype=np.float64)
    model.progress(*shard(rng, range(5)))
    kept = learn_shard(model, *shard(rng, range(5)))[1]
    other = Mixture(400, default_grid(), dtype=np.float64)
    other.progress(*shard(rng, range(MOST + 1)))
    assert other.pool.full is None
    restore(other, kept)
    restore(model, kept)
    rows, *_ = shard(rng, range(5))
    full = [one.pool.full.margins(Rows(*rows)) for one in (model, other)]
    assert np.array_equal(*full)
    assert model.ledger.array.tobytes() == other.ledger.array.tobytes()
