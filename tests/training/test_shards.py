"""Training in shards: deterministic, close to learning in order on real data, and the arguments of its command."""

import os
import pathlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import forel.training.shards as sharding
from forel.data import Block
from forel.data.clicks import write_clicks
from forel.data.regroup import regroup
from forel.learner.grid import default_grid
from forel.learner.settings import Settings
from forel.training.shards import Merging
from forel.training.train import train

DATA = pathlib.Path(os.environ.get("FOREL_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data"))
ONE = Settings(alpha=0.3, l1=0.1)


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks") / "a.vw"
    with path.open("wb") as file:
        write_clicks(file, 300, "vw", seed=3)
    return str(path)


@pytest.fixture
def short_rounds(monkeypatch):
    """Rounds of several shards from the first rows on."""
    monkeypatch.setattr(sharding, "MIN_SHARD_ROWS", 5)


def saved(tmp_path, trained):
    trained.save(tmp_path / "m.forel")
    return (tmp_path / "m.forel").read_bytes()


def test_the_model_depends_on_shards_and_not_on_blocks_or_threads(clicks, tmp_path, interpreted, short_rounds):
    def run(shards, **options):
        merging = Merging(every=50, shards=shards, warm_up=15)
        return saved(tmp_path, train(clicks, ONE, merge=merging, bits=12, names=True, holdout=10, **options))

    expected = run(4)
    assert run(4, block_bytes=3000, threads=0) == expected
    assert run(4, block_bytes=100_000, threads=3) == expected
    assert run(2) != expected


def test_several_passes_and_one_shard(clicks, tmp_path, interpreted, short_rounds):
    alone = train(clicks, ONE, bits=12, certified=True, passes=2)
    one = train(clicks, ONE, bits=12, certified=True, passes=2, merge=Merging(every=100, shards=1))
    assert saved(tmp_path, one) == saved(tmp_path, alone)  # one shard learns in order
    several = train(clicks, ONE, bits=12, certified=True, passes=2, merge=Merging(every=20, shards=4, warm_up=9))
    assert several.passes[1].loss < several.passes[0].loss
    assert several.model.rounds == 600
    assert "no fixed model of norm at most" in several.certificate


@pytest.mark.parametrize("settings", [Settings(alpha=0.1, l1=1.0), Settings(alpha=0.5)])
def test_many_shards_lose_little_at_small_and_large_rates(tmp_path, monkeypatch, settings):
    # Averages of weights lose 2 % more at the small rate, and sums of steps 2 % at the large one.
    monkeypatch.setattr(sharding, "MIN_SHARD_ROWS", 100)
    monkeypatch.setattr(sharding, "SEEN_PER_ROW", 8)
    path = tmp_path / "clicks.vw"
    with path.open("wb") as file:
        write_clicks(file, 20_000, "vw", seed=3)
    alone = train(path, settings, bits=16).report.loss
    assert train(path, settings, bits=16, merge=Merging(250, 32)).report.loss < 1.01 * alone


def test_rounds_grow_with_the_rows_before_and_have_all_of_them():
    for shards in (1, 3, 64):
        merging, seen, rounds = Merging(every=500, shards=shards), 0, []
        while seen < 200_000:
            rows, each = merging.round_sizes(seen)
            assert rows % each == 0
            assert rows // each <= shards
            assert each <= 500
            rounds.append(rows)
            seen += rows
        sixteenth = (seen - rounds[-1]) / 16
        assert min(500 * shards, sixteenth - 500) <= rounds[-1] <= min(500 * shards, sixteenth + shards)


