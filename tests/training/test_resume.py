"""A run that is killed at any moment resumes to the same bytes; write errors are reported, and no file is lost."""

import errno
import gzip
import io
import os
import resource
import shutil
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from forel.data import Malformed, concatenate, read
from forel.data.block import Position
from forel.data.clicks import write_clicks
from forel.learner.settings import Settings
from forel.store import ModelFileError
from forel.training.model import load, save
from forel.training.train import train

SETTINGS = Settings(alpha=0.3, l1=0.5)
OPTIONS = {"bits": 12, "passes": 2, "holdout": 7, "certificate": True, "names": True, "block_bytes": 4000}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clicks")
    for name in ("a.vw", "b.csv"):
        with (made / name).open("wb") as file:
            write_clicks(file, 300, name[2:], seed=3)
    text = (made / "a.vw").read_bytes()
    (made / "b.vw.gz").write_bytes(gzip.compress(b"\n\n" + text[:40_000].rpartition(b"\n")[0]))
    (made / "c.svm").write_text("".join(f"{k % 2} {k % 9}:1 {9 + k % 7}:0.5\n" for k in range(400)))
    (made / "d.jsonl").write_text("".join(f'{{"y": {k % 2}, "x{k % 5}": "w{k % 11}"}}\n' for k in range(3000)))
    return made


class Stopped(Exception):
    pass


def stopped(after, *arguments, **options):
    """Train for a number of blocks, then stop as after a power failure."""
    count = iter(range(after))

    def tick(_):
        if next(count, None) is None:
            raise Stopped

    with pytest.raises(Stopped):
        train(*arguments, progress=tick, **options)


def bytes_of(trained, path):
    trained.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("names", [["a.vw"], ["a.vw", "b.vw.gz", "a.vw"], ["c.svm", "c.svm"]])
@pytest.mark.parametrize("threads", [0, 3])
def test_a_run_stopped_at_any_block_resumes_to_the_same_bytes(folder, tmp_path, names, threads):
    source, path = [folder / name for name in names], tmp_path / "m.checkpoint"
    options = {**OPTIONS, "block_bytes": 20_000 if "a.vw" in names else 2000, "names": "a.vw" in names}
    blocks = []
    whole = train(source, SETTINGS, progress=blocks.append, **options)
    expected = bytes_of(whole, tmp_path / "whole")
    for after in range(1, len(blocks), 3):
        stopped(after, source, SETTINGS, checkpoint=path, checkpoint_every=60, threads=threads, **options)
        seen = []
        going = {"checkpoint": path, "checkpoint_every": 10**6, "resume": True, "progress": seen.append}
        again = train(source, SETTINGS, threads=threads, **going, **options)
        assert not path.exists() or len(seen) < len(blocks)
        assert bytes_of(again, tmp_path / "again") == expected
        assert (again.report, again.training.holdout, again.training.passes) == (
            whole.report,
            whole.training.holdout,
            whole.training.passes,
        )
        assert (again.training.rows, again.training.entries) == (whole.training.rows, whole.training.entries)
        assert not path.exists()


@pytest.mark.parametrize(("name", "label"), [("b.csv", "click"), ("d.jsonl", "y")])
def test_formats_without_byte_positions_resume(folder, tmp_path, name, label, monkeypatch):
    monkeypatch.setattr("forel.data.parsers.dicts.ENTRIES", 1000)
    path = tmp_path / "m.checkpoint"
    options = {"label": label, "bits": 12, "holdout": 5, "passes": 2, "block_bytes": 10_000, "names": True}
    expected = bytes_of(train(folder / name, SETTINGS, **options), tmp_path / "whole")
    for after in (1, 2, 3):
        stopped(after, folder / name, SETTINGS, checkpoint=path, checkpoint_every=1, **options)
        again = train(folder / name, SETTINGS, checkpoint=path, resume=True, **options)
        assert bytes_of(again, tmp_path / "again") == expected


