"""Merged states: against the formula in dense numpy, against the theory's batch rounds, and their certificates."""

import numpy as np
import pytest

from forel.learner.factory import make_learner
from forel.learner.grid import default_grid
from forel.learner.linear import Linear, Settings
from forel.learner.merge_states import check_mergeable, learn_shard, merge, restore, slice_of
from forel.learner.mixture import Mixture
from forel.learner.rows import CoalescedRows
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


def spike(z0, n0, g0, shards, strength):
    """Return the merged (z, n, g) of dense proximal states: the formula as it is written down."""
    G, D = [g - g0 for _, _, g in shards], [n - n0 for _, n, _ in shards]
    total = sum(G)
    n = n0 + sum(D) + np.maximum(total**2 - sum(one**2 for one in G), 0)
    moved = sum((g - g0) - (z - z0) for z, _, g in shards)
    gained = sum(strength(nk) - strength(n0) for _, nk, _ in shards)
    center = np.divide(moved, gained, out=np.zeros_like(moved), where=gained > 0)
    return z0 + total - (strength(n) - strength(n0)) * center, n, g0 + total


@pytest.mark.parametrize("shards", [2, 5])
def test_merged_states_are_those_of_the_formula(interpreted, shards):
    rng = np.random.default_rng(shards)
    model = Linear(FEATURES, Settings(alpha=0.3, l1=0.1), dtype=np.float64, certified=True)
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
        expected = spike(*base.T, dense, lambda n: np.sqrt(n) / 0.3)
        assert np.allclose(model.state[:, :, 0].T, expected, rtol=1e-12, atol=1e-14)
    assert model.rounds == 3 * shards * 8


@pytest.mark.parametrize("algorithm", ["proximal", "centered"])
def test_rows_of_one_gradient_each_are_a_batch_of_the_theory(interpreted, algorithm):
    # Gradients of one sign: n grows by the square of their sum, as in a round whose loss is the sum of losses.
    rng = np.random.default_rng(0)
    settings = Settings("absolute", algorithm=algorithm, alpha=0.5, l1=0.2, bias=False)
    model = Linear(FEATURES, settings, dtype=np.float64, certified=True)
    theory = ad_click(alpha=0.5, beta=1.0, l1=0.2)
    state = theory.init(FEATURES)
    played = []
    for _ in range(6):
        rows, _ = rows_of(rng, 4)
        rows = rows._replace(values=np.abs(rows.values))
        weights = model.weights[:, 0]
        if algorithm == "proximal":
            assert np.allclose(theory.play(state), weights, rtol=1e-10, atol=1e-12)
        labels = dense_of(rows)[:, :-1] @ weights + 100.0  # every prediction is too small: slopes of -1
        parts = [learn_alone(model, CoalescedRows(rows.indptr[r : r + 2] - rows.indptr[r],
                                                  rows.indices[rows.indptr[r] : rows.indptr[r + 1]],
                                                  rows.values[rows.indptr[r] : rows.indptr[r + 1]]), labels[r : r + 1])
                 for r in range(4)]  # fmt: skip
        restore(model, merge(model, parts))
        gradient = -dense_of(rows)[:, :-1].sum(axis=0)
        played.append(gradient)
        state = theory.update(state, LinearLoss(gradient))
        assert np.allclose(model.state[:FEATURES, 1, 0], np.sum(np.square(played), axis=0), rtol=1e-12)
    total = np.sum(played, axis=0)
    assert np.allclose(model.state[:FEATURES, model._lanes.layout.gradient_part, 0], total, rtol=1e-12)


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
    assert (z, g) == (-9 * 2.0**127, -9 * 2.0**127)
    assert n == pytest.approx(81 * 2.0**254, rel=1e-14)  # gradients of -1 and -8 times 2¹²⁷, of one sign


@pytest.mark.parametrize(("settings", "classes"), [
    (Settings(alpha=0.5, l1=0.1), None), (default_grid(lanes=4), None), (Settings("softmax", alpha=0.5), 3),
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


@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute"])
def test_the_guarantee_of_a_mixture_holds_after_merges(interpreted, loss):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        settings = Settings(loss, alpha=(0.01, 0.3, 3.0), bias=False)
        model = Mixture(FEATURES, settings, dtype=np.float64, certified=True)
        for k in range(6):
            parts = []
            for shard in range(5):
                rows, labels = rows_of(rng, 4 + k)
                # Shards disagree on which setting is best.
                labels = labels if shard % 2 else 1 - labels
                labels = labels if loss == "logistic" else labels * (1 + shard + 3 * k)
                importance = np.full(labels.size, 1.0 + 2 * (k == 3 and shard == 1))
                parts.append(learn_shard(model, rows, labels, importance)[1])
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
    (Settings(), {}, "a model without certificate"),
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
