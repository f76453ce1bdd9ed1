"""Nothing that was learned is lost: outputs are checked first, replaced only by whole ones, or rescued."""

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from typer.testing import CliRunner

from forel import validation
from forel.cli.app import app
from forel.data.clicks import write_clicks
from forel.data.sources.files import expand_paths
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.learner.state import State
from forel.store import ModelFileError
from forel.store import files as store_files
from forel.store.atomic import atomic_writer, exclusive_lock, remove_leftovers, temporary_path
from forel.training.model import load, save
from forel.training.train import train

SETTINGS = Settings(alpha=0.3, l1=0.5)
ONE = ("--bits", 4, "--alpha", 0.3, "--l1", 0.5, "--quiet")


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks") / "a.vw"
    with path.open("wb") as file:
        write_clicks(file, 2000, "vw", seed=3)
    train(path, SETTINGS, bits=4)  # compiled code is on the disk before there is no room
    return path


@contextmanager
def room(size):
    """Let no file become larger, as on a disk without room; needs no rights."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run(*arguments):
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# Room on the disk


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_the_model_is_written_if_the_cache_cannot_be(clicks, tmp_path):
    run("train", clicks, "--model", tmp_path / "whole", "--passes", 2, *ONE)
    with room(20_000):
        done = run("train", clicks, "--model", tmp_path / "m", "--passes", 2, *ONE)
    assert done.exit_code == 0, done.stderr
    assert "could not be written (File too large); each pass reads the source instead" in done.stderr
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    assert names(tmp_path) == ["m", "whole"]


def test_the_model_is_written_if_predictions_cannot_be(clicks, tmp_path):
    predictions = tmp_path / "p.txt"
    predictions.write_text("of before")
    with room(10_000):
        done = run("train", clicks, "--model", tmp_path / "m", "-p", predictions, *ONE)
    assert done.exit_code == 2
    assert "p.txt: could not be written (File too large); an existing file is unchanged" in done.stderr
    assert "training continues without predictions" in done.stderr
    assert "p.txt: predictions were not written" in done.stderr
    assert load(tmp_path / "m").learner.rounds == 2000
    assert predictions.read_text() == "of before"
    assert names(tmp_path) == ["m", "p.txt"]


def test_a_report_that_cannot_be_written_leaves_no_file(clicks, tmp_path):
    with room(10_000):
        done = run("train", clicks, "--model", tmp_path / "m", "--report", tmp_path / "r.html", *ONE)
    assert done.exit_code == 2
    assert "r.html: could not be written (File too large)" in done.stderr
    assert load(tmp_path / "m").learner.rounds == 2000
    assert names(tmp_path) == ["m"]


def test_a_model_that_cannot_be_written_is_rescued_elsewhere(clicks, tmp_path, monkeypatch):
    """The folder of the model is gone when training ends; of the places to turn to the first has no room either."""
    gone, elsewhere = tmp_path / "gone", tmp_path / "elsewhere"
    gone.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr("forel.cli.outputs.rescue_folders", lambda: [tmp_path / "nosuch", elsewhere])
    monkeypatch.setattr(
        "forel.training.progress.MemoryLimit.after_block", lambda *_: shutil.rmtree(gone, ignore_errors=True)
    )
    done = run("train", clicks, "--model", gone / "m.forel", "-p", tmp_path / "p.txt", *ONE)
    assert done.exit_code == 2
    assert "m.forel: could not be written (No such file or directory)" in done.stderr
    (rescued,) = elsewhere.iterdir()
    assert f"the model was written to {rescued} instead" in done.stderr
    assert f"Model: {rescued}" in done.stdout
    assert load(rescued).learner.rounds == 2000
    assert len((tmp_path / "p.txt").read_text().splitlines()) == 2000
    monkeypatch.setattr("forel.cli.outputs.rescue_folders", lambda: [tmp_path / "nosuch"])
    gone.mkdir()
    done = run("train", clicks, "--model", gone / "m.forel", *ONE)
    assert (done.exit_code, "no other folder could be written to either" in done.stderr, "Model:" in done.stdout) == (
        2,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("where", "written"),
    [
        ("forel.cli.outputs.Page.write", True),
        ("forel.cli.outputs.Saved.check", True),
        ("forel.training.model.Model.remove_checkpoint", True),
        ("forel.training.model.save", False),
    ],
)
def test_ctrl_c_reports_whether_the_model_was_written(clicks, tmp_path, monkeypatch, where, written):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    def leave(code):
        raise SystemExit(code)

    model = tmp_path / "m"
    model.write_bytes(b"an older model")
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(where, interrupt)
    done = run("train", clicks, "--model", model, "--report", tmp_path / "r.html", *ONE)
    assert done.exit_code == 130
    assert (f"stopped; the model was written to {model}" in done.stderr) == written
    assert ("no model was written" in done.stderr) != written
    assert (model.read_bytes() != b"an older model") == written


def test_ctrl_c_names_the_checkpoint_and_speaks_of_models_only_in_training(clicks, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    def leave(code):
        raise SystemExit(code)

    model = tmp_path / "m"
    monkeypatch.setattr(os, "_exit", leave)
    with monkeypatch.context() as patch:
        patch.setattr("forel.training.model.save", interrupt)
        done = run("train", clicks, "--model", model, "--checkpoint", 1, *ONE)
    assert done.stderr.endswith(
        f"stopped; no model was written to {model}; --resume continues from {model}.checkpoint\n"
    )
    assert run("train", clicks, "--model", model, "--checkpoint", 1, "--resume", *ONE).exit_code == 0
    monkeypatch.setattr("forel.training.scoring.predict_blocks", interrupt)
    assert run("predict", clicks, "--model", model).stderr == "forel: stopped\n"


# Outputs are looked at before anything is read


@pytest.mark.parametrize("option", ["--model", "--predictions", "--report"])
def test_invalid_outputs_are_refused_before_training(option, tmp_path):
    source = tmp_path / "a.vw"
    source.write_text("this is not an example\n")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "nosuch" / "x", tmp_path / "folder", source):
        done = run("train", source, option, path, *ONE)
        assert done.exit_code == 2
        assert f"{option}: got '{path}', expected" in done.stderr
    assert source.read_text() == "this is not an example\n"


def test_two_outputs_must_differ(clicks, tmp_path):
    done = run("train", clicks, "--model", tmp_path / "x", "-p", tmp_path / "x", *ONE)
    assert (done.exit_code, "expected another file than --model" in done.stderr) == (2, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_refused_before_training(tmp_path, clicks):
    (tmp_path / "mine").mkdir(mode=0o500)
    done = run("train", clicks, "--model", tmp_path / "mine" / "m", *ONE)
    assert (done.exit_code, "expected a file in a folder that you may write to" in done.stderr) == (2, True)


def test_predictions_replace_a_file_only_when_complete(clicks, tmp_path):
    run("train", clicks, "--model", tmp_path / "m", *ONE)
    out, bad = tmp_path / "p.txt", tmp_path / "bad.vw"
    out.write_text("of before")
    out.chmod(0o640)
    bad.write_bytes(clicks.read_bytes() + b"this is not an example\n")
    done = run("predict", bad, "--model", tmp_path / "m", "--output", out)
    assert (done.exit_code, out.read_text()) == (2, "of before")
    with room(5000):
        done = run("predict", clicks, "--model", tmp_path / "m", "--output", out)
    assert (done.exit_code, out.read_text()) == (2, "of before")
    assert "p.txt: could not be written (File too large); an existing file is unchanged; free some space" in done.stderr
    for wrong in (tmp_path / "nosuch" / "p", tmp_path):
        done = run("predict", clicks, "--model", tmp_path / "m", "--output", wrong)
        assert (done.exit_code, f"--output: got '{wrong}', expected" in done.stderr) == (2, True)
    assert run("predict", clicks, "--model", tmp_path / "m", "--output", out).exit_code == 0
    assert len(out.read_text().splitlines()) == 2000
    assert out.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["bad.vw", "m", "p.txt"]


def test_pipes_devices_and_links_are_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_text()))
    reader.start()
    for name in ("pipe", "link"):
        with atomic_writer(tmp_path / name) as write:
            write("text")
    reader.join(10)
    assert found == ["text"]
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"
    with atomic_writer("/dev/null") as write:
        write("text")
    with pytest.raises(OSError, match=r"/dev/full: could not be written \(No space left on device\)"):  # noqa: SIM117
        with atomic_writer("/dev/full") as write:
            write("text")


# Runs beside each other


def test_two_runs_do_not_share_a_checkpoint(clicks, tmp_path):
    path = tmp_path / "m.checkpoint"
    with (
        exclusive_lock(path),
        pytest.raises(ValueError, match=r"m\.checkpoint: another run is writing it; wait until it ends"),
    ):
        train(clicks, SETTINGS, bits=4, checkpoint=path, resume=True)
    holder = "import sys; from forel.store.atomic import exclusive_lock\n"
    holder += "with exclusive_lock(sys.argv[1]): print(flush=True); input()"
    command = [sys.executable, "-c", holder, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for model in (tmp_path / "m", tmp_path / "." / "m"):
            done = run("train", clicks, "--model", model, "--resume", *ONE)
            assert (done.exit_code, "another run is writing it" in done.stderr) == (2, True)
        process.kill()  # nothing is stale after it
    assert names(tmp_path) == ["m.checkpoint.lock"]
    done = run("train", clicks, "--model", tmp_path / "m", "--resume", *ONE)
    assert (done.exit_code, names(tmp_path)) == (0, ["m"])


def test_temporary_files_in_use_are_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: remove_leftovers(tmp_path / "m"))
    left = temporary_path(tmp_path / "m")
    os.mkdir(left)
    save(tmp_path / "m", Learner(2, SETTINGS, mixed=False))
    assert names(tmp_path) == ["m"]  # without what a killed process had left


def test_temporary_files_of_a_killed_process_are_removed_and_those_in_use_are_not(tmp_path):
    path = tmp_path / "p.txt"
    (tmp_path / os.path.basename(temporary_path(path))).write_text("left")
    with atomic_writer(path) as first, atomic_writer(path) as second:
        first("1")
        second("2")
        assert len(names(tmp_path)) == 2
    assert (names(tmp_path), path.read_text()) == (["p.txt"], "1")


def test_predictions_do_not_replace_their_model(clicks, tmp_path):
    run("train", clicks, "--model", tmp_path / "m", *ONE)
    os.link(tmp_path / "m", tmp_path / "hard")
    os.link(clicks, tmp_path / "rows")
    for output in ("m", "hard", "rows"):
        done = run("predict", clicks, "--model", tmp_path / "m", "--output", tmp_path / output)
        assert (done.exit_code, "expected another file than the input" in done.stderr) == (2, True)
    assert load(tmp_path / "m").learner.rounds == 2000


# Whatever is given by users goes through rich as it is


def test_square_brackets_in_names_are_no_markup(tmp_path):
    folder = tmp_path / "d[/x]"
    folder.mkdir(parents=True)
    source = folder / "[bold]a.csv"
    source.write_text("click,[/y]\n" + "1,2\n0,1\n" * 20)
    model = folder / "m[red].forel"
    more = ("--label", "click", "--report", folder / "[r].html", "--names", "--certificate")
    for command in (
        ("train", source, "--model", model, *more, *ONE),
        ("inspect", model),
        ("evaluate", source, "--model", model),
        ("train", source, "--label", "click", "--ignore", "[/y]", "--model", model, *ONE),
    ):
        done = run(*command)
        assert done.exit_code == 0, (command, done.stderr)
    done = run("train", source, "--label", "[/y]", "--categories", "[/y]", "--model", model, *ONE)
    assert "Traceback" not in done.output
    done = run("train", expand_paths(str(source))[0], "--label", "[/]", "--model", model, *ONE)
    assert (done.exit_code, "[/]" in done.stderr) == (2, True)
    assert run("train", source, "--passes", "[/x]").exit_code == 2
    assert f"Model: {model}" in run("train", source, "--label", "click", "--model", model, *ONE).output


# Memory


def test_too_large_models_raise_memory_errors(monkeypatch, tmp_path, clicks):
    message = "features: got 1,099,511,627,776 in 1 lane, which need 8,796.1 GB of memory"
    with pytest.raises(MemoryError, match=message):
        State(1 << 40, Settings(), 1)
    save(tmp_path / "m", Learner(4, Settings()))
    with store_files.open_file(tmp_path / "m") as file:
        header = {k: v for k, v in file.header.items() if k not in ("check", "format", "version")}
        arrays = {name: file.array(name, "f4" if name == "state" else "f8", file.shape(name)) for name in
                  ("state", "totals")}  # fmt: skip
    arrays["slots"] = np.arange(len(arrays["state"]), dtype=np.int64)
    store_files.write_file(tmp_path / "huge", {**header, "features": 1 << 40}, arrays)
    with pytest.raises((MemoryError, ModelFileError), match=f"huge: {message}.*fewer bits, or fewer lanes"):
        load(tmp_path / "huge")
    done = run("inspect", tmp_path / "huge")
    assert (done.exit_code, f"huge: {message}" in done.stderr) == (2, True)
    monkeypatch.setattr(validation, "total_memory", lambda: 8e9)
    done = run("train", clicks, "-b", 28, "--model", tmp_path / "n", "--quiet")
    assert done.exit_code == 2
    assert "features: got 268,435,456 in 8 lanes, which need " in done.stderr
    assert "GB of memory, expected at most the 8.0 GB that there are; use fewer bits, or fewer lanes" in done.stderr


def test_memory_that_the_system_refuses_is_a_sentence(monkeypatch, clicks):
    def refused(*_):
        raise MemoryError

    monkeypatch.setattr("forel.learner.state.aligned_zeros", refused)
    done = run("train", clicks, *ONE)
    assert (done.exit_code, "features: got 16 in 1 lane, which need" in done.stderr) == (2, True)
    monkeypatch.setattr("forel.learner.state.State.reset", refused)
    done = run("train", clicks, *ONE)
    assert (done.exit_code, "forel: out of memory" in done.stderr) == (2, True)


def test_json_has_the_path_of_the_model(clicks, tmp_path):
    done = run("train", clicks, "--model", tmp_path / "m", "--json", *ONE)
    assert json.loads(done.stdout)["model"] == str(tmp_path / "m")