@pytest.mark.parametrize("every", [1, 20, 511, 2000])
def test_the_first_rows_are_learned_in_order_whatever_the_size_of_shards(every):
    merging = Merging(every, shards=64)
    for seen in (0, 100, 8192, 16_383):
        rows, each = merging.round_sizes(seen)
        assert rows == each == min(every, max(seen // 16, 512))
    assert merging.round_sizes(16_384)[0] == 2 * min(every, 512)
    assert merging.round_sizes(10**7)[0] == 64 * every


def test_blocks_of_any_size_are_regrouped():
    rng = np.random.default_rng(0)
    blocks = []
    for size in rng.integers(1, 9, 30).tolist():
        indptr = np.concatenate(([0], np.cumsum(rng.integers(0, 4, size))))
        entries = int(indptr[-1])
        blocks.append(
            Block(indptr, rng.integers(0, 99, entries).astype(np.int32), rng.random(entries).astype(np.float32),
                  rng.random(size).astype(np.float32), tags=tuple(b"%d" % k for k in range(size)), size=size,
                  lines=np.arange(size))
        )  # fmt: skip
    sizes = iter([5, 1, 20, 3] + [7] * 100)
    found = list(regroup(blocks, lambda: next(sizes)))
    assert [len(block) for block in found][:5] == [5, 1, 20, 3, 7]
    for name in ("indices", "values", "labels", "importance", "lines"):
        assert np.array_equal(*(np.concatenate([getattr(b, name) for b in some]) for some in (blocks, found)))
    assert np.array_equal(*(np.concatenate([np.diff(b.indptr) for b in some]) for some in (blocks, found)))
    assert [tag for b in blocks for tag in b.tags] == [tag for b in found for tag in b.tags]
    assert sum(b.size for b in blocks) == sum(b.size for b in found)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("passes", [1, 2])
def test_a_run_that_stopped_resumes_within_a_block(clicks, tmp_path, interpreted, short_rounds, passes):
    lines = pathlib.Path(clicks).read_text().splitlines(keepends=True)[:100]
    source = tmp_path / "bad.vw"
    source.write_text("".join(line + ("1 |a b:oops\n" if k % 9 == 0 else "") for k, line in enumerate(lines)))
    options = {"merge": Merging(every=20, shards=3, warm_up=4), "bits": 12, "names": True, "on_error": "skip",
               "subsample": 0.7, "passes": passes, "block_bytes": 5000, "certified": True}  # fmt: skip
    alone = train(str(source), ONE, **options)
    places = set()
    for after in (2, 5):
        seen = []

        def stop(progress, seen=seen, after=after):
            seen.append(progress)
            places.add(progress.block.after.rows)
            if len(seen) > after:
                raise StoppedError

        saving = {"checkpoint": tmp_path / "c", "checkpoint_every": 1}
        with pytest.raises(StoppedError):
            train(str(source), ONE, progress=stop, **saving, **options)
        resumed = train(str(source), ONE, resume=True, **saving, **options)
        assert saved(tmp_path, resumed) == saved(tmp_path, alone)
        assert (resumed.problems.count, resumed.problems.messages) == (alone.problems.count, alone.problems.messages)
        assert resumed.certificate == alone.certificate
    assert max(places) > 0
    seen.clear()
    with pytest.raises(StoppedError):
        train(str(source), ONE, progress=stop, **saving, **options)
    options["merge"] = Merging(every=21, shards=3, warm_up=4)
    with pytest.raises(ValueError, match="merge"):
        train(str(source), ONE, resume=True, **saving, **options)


SETS = {
    "a9a.svm.gz": {}, "spambase.vw.gz": {}, "rcv1_small.vw.gz": {}, "amazon_books.vw.gz": {},
    "amazon_kitchen.vw.gz": {}, "elec2.csv.gz": {"label": "class"}, "bike_sharing.csv.gz": {"label": "cnt"},
}  # fmt: skip


def experts_of(name):
    """Return the default experts."""
    return default_grid(loss="squared" if name.startswith("bike") else "logistic")


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_shards_lose_little_on_real_data(name):
    if not (DATA / name).exists():
        pytest.skip(f"needs {name} in ../shared/data or in the directory FOREL_DATA")
    options = {"bits": 16, **SETS[name]}
    one = replace(ONE, loss=experts_of(name).loss, rate="scale_free", beta=0.01)
    alone = train(DATA / name, one, **options).report.loss
    for shards in (2, 64):
        assert train(DATA / name, one, merge=Merging(every=1000, shards=shards), **options).report.loss < 1.05 * alone
    options["certified"] = True
    alone = train(DATA / name, experts_of(name), **options).report.loss
    for shards in (2, 8, 64):
        trained = train(DATA / name, merge=Merging(every=1000, shards=shards), settings=experts_of(name), **options)
        assert trained.report.loss < 1.05 * alone
        guarantee = trained.model.guarantee()
        assert trained.model.loss - trained.model.losses.min() <= guarantee.bound


@pytest.mark.parametrize("every", [32, 100])
def test_short_shards_lose_little_where_labels_have_no_noise(every):
    path = DATA / "bike_sharing.csv.gz"
    if not path.exists():
        pytest.skip("needs bike_sharing.csv.gz in ../shared/data or in the directory FOREL_DATA")
    settings, options = experts_of("bike"), {"bits": 16, "label": "cnt"}
    alone = train([path, path], settings, **options).report.loss
    assert train([path, path], settings, merge=Merging(every, 64), **options).report.loss < 1.01 * alone


def test_rows_before_its_own_let_a_shard_follow_a_stream_that_drifts(monkeypatch):
    # Electricity prices change with the hours before: shards that do not know these cannot follow.
    path = DATA / "elec2.csv.gz"
    if not path.exists():
        pytest.skip("needs elec2.csv.gz in ../shared/data or in the directory FOREL_DATA")
    monkeypatch.setattr(sharding, "MIN_SHARD_ROWS", 64)
    options = {"label": "class", "bits": 16, "certified": True}
    alone = train(path, experts_of("elec2"), **options).report.loss
    without, with_rows = (
        train(path, experts_of("elec2"), merge=Merging(64, 16, warm_up=rows), **options).report.loss
        for rows in (0, 512)
    )
    assert with_rows < 1.05 * alone < without


@pytest.mark.parametrize(("options", "message"), [
    ({"merge": Merging(), "settings": Settings(algorithm="mirror")}, "merge: got 'algorithm=mirror'"),
    ({"merge": Merging(), "share": 0.01}, "merge: got 'share=0.01'"),
])  # fmt: skip
def test_options_that_cannot_be_merged_are_refused(clicks, options, message):
    with pytest.raises(ValueError, match=message):
        train(clicks, bits=12, **options)


def test_the_command_line_merges(clicks, tmp_path):
    command = [sys.executable, "-m", "forel", "train", clicks, "--bits", "12", "--alpha", "0.3", "--quiet"]
    for value, code in (("50", 0), ("0", 2)):
        done = subprocess.run(
            [*command, "--merge", value, "--shards", "3"], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
    assert "--merge: got 0, expected a whole number of at least 1" in done.stderr
