"""Merged states: against the formula in dense numpy, against the theory's batch rounds, and their certificates."""

import numpy as np
import pytest

from forel.learner import merge_ledgers, merge_states
from forel.learner.curvature import curvature_of
from forel.learner.factory import make_learner
from forel.learner.filters import Filter
from forel.learner.grid import default_grid
from forel.learner.kernels import merging
from forel.learner.linear import Linear, Settings
from forel.learner.merge_states import check_mergeable, learn_shard, merge, restore, slice_of
from forel.learner.mixture import Mixture
from forel.learner.rows import CoalescedRows
from forel.learner.shard_rows import split_rows
from forel.losses import Linear as LinearLoss
from forel.theory.algorithms import ad_click

FEATURES = 12


def rows_of(rng, count, scale=1.0, features=FEATURES):
    """Return sparse rows and labels that depend on them."""
    dense = rng.normal(size=(count, features)) * (rng.random((count, features)) < 0.4)
    labels = (dense.sum(axis=1) + rng.normal(size=count) > 0).astype(float)
    dense *= scale
    indptr = np.concatenate(([0], np.cumsum((dense != 0).sum(axis=1))))
    return CoalescedRows(indptr, np.nonzero(dense)[1].astype(np.int32), dense[dense != 0]), labels


def dense_of(rows):
    out = np.zeros((rows.number, FEATURES + 1))
    for r in range(rows.number):
        some = slice(rows.indptr[r], rows.indptr[r + 1])
        out[r, rows.indices[some]] = rows.values[some]
    out[:, -1] = 1
    return out


def learn_alone(model, rows, labels):
    return learn_shard(model, rows, labels, np.ones(labels.size))[1]


def pulled(base, shards, curvature, strength, l1):
    """Return the merged (z, n, g) of dense proximal states: the formula as it is written down."""
    penalties = np.append(np.full(FEATURES, l1), 0.0)

    def parts(z, n):
        return -np.sign(z) * np.maximum(np.abs(z) - penalties, 0) / strength(n), np.clip(z, -penalties, penalties)

    def growth(a):  # the limit of a/(1 - exp(-a)) at 0 is 1
        return np.where(a > 0, a / -np.expm1(-np.where(a > 0, a, 1.0)), 1.0)

    n, g = (base[j] + sum(shard[j] - base[j] for shard in shards) for j in (1, 2))
    merged, start = [], parts(base[0], base[1])
    for part in range(2):
        total, steps = np.zeros_like(n), np.zeros_like(n)
        for z, own, _ in shards:
            end = parts(z, own)
            exponents = np.where((end[0] != 0) | (start[0] != 0), curvature * (own - base[1]) / strength(own), 0.0)
            total, steps = total + exponents, steps + growth(exponents) * (end[part] - start[part])
        merged.append(start[part] + steps / growth(total))
    x, within = merged
    return within - x * strength(n), n, g


@pytest.mark.parametrize("shards", [2, 5])
def test_merged_states_are_those_of_the_formula(interpreted, shards):
    rng = np.random.default_rng(shards)
    model = Linear(FEATURES, Settings(alpha=0.3, l1=0.4), dtype=np.float64, certified=True)
    for _ in range(3):
        base = model.state[:, :, 0].copy()
        parts, dense = [], []
        for _ in range(shards):
            parts.append(learn_alone(model, *rows_of(rng, 8)))
            own = base.copy()
            own[parts[-1].slots] = parts[-1].records[:, :, 0]
            dense.append(tuple(own.T))
        assert np.array_equal(model.state[:, :, 0], base)  # a shard leaves the model as it was
        restore(model, merge(model, parts))
        curvature = max(part.curvature for part in parts)
        expected = pulled(base.T, dense, curvature, lambda n: (1 + np.sqrt(n)) / 0.3, 0.4)
        owners = np.bincount(np.concatenate([part.slots for part in parts]), minlength=FEATURES + 1)
        assert np.allclose(model.state[owners > 1, :, 0].T, np.array(expected)[:, owners > 1], rtol=1e-12, atol=1e-14)
    assert model.rounds == 3 * shards * 8