@pytest.mark.parametrize("words", [("ham", "spam"), ("a", "b", "c")])
def test_labels_that_are_words_resume(tmp_path, words):
    source, path = tmp_path / "a.jsonl", tmp_path / "m.checkpoint"
    # The rest of the file has fewer words than its beginning.
    rows = (f'{{"x": {k % 7}, "y": "{words[-1] if k > 200 else words[k % len(words)]}"}}\n' for k in range(400))
    source.write_text("".join(rows))
    options = {"label": "y", "bits": 10, "block_bytes": 1000}
    expected = bytes_of(train(source, SETTINGS, **options), tmp_path / "whole")
    for after in (1, 5, 7):
        stopped(after, source, SETTINGS, checkpoint=path, checkpoint_every=1, **options)
        again = train(source, SETTINGS, checkpoint=path, resume=True, **options)
        assert bytes_of(again, tmp_path / "again") == expected


@pytest.mark.parametrize("name", ["a.vw", "b.vw.gz", "b.csv", "c.svm", "d.jsonl"])
def test_a_reader_starts_after_any_block(folder, name, monkeypatch):
    monkeypatch.setattr("forel.data.parsers.dicts.ENTRIES", 1000)
    size = 20_000 if name == "b.csv" else 3000
    options = {"bits": 10, "block_bytes": size, "label": {"b.csv": "click", "d.jsonl": "y"}.get(name)}
    blocks = list(read([folder / name, folder / name], **options))
    for k in (0, 1, len(blocks) // 2 - 1, len(blocks) // 2, len(blocks) - 1):
        reader = read([folder / name, folder / name], **options)
        rest = list(type(reader)(reader.source, reader.options, reader.problems, None, blocks[k].after))
        for part in ("indices", "values", "labels", "importance"):
            mine, theirs = getattr(concatenate(rest), part), getattr(concatenate(blocks[k + 1 :]), part)
            assert mine.tobytes() == theirs.tobytes()
        if rest:
            assert (rest[0].file, rest[0].line) == (blocks[k + 1].file, blocks[k + 1].line)
    assert blocks[-1].after >= Position(1)


@pytest.mark.parametrize("early", ["nort", "north"])
def test_resumed_runs_warn_of_the_same_labels_and_columns(tmp_path, early, interpreted):
    path, source = tmp_path / "m.checkpoint", tmp_path / "a.csv"
    words = [early] * 150 + ["north"] * 150 + ["dog"] * 150  # then "nort" is a class, or an error of typing
    source.write_text(
        "y,x\n" + "".join(f'{word},"{k},5"\n' for k, word in enumerate([*words, "nort", "north", "north"]))
    )
    saved = {"checkpoint": path, "checkpoint_every": 1}
    options = {"label": "y", "bits": 8, "block_bytes": 200, **saved}

    def warned(**more):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            train(source, Settings("softmax", alpha=0.3), **options, **more)
        return sorted(str(one.message) for one in found)

    expected = warned()
    assert any("'nort'" in one for one in expected) == (early == "north")
    assert any("'x'" in one for one in expected)
    with warnings.catch_warnings(action="ignore"):
        stopped(25, source, Settings("softmax", alpha=0.3), **options)
    assert warned(resume=True) == expected


GROWING = {
    "vw": ["0 |a c1\n", *(f"{k % 2} |a c{k % 7} x:{k}\n" for k in range(40))],
    "csv": ["y,c,x\n", *(f"{k % 2},c{k % 7},{k}\n" for k in range(40))],
    "jsonl": [f'{{"y": {k % 2}, "c": "c{k % 7}", "x": {k}}}\n' for k in range(41)],
    "jsonl, words": [f'{{"y": "{"ny"[k % 2]}", "c": "c{k % 7}", "x": {k}}}\n' for k in range(41)],
}


@pytest.mark.parametrize("form", GROWING)
def test_a_run_on_a_growing_file_resumes_after_the_rows_it_has_learned(tmp_path, form, interpreted):
    path, lines = (
        tmp_path / "rows",
        [*GROWING[form][:9], "1 |a x:y\n", *GROWING[form][9:30], "{1\n", *GROWING[form][30:]],
    )
    options = {"format": form.partition(",")[0], "label": None if form == "vw" else "y", "bits": 8, "on_error": "skip"}
    options |= {"positive": "y"} if form == "jsonl, words" else {}
    path.write_text("".join(lines))
    whole = train(path, SETTINGS, **options)
    options |= {"follow": True, "idle": 0.5, "threads": 0, "checkpoint": tmp_path / "at", "checkpoint_every": 1}
    path.write_text("".join(lines[:12]))

    def append(now):
        if now.rows > 12:
            raise Stopped
        with path.open("a") as file:
            file.write("".join(lines[12:]))

    with pytest.raises(Stopped):
        train(path, SETTINGS, progress=append, **options)
    again = train(path, SETTINGS, resume=True, **options)
    assert (again.report, again.training.problems.messages) == (whole.report, whole.training.problems.messages)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (5 * "1,2\n", "of 24 bytes', expected the .. bytes it had before"),
        (99 * "1,3\n", "with other lines than before"),
    ],
)
def test_a_run_on_a_growing_file_that_has_been_replaced_is_not_resumed(tmp_path, interpreted, rows, message):
    path, line = tmp_path / "rows.csv", "1,2\n"
    path.write_text("y,x\n" + 9 * line)
    options = {"label": "y", "follow": True, "idle": 0.5, "threads": 0, "checkpoint": tmp_path / "at"}

    def append(now):
        if now.rows > 9:
            raise Stopped
        with path.open("a") as file:
            file.write(line)

    with pytest.raises(Stopped):
        train(path, SETTINGS, progress=append, checkpoint_every=1, **options)
    path.write_text("y,x\n" + rows)
    with pytest.raises(ValueError, match=rf"rows.csv {message}"):
        train(path, SETTINGS, resume=True, **options)


