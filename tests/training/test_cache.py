"""A cache changes how long later passes take, and nothing else; one that cannot be written is noticed."""

import errno
import io
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data import Block, Position, Problems, ReadOptions
from forel.data.clicks import write_clicks
from forel.data.sources.row_cache import CacheWriteError, RowCache
from forel.learner.settings import Settings
from forel.training.passes import Passes
from forel.training.train import train

SETTINGS = Settings(alpha=0.3, l1=0.5)
PARTS = ("indptr", "indices", "values", "labels", "importance", "lines", "columns")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clicks")
    for name in ("a.vw", "a.csv"):
        with (made / name).open("wb") as file:
            write_clicks(file, 400, name[2:], seed=3)
    return made


@given(st.lists(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=5), max_size=4), st.booleans())
def test_cached_blocks_equal_the_originals(content, more):
    cache, blocks = RowCache(), []
    for k, rows in enumerate(content):
        sizes, slots = [len(row) for row in rows], [slot for row in rows for slot in row]
        arrays = {
            "indptr": np.append(0, np.cumsum(sizes, dtype=np.int64)),
            "indices": np.array(slots, np.int32),
            "values": np.array(slots, np.float32) / 3,
            "labels": np.array([np.nan if size == 2 else size + 1e-9 for size in sizes], np.float64),
            "importance": np.array(sizes, np.float32) / 2,
            "lines": np.cumsum(np.array(sizes, np.int64)) + 2**40 if more else None,
            "columns": np.array(slots, np.int32)[::-1] if more else None,
        }
        blocks.append(Block(**arrays, file=f"f{k}", line=k + 1, size=7 * k, after=Position(k, 2 * k)))
        cache.add(blocks[-1])
    cache.finish(Problems("skip", count=3, messages=["a"]), {"x": "number"}, [])
    *found, (nothing, problems) = [task() for task in cache.tasks()]
    assert (nothing, problems.count, len(found), len(cache)) == (None, 3, len(blocks), len(blocks))
    for k, ((one, _), other) in enumerate(zip(found, blocks, strict=True)):
        for part in PARTS:
            mine, theirs = getattr(one, part), getattr(other, part)
            assert mine is theirs is None or (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes())
        assert (one.file, one.line, one.size, one.after) == (other.file, other.line, other.size, other.after)
        assert one.values.flags.writeable
        assert cache.find(other.after) == k + 1


@pytest.mark.parametrize("name", ["a.vw", "a.csv"])
def test_models_are_the_same_with_and_without_a_cache(folder, tmp_path, name, monkeypatch):
    label = {"label": "click"} if name == "a.csv" else {}
    options = {"passes": 3, "holdout": 7, "bits": 12, "names": True, "block_bytes": 10_000, **label}
    found = []
    for needed in (True, False):
        if not needed:
            monkeypatch.setattr("forel.training.passes.Passes._needs_cache", lambda *_: False)
        found.append(train(folder / name, SETTINGS, **options))
        found[-1].save(tmp_path / f"{needed}")
    assert (tmp_path / "True").read_bytes() == (tmp_path / "False").read_bytes()
    assert found[0].training.passes == found[1].training.passes


def test_later_passes_do_not_read_the_source_and_count_its_problems_once(folder, tmp_path, monkeypatch):
    read, parse = [], sys.modules["forel.data.parsers.lines"].parse_lines
    monkeypatch.setattr("forel.data.reader.parse_lines", lambda *given: (read.append(given), parse(*given))[1])
    train(folder / "a.vw", SETTINGS, passes=3, bits=10)
    assert len(read) == 1
    train(folder / "a.vw", SETTINGS, passes=2, bits=10, names=True)
    assert len(read) == 2
    source = tmp_path / "a.vw"
    source.write_text("1 |a b\n1 |a b:x\n0 |a c\n7 |a d\n")
    trained = train(source, SETTINGS, bits=8, passes=2, on_error="skip", block_bytes=1)
    assert (trained.training.problems.count, trained.learner.rounds) == (2, 4)


def test_streams_allow_several_passes(folder):
    text = (folder / "a.vw").read_bytes()
    expected = train(folder / "a.vw", SETTINGS, passes=3, bits=10).learner.state.numbers.tobytes()
    for stream in (io.BytesIO(text), [io.BytesIO(text)]):
        assert train(stream, SETTINGS, passes=3, bits=10).learner.state.numbers.tobytes() == expected
    dicts = [{"y": k % 2, "x": f"w{k % 7}"} for k in range(300)]
    twice = [train(d, SETTINGS, passes=2, bits=8, label="y").learner.state for d in (dicts, iter(dicts))]
    assert twice[0].records.tobytes() == twice[1].records.tobytes()


def test_every_pass_reads_the_source_if_the_cache_cannot_be_written(folder, monkeypatch):
    expected = train(folder / "a.vw", SETTINGS, passes=2, bits=10).learner.state.numbers.tobytes()
    calls, room, write = [], [0], os.write

    def fail(*given):
        calls.append(given)
        if len(calls) > room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(*given)

    monkeypatch.setattr("forel.data.sources.row_cache.os.write", fail)
    for room[0] in (0, 3):
        calls.clear()
        with pytest.warns(RuntimeWarning, match=r"could not be written .No space left.*each pass reads the source"):
            again = train(folder / "a.vw", SETTINGS, passes=2, bits=10, block_bytes=2000)
        assert again.learner.state.numbers.tobytes() == expected
        calls.clear()
        with pytest.raises(CacheWriteError, match="a stream cannot be read again without it"):
            train(io.BytesIO((folder / "a.vw").read_bytes()), SETTINGS, passes=2, bits=10, block_bytes=2000)
    monkeypatch.setattr("forel.data.sources.row_cache.temporary_folder", lambda: "/no/such/folder")
    with pytest.warns(RuntimeWarning, match="cache in /no/such/folder .set TMPDIR for another folder.: could not be"):
        train(folder / "a.vw", SETTINGS, passes=2, bits=10)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list open files")
def test_the_file_is_closed_with_its_passes_and_has_no_name(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = len(os.listdir("/proc/self/fd"))
    for shuffle in (None, 3):
        with Passes(folder / "a.vw", ReadOptions(block_bytes=5000), 2, shuffle=shuffle) as passes:
            blocks = passes.blocks(1)
            next(blocks)
            assert len(os.listdir("/proc/self/fd")) > before
            assert not list(tmp_path.iterdir())
            blocks.close()
            list(passes.blocks(1))
            next(passes.blocks(2))
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.slow
def test_the_command_needs_a_cache_for_passes_over_a_stream(folder):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    flags = "train - --format vw --passes 2 -b 12 --alpha 0.3 --json"
    line = [sys.executable, "-m", "forel", *flags.split()]
    text = (folder / "a.vw").read_text()
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, preexec_fn=small, input=text)
    assert done.returncode == 2
    assert "a stream cannot be read again without it" in done.stderr
    assert "Traceback" not in done.stderr