def test_merged_weights_follow_all_forces_at_once():
    """Gradient descent in many short steps, by each of three losses alone and by their sum."""
    rng = np.random.default_rng(2)
    strength, start, targets = 40.0, 0.3, rng.normal(size=3)
    curvatures = np.array([0.5, 30.0, 90.0])

    def descend(which):
        x, steps = start, 20_000
        for _ in range(steps):
            x -= np.sum(curvatures[which] * (x - targets[which])) / strength / steps
        return x

    # Strengths hardly grow: n is large, and D small.
    n = 1e12
    p = np.array([[strength / np.sqrt(n)], [0.0], [0.0], [0.0], [np.inf]])
    base = np.array([[[-start * strength], [n]]])
    added, one = np.zeros((1, merging.ADDED, 1)), np.ones(1)
    for k in range(3):
        own = np.array([[[-descend([k]) * strength], [n + curvatures[k]]]])
        merging.add_shard(
            np.zeros(1, np.int64), np.array([3]), own, one, base, one, one, one, one, p, False, 1, True, 1.0, added
        )
    out = np.zeros_like(base)
    merging.merge_records(np.array([3]), base, one, one, one, p, False, 1, True, 1.0, 1e300, added, out)
    assert -out[0, 0, 0] / strength == pytest.approx(descend([0, 1, 2]), rel=1e-3)


def test_the_curvature_bounds_hessians_in_every_direction():
    rng = np.random.default_rng(6)
    rows, _ = rows_of(rng, 40)
    dense = dense_of(rows)
    model = Linear(FEATURES, Settings("squared"), dtype=np.float64)
    margins, labels, importance = rng.normal(size=(40, 1)), rng.normal(size=40), rng.uniform(0.5, 2, 40)
    own = np.diff(rows.indptr) + 1 == 6  # rows of as many features as there are on average
    some = np.flatnonzero(own)
    X, w, slopes = dense[some], importance[some], (margins[:, 0] - labels)[some]
    indptr = np.concatenate(([0], np.cumsum(np.full(some.size, 5))))
    entries = np.concatenate([np.arange(rows.indptr[r], rows.indptr[r + 1]) for r in some])
    part = CoalescedRows(indptr, rows.indices[entries], rows.values[entries])
    found = curvature_of(model, part, margins[some], labels[some], importance[some])
    squares = np.sum(np.square(w * slopes))
    bound = found * squares / np.sum(w) * np.diag(np.sum(w[:, None] * X**2, axis=0))
    assert np.linalg.eigvalsh(bound - (X * w[:, None]).T @ X).min() > -1e-9
    assert np.linalg.eigvalsh(bound / 2 - (X * w[:, None]).T @ X).min() < 0
    held_out = np.arange(some.size) > 2
    three = curvature_of(model, part, margins[some], labels[some], importance[some], held_out)
    assert three == pytest.approx(6 * np.sum(w[:3]) / np.sum(np.square((w * slopes)[:3])))
    assert curvature_of(model, part, margins[some], labels[some], 0 * importance[some]) == np.inf


def test_weights_are_the_average_of_those_that_the_theory_plays(interpreted):
    rng = np.random.default_rng(0)
    model = Linear(FEATURES, Settings("absolute", alpha=0.5, l1=0.2, bias=False), dtype=np.float64, certified=True)
    theory, parts, played, gains = ad_click(alpha=0.5, beta=1.0, l1=0.2), [], [], []
    for _ in range(4):
        rows, _ = rows_of(rng, 3)
        parts.append(learn_alone(model, rows, np.full(3, 100.0)))  # every prediction is too small: slopes of -1
        state, gradients = theory.init(FEATURES), -dense_of(rows)[:, :-1]
        for gradient in gradients:
            state = theory.update(state, LinearLoss(gradient))
        played.append(theory.play(state))
        gains.append(np.sqrt(np.sum(gradients**2, axis=0)) / 0.5)
    restore(model, merge(model, parts))
    total = np.sum(gains, axis=0)
    expected = np.divide(np.sum(np.array(gains) * played, axis=0), total, out=np.zeros(FEATURES), where=total > 0)
    assert np.count_nonzero(expected) > 5
    assert np.allclose(model.weights[:, 0], expected, rtol=1e-10, atol=1e-12)


