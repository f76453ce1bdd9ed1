"""Training with features divided among shards: blocks, checkpoints, files, and what it cannot be combined with."""

import numpy as np
import pytest

import forel
from forel.learner.sharding import LocalShards, Sharding
from forel.store import ModelFileError
from forel.training.shards import Merging

pytestmark = pytest.mark.usefixtures("interpreted")

ONE = forel.Settings(alpha=0.3, l1=0.05)
FREE = forel.Settings(alpha=(0.1, 1.0), rate="scale_free")
SHARDED = Sharding(3, 8)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.vw"
    rng = np.random.default_rng(0)
    text = (f"{int(a > 3)} |a age:{a} w{a * 7 % 23} x{b}\n" for a, b in rng.integers(0, 9, (400, 2)))
    path.write_text("".join(text))
    return path


def trained(rows, settings=ONE, **options):
    return forel.train(rows, settings, **{"bits": 10, "feature_shards": SHARDED, "certified": True, **options})


def saved(tmp_path, result):
    result.save(tmp_path / "m.forel")
    return (tmp_path / "m.forel").read_bytes()


@pytest.mark.parametrize("settings", [ONE, FREE])
@pytest.mark.parametrize("options", [{}, {"holdout": 7}, {"passes": 2}])
def test_the_model_does_not_depend_on_the_size_of_blocks(rows, tmp_path, monkeypatch, settings, options):
    monkeypatch.setattr("forel.learner.sharding.CALL_ROWS", 50)
    large = trained(rows, settings, **options)
    small = trained(rows, settings, block_bytes=300, **options)
    assert small.report.rows == large.report.rows
    assert saved(tmp_path, small) == saved(tmp_path, large)
    assert small.certificate == large.certificate


def test_batches_of_one_row_are_learned_as_in_one_place(rows):
    alone = forel.train(rows, ONE, bits=10, certified=True)
    divided = trained(rows, feature_shards=Sharding(3, 1))
    assert divided.report.loss == pytest.approx(alone.report.loss, rel=1e-5)
    assert divided.certificate == alone.certificate


@pytest.mark.parametrize("settings", [ONE, FREE])
def test_files_continue_with_the_same_bits(rows, tmp_path, settings):
    result = trained(rows, settings)
    result.save(tmp_path / "m.forel")
    stored = forel.load(tmp_path / "m.forel")
    model = stored.model
    assert model.linear.sharding == SHARDED
    np.testing.assert_array_equal(model.weights, result.model.weights)
    np.testing.assert_array_equal(stored.predict_many(rows), result.predict_many(rows))
    assert model.summary() == result.model.summary()
    again = [forel.train(rows, start=each, bits=10) for each in (stored, result.stored)]
    assert saved(tmp_path, again[0]) == saved(tmp_path, again[1])
    assert again[0].certificate == again[1].certificate
    assert again[0].report.loss < result.report.loss


def test_a_serving_model_has_the_same_weights(rows, tmp_path):
    from forel.store import serving_model

    result = trained(rows)
    small = serving_model(result.model)
    assert 0 < small.slots.size == result.model.nonzeros
    np.testing.assert_array_equal(small.weights_at(np.arange(1 << 10)), result.model.weights)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("settings", [ONE, FREE])
def test_an_interrupted_run_resumes_to_the_same_bytes(rows, tmp_path, monkeypatch, settings):
    monkeypatch.setattr("forel.learner.sharding.CALL_ROWS", 50)
    options = {"block_bytes": 500, "checkpoint": tmp_path / "c.forel", "checkpoint_every": 60}

    def interrupt(progress):
        if progress.rows > 250:
            raise Interrupted

    with pytest.raises(Interrupted):
        trained(rows, settings, progress=interrupt, **options)
    resumed = trained(rows, settings, resume=True, **options)
    assert saved(tmp_path, resumed) == saved(tmp_path, trained(rows, settings, block_bytes=500))


def test_a_resumed_run_uses_the_given_holders(rows, tmp_path):
    made = []

    def holders():
        made.append(LocalShards())
        return made[-1]

    options = {"block_bytes": 500, "checkpoint": tmp_path / "c.forel", "checkpoint_every": 60}

    def interrupt(progress):
        if progress.rows > 250:
            raise Interrupted

    with pytest.raises(Interrupted):
        trained(rows, progress=interrupt, **options)
    resumed = trained(rows, resume=True, feature_shards=Sharding(3, 8, holders), **options)
    assert resumed.model._lanes._holders is made[-1]
    with pytest.raises(ValueError, match=r"feature_shards: got \[4, 8\], expected \[3, 8\]"):
        trained(rows, resume=True, **{**options, "feature_shards": Sharding(4, 8)})


def test_default_settings_are_a_grid_without_filters(rows):
    result = forel.train(rows, bits=10, feature_shards=SHARDED)
    assert result.model.settings.lanes == 16
    assert not result.model.settings.filters


@pytest.mark.parametrize(("options", "message"), [
    ({"merge": Merging(10, 2)}, "none with merge"),
    ({"by": "a"}, "none with by"),
])  # fmt: skip
def test_combinations_are_refused(rows, options, message):
    with pytest.raises(ValueError, match=f"feature_shards: got .*{message}"):
        trained(rows, **options)


def test_a_model_in_one_place_is_not_divided(rows, tmp_path):
    alone = forel.train(rows, ONE, bits=10)
    with pytest.raises(ValueError, match=r"feature_shards: got .*expected none for a model in one place"):
        forel.train(rows, start=alone.stored, feature_shards=SHARDED, bits=10)
    divided = trained(rows)
    with pytest.raises(ValueError, match="expected 3, in batches of 8 rows, as the model has"):
        forel.train(rows, start=divided.stored, feature_shards=Sharding(2, 8), bits=10)


@pytest.mark.parametrize("change", [
    {"shards": 0}, {"batch": "8"}, {"rounds": -1}, {"seen_rows": True}, {"more": 1}, None,
])  # fmt: skip
def test_invalid_headers_are_refused(rows, tmp_path, change):
    from forel.store.sharding import sharding_from_json

    valid = {"shards": 3, "batch": 8, "rounds": 5, "seen_rows": 9}
    assert sharding_from_json(valid, LocalShards) == SHARDED
    with pytest.raises((ModelFileError, ValueError)):
        sharding_from_json([1, 2] if change is None else {**valid, **change}, LocalShards)
