"""Rare features: left out until they are included, the same for any blocks, and resumed to the same bytes."""

from dataclasses import replace

import numpy as np
import pytest

import forel
from forel.data import Block
from forel.learner.settings import Settings
from forel.store import ModelFileError
from forel.training.inclusion import Inclusion
from forel.training.model import Model
from forel.training.shuffle import take_rows
from forel.training.train import train

SETTINGS = Settings(alpha=0.3)
WORDS = [[f"w{k * k % 31}", f"v{k % 13 * k % 57}"] for k in range(240)]
ROWS = [{"a": a, "b": b, "y": (k * k + k // 40) % 7 % 2} for k, (a, b) in enumerate(WORDS)]
OPTIONS = {"label": "y", "bits": 12}


def blocks(rows=200, slots=50, seed=1):
    rng = np.random.default_rng(seed)
    chosen = [np.unique(rng.zipf(1.3, 6) % slots) for _ in range(rows)]
    indptr = np.cumsum([0, *map(len, chosen)])
    indices = np.concatenate(chosen).astype(np.int32)
    values = rng.normal(size=indices.size).astype(np.float32)
    return Block(indptr, indices, values, np.zeros(rows, np.float32)), rng.random(rows) < 0.2


def reference(block, held_out, min_count):
    """The included entries of each row, by a dict of counts."""
    counts, found = {}, []
    for row in range(len(block)):
        span = slice(block.indptr[row], block.indptr[row + 1])
        kept = []
        for slot, value in zip(block.indices[span].tolist(), block.values[span].tolist(), strict=True):
            counts[slot] = counts.get(slot, 0) + (not held_out[row])
            if counts[slot] >= min_count:
                kept.append((slot, value))
        found.append(kept)
    return found


@pytest.mark.parametrize("min_count", [3, 1])
@pytest.mark.parametrize("sizes", [[200], [1] * 200, [3, 64, 1, 132]])
def test_included_entries_are_those_of_a_dict_of_counts(min_count, sizes):
    block, held_out = blocks()
    inclusion, found, end = Inclusion(min_count, 50), [], 0
    for size in sizes:
        chosen = np.arange(end, end + size)
        rows = inclusion(replace(take_rows(block, chosen), held_out=held_out[chosen]))
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            found.append(list(zip(rows.indices[start:stop].tolist(), rows.values[start:stop].tolist(), strict=True)))
        end += size
    assert found == reference(block, held_out, min_count)
    before = inclusion.table.copy()
    inclusion.begin(2)
    inclusion(block)
    assert (inclusion.table == before).all()
    again = Inclusion(min_count, 50)
    again.unpack(*inclusion.pack())
    assert (again.table == before).all()
    assert again.included == np.count_nonzero(before >= min_count)


def filtered(rows, count):
    """The rows without words that occurred in fewer than ``count`` rows up to each."""
    seen, found = {}, []
    for row in rows:
        for item in (("a", row["a"]), ("b", row["b"])):
            seen[item] = seen.get(item, 0) + 1
        found.append({key: value for key, value in row.items() if key == "y" or seen[key, value] >= count})
    return found


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("settings", [SETTINGS, Settings(alpha=(0.3, 1.0), rate="scale_free")], ids=["one", "mixed"])
def test_a_model_is_that_of_rows_without_rare_features(settings):
    found = train(ROWS, settings, min_count=4, **OPTIONS)
    expected = train(filtered(ROWS, 4), settings, **OPTIONS)
    assert found.learner.state.numbers.tobytes() == expected.learner.state.numbers.tobytes()
    assert found.report == expected.report
    every = {(key, row[key]) for row in ROWS for key in "ab"}
    often = {item for item in every if sum(row[item[0]] == item[1] for row in ROWS) >= 4}
    assert 0 < found.training.inclusion.included == len(often) < len(every)
    rare = dict([next(iter(sorted(every - often)))])
    assert found.predict_one(rare) == found.predict_one({})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,y\n" + "".join(f"{row['a']},{row['b']},{row['y']}\n" for row in ROWS))
    return path


def bytes_of(trained, path):
    trained.save(path)
    return path.read_bytes()


@pytest.mark.usefixtures("interpreted")
def test_files_do_not_depend_on_blocks_threads_or_interruptions(path, tmp_path):
    options = {**OPTIONS, "min_count": 3, "passes": 2, "holdout": 5}
    whole = bytes_of(train(path, SETTINGS, **options), tmp_path / "m")
    for threads, size in ((0, 200), (2, 700)):
        assert bytes_of(train(path, SETTINGS, threads=threads, block_bytes=size, **options), tmp_path / "n") == whole
    seen, saving = iter(range(9)), {"checkpoint": tmp_path / "c", "checkpoint_every": 30, "block_bytes": 300}

    def stop(_):
        if next(seen, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(path, SETTINGS, progress=stop, **saving, **options)
    assert bytes_of(train(path, SETTINGS, resume=True, **saving, **options), tmp_path / "n") == whole
    assert bytes_of(train(path, Settings(alpha=0.3, seed=1), **options), tmp_path / "n") != whole
    seen = iter(range(4))
    with pytest.raises(KeyboardInterrupt):
        train(path, SETTINGS, progress=stop, **saving, **options)
    with pytest.raises(ValueError, match="min_count: got 9, expected 3"):
        train(path, SETTINGS, resume=True, **saving, **(options | {"min_count": 9}))


@pytest.mark.usefixtures("interpreted")
def test_a_continued_run_continues_the_counts(tmp_path):
    whole = train(ROWS, SETTINGS, min_count=3, **OPTIONS)
    first = train(ROWS[:100], SETTINGS, min_count=3, **OPTIONS)
    first.save(tmp_path / "m")
    for start in (first, forel.load(tmp_path / "m")):
        again = train(ROWS[100:], model=start)
        assert again.learner.state.numbers.tobytes() == whole.learner.state.numbers.tobytes()
        assert (again.training.inclusion.table == whole.training.inclusion.table).all()
    held_out = train(ROWS, SETTINGS, min_count=3, holdout_after=100, **OPTIONS)
    assert (held_out.training.inclusion.table == first.training.inclusion.table).all()
    with pytest.raises(ValueError, match="min_count: got 5, expected 3: training continues with the model's rule"):
        train(ROWS[100:], model=first, min_count=5)
    with pytest.raises(ModelFileError, match="the counts of rare features are missing"):
        train(ROWS[100:], model=Model(first.learner, first.extra))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "min_count: got 0"),
        ({"min_count": 256}, "min_count: got 256, expected 1 to 255"),
        ({"min_count": 2, "certificate": True}, "min_count: got 2, expected none with a certificate"),
    ],
)
def test_invalid_rules_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        train(ROWS, SETTINGS, **OPTIONS, **options)