def test_centered_rows_of_one_gradient_each_are_a_batch_of_the_theory(interpreted):
    # Gradients of one sign: n grows by the square of their sum, as in a round whose loss is the sum of losses.
    rng = np.random.default_rng(0)
    settings = Settings("absolute", algorithm="centered", alpha=0.5, l1=0.2, bias=False)
    model = Linear(FEATURES, settings, dtype=np.float64, certified=True)
    played = []
    for _ in range(6):
        rows, _ = rows_of(rng, 4)
        rows = rows._replace(values=np.abs(rows.values))
        labels = dense_of(rows)[:, :-1] @ model.weights[:, 0] + 100.0  # every prediction is too small: slopes of -1
        parts = [learn_alone(model, CoalescedRows(rows.indptr[r : r + 2] - rows.indptr[r],
                                                  rows.indices[rows.indptr[r] : rows.indptr[r + 1]],
                                                  rows.values[rows.indptr[r] : rows.indptr[r + 1]]), labels[r : r + 1])
                 for r in range(4)]  # fmt: skip
        restore(model, merge(model, parts))
        played.append(-dense_of(rows)[:, :-1].sum(axis=0))
        assert np.allclose(model.state[:FEATURES, 1, 0], np.sum(np.square(played), axis=0), rtol=1e-12)
    total = np.sum(played, axis=0)
    assert np.allclose(model.state[:FEATURES, model._lanes.layout.gradient_part, 0], total, rtol=1e-12)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_steps_that_are_too_small_for_strengths_to_grow_leave_states_finite(interpreted, loss):
    model = Linear(1, Settings(loss, alpha=1.0, beta=0.0, bias=False), dtype=np.float64, certified=True)
    for value, labels in ((1e20, (1.0, 2.0)), (1.6e12, (3.0, -4.0)), (1e-150, (1e-150, 1e-150))):
        rows = CoalescedRows(np.array([0, 1]), np.int32([0]), np.array([value]))
        restore(model, merge(model, [learn_alone(model, rows, np.array([label])) for label in labels]))
        assert np.isfinite(model.state).all()
        assert np.isfinite(model.weights).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_shard_and_coordinates_of_one_shard_keep_their_bits(interpreted, dtype):
    rng = np.random.default_rng(3)
    one, two = (Linear(FEATURES, Settings(alpha=0.3, l1=0.1, rate="scale_free", beta=0.01), dtype=dtype,
                       certified=True) for _ in range(2))  # fmt: skip
    rows, labels = rows_of(rng, 30)
    rows = rows._replace(values=rows.values.astype(dtype))
    part = learn_alone(one, rows, labels)
    restore(one, merge(one, [part]))
    two.learn(rows, labels)
    assert one.state.tobytes() == two.state.tobytes()
    assert one._lanes.totals.tobytes() == two._lanes.totals.tobytes()
    assert one._lanes.scales.tobytes() == two._lanes.scales.tobytes()


@pytest.mark.parametrize("factor", [1.0, 2.0**40, 2.0**-30])
def test_scale_free_merges_do_not_depend_on_units(interpreted, factor):
    weights = []
    for scale in (1.0, factor):
        rng = np.random.default_rng(5)
        model = Linear(FEATURES, Settings(alpha=0.5, rate="scale_free", beta=0.01), dtype=np.float64, certified=True)
        for k in range(4):
            # Later rows are larger, so that scales grow differently in each shard.
            parts = [learn_alone(model, *rows_of(rng, 5, scale * (1 + k * s))) for s in range(3)]
            restore(model, merge(model, parts))
        weights.append(model.weights[:, 0] * scale)
        assert np.all(np.isfinite(model.state))
    assert np.allclose(*weights, rtol=1e-9)


