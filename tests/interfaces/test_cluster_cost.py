"""Estimates of the time on a cluster: simple cases by hand, and a recipe for other engines."""

import numpy as np
import pytest

from forel.learner.linear import Linear, Settings
from forel.learner.merge_states import learn_shard, merge, restore
from forel.learner.rows import CoalescedRows
from forel.ray.cost import Costs
from forel.training.shards import Merging

COSTS = Costs(
    read=4e-6, learn=1e-6, slice=1e-7, merge=2e-7, row_bytes=300, coordinate_bytes=200, features=40, distinct=0.25
)


def test_the_slowest_stage_takes_the_time():
    assert COSTS.alone(10**6).bottleneck == "read"
    assert COSTS.alone(10**6).seconds == pytest.approx(4.0)
    assert COSTS.exact(10**9, 100).bottleneck == "learn"
    assert COSTS.exact(10**9, 100).seconds == pytest.approx(10 + 1000)
    assert Costs(**{**vars(COSTS), "network": 1e6}).exact(10**9, 100).bottleneck == "network"


def test_more_learners_take_less_time_until_merging_takes_all():
    times = [COSTS.merged(10**9, 1000, n, 64, 1000).stages["learn and merge"] for n in (2, 8, 32, 64)]
    assert times == sorted(times, reverse=True)
    rounds = 10**9 / 64_000  # all coordinates of all shards are merged, and copied into the models of all learners
    assert times[-1] == pytest.approx(rounds * (64 * 10_000 * 3e-7 + 1128e-6 + 3 * 10_000 * 1e-7), rel=0.01)


@pytest.mark.parametrize(("rows", "shards", "every"), [(100_000, 4, 1000), (150_000, 64, 10_000), (30_000, 8, 100)])
def test_rounds_are_those_of_training(rows, shards, every):
    merging, seen, work = Merging(every, shards), 0, 0.0
    while seen < rows:
        size, each = merging.round_sizes(seen)
        size = min(size, rows - seen)
        number = -(-size // each)
        if number > 1:
            work += number * 1128e-6 * (each + 128) / 1128 + number * each * 10 * (3e-7 + 2e-7)
        else:
            work += size * (1e-6 + 10 * 1e-7)
        seen += size
    assert COSTS.merged(rows, 1, 1, shards, every).stages["learn and merge"] == pytest.approx(work, rel=0.1)


def test_the_network_carries_rows_and_changes():
    sent = COSTS.merged(10**8, 1, 8, 8, 1000).stages["network"] * COSTS.network
    assert sent == pytest.approx(10**8 * 300 + 10**8 / 8000 * 8 * 10_000 * 200 * 2, rel=0.01)


def test_rounds_of_shards_of_features_take_their_calls_and_their_work():
    costs = Costs(**{**vars(COSTS), "entry": 1e-8, "divide": 1e-7, "round": 1e-3})
    found = costs.sharded(10**8, readers=1000, shards=8, batch=500)
    rounds = 16 * (1 + sum(1 / k for k in range(1, 500))) + 10**8 / 500
    assert found.stages["rounds"] == pytest.approx(rounds * 1e-3 + 10**8 * (40 * 1e-8 / 8 + 1e-7), rel=0.01)
    assert found.stages["network"] == pytest.approx(2 * 10**8 * 300 / costs.network)
    assert found.bottleneck == "rounds"


def test_the_recipe_for_dask_gives_the_bits_of_one_process(interpreted):
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    rng = np.random.default_rng(0)
    models = [Linear(8, Settings(alpha=0.5), dtype=np.float64, certified=True) for _ in range(2)]
    for _ in range(3):
        shards = []
        for _ in range(4):
            indices = rng.permuted(np.tile(np.arange(8), (10, 1)), axis=1)[:, :2].ravel().astype(np.int32)
            rows = CoalescedRows(np.arange(0, 22, 2), indices, rng.normal(size=20))
            shards.append((rows, rng.integers(0, 2, 10).astype(float), np.ones(10)))
        one, other = models
        restore(one, merge(one, [learn_shard(one, *shard)[1] for shard in shards]))
        # The recipe: the model is sent along with each shard, and the driver merges.
        learned = dask.compute(*(dask.delayed(learn_shard)(other, *shard) for shard in shards), scheduler="sync")
        restore(other, merge(other, [state for _, state in learned]))
        assert one.state.tobytes() == other.state.tobytes()
