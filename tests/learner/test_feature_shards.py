"""Features divided among shards: rounds of batches, against the learner in one place and the theory."""

import itertools

import numpy as np
import pytest
from scipy import optimize

from forel.learner.feature_shard import FeatureShard, divide, raise_scales
from forel.learner.kernels.kernel import compiled_kernel, uncompiled_kernel
from forel.learner.linear import Linear, Rows, Settings
from forel.learner.mixture import Mixture
from forel.learner.rows import rows_of
from forel.learner.sharded_lanes import ShardedLanes
from forel.learner.sharding import Sharding
from forel.losses import Linear as LinearLoss
from tests.learner.reference import N, reference, stream

SETTINGS = {
    "adagrad": Settings(alpha=0.5, l1=0.3, l2=0.1),
    "scale free": Settings(alpha=0.5, rate="scale_free", l1=0.1),
    "centered": Settings("squared", algorithm="centered", alpha=0.3, l2=0.2),
    "centered, scale free": Settings("hinge", algorithm="centered", alpha=0.3, rate="scale_free"),
    "constant": Settings("poisson", rate="constant", alpha=0.05, radius=1.5, bias=False),
    "several": Settings("squared_hinge", alpha=(0.1, 1.0, 0.3), l1=(0.0, 0.5, 0.2)),
}
CASES = [pytest.param(settings, id=name) for name, settings in SETTINGS.items()]

pytestmark = pytest.mark.usefixtures("interpreted")


def sharded(settings, shards=3, batch=1, n=N, dtype=np.float64, **options):
    return Linear(n, settings, dtype=dtype, certified=True, sharding=Sharding(shards, batch), **options)


def rows_and_labels(settings, rounds=120, seed=0):
    return stream(settings.loss_function.name, seed, rounds)