def test_resumed_runs_report_the_same_lines_and_counts(tmp_path):
    path, source = tmp_path / "m.checkpoint", tmp_path / "a.vw"
    bad = {20: "1 |a b:x\n", 333: "7 |a b\n", 390: "nonsense\n", 391: "\n"}
    source.write_text("\n\n" + "".join(bad.get(k, f"{k % 2} |a b{k % 7}\n") for k in range(400)))
    options = {"bits": 8, "block_bytes": 100, "on_error": "skip", "checkpoint": path, "checkpoint_every": 1}
    whole = train(source, SETTINGS, **options)
    assert whole.training.problems.count == 3
    assert "line 23" in whole.training.problems.messages[0]
    assert "line 393, column" in whole.training.problems.messages[2]
    for after in (1, 15, 21, 22, 30):
        stopped(after, source, SETTINGS, **options)
        again = train(source, SETTINGS, resume=True, **options)
        assert again.training.problems.count == 3
        assert (again.training.problems.messages[0], again.training.problems.messages[2]) == (
            whole.training.problems.messages[0], whole.training.problems.messages[2],
        )  # fmt: skip
    stopped(30, source, SETTINGS, **options)
    text = source.read_text()
    options["on_error"] = "raise"
    with pytest.raises(ValueError, match="on_error: got 'raise', expected 'skip', as when"):
        train(source, SETTINGS, resume=True, **options)
    source.write_text(text.replace("1 |a b:x\n", "").replace("7 |a b\n", ""))
    stopped(5, source, SETTINGS, **options)
    with pytest.raises(Malformed, match="line 391, column 1"):
        train(source, SETTINGS, resume=True, **options)


def test_the_negative_label_is_part_of_a_checkpoint(tmp_path):
    path, source = tmp_path / "m.checkpoint", tmp_path / "a.vw"
    source.write_text("-1 |a b\n" + "1 |a c\n" * 50 + "0 |a d\n")
    options = {"bits": 8, "block_bytes": 100, "checkpoint": path, "checkpoint_every": 1}
    stopped(2, source, SETTINGS, **options)
    with pytest.raises(Malformed, match="the label 0, expected -1 or 1 as before"):
        train(source, SETTINGS, resume=True, **options)


def test_runs_with_user_defined_losses_and_starts_resume(folder, tmp_path, interpreted):
    def steep(margin, label):
        d = margin - label
        return 2 * d * d, 4 * d

    path, first = tmp_path / "m.checkpoint", tmp_path / "first"
    options = {"bits": 10, "block_bytes": 400, "checkpoint": path, "checkpoint_every": 1}
    for settings in (Settings(steep, alpha=0.01), SETTINGS):
        expected = train(folder / "c.svm", settings, **options).learner.state.numbers.tobytes()
        stopped(5, folder / "c.svm", settings, **options)
        again = train(folder / "c.svm", settings, resume=True, **options)
        assert again.learner.state.numbers.tobytes() == expected
    again.save(first)
    expected = train(folder / "c.svm", model=load(first), **options).learner.state.numbers.tobytes()
    stopped(1, folder / "c.svm", model=load(first), **options)
    again = train(folder / "c.svm", model=load(first), resume=True, **options)
    assert again.learner.state.numbers.tobytes() == expected
    stopped(1, folder / "c.svm", model=load(first), **options)
    with pytest.raises(ValueError, match=r"model: got None, expected \["):
        train(folder / "c.svm", SETTINGS, resume=True, **options)


