"""A cache changes how long later passes take, and nothing else; a stale, cut or unwritten one is noticed."""

import errno
import io
import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data import Block, Malformed, Position, Problems, ReadOptions, concatenate, read
from forel.data.clicks import write_clicks
from forel.data.sources.row_cache import CacheWriter, open_cache
from forel.learner.settings import Settings
from forel.training.model import load
from forel.training.passes import Passes
from forel.training.row_cache import CacheWriteError, write_cache
from forel.training.scoring import predict_blocks
from forel.training.train import train

SETTINGS = Settings(alpha=0.3, l1=0.5)
PARTS = ("indptr", "indices", "values", "labels", "importance")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clicks")
    for name in ("a.vw", "a.csv"):
        with (made / name).open("wb") as file:
            write_clicks(file, 400, name[2:], seed=3)
    return made


def cache_at(path):
    with path.open("rb") as file:
        return open_cache(file, str(path))


def same(mine, theirs):
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert all(getattr(one, part).tobytes() == getattr(other, part).tobytes() for part in PARTS)
        assert all(getattr(one, part).dtype == getattr(other, part).dtype for part in PARTS)
        assert (one.file, one.line, one.size) == (other.file, other.line, other.size)


@given(st.lists(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=5), max_size=4))
def test_cached_blocks_equal_the_originals(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("c") / "c"
    blocks = []
    for k, rows in enumerate(content):
        sizes, slots = [len(row) for row in rows], [slot for row in rows for slot in row]
        labels = np.array([np.nan if size == 2 else size for size in sizes], np.float64)
        values = np.array(slots, np.float32) / 3
        arrays = (
            np.append(0, np.cumsum(sizes, dtype=np.int64)),
            np.array(slots, np.int32),
            values,
            labels,
            np.array(sizes, np.float32) / 2,
        )
        blocks.append(Block(*arrays, None, f"f{k}", k + 1, 7 * k, Position(k, 2 * k)))
    key = {"options": {"bits": 5}, "sources": [1, 2]}
    with path.open("w+b") as file:
        writer = CacheWriter(file, key)
        for block in blocks:
            writer.add(block)
        writer.close(Problems("skip", count=3, messages=["a"]))
        file.flush()
        cache = open_cache(file, "c")
    assert (cache.key, cache.problems.count, cache.totals["rows"]) == (key, 3, sum(map(len, blocks)))
    found = [task()[0] for task in cache.tasks()][:-1]
    same(found, blocks)
    assert [block.after for block in found] == [block.after for block in blocks]
    assert all(block.values.flags.writeable for block in found)
    for k, block in enumerate(blocks):
        assert cache.find(block.after) == k + 1


@pytest.mark.parametrize("name", ["a.vw", "a.csv"])
def test_models_are_the_same_with_and_without_a_cache(folder, tmp_path, name, monkeypatch):
    label = {"label": "click"} if name == "a.csv" else {}
    options = {"passes": 3, "holdout": 7, "bits": 12, "names": True, "block_bytes": 10_000, **label}
    found = {}
    for k in (1, 2, 3):  # into a file without a name; into one that is kept; from that one
        cache = None if k == 1 else tmp_path / "k.cache"
        found[k] = train(folder / name, SETTINGS, cache=cache, **options)
        found[k].save(tmp_path / f"{k}")
    monkeypatch.setattr("forel.training.passes.Passes._needs_cache", lambda *_: False)
    found[0] = train(folder / name, SETTINGS, **options)
    found[0].save(tmp_path / "0")
    assert len({(tmp_path / f"{k}").read_bytes() for k in found}) == 1
    assert all(found[k].training.passes == found[0].training.passes for k in found)
    again = train(tmp_path / "k.cache", SETTINGS, passes=3, holdout=7, bits=12, **label)
    assert again.learner.state.numbers.tobytes() == found[0].learner.state.numbers.tobytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1", "2", "3", "k.cache"]


def test_later_passes_and_later_runs_do_not_read_the_source(folder, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr("forel.data.reader.parse_lines", _counting("forel.data.parsers.lines", "parse_lines", read))
    train(folder / "a.vw", SETTINGS, passes=3, bits=10)
    assert len(read) == 1
    for number in (2, 2):
        train(folder / "a.vw", SETTINGS, passes=2, bits=10, cache=tmp_path / "c")
        assert len(read) == number
    train(folder / "a.vw", SETTINGS, passes=2, bits=10, cache=tmp_path / "c", names=True)
    assert len(read) == 3  # names are not in a cache; the second pass reads it all the same


def _counting(module, name, calls):
    whole = getattr(sys.modules[module], name)

    def counted(*arguments):
        calls.append(name)
        return whole(*arguments)

    return counted


def test_streams_allow_several_passes(folder):
    text = (folder / "a.vw").read_bytes()
    expected = train(folder / "a.vw", SETTINGS, passes=3, bits=10).learner.state.numbers.tobytes()
    for stream in (io.BytesIO(text), [io.BytesIO(text)]):
        assert train(stream, SETTINGS, passes=3, bits=10).learner.state.numbers.tobytes() == expected
    dicts = [{"y": k % 2, "x": f"w{k % 7}"} for k in range(300)]
    twice = [train(d, SETTINGS, passes=2, bits=8, label="y").learner.state for d in (dicts, iter(dicts))]
    assert twice[0].records.tobytes() == twice[1].records.tobytes()


def test_problems_are_counted_once_and_stored_in_the_cache(folder, tmp_path):
    source = tmp_path / "a.vw"
    source.write_text("1 |a b\n1 |a b:x\n0 |a c\n7 |a d\n")
    for _ in range(2):
        trained = train(source, SETTINGS, bits=8, passes=2, on_error="skip", cache=tmp_path / "c", block_bytes=1)
        assert (trained.training.problems.count, trained.learner.rounds) == (2, 4)
    with pytest.raises(Malformed, match="line 2, column 8"):
        train(source, SETTINGS, bits=8, cache=tmp_path / "c")
    reader = read(tmp_path / "c", bits=8)
    assert len(concatenate(reader)) == 3
    assert reader.problems.count == 1


def test_stale_caches_are_rewritten_and_foreign_files_are_not(folder, tmp_path):
    source, path = tmp_path / "a.vw", tmp_path / "c"
    source.write_bytes((folder / "a.vw").read_bytes())
    first = train(source, SETTINGS, bits=10, passes=2, cache=path)
    source.write_bytes(source.read_bytes() + b"1 |a new\n")
    with pytest.warns(RuntimeWarning, match="c: a cache of other files, of files that have changed"):
        second = train(source, SETTINGS, bits=10, passes=2, cache=path)
    assert second.training.rows == first.training.rows + 1
    with pytest.warns(RuntimeWarning, match="or of other read options; it is written again"):
        train(source, SETTINGS, bits=11, cache=path)
    assert cache_at(path).key["options"]["bits"] == 11
    before = source.read_bytes()
    for wrong in (lambda: train(source, cache=source), lambda: write_cache(source, source)):
        with pytest.raises(ValueError, match="expected a cache, or a path that does not exist"):
            wrong()
    assert source.read_bytes() == before


def test_truncated_and_changed_caches_are_detected(folder, tmp_path):
    path = tmp_path / "c.cache"
    source = tmp_path / "a.vw"
    source.write_bytes(b"".join((folder / "a.vw").read_bytes().splitlines(keepends=True)[:20]))
    write_cache(source, path, bits=10, block_bytes=2000)
    expected = concatenate(read(path, bits=10))
    state = train(source, SETTINGS, bits=10).learner.state.numbers.tobytes()
    whole = path.read_bytes()
    for size in (*range(0, len(whole), 97), len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"c\.cache"):  # too short to be known as a cache, or known not to be whole
            list(read(path, bits=10))
    with pytest.warns(RuntimeWarning, match="expected a whole cache; make it again"):
        again = train(source, SETTINGS, bits=10, cache=path)
    assert again.learner.state.numbers.tobytes() == state
    assert len(cache_at(path)) > 0
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 300):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            found = concatenate(read(path, bits=10))
        except ValueError as wrong:
            assert "c.cache" in str(wrong)  # noqa: PT017
        else:  # a byte that says nothing
            assert all(getattr(found, part).tobytes() == getattr(expected, part).tobytes() for part in PARTS)


def test_a_cache_is_read_with_the_options_it_was_written_with(folder, tmp_path):
    path = tmp_path / "c.cache"
    write_cache(folder / "a.csv", path, bits=10, label="click")
    assert len(concatenate(read(path, bits=10))) == 400
    assert len(concatenate(read(path, bits=10, label="click"))) == 400
    for options, message in [
        ({}, "bits: got 22, expected 10, as .*c.cache was made with"),
        ({"bits": 10, "label": "y"}, "label: got 'y', expected 'click'"),
        ({"bits": 10, "names": True}, "names: got True, expected False"),
    ]:
        with pytest.raises(ValueError, match=message):
            list(read(path, **options))


def test_a_model_trained_on_a_cache_reads_the_original_format(tmp_path):
    path, source = tmp_path / "c.cache", tmp_path / "a.csv"
    source.write_text("click,hour,price,id\n" + "".join(f"{k % 2},{k % 24},{k % 7},{k}\n" for k in range(200)))
    reading = {"label": "click", "bits": 10, "categories": ["hour"], "ignore": ["id"]}
    write_cache(source, path, **reading)
    trained = train(path, SETTINGS)
    assert trained.extra == train(source, SETTINGS, **reading).extra
    margins = [np.concatenate([m for _, m in predict_blocks(trained, s)]) for s in (path, source)]
    assert margins[0].size == 200
    assert margins[0].tobytes() == margins[1].tobytes()


def test_runs_resume_in_the_middle_of_a_cache(folder, tmp_path):
    options = {
        "bits": 10,
        "passes": 3,
        "holdout": 5,
        "block_bytes": 20_000,
        "checkpoint_every": 1,
        "checkpoint": tmp_path / "p",
    }
    for source, kept in ((folder / "a.vw", tmp_path / "c"), ([tmp_path / "c", tmp_path / "c"], None)):
        expected = train(source, SETTINGS, **options).learner.state.numbers.tobytes()
        for after in (3, 9, 20):
            blocks = iter(range(after))
            with pytest.raises(StopIteration):
                train(source, SETTINGS, cache=kept, progress=lambda _, b=blocks: next(b), **options)
            per_pass = 16 if kept is None else 8
            assert load(tmp_path / "p").extra["checkpoint"]["place"]["pass_number"] == 1 + (after - 1) // per_pass
            again = train(source, SETTINGS, resume=True, **options)
            assert again.learner.state.numbers.tobytes() == expected
            again = train(source, SETTINGS, cache=kept, resume=True, **options)
            assert again.learner.state.numbers.tobytes() == expected


@pytest.mark.parametrize("when", ["__init__", "add", "close"])
@pytest.mark.parametrize("kept", [True, False])
def test_every_pass_reads_the_source_if_the_cache_cannot_be_written(folder, tmp_path, monkeypatch, when, kept):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    expected = train(folder / "a.vw", SETTINGS, passes=2, bits=10).learner.state.numbers.tobytes()
    monkeypatch.setattr(f"forel.training.row_cache.CacheWriter.{when}", fail)
    path = tmp_path / "c" if kept else None
    with pytest.warns(RuntimeWarning, match=r"could not be written .No space left.*each pass reads the source"):
        again = train(folder / "a.vw", SETTINGS, passes=2, bits=10, cache=path)
    assert again.learner.state.numbers.tobytes() == expected
    with pytest.raises(CacheWriteError, match="a stream cannot be read again without it"):
        train(io.BytesIO((folder / "a.vw").read_bytes()), SETTINGS, passes=2, bits=10, cache=path)
    with pytest.raises(OSError, match="could not be written"):
        write_cache(folder / "a.vw", tmp_path / "d", bits=10)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_pass_leaves_no_file(folder, tmp_path):
    with Passes(folder / "a.vw", ReadOptions(block_bytes=5000), 2, tmp_path / "c") as passes:
        next(passes.blocks(1))
        assert len(list(tmp_path.iterdir())) == 1
    assert not list(tmp_path.iterdir())


def command(*arguments, **options):
    line = [sys.executable, "-m", "forel", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.mark.slow
def test_the_command_reads_a_cache_and_needs_one_for_passes_over_a_stream(folder, tmp_path):
    path = tmp_path / "c.cache"
    write_cache(folder / "a.vw", path, bits=12)
    done = command("train", path, "-b", 12, "--alpha", 0.3, "--json")
    assert json.loads(done.stdout)["rows"] == 400

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    text = (folder / "a.vw").read_text()
    done = command(
        "train", "-", "--format", "vw", "--passes", 2, "-b", 12, "--alpha", 0.3, "--json", preexec_fn=small, input=text
    )
    assert done.returncode == 2
    assert "a stream cannot be read again without it" in done.stderr
    assert "Traceback" not in done.stderr