@pytest.mark.parametrize("settings", CASES)
@pytest.mark.parametrize("shards", [1, 3, N])
def test_batches_of_one_row_are_learned_as_in_one_place(settings, shards):
    X, y = rows_and_labels(settings)
    importance, held_out = np.linspace(0, 2, len(y)), np.arange(len(y)) % 7 == 3
    alone, divided = Linear(N, settings, dtype=np.float64, certified=True), sharded(settings, shards)
    for model in (alone, divided):
        model.margins_seen = model.progress(X, y, importance, held_out)
    np.testing.assert_allclose(divided.margins_seen, alone.margins_seen, rtol=0, atol=1e-12)
    np.testing.assert_allclose(divided.weights, alone.weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(divided.bias, alone.bias, rtol=0, atol=1e-12)
    np.testing.assert_allclose(divided.loss, alone.loss, rtol=1e-12)
    np.testing.assert_allclose(divided.margins(3 * X), alone.margins(3 * X), rtol=0, atol=1e-12)
    assert (divided.rounds, divided.nonzeros) == (alone.rounds, alone.nonzeros)
    assert divided.weight == pytest.approx(alone.weight, rel=1e-15)
    np.testing.assert_array_equal(divided.weights == 0, alone.weights == 0)
    np.testing.assert_array_equal(divided.seen, alone.seen)
    if np.ndim(settings.alpha) == 0:
        assert divided.summary() == alone.summary()
        x = np.linspace(-0.5, 1, N + settings.bias)
        for a, b in zip(proof_numbers(divided, x), proof_numbers(alone, x), strict=True):
            assert a == pytest.approx(b, rel=1e-9)


def proof_numbers(model, x):
    proof = model.certificate()
    return proof.regret(x), proof.bound(x), proof.loss_floor(l2=2.0)


def batched_replay(settings, X, y, batch):
    """Play the theory's algorithm on the sums of the losses of batches."""
    algorithm, loss = reference(settings, X.shape[1]), settings.loss_function
    rows = np.hstack([X, np.ones((len(X), 1))]) if settings.bias else X
    state, margins, start = algorithm.init(rows.shape[1]), [], 0
    while start < len(y):
        some = slice(start, start + min(batch, max(start // 16, 1)))
        state = algorithm.observe(state, np.abs(rows[some]).max(axis=0))
        found = rows[some] @ algorithm.play(state)
        margins.extend(found)
        gradient = loss.slope(found, y[some]) @ rows[some]
        state = algorithm.update(state, LinearLoss(gradient))
        start = some.stop
    return np.array(margins), algorithm.play(state)


@pytest.mark.parametrize("settings", [each for each in CASES if each.id != "several"])
@pytest.mark.parametrize(("shards", "batch"), [(1, 8), (3, 8), (4, 100)])
def test_batches_are_rounds_of_the_theory(settings, shards, batch):
    X, y = rows_and_labels(settings, 200)
    model = sharded(settings, shards, batch)
    margins, weights = batched_replay(settings, X, y, batch)
    np.testing.assert_allclose(model.progress(X, y)[:, 0], margins, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.append(model.weights, model.bias)[: weights.size], weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [None, 3])
def test_classes_and_mixtures(classes):
    X, y = stream("logistic", rounds=100)
    y = y if classes is None else np.arange(len(y)) % classes
    settings = Settings("logistic" if classes is None else "softmax", alpha=(0.1, 1.0))
    alone = Mixture(N, settings, classes, np.float64)
    divided = Mixture(N, settings, classes, np.float64, sharding=Sharding(3, 1))
    np.testing.assert_allclose(divided.progress(X, y), alone.progress(X, y), rtol=0, atol=1e-12)
    np.testing.assert_allclose(divided.margins(X), alone.margins(X), rtol=0, atol=1e-12)
    assert str(divided.guarantee()) == str(alone.guarantee())
    np.testing.assert_allclose(divided.only(1).weights, alone.only(1).weights, rtol=0, atol=1e-12)


def test_one_against_the_rest():
    X, y = stream("hinge", rounds=100)
    y = np.arange(len(y)) % 4
    alone, divided = (
        Linear(N, Settings("hinge", alpha=0.3), 4, np.float64, sharding=each) for each in (None, Sharding(2, 1))
    )
    np.testing.assert_allclose(divided.progress(X, y), alone.progress(X, y), rtol=0, atol=1e-12)
    np.testing.assert_allclose(divided.margins(X), alone.margins(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_that_change_their_unit(dtype):
    X, y = stream("logistic", rounds=120)
    largest = 1e25 if dtype is np.float32 else 1e120
    X[:, 0] *= np.geomspace(1 / largest, largest, len(y))
    X[:, 1] *= 1e-20
    settings = Settings(alpha=0.5, rate="scale_free")
    alone, divided = (
        Linear(N, settings, dtype=dtype, certified=True, sharding=each) for each in (None, Sharding(3, 1))
    )
    with np.errstate(all="ignore"):  # as in compiled code
        a, b = alone.progress(X, y), divided.progress(X, y)
    np.testing.assert_allclose(b, a, rtol=0, atol=1e-12 if dtype is np.float64 else 2e-5)
    assert len(np.unique(divided._lanes.units(np.arange(N)))) > 1
    np.testing.assert_array_equal(divided._lanes.scales[np.arange(N)], alone._lanes.scales[:N])


def test_raised_scales_keep_weights_and_gradients():
    shard = FeatureShard(2, Settings(rate="scale_free"), 1, np.dtype(np.float32), certified=True)
    shard.begin(Rows(np.array([0, 2]), np.int32([0, 1]), np.float32([1, 2])), np.ones(1, bool))
    shard.exchange(None, 0, 1)
    shard.finish(np.float32([[0.5]]))
    lanes, both = shard.lanes, np.arange(2)
    before = lanes.gradients[both] * lanes.units(both)[:, None]
    raise_scales(lanes, np.array([1]), np.float32([1e30]))
    assert lanes.units(both).tolist() != [1, 1]
    np.testing.assert_array_equal(lanes.gradients[both] * lanes.units(both)[:, None], before)


def comparator_loss(loss, X, y, norm):
    """The smallest total loss of a model of at most a norm, by a solver that knows nothing of shards."""
    rows = np.hstack([X, np.ones((len(X), 1))])

    def value(x):
        x = x * min(1.0, norm / max(np.linalg.norm(x), 1e-300))
        return float(np.sum(loss(rows @ x, y)))

    starts = [np.zeros(rows.shape[1]), *np.random.default_rng(0).normal(size=(3, rows.shape[1]))]
    return min(optimize.minimize(value, start, method="Powell", options={"maxiter": 20000}).fun for start in starts)


@pytest.mark.parametrize("adversary", ["random", "alternating", "one class after the other"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_no_model_is_below_the_certified_floor(loss, adversary):
    X, y = stream(loss, rounds=90, n=3)
    if adversary == "alternating":  # a batch of equal rows with labels that the model has just unlearned
        X, y = np.ones_like(X), np.where(np.arange(len(y)) // 8 % 2, np.max(y), np.min(y))
    elif adversary == "one class after the other":
        y = np.sort(y)
    settings = Settings(loss, alpha=0.7)
    model = sharded(settings, 2, 16, n=3)
    model.progress(X, y)
    for norm in (0.5, 2.0):
        best = comparator_loss(settings.loss_function, X, y, norm)
        floor = model.loss_floor().at(norm) * len(y)
        assert floor <= best + 1e-9
    assert model.loss_floor().at(0.1) * len(y) > 0.3 * comparator_loss(settings.loss_function, X, y, 0.1)
    x = np.array([0.5, -0.3, 0.2, 0.1])
    losses = settings.loss_function(np.hstack([X, np.ones((len(X), 1))]) @ x, y).sum()
    proof = model.certificate()
    assert float(model.loss[0]) - losses <= proof.regret(x) + 1e-9 <= proof.bound(x) + 2e-9


def test_rounds_continue_in_later_calls():
    X, y = stream("logistic", rounds=200)
    once, twice = sharded(Settings(alpha=0.5), batch=8), sharded(Settings(alpha=0.5), batch=8)
    first = sum(itertools.islice(sizes_after(once.sharding, 0), 50))
    assert 40 < first < 190
    found = np.concatenate([twice.progress(X[:first], y[:first]), twice.progress(X[first:], y[first:])])
    np.testing.assert_array_equal(found, once.progress(X, y))
    assert twice._lanes.shard_sums()[1] == once._lanes.shard_sums()[1] < 100


@pytest.mark.parametrize("shards", [1, 3])
def test_squares_of_sums_of_gradients_are_those_of_all_shards(shards):
    """The bound on rounding needs Σ_t Σ_i G²_{t,i} over the features of each batch, the bias included."""
    X, y = stream("squared", rounds=60)
    settings = Settings("squared", alpha=0.3)
    model, rows = sharded(settings, shards, 4), np.hstack([X, np.ones((60, 1))])
    margins = model.progress(X, y)[:, 0]
    total, squares, start = np.zeros(N + 1), 0.0, 0
    for size in sizes_after(model.sharding, 0):
        some = slice(start, min(start + size, 60))
        total += (margins[some] - y[some]) @ rows[some]
        squares += np.sum(total[np.any(rows[some] != 0, axis=0)] ** 2)
        start += size
        if start >= 60:
            break
    assert model._lanes.all_sums[4, 0] == pytest.approx(squares, rel=1e-11)


def test_held_out_rows_change_nothing():
    X, y = stream("logistic", rounds=60)
    model = sharded(Settings(rate="scale_free"), batch=8)
    model.progress(X, y)
    before, records = model.weights, model._lanes.state[np.arange(N)].copy()
    found = model.progress(100 * X, y, held_out=np.ones(len(y), bool))
    np.testing.assert_array_equal(model.weights, before)
    np.testing.assert_array_equal(model._lanes.state[np.arange(N)], records)
    np.testing.assert_allclose(found, model.margins(100 * X), rtol=0, atol=1e-12)
    assert model.rounds == 60


def test_a_loss_that_is_not_finite_leaves_the_rows_before_it():
    def loss(margin, label):
        return (np.nan, np.nan) if label == 0.25 else ((margin - label) ** 2 / 2, margin - label)

    X, y = stream("squared", rounds=40)
    y[37] = 0.25
    model, same = (Linear(N, Settings(loss), dtype=np.float64, sharding=Sharding(2, 2)) for _ in range(2))
    with pytest.raises(ValueError, match="not finite in row 37"):
        model.progress(X, y)
    same.progress(X[:37], y[:37])
    assert model.rounds == 37
    np.testing.assert_array_equal(model.weights, same.weights)


def test_numbers_beyond_the_range_void_the_certificate():
    model = sharded(Settings("squared", alpha=1.0, bias=False), batch=4, n=3, dtype=np.float32)
    with np.errstate(all="ignore"):  # as in compiled code
        model.progress(np.full((4, 3), 1e10), np.full(4, 1e12))
    assert "left the range" in model.summary()


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_divided_rows_have_every_entry_once(shards, kind):
    rng = np.random.default_rng(shards)
    indptr = np.append(0, np.cumsum(rng.integers(0, 6, 20)))
    features = 1 << 40 if kind is np.int64 else 1000
    indices, values = rng.integers(0, features, indptr[-1]).astype(kind), rng.normal(size=indptr[-1])
    parts = divide(Rows(indptr, indices, values), shards, features)
    for s, part in enumerate(parts):
        for r in range(20):
            own = slice(indptr[r], indptr[r + 1])
            mine = indices[own] % shards == s
            mine_in_part = slice(part.indptr[r], part.indptr[r + 1])
            np.testing.assert_array_equal(part.indices[mine_in_part], indices[own][mine] // shards)
            np.testing.assert_array_equal(part.values[mine_in_part], values[own][mine])


def test_columns_of_a_batch_that_collide_in_the_table():
    """A table of few places, in which most columns do not have their first place."""
    from forel.learner.kernels import batches

    distinct = getattr(batches.distinct, "py_func", batches.distinct)
    indices = np.array([5, 1 << 33, 5, 7, 0, 1 << 33, 9, 7])
    columns, places = np.empty_like(indices), np.empty(8, np.int64)
    with np.errstate(over="ignore"):
        count = distinct(indices, np.full(8, -1, np.int64), columns, places)
    assert columns[:count].tolist() == [5, 1 << 33, 7, 0, 9]
    np.testing.assert_array_equal(columns[places], indices)


@pytest.mark.parametrize(("settings", "message"), [
    (Settings(algorithm="mirror"), "algorithm=mirror"),
    (Settings(penalty_weight="every"), "penalty_weight=every"),
    (Settings(rate="root"), "rate=root"),
    (Settings(rate="scale_free", filters=[(0.3, 0.0)]), "settings with filters"),
])  # fmt: skip
def test_settings_that_need_one_place_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"feature_shards: got .*{message}"):
        Linear(N, settings, sharding=Sharding())


def test_features_fewer_than_shards_are_refused():
    with pytest.raises(ValueError, match="features: got 2"):
        Linear(2, Settings(), sharding=Sharding(3))


def test_sizes_of_batches_grow_to_their_limit():
    sharding, seen, sizes = Sharding(batch=32), 0, []
    for _ in range(200):
        sizes.append(sharding.batch_size(seen))
        seen += sizes[-1]
    assert sizes[0] == 1
    assert max(sizes) == 32
    assert all(a <= b for a, b in itertools.pairwise(sizes))
    rows = sharding.call_rows(5)
    whole = list(itertools.accumulate(itertools.chain([5], sizes_after(sharding, 5))))
    assert 5 + rows in whole


def sizes_after(sharding, seen):
    for _ in range(10_000):
        yield sharding.batch_size(seen)
        seen += sharding.batch_size(seen)


def test_compiled_functions_are_the_uncompiled_ones(monkeypatch):
    """Losses of margins, steps along gradients with scales in several units, and batches."""
    from forel.learner.kernels import kernel

    X, y = stream("logistic", rounds=80)
    X[:, 0] *= np.geomspace(1e-15, 1e15, len(y))
    models = []
    for function in (uncompiled_kernel, compiled_kernel):
        monkeypatch.setattr(kernel, "kernel", function)
        models.append(sharded(Settings(alpha=0.5, rate="scale_free"), batch=8))
        models[-1].progress(X, y)
    plain, fast = models
    np.testing.assert_allclose(fast.weights, plain.weights, rtol=1e-10)
    np.testing.assert_allclose(fast._lanes.all_sums, plain._lanes.all_sums, rtol=1e-9, atol=1e-300)


def test_copies_continue_alike():
    X, y = stream("logistic", rounds=60)
    model = sharded(Settings(alpha=0.5, rate="scale_free"), batch=8)
    model.progress(X[:40], y[:40])
    twin = Linear.from_lanes(model.copied_lanes())
    np.testing.assert_array_equal(twin.progress(X[40:], y[40:]), model.progress(X[40:], y[40:]))
    assert twin.summary() == model.summary()
    assert isinstance(twin._lanes, ShardedLanes)


def test_coordinates_above_two_to_the_31():
    features = 1 << 33
    model = Linear(features, Settings(alpha=1.0), sharding=Sharding(64, 1))
    slots = np.array([3, 1 << 31, features - 1])
    rows = Rows(np.array([0, 3, 6]), np.tile(slots, 2), np.float32([1, 2, 3, 1, 2, 3]))
    model.progress(rows, [1, 1])
    alone = Linear(3, Settings(alpha=1.0))
    alone.progress(rows_of([[1.0, 2, 3]] * 2, 3, np.float32), [1, 1])
    np.testing.assert_allclose(model.weights_at(slots), alone.weights, rtol=1e-6)
    assert model.seen.tolist() == [*slots.tolist(), features]