def test_resuming_with_other_options_or_files_is_refused(folder, tmp_path):
    path, source = tmp_path / "m.checkpoint", tmp_path / "a.vw"
    shutil.copy(folder / "a.vw", source)
    options = {**OPTIONS, "checkpoint": path, "checkpoint_every": 1}
    stopped(3, source, SETTINGS, **options)
    for change, message in [
        ({"holdout": 5}, "holdout: got 5, expected 7, as when"),
        ({"passes": 3}, "passes: got 3"),
        ({"names": False}, "names: got False"),
        ({"certificate": False}, "certificate: got False"),
        ({"bits": 13}, "bits: got 13, expected 12"),
        ({"settings": Settings(alpha=0.2)}, "settings: got"),
        ({"source": [source, source]}, "resume: got '2 files', expected the same files as when"),
        ({"source": folder / "a.vw"}, "a.vw, which has changed"),
    ]:
        with pytest.raises(ValueError, match=message):
            train(**{"source": source, "settings": SETTINGS, **options, **change}, resume=True)
    os.utime(source, ns=(0, source.stat().st_mtime_ns + 1))
    with pytest.raises(ValueError, match=r"a\.vw, which has changed"):
        train(source, SETTINGS, resume=True, **options)
    for stream in ("-", [{"x": 1.0}], io.BytesIO(b"1 |a b")):
        with pytest.raises(ValueError, match="a stream cannot be read again"):
            train(stream, SETTINGS, checkpoint=path)
    save(path, load(path).learner)
    with pytest.raises(ModelFileError, match="a model, but not a checkpoint"):
        train(source, SETTINGS, resume=True, **options)