def test_scales_are_the_largest_and_records_change_their_unit(interpreted):
    model = Linear(1, Settings("squared", alpha=1.0, rate="scale_free", beta=0.01, bias=False), dtype=np.float64,
                   certified=True)  # fmt: skip
    small, large = (CoalescedRows(np.array([0, 1]), np.int32([0]), np.array([v])) for v in (2.0**127, 2.0**130))
    parts = [learn_alone(model, rows, np.array([1.0])) for rows in (small, large)]
    restore(model, merge(model, parts))
    unit = model._lanes.units(slice(None))[0]
    z, n, g = model.state[0, :, 0] * [unit, unit * unit, unit]
    assert (model._lanes.scales[0], unit) == (2.0**130, 2.0**384)
    assert (g, n) == (-9 * 2.0**127, 65 * 2.0**254)  # gradients of -1 and -8 times 2¹²⁷
    # Points of 1/1.01 and 1/8.08 times 2⁻¹²⁷, with exponents of 1/1.01 in their own scales; the rate of the first is
    # smaller in the scale of both.
    a, ratio = 1 / 1.01, 1.01 / 8.64
    pulled_to = (ratio + 1 / 8) / 1.01 / -np.expm1(-a) / (1 + ratio)
    x = -np.expm1(-a * (1 + ratio)) * pulled_to * 2.0**-127
    assert z == pytest.approx(-x * 8 * (0.08 + np.sqrt(65)) * 2.0**254, rel=1e-12)


EXPERTS = default_grid()


def both_of(rng, model, count):
    """Return some rows, and the same rows as two shards, of which the second has learned the first before its own."""
    rows, labels = rows_of(rng, 2 * count)
    rows = rows._replace(values=rows.values.astype(model.dtype))
    ones, last = np.ones(2 * count), rows.indptr[count]
    first = CoalescedRows(rows.indptr[: count + 1], rows.indices[:last], rows.values[:last])
    parts = [
        learn_shard(model, first, labels[:count], ones[:count])[1],
        learn_shard(model, rows, labels, ones, offset=0, warm_up=count)[1],
    ]
    return rows, labels, parts


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_shards_that_learned_all_rows_before_theirs_add_up_to_learning_in_order(interpreted, loss):
    # Sums, gradients, filters, mixers and fixed share telescope; weights of settings are averages all the same.
    rng = np.random.default_rng(2)
    settings = default_grid(loss=loss)
    merged, alone = (Mixture(FEATURES, settings, dtype=np.float64, certified=True) for _ in range(2))
    for model in (merged, alone):
        model.progress(*rows_of(np.random.default_rng(1), 30, 10.0))  # so that scales do not grow later
    rows, labels, parts = both_of(rng, merged, 15)
    restore(merged, merge(merged, parts))
    alone.progress(rows, labels)
    filters = settings.first_filter
    assert (merged.rounds, merged.weight) == (alone.rounds, alone.weight) == (60, 60.0)
    assert np.allclose(merged.linear.loss, alone.linear.loss, rtol=1e-12)
    assert np.allclose(merged.linear._lanes.gradients, alone.linear._lanes.gradients, rtol=1e-11, atol=1e-13)
    remembering = [k for k, one in enumerate(settings.filters) if one.memory == 1]
    for lane in (filters + k for k in remembering):
        assert np.allclose(merged.linear.state[:, :2, lane], alone.linear.state[:, :2, lane], rtol=1e-9, atol=1e-12)
    assert np.allclose(merged.ledger.losses, alone.ledger.losses, rtol=1e-12)
    assert merged.loss == pytest.approx(alone.loss, rel=1e-12)
    # The second mixer forgets, and the rows of later shards do not make it forget those of earlier ones.
    assert np.allclose(merged.ledger.mixer_states[0], alone.ledger.mixer_states[0], rtol=1e-6, atol=1e-9)
    assert np.allclose(merged.ledger.residuals[:1], alone.ledger.residuals[:1], rtol=1e-9)
    assert np.allclose(merged.ledger.weights, alone.ledger.weights, atol=0.01)


