"""Rows in random order: all of them, in an order that depends on the seed and the pass alone."""

import io

import numpy as np
import pytest

import forel
from forel.data import Block, read
from forel.data.block import take_rows
from forel.learner.settings import Settings
from forel.training import shuffle
from forel.training.shuffle import ShuffledRows

ONE = Settings(alpha=1.0)
ROWS = 200


@pytest.fixture(autouse=True)
def small(monkeypatch, interpreted):
    monkeypatch.setattr(shuffle, "GROUP", 16)
    monkeypatch.setattr(shuffle, "POOL", 3)


def csv_text(rows=ROWS):
    return ("x,z,y\n" + "".join(f"{k},{'a' * (k % 5)},{int(2 * k >= rows)}\n" for k in range(rows))).encode()


def order(seed=1, pass_number=1, block_bytes=1 << 20, first=0):
    reader = read(io.BytesIO(csv_text()), "csv", label="y", bits=10, ignore=["z"], block_bytes=block_bytes)
    blocks = ShuffledRows(reader, seed).blocks(pass_number, first)
    return [(float(v), int(line)) for b in blocks for v, line in zip(b.values, b.lines, strict=True)]


def test_every_row_occurs_once_with_its_line():
    rows = order()
    assert sorted(rows) == [(float(k), k + 2) for k in range(ROWS)]
    # The first pool has rows of all parts of the file more often than not: groups are in random order.
    assert max(k for k, _ in rows[:48]) - min(k for k, _ in rows[:48]) > 48


def test_the_order_depends_on_seed_and_pass_alone():
    assert order() == order(block_bytes=50)
    assert order() != order(seed=2)
    assert order() != order(pass_number=2)
    assert order(first=2) == order()[96:]


def test_rows_are_those_of_the_block():
    block = next(iter(read(io.BytesIO(csv_text(9)), "csv", label="y", bits=10)))
    chosen = np.array([7, 0, 3])
    taken, dense = take_rows(block, chosen), block.matrix(1 << 10).toarray()
    assert np.array_equal(taken.matrix(1 << 10).toarray(), dense[chosen])
    assert np.array_equal(taken.labels, block.labels[chosen])


def test_a_sorted_file_is_learned_in_random_order(tmp_path):
    path = tmp_path / "sorted.csv"
    path.write_bytes(csv_text())
    options = {"label": "y", "bits": 10, "keep": ["x"]}
    losses = [forel.train(str(path), ONE, shuffle=seed, **options).report.loss for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]
    twice = forel.train(str(path), ONE, shuffle=0, passes=2, **options)
    assert twice.training.passes[0].loss == losses[0]
    stream = forel.train(io.BytesIO(csv_text()), ONE, shuffle=0, passes=2, format="csv", block_bytes=100, **options)
    assert np.array_equal(stream.learner.weights, twice.learner.weights)


def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path):
    path, check = tmp_path / "rows.csv", tmp_path / "m.checkpoint"
    path.write_bytes(csv_text() + b"1,a,bad\n")
    options = {"label": "y", "bits": 10, "shuffle": 3, "passes": 2, "checkpoint_every": 1, "on_error": "skip"}
    whole = forel.train(str(path), ONE, checkpoint=tmp_path / "other", **options)
    for after in (2, 6):

        def stop(progress, after=after):
            if progress.model.rounds > 48 * after:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            forel.train(str(path), ONE, checkpoint=check, progress=stop, **options)
        resumed = forel.train(str(path), ONE, checkpoint=check, resume=True, **options)
        assert resumed.learner.state.numbers.tobytes() == whole.learner.state.numbers.tobytes()
        assert (resumed.report, resumed.training.problems.count) == (whole.report, 1)
    with pytest.raises(KeyboardInterrupt):
        forel.train(str(path), ONE, checkpoint=check, progress=stop, **options)
    with pytest.raises(ValueError, match="shuffle: got 4, expected 3"):
        forel.train(str(path), ONE, checkpoint=check, resume=True, **{**options, "shuffle": 4})


def test_invalid_labels_are_located(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x,y\n1,0\n2,1\n3,5\n")
    with pytest.raises(ValueError, match=r"rows\.csv, line 4: got the label 5"):
        forel.train(str(path), ONE, label="y", bits=10, shuffle=0)


def test_predictions_have_the_order_of_rows():
    with pytest.raises(ValueError, match="shuffle: got 0, expected None with predictions"):
        forel.train(io.BytesIO(b"1 |a b\n"), ONE, shuffle=0, tags=True)


def test_groups_do_not_span_files():
    one = Block(np.arange(21), np.zeros(20, np.int32), np.ones(20, np.float32), np.zeros(20, np.float32), file="a")
    other = Block(np.arange(6), np.zeros(5, np.int32), np.ones(5, np.float32), np.zeros(5, np.float32), file="b")
    assert [(len(g), g.file) for g in shuffle._groups([one, other])] == [(16, "a"), (4, "a"), (5, "b")]


@pytest.mark.parametrize("rule", [{"holdout": 5}, {"holdout_after": 300}])
def test_held_out_rows_are_never_learned_from(rule):
    rng = np.random.default_rng(0)
    coins = [{f"f{k}": 1.0, "y": int(flip)} for k, flip in enumerate(rng.random(400) < 0.5)]
    learned, held_out = set(), set()

    def note(progress):
        numbers = progress.block.numbers
        mask = numbers >= 300 if "holdout_after" in rule else numbers % 5 == 4
        held_out.update(progress.block.indices[mask].tolist())
        learned.update(progress.block.indices[~mask].tolist())

    trained = forel.train(coins, ONE, label="y", bits=18, shuffle=1, passes=5, progress=note, **rule)
    assert trained.training.holdout.rows == len(held_out) == (100 if "holdout_after" in rule else 80)
    assert not learned & held_out
    assert not trained.learner.weights[list(held_out)].any()
    assert trained.training.holdout.loss == pytest.approx(np.log(2), abs=0.03)


def test_a_certificate_is_about_the_rows_that_every_pass_learned():
    rng = np.random.default_rng(3)
    coins = [{f"f{k % 20}": 1.0, "y": int(flip)} for k, flip in enumerate(rng.random(200) < 0.5)]
    rows = {k: [] for k in (1, 2, 3)}

    def note(progress):
        numbers = progress.block.numbers
        rows[progress.pass_number] += numbers[numbers % 4 != 3].tolist()

    run = {"shuffle": 2, "passes": 3, "holdout": 4}
    trained = forel.train(coins, ONE, label="y", bits=10, certificate=True, progress=note, **run)
    assert sorted(rows[1]) == sorted(rows[2]) == sorted(rows[3])
    assert rows[1] != rows[2]
    assert "on these 150 rows" in trained.training.certificate
    assert trained.learner.rounds == 450