def test_a_checkpoint_loads_as_a_model_and_truncated_ones_are_refused(folder, tmp_path):
    path = tmp_path / "m.checkpoint"
    options = {**OPTIONS, "bits": 6, "checkpoint": path, "checkpoint_every": 1}
    stopped(20, folder / "a.vw", SETTINGS, **options)
    assert load(path).learner.rounds > 0
    assert load(path).extra["reading"]["bits"] == 6
    whole = path.read_bytes()
    for size in (0, 1, 8, 100, *range(1000, len(whole), len(whole) // 60), len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelFileError, match=r"m\.checkpoint: not a complete model file"):
            train(folder / "a.vw", SETTINGS, resume=True, **options)
        assert path.read_bytes() == whole[:size]


def test_metrics_of_resumed_runs_are_the_same(folder, tmp_path, interpreted):
    path = tmp_path / "m.checkpoint"
    for loss in ("squared", "hinge"):
        options = {"bits": 12, "passes": 2, "holdout": 7, "block_bytes": 200, "checkpoint": path, "checkpoint_every": 1}
        whole = train(folder / "c.svm", Settings(loss), **options)
        stopped(37, folder / "c.svm", Settings(loss), **options)
        again = train(folder / "c.svm", Settings(loss), resume=True, **options)
        assert (again.training.passes, again.training.holdout) == (whole.training.passes, whole.training.holdout)


def test_a_failed_checkpoint_ends_the_run_and_keeps_the_last_one(folder, tmp_path, monkeypatch):
    path = tmp_path / "m.checkpoint"
    stopped(3, folder / "a.vw", SETTINGS, checkpoint=path, checkpoint_every=1, **OPTIONS)
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=r"No space left on device.; an existing file is unchanged; free some space"):
        train(folder / "a.vw", SETTINGS, checkpoint=path, checkpoint_every=1, resume=True, **OPTIONS)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.checkpoint"]


QUIET = {**os.environ, "FOREL_QUIET": "1", "OPENBLAS_NUM_THREADS": "1"}


def line(source, model, *more):
    common = ("--bits", 12, "--passes", 2, "--holdout", 7, "--certificate", "--names", "--alpha", 0.3, "--quiet")
    return [sys.executable, "-m", "forel", "train", *map(str, (*source, "--model", model, *common, *more))]


# Imports and compiled code take seconds to load, so one process loads them, and each run is a fork of it.
KILLER = """
import os, pathlib, random, sys, time
from forel.learner.settings import Settings
from forel.training.model import load
from forel.training.train import train
folder = pathlib.Path(sys.argv[1])
source, model, path = [folder / "1.vw", folder / "2.vw.gz"], folder / "m.forel", folder / "m.forel.checkpoint"
options = dict(bits=12, passes=2, holdout=7, certificate=True, names=True)
train(source, Settings(alpha=0.3), **options).save(folder / "whole.forel")
rng, kills = random.Random(5), 0
def modified():
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
while kills < 20:
    before = modified()
    child = os.fork()
    if child == 0:
        train(source, Settings(alpha=0.3), checkpoint=path, checkpoint_every=1, resume=True, **options).save(model)
        os._exit(0)
    while modified() == before and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.001)
    time.sleep(rng.random() * 0.05)
    os.kill(child, 9)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -9:
        kills += 1
    elif code != 0 or model.read_bytes() != (folder / "whole.forel").read_bytes():
        sys.exit(f"ended with {code}")
    if path.exists():
        kept = load(path).extra["checkpoint"]
        print(kept["place"])
"""


def modified(path):
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@pytest.mark.slow
def test_a_run_killed_twenty_times_gives_the_same_bytes(tmp_path):
    source = [tmp_path / "1.vw", tmp_path / "2.vw.gz"]
    with source[0].open("wb") as file:  # blocks are of two megabytes
        write_clicks(file, 80_000, "vw", seed=1)
    source[1].write_bytes(gzip.compress(source[0].read_bytes()[:10_000_000].rpartition(b"\n")[0], 1))
    done = subprocess.run(
        [sys.executable, "-c", KILLER, tmp_path], env=QUIET, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.splitlines())) > 10, done.stdout
    model, path = tmp_path / "m.forel", tmp_path / "m.forel.checkpoint"
    command = line(source, model, "--checkpoint", 1, "--resume")
    model.write_bytes(b"the model of before")
    before = modified(path)
    with subprocess.Popen(command, env=QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None and modified(path) == before:
            time.sleep(0.001)
        process.kill()
    stopped = path.exists()  # it is removed once the model is written, perhaps just before the signal
    complete = (tmp_path / "whole.forel").read_bytes()
    assert model.read_bytes() in ((b"the model of before", complete) if stopped else (complete,))
    done = subprocess.run(command, env=QUIET, check=True, capture_output=True, text=True, timeout=120)
    assert ("forel: continues from" in done.stderr) == stopped
    assert model.read_bytes() == complete
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.vw", "2.vw.gz", "m.forel", "whole.forel"]


@pytest.mark.slow
def test_the_command_reports_write_errors_and_keeps_the_old_model(folder, tmp_path):
    model = tmp_path / "m.forel"
    save(model, train(folder / "c.svm", SETTINGS, bits=4).learner)
    before = model.read_bytes()

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        line([folder / "a.vw"], model, "--checkpoint", 1), env=QUIET, capture_output=True, text=True, preexec_fn=small,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "m.forel.checkpoint: could not be written (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    assert model.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.forel"]
    for more, message in [
        (("--model", tmp_path / "nosuch" / "m.forel", "--checkpoint", 1), "create the folder first"),
        (("--resume", "--predictions", "p.txt"), "predictions of earlier rows would be missing"),
    ]:
        done = subprocess.run(
            line([folder / "a.vw"], model, *more), env=QUIET, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2
        assert message in done.stderr


def test_names_of_blocks_read_ahead_are_recorded_once(folder):
    reader = read(folder / "a.vw", bits=8, names=True, block_bytes=5000)
    blocks = list(reader)
    expected = [a.tobytes() for a in reader.names.pack()]
    again = type(reader)(reader.source, reader.options, reader.problems, reader.names, blocks[3].after)
    assert len(list(again)) == len(blocks) - 4
    assert [a.tobytes() for a in reader.names.pack()] == expected
    assert reader.names.collisions > 0
    assert np.all(np.diff(reader.names.pack()[0]) > 0)