def test_filters_of_one_feature_are_the_posterior_of_all_rows(interpreted):
    # With squared loss and one feature in a row, filters are exact, and so is the sum of their information.
    rng = np.random.default_rng(4)
    settings = Settings("squared", alpha=(1.0, 30.0), rate="scale_free", filters=(Filter(3.0), Filter(0.1)), bias=False)
    merged, alone = (Mixture(4, settings, dtype=np.float64, certified=True) for _ in range(2))
    widest = CoalescedRows(np.arange(5), np.arange(4, dtype=np.int32), np.full(4, 8.0))
    for model in (merged, alone):
        model.progress(widest, np.arange(4.0))
    for _ in range(3):
        parts = []
        for _ in range(3):
            indices = rng.integers(0, 4, 10).astype(np.int32)
            rows = CoalescedRows(np.arange(11), indices, rng.normal(size=10))
            labels = rows.values * (1 + indices) + rng.normal(size=10)
            parts.append(learn_shard(merged, rows, labels, np.ones(10))[1])
            alone.progress(rows, labels)
        restore(merged, merge(merged, parts))
    assert np.allclose(merged.linear.state[:4, :2, 2:], alone.linear.state[:4, :2, 2:], rtol=1e-10)


def test_filters_merge_as_the_formula_in_their_information(interpreted):
    rng = np.random.default_rng(8)
    settings = Settings("squared", alpha=(1.0, 30.0), rate="scale_free", beta=0.01,
                        filters=(Filter(3.0), Filter(3.0, memory=0.9)))  # fmt: skip
    model = Mixture(FEATURES, settings, dtype=np.float64, certified=True)
    model.progress(*rows_of(rng, 20))
    variances = np.array([3.0, 3.0])
    base, scales = model.linear.state[:, :2, 2:].copy(), model.linear._lanes.scales.copy()
    parts = [learn_alone(model, *rows_of(rng, 9, 1.0 + k)) for k in range(3)]
    restore(model, merge(model, parts))
    found, largest = model.linear.state[:, :2, 2:], np.max([scales] + [_scattered(scales, p) for p in parts], axis=0)
    prior, kept, gained = largest[:, None] ** 2 / variances, np.ones((FEATURES + 1, 2)), np.zeros((FEATURES + 1, 2))
    vector = (prior + base[:, 1]) * base[:, 0]
    for part in parts:
        own, own_prior = base.copy(), _scattered(scales, part)[:, None] ** 2 / variances
        own[part.slots] = part.records[:, :2, 2:]
        vector += (own_prior + own[:, 1]) * own[:, 0] - (own_prior + base[:, 1]) * base[:, 0]
        kept *= np.minimum(own[:, 1] / base[:, 1], 1)
        gained += np.maximum(own[:, 1] - base[:, 1], 0)
    information = base[:, 1] * kept + gained
    assert (kept[:, 1] < 1).any()
    assert np.allclose(found[:, 1], information, rtol=1e-12)
    assert np.allclose(found[:, 0], vector / (prior + information), rtol=1e-9, atol=1e-12)


def _scattered(scales, part):
    own = scales.copy()
    own[part.slots] = part.scales
    return own


