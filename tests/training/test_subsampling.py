"""Subsampling of negatives: the choice, the importances, and calibration."""

import io
from dataclasses import replace

import numpy as np
import pytest

import forel
from forel.data import read
from forel.learner.settings import Settings
from forel.training import shuffle
from forel.training.subsampling import Subsampling

ONE = Settings(alpha=1.0)


def clicks(rows=600, rate=0.2):
    rng = np.random.default_rng(4)
    lines = [f"{1 if rng.random() < rate else -1} |a w{k % 7}\n" for k in range(rows)]
    return "".join(lines).encode()


def blocks(size=1 << 20):
    before = 0
    for block in read(io.BytesIO(clicks()), "vw", bits=8, block_bytes=size):
        yield replace(block, numbers=np.arange(before, before + len(block)))
        before += len(block)


def test_positives_are_kept_and_importances_compensate_for_dropped_negatives():
    (block,) = blocks()
    kept = Subsampling(0.25, seed=3)(block)
    assert np.sum(kept.labels > 0) == np.sum(block.labels > 0)
    negatives = kept.importance[kept.labels < 0]
    assert set(negatives.tolist()) == {4.0}
    assert set(kept.importance[kept.labels > 0].tolist()) == {1.0}
    # 480 negatives: the sum of importances has a standard deviation of about 38.
    assert abs(negatives.sum() - np.sum(block.labels < 0)) < 4 * 38
    assert np.array_equal(Subsampling(1.0)(block).labels, block.labels)


def test_the_choice_depends_on_the_number_of_a_row():
    sampling = Subsampling(0.3, seed=1)
    parts = [sampling(block).labels for block in blocks(200)]
    (whole,) = blocks()
    assert np.array_equal(np.concatenate(parts), sampling(whole).labels)
    assert not np.array_equal(Subsampling(0.3, seed=2)(whole).indices, sampling(whole).indices)


def test_models_are_calibrated_and_resume_to_the_same_bits(tmp_path, interpreted):
    path, check = tmp_path / "clicks.vw", tmp_path / "m.checkpoint"
    path.write_bytes(clicks())
    options = {"bits": 8, "subsample": 0.5, "block_bytes": 500, "checkpoint_every": 20}
    whole = forel.train(str(path), ONE, checkpoint=tmp_path / "other", **options)
    assert whole.training.rows < 450
    assert forel.predict(whole, str(path)).mean() == pytest.approx(0.2, abs=0.05)

    def stop(progress):
        if progress.rows > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forel.train(str(path), ONE, checkpoint=check, progress=stop, **options)
    resumed = forel.train(str(path), ONE, checkpoint=check, resume=True, **options)
    assert resumed.learner.state.numbers.tobytes() == whole.learner.state.numbers.tobytes()


def test_every_pass_keeps_the_same_rows_in_any_order(interpreted, monkeypatch):
    monkeypatch.setattr(shuffle, "GROUP", 64)
    seen = {1: set(), 2: set()}

    def note(progress):
        seen[progress.pass_number] |= set(progress.block.numbers.tolist())

    forel.train(
        io.BytesIO(clicks()), ONE, bits=8, subsample=0.5, shuffle=1, passes=2, format="vw", certificate=True,
        progress=note, block_bytes=500,
    )  # fmt: skip
    assert seen[1] == seen[2]
    assert len(seen[1]) < 450


def test_losses_and_labels_that_cannot_be_subsampled_are_refused(interpreted):
    with pytest.raises(ValueError, match=r"subsample: got 2\.0, expected a number above 0 and at most 1"):
        Subsampling(2.0)
    with pytest.raises(ValueError, match=r"subsample: got 0\.5, expected labels of two classes with it"):
        forel.train(io.BytesIO(clicks()), Settings("squared", alpha=1.0), bits=8, subsample=0.5)