@pytest.mark.parametrize("memory", [1.0, 0.97])
def test_mixers_add_up_the_information_of_ridge_regressions(memory):
    # Recursive least squares in plain numpy: with memory 1, merging shards is learning all rows in order.
    rng, size, variance = np.random.default_rng(3), 4, 0.3

    def learned(state, rows):
        mean, covariance = state[0].copy(), state[1:].copy()
        for x, y in rows:
            c = covariance @ x
            mean, covariance = mean + c * (y - mean @ x) / (1 + x @ c), covariance - np.outer(c, c) / (1 + x @ c)
            covariance = memory * covariance + (1 - memory) * variance * np.eye(size)
        return np.vstack((mean, covariance))

    rows = [(rng.normal(size=size), rng.normal()) for _ in range(40)]
    start = learned(np.vstack((np.full(size, 0.25), variance * np.eye(size))), rows[:10])
    states = [(start, learned(start, rows[a : a + 10])) for a in (10, 20, 30)]
    found = merge_ledgers.merged_gaussian(start, states, [memory**10] * 3, variance)
    if memory == 1:
        assert np.allclose(found, learned(start, rows[10:]), rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(found[1:]).min() > 0
    assert np.linalg.eigvalsh(found[1:]).max() <= variance * (1 + 1e-9)
    one = merge_ledgers.merged_gaussian(start, states[:1], [memory**10], variance)
    assert np.allclose(one, states[0][1], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(("settings", "classes"), [
    (Settings(alpha=0.5, l1=0.1), None), (default_grid(lanes=4), None), (Settings("softmax", alpha=0.5), 3),
    (EXPERTS, None),
])  # fmt: skip
def test_loss_floors_of_merged_models_hold(interpreted, settings, classes):
    # The oracle recomputes the claim from the rows: losses of many fixed models.
    rng = np.random.default_rng(7)
    model = make_learner(FEATURES, settings, classes, np.float64, certified=True)
    rows, labels, lost = [], [], 0.0
    for _ in range(8):
        parts = []
        for _ in range(4):
            some, y = rows_of(rng, 6)
            y = y if classes is None else rng.integers(0, classes, y.size).astype(float)
            before = float(np.atleast_1d(model.loss)[0])
            parts.append(learn_alone(model, some, y))
            lost += float((parts[-1].ledger[0] if parts[-1].ledger is not None else parts[-1].sums[0, 0]) - before)
            rows.append(dense_of(some))
            labels.append(y)
        restore(model, merge(model, parts))
    X, y = np.concatenate(rows), np.concatenate(labels)
    assert float(np.atleast_1d(model.loss)[0]) == pytest.approx(lost, rel=1e-12)
    assert (model.rounds, model.weight) == (192, 192.0)
    proof = model.certificate()
    size = FEATURES + 1
    for trial in range(300):
        fixed = rng.normal(size=(size, classes or 1)) * 10.0 ** rng.uniform(-2, 1)
        if trial == 0:
            fixed = np.append(model.weights, model.bias[None], axis=0)[:, : classes or 1]
        margins = X @ fixed
        if classes is None:
            loss = np.logaddexp(0, margins[:, 0]) - y * margins[:, 0]
        else:
            loss = np.log(np.exp(margins).sum(axis=1)) - margins[np.arange(y.size), y.astype(int)]
        assert proof.loss_floor(l2=float(np.linalg.norm(fixed))) <= loss.mean() + 1e-12
        linear = float(np.sum(loss))
        assert proof.loss - linear <= proof.bound(fixed.T.ravel()) + 1e-9
    assert proof.loss_floor(l2=0.1) > 0.2


@pytest.mark.parametrize(("loss", "filters"), [
    ("logistic", False), ("squared", False), ("absolute", False), ("logistic", True), ("squared", True),
])  # fmt: skip
def test_the_guarantee_of_a_mixture_holds_after_merges(interpreted, loss, filters):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        settings = Settings(loss, alpha=(0.01, 0.3, 3.0), bias=False)
        if filters:
            settings = default_grid(loss=loss)
        model = Mixture(FEATURES, settings, dtype=np.float64, certified=True)
        for k in range(6):
            parts, each = [], 4 + k
            rows, labels = rows_of(rng, 5 * each)
            shards = np.repeat(np.arange(5), each)
            labels = np.where(shards % 2, labels, 1 - labels)  # shards disagree on which setting is best
            labels = labels if loss == "logistic" else labels * (1 + shards + 3 * k)
            importance = np.where((k == 3) & (shards == 1), 3.0, 1.0)
            for shard in range(5):
                own = slice(shard * each - shard % 3, (shard + 1) * each)
                some = split_rows(split_rows(rows, own.stop)[0], own.start)[1]
                parts.append(learn_shard(model, some, labels[own], importance[own], warm_up=shard % 3)[1])
            restore(model, merge(model, parts))
        found = model.guarantee()
        assert not found.void
        assert model.loss - model.losses.min() <= found.bound
        assert model.ledger.rows == model.rounds
    assert model.ledger.gap > 0


def test_a_slice_and_its_restoration_are_inverse(interpreted):
    rng = np.random.default_rng(1)
    model = Mixture(FEATURES, default_grid(lanes=3), certified=True)
    rows, labels = rows_of(rng, 20)
    rows = rows._replace(values=rows.values.astype(np.float32))
    model.progress(rows, labels)
    kept = slice_of(model, model.seen)
    other = Mixture(FEATURES, model.settings, certified=True)
    restore(other, kept)
    for m in (model, other):
        m.progress(rows, labels)
    assert model.linear.state.tobytes() == other.linear.state.tobytes()
    assert model.ledger.array.tobytes() == other.ledger.array.tobytes()


@pytest.mark.parametrize("make", [Linear, Mixture])
def test_restoring_excludes_changes_of_the_model_and_of_its_lanes(make):
    model = make(FEATURES, Settings(alpha=(0.1, 1.0)), certified=True)
    guards = {model._guard, model.linear._guard}
    before = {guard: guard.version for guard in guards}
    restore(model, slice_of(model, np.arange(2)))
    assert all(guard.version == before[guard] + 2 for guard in guards)
    with model._guard.changing(), pytest.raises(RuntimeError, match="inside learning"):
        restore(model, slice_of(model, np.arange(2)))


@pytest.mark.parametrize(("settings", "options", "message"), [
    (Settings(algorithm="mirror"), {"certified": True}, "algorithm=mirror"),
    (Settings(rate="root"), {"certified": True}, "rate=root"),
    (Settings(penalty_weight="every", l1=0.1), {"certified": True}, "penalty_weight=every"),
    (Settings(alpha=(0.1, 1.0)), {"certified": True, "share": 0.01}, "share=0.01"),
])  # fmt: skip
def test_states_that_cannot_be_merged_are_refused(settings, options, message):
    with pytest.raises(ValueError, match=f"merge: got .*{message}"):
        check_mergeable(make_learner(FEATURES, settings, **options))


def test_features_that_are_zero_in_all_shards_leave_certificates_finite(interpreted):
    """Such a feature has a record in both shards and the scale 0."""
    model = Linear(2, Settings(alpha=1.0, rate="scale_free"), dtype=np.float64, certified=True)
    row = CoalescedRows(np.array([0, 2]), np.int32([0, 1]), np.array([1.0, 0.0]))
    restore(model, merge(model, [learn_alone(model, row, np.ones(1)) for _ in range(2)]))
    assert np.isfinite(model.snapshot().sums).all()
    assert "could have had" in model.summary()


def test_sums_of_coordinates_are_where_the_kernel_has_them():
    assert (merge_states.ADDED, merge_states.KEPT) == (merging.ADDED, merging.KEPT)


@pytest.mark.parametrize("foreign", ["labels", "importance", "values", "own"])
def test_rows_before_those_of_a_shard_are_of_another_shard_of_the_round(interpreted, foreign):
    model = Linear(FEATURES, Settings(alpha=0.3), dtype=np.float64, certified=True)
    rows, labels = rows_of(np.random.default_rng(3), 12)
    parts = [split_rows(rows, 6)[0], split_rows(rows, 4)[1]]
    first = learn_shard(model, parts[0], labels[:6], np.ones(6))[1]
    own = [parts[1]._replace(values=parts[1].values.copy()), labels[4:].copy(), np.ones(8)]
    merge(model, [first, learn_shard(model, *own, warm_up=2)[1]])
    changed = {"labels": own[1], "importance": own[2], "values": own[0].values}.get(foreign)
    if changed is not None:
        changed[0] = 0.5
    with pytest.raises(ValueError, match="warm_up: got 'rows of shard 2 that no other shard has', expected the last"):
        merge(model, [first, learn_shard(model, *own, warm_up=2 if foreign != "own" else 3)[1]])
    with pytest.raises(ValueError, match="warm_up: got 8, expected less than 8, the number of rows"):
        learn_shard(model, *own, warm_up=8)
