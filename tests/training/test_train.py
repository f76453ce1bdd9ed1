"""From bytes to a model: the function, the command, and the estimator agree to the bit."""

import fcntl
import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.data import Malformed, concatenate, read
from forel.data.clicks import clicks, write_clicks
from forel.learner.learner import Learner
from forel.learner.rows import Rows
from forel.learner.settings import Settings
from forel.sklearn import FTRLClassifier
from forel.training.model import evaluate, load
from forel.training.scoring import predict_blocks
from forel.training.train import train

SETTINGS = Settings(alpha=0.3, l1=0.5)


def command(*arguments, **options):
    quiet = {**os.environ, "FOREL_QUIET": "1", "COLUMNS": "200"}
    line = [sys.executable, "-m", "forel", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env=quiet, **options)


def in_process(*arguments):
    """Run a command in this process, which takes a fifth of the time."""
    found = CliRunner(env={"FOREL_QUIET": "1", "COLUMNS": "200"}).invoke(app, list(map(str, arguments)))
    return SimpleNamespace(returncode=found.exit_code, stdout=found.stdout, stderr=found.stderr)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clicks")
    for name in ("a.vw", "a.csv"):
        with (made / name).open("wb") as file:
            write_clicks(file, 3000, name[2:], seed=3)
    return made


def test_threads_blocks_and_formats_give_the_same_bytes(folder, tmp_path):
    found = set()
    text = (folder / "a.vw").read_bytes()
    (tmp_path / "a.vw.gz").write_bytes(gzip.compress(text))
    half = text.index(b"\n", len(text) // 2) + 1
    (tmp_path / "1.vw").write_bytes(text[:half])
    (tmp_path / "2.vw").write_bytes(text[half:])
    common = {"passes": 2, "holdout": 7, "bits": 16, "certificate": True}
    for k, (threads, block_bytes) in enumerate([(0, 1 << 20), (1, 1000), (3, 30_000)]):
        trained = train(folder / "a.vw", SETTINGS, threads=threads, block_bytes=block_bytes, **common)
        trained.save(tmp_path / f"{k}.forel")
        found.add((tmp_path / f"{k}.forel").read_bytes())
    assert len(found) == 1
    state = trained.learner.state.numbers.tobytes()
    for other in (tmp_path / "a.vw.gz", str(tmp_path / "[12].vw"), [tmp_path / "1.vw", tmp_path / "2.vw"]):
        again = train(other, SETTINGS, block_bytes=5000, **common)
        assert again.learner.state.numbers.tobytes() == state
        assert (again.report, again.training.holdout, again.training.passes) == (
            trained.report,
            trained.training.holdout,
            trained.training.passes,
        )
    table = train(folder / "a.csv", SETTINGS, label="click", **common)
    assert table.learner.state.numbers.tobytes() == state


def test_command_function_and_estimator_train_the_same_model(folder, tmp_path):
    path = tmp_path / "m.forel"
    done = command("train", folder / "a.vw", "--model", path, "--alpha", 0.3, "--l1", 0.5, "--bits", 16, "--passes", 2)
    assert done.returncode == 0, done.stderr
    mine = load(path).learner
    same = train(folder / "a.vw", SETTINGS, bits=16, passes=2).learner
    assert mine.state.records.tobytes() == same.state.records.tobytes()
    whole = concatenate(read(folder / "a.vw", bits=16))
    estimator = FTRLClassifier(alpha=0.3, l1=0.5, passes=2, shuffle=False).fit(whole.matrix(1 << 16), whole.labels)
    assert mine.state.numbers.tobytes() == estimator._model.state.numbers.tobytes()
    assert mine.weights.tobytes() == estimator.coef_.tobytes()
    assert (mine.rounds, float(mine.loss[0])) == (6000, float(estimator._model.loss[0]))


def test_train_evaluate_predict_inspect(folder, tmp_path):
    path, written = tmp_path / "m.forel", tmp_path / "p.txt"
    done = command(
        "train", "-d", folder / "a.vw", "-f", path, "-b", 18, "--alpha", 0.3, "--beta", 1, "--l1", 0.5,
        "--holdout", 10, "--certificate", "--names", "-p", written,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    titles = (
        "log-loss",
        "normalized entropy",
        "AUC",
        "calibration ratio",
        "held out",
        "model of these 2^18 hashed features",
    )
    assert [title for title in titles if title not in done.stdout] == []
    assert "average      since       rows" in done.stderr
    direct = train(folder / "a.vw", SETTINGS, bits=18, holdout=10, certificate=True)
    assert f"{direct.report.loss:.6f}" in done.stdout
    assert len(written.read_text().split()) == 3000
    seen = json.loads(command("evaluate", folder / "a.vw", "--model", path, "--json").stdout)
    assert seen["loss"] == pytest.approx(evaluate(direct, folder / "a.vw").report.loss)
    lines = command("predict", "-i", path, "-d", folder / "a.vw", "--link", "identity").stdout.split()
    margins = np.concatenate([m for _, m in predict_blocks(direct, folder / "a.vw")])
    assert np.allclose(np.array(lines, float), margins, rtol=1e-4, atol=1e-6)
    shown = json.loads(command("inspect", path, "--top", 3, "--json").stdout)
    assert shown["non-zeros"] == np.count_nonzero(direct.learner.weights)
    assert shown["rows"] == 2700
    assert all("^" in weight["name"] for weight in shown["weights"])
    assert shown["slots that names share"] > 0
    named = load(path).names
    assert [w["shared"] for w in shown["weights"]] == [named.is_shared(w["slot"]) for w in shown["weights"]]
    assert sum(map(named.is_shared, named)) == named.collisions
    assert "fixed linear model" in shown["certificate"]
    small = tmp_path / "small.forel"
    command("train", folder / "a.vw", "-f", small, "-b", 18, "--alpha", 0.3, "--serving", "--quiet")
    assert small.stat().st_size < path.stat().st_size
    assert command("evaluate", folder / "a.vw", "--model", small).returncode == 0


def test_predictions_read_columns_as_in_training(tmp_path):
    path = tmp_path / "m.forel"
    table = tmp_path / "t.csv"
    table.write_text("price,site,click\n" + "".join(f"{1 << k % 7},s{k % 3},{k % 2}\n" for k in range(200)))
    options = ("--categories", "price", "--log", "price", "--label", "click", "-f", path, "-b", 12)
    assert "got 'price', expected one of these for a column" in in_process("train", table, *options).stderr
    flags = "--categories price --keep price -q p: --label click -b 12 --names --alpha 0.1"
    options = (*flags.split(), "-f", path)
    assert in_process("train", table, *options).returncode == 0
    shown = json.loads(in_process("inspect", path, "--json").stdout)
    assert shown["reading"]["categories"] == ["price"]
    assert {weight["name"] for weight in shown["weights"]} >= {"price^8", "price^1*price^1"}
    assert "site" not in str(shown["weights"])
    table.write_text("site,price\ns1,4\n")
    assert len(in_process("predict", table, "--model", path).stdout.split()) == 1
    wrong = in_process("evaluate", table, "--model", path)
    assert "label: got 'click', expected one of the columns site, price" in wrong.stderr


def test_continuing_a_model_equals_training_on_all_rows(folder, tmp_path):
    text = (folder / "a.vw").read_bytes()
    half = text.index(b"\n", len(text) // 2) + 1
    (tmp_path / "1.vw").write_bytes(text[:half])
    (tmp_path / "2.vw").write_bytes(text[half:])
    train(tmp_path / "1.vw", SETTINGS, bits=16).save(tmp_path / "m.forel")
    again = train(tmp_path / "2.vw", model=load(tmp_path / "m.forel"))
    whole = train(folder / "a.vw", SETTINGS, bits=16).learner
    assert again.learner.state.records.tobytes() == whole.state.records.tobytes()
    # Names too are those of one run, and are kept on without being asked for.
    train(tmp_path / "1.vw", SETTINGS, bits=11, names=True).save(tmp_path / "n.forel")
    named = train(tmp_path / "2.vw", model=load(tmp_path / "n.forel"), block_bytes=999).names
    whole = train(folder / "a.vw", SETTINGS, bits=11, names=True).names
    assert all(np.array_equal(a, b) for a, b in zip(named.pack(), whole.pack(), strict=True))
    assert named.collisions == whole.collisions > 0
    with pytest.raises(ValueError, match="training continues with the model's settings"):
        train(tmp_path / "2.vw", Settings(alpha=0.7), model=load(tmp_path / "m.forel"))
    with pytest.raises(ValueError, match="bits: got 20, expected 16"):
        train(tmp_path / "2.vw", model=load(tmp_path / "m.forel"), bits=20)


def test_holdout_after_holds_out_the_last_rows(folder, tmp_path):
    trained = train(folder / "a.vw", SETTINGS, bits=16, holdout_after=2000)
    assert (trained.training.rows, trained.report.rows, trained.training.holdout.rows) == (3000, 2000, 1000)
    lines = (folder / "a.vw").read_bytes().splitlines(keepends=True)
    (tmp_path / "1.vw").write_bytes(b"".join(lines[:2000]))
    (tmp_path / "2.vw").write_bytes(b"".join(lines[2000:]))
    first = train(tmp_path / "1.vw", SETTINGS, bits=16)
    assert first.learner.state.numbers.tobytes() == trained.learner.state.numbers.tobytes()
    assert evaluate(first, tmp_path / "2.vw").report.loss == pytest.approx(trained.training.holdout.loss, rel=1e-6)
    with pytest.raises(ValueError, match="expected 0 if holdout_after is used"):
        train(folder / "a.vw", SETTINGS, holdout=3, holdout_after=5)


def test_held_out_rows_do_not_change_the_model(folder):
    trained = train(folder / "a.vw", SETTINGS, bits=16, holdout=5)
    assert (trained.training.rows, trained.report.rows, trained.training.holdout.rows) == (3000, 2400, 600)
    whole = concatenate(read(folder / "a.vw", bits=16))
    kept = np.arange(1, 3001) % 5 != 0
    model = Learner(1 << 16, SETTINGS, mixed=False)
    model.learn(whole.matrix(1 << 16)[kept], (whole.labels[kept] + 1) / 2)
    assert model.state.numbers.tobytes() == trained.learner.state.numbers.tobytes()


@pytest.mark.parametrize(
    ("loss", "labels", "kept"),
    [
        ("logistic", "-1 1 1 -1", [0, 1, 1, 0]),
        ("logistic", "1 0 0.25 1", [1, 0, 0.25, 1]),
        ("hinge", "1 0 1 0", [1, -1, 1, -1]),
        ("squared_hinge", "1 -1", [1, -1]),
        ("squared", "-1 7 0", [-1, 7, 0]),
    ],
)
def test_both_codings_of_labels_suit_every_loss(tmp_path, loss, labels, kept, interpreted):
    (tmp_path / "a.vw").write_text("".join(f"{y} |a x{k}\n" for k, y in enumerate(labels.split())))
    trained = train(tmp_path / "a.vw", Settings(loss), bits=8, block_bytes=1)
    direct = Learner(1 << 8, Settings(loss))
    for block, y in zip(read(tmp_path / "a.vw", bits=8, block_bytes=1), kept, strict=True):
        direct.learn(Rows(*block.rows), [y])
    assert trained.learner.state.numbers.tobytes() == direct.state.numbers.tobytes()


@pytest.mark.parametrize(
    ("loss", "labels", "fragment"),
    [
        ("logistic", "-1 0", "line 2: got the label 0, expected -1 or 1 as before"),
        ("logistic", "1 2", "line 2: got the label 2, expected 0 and 1"),
        ("hinge", "1 0.5", "got the label 0.5"),
        ("poisson", "1 -2", "expected a number of at least 0"),
    ],
)
def test_invalid_labels_raise_or_are_skipped(tmp_path, loss, labels, fragment, interpreted):
    (tmp_path / "a.vw").write_text("".join(f"{y} |a x\n" for y in labels.split()))
    with pytest.raises(Malformed, match=fragment):
        train(tmp_path / "a.vw", Settings(loss), bits=8)
    skipped = train(tmp_path / "a.vw", Settings(loss), bits=8, on_error="skip")
    assert (skipped.learner.rounds, skipped.training.problems.count) == (1, 1)


@pytest.mark.parametrize("block_bytes", [1, 30, 1 << 20])
def test_errors_of_labels_name_the_line(tmp_path, block_bytes):
    (tmp_path / "a.vw").write_text("\n1 |a x\n\n0 |a x:y\n0 |a x\n7 |a x\n\n|a x\n1 |a x\n")
    done = train(tmp_path / "a.vw", SETTINGS, bits=8, on_error="skip", block_bytes=block_bytes)
    assert done.learner.rounds == 3
    assert sorted(message.split(":")[0].rpartition("line ")[2] for message in done.training.problems.messages) == [
        "4, column 8", "6", "8",
    ]  # fmt: skip


def test_invalid_arguments_are_refused(folder):
    for options, fragment in [
        ({"holdout": 1}, "holdout: got 1, expected 0 for none, or at least 2"),
        ({"passes": 0}, "passes: got 0"),
        ({"bits": 99}, "bits: got 99"),
    ]:
        with pytest.raises(ValueError, match=fragment):
            train(folder / "a.vw", **options)
    with pytest.raises(ValueError, match="a stream with tags, which can be read only once"):
        train("-", passes=2, tags=True)
    assert forel.train is train


def test_errors_of_the_command_exit_with_code_2(folder, tmp_path):
    bad = tmp_path / "bad.vw"
    bad.write_text("1 |a b\n1 |a b:x\n")
    table = tmp_path / "table.csv"
    table.write_text("click,site\n1,news\n")
    path, begun = tmp_path / "m.forel", tmp_path / "begun.forel"
    train(folder / "a.vw", SETTINGS, bits=8).save(begun)
    # The first command runs in a separate process, the others in this one.
    run = command
    for arguments, fragment in [
        (("train", bad, "-f", path), "bad.vw, line 2, column 8: got 'x', expected a number"),
        (("train", tmp_path / "nosuch.vw"), "nosuch.vw"),
        (("train", folder / "a.vw", "--loss", "nosuch"), "loss: got 'nosuch', expected one of logistic"),
        (("train", folder / "a.vw", "-i", begun, "--alpha", 0.7), "alpha: got 0.7, expected 0.3: "),
        (
            ("train", table, "-b", 8),
            "table.csv, line 2: got no label, expected 0 and 1 (or numbers between), or -1 and 1; ",
        ),
        (("evaluate", folder / "a.vw", "--model", tmp_path / "no"), f"forel: {tmp_path / 'no'}: could not be read"),
        (("evaluate", folder / "a.vw", "--model", bad), "bad.vw: not a model of forel"),
    ]:
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert fragment in done.stderr
        assert "Traceback" not in done.stderr
        run = in_process
    assert not path.exists()
    for arguments in (
        ("train", bad, "-b", 8, "--alpha", 0.3),
        ("predict", bad, "--model", begun),
        ("evaluate", bad, "--model", begun),
    ):
        done = in_process(*arguments, "--on-error", "skip")
        assert done.returncode == 0
        assert "Skipped 1 malformed example:" in done.stderr
        assert "bad.vw, line 2, column 8: got 'x', expected a number" in done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_a_run_that_waits_for_its_input(folder, tmp_path):
    line = [sys.executable, "-m", "forel", "train", "-", "--format", "vw", "--alpha", "0.3"]
    line += ["-f", str(tmp_path / "m.forel")]
    source, target = os.pipe()
    with subprocess.Popen(line, stdin=source, stderr=subprocess.PIPE) as process:
        os.write(target, (folder / "a.vw").read_bytes()[:20_000])
        while process.poll() is None and struct.unpack("i", fcntl.ioctl(source, termios.FIONREAD, bytes(4))) != (0,):
            time.sleep(0.01)  # until it has read all that there is
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert b"no model was written" in process.stderr.read()
    os.close(source)
    os.close(target)
    assert not (tmp_path / "m.forel").exists()


def test_generated_labels_follow_the_true_probabilities():
    blocks = list(clicks(30_000, seed=5))
    chances, labels = (np.concatenate([getattr(b, n) for b in blocks]) for n in ("chances", "labels"))
    order = np.argsort(chances)
    for part in np.array_split(order, 10):
        spread = np.sqrt(np.sum(chances[part] * (1 - chances[part])))
        assert abs(labels[part].sum() - chances[part].sum()) < 4 * spread
    assert 0 < chances.min() < 0.01
    assert 0.99 < chances.max() < 1


def test_generate_is_deterministic(tmp_path):
    one, two = tmp_path / "1.vw", tmp_path / "2.vw"
    assert "true probabilities have a log-loss of" in command("dev", "generate", "ctr", "--rows", 500, "-o", one).stderr
    with two.open("wb") as file:
        write_clicks(file, 500)
    assert one.read_bytes() == two.read_bytes()
    assert len(one.read_bytes().splitlines()) == 500


def test_a_trained_model_is_printed_as_a_short_summary(interpreted):
    trained = forel.train([{"a": k % 3, "y": k % 2} for k in range(20)], label="y", bits=4, certificate=True)
    first, *lines = repr(trained).splitlines()
    assert (first, *lines[::2][:2]) == ("Model", "  kind: mixture", "  rows: 20")
    assert lines[1].startswith("  settings: loss=logistic, ")
    assert {"  log-loss", "  guarantee", "  certificate"} <= {line.partition(":")[0] for line in lines}
    assert str(trained) == repr(trained)
    numbers = forel.train([{"a": k % 3, "y": k % 5 + 0.5} for k in range(20)], label="y", bits=4, loss="squared")
    assert {"  RMSE", "  MAE", "  R²"} <= {line.partition(":")[0] for line in repr(numbers).splitlines()}
    assert "  calibration ratio: " in repr(trained)


def test_a_stored_model_is_printed_as_a_short_summary(interpreted, tmp_path):
    rows = [{"a": k % 3, "y": k % 2, **{f"c{j}": j for j in range(100)}} for k in range(20)]
    trained = forel.train(rows, forel.Settings(alpha=[0.1, 1.0]), label="y", bits=9, holdout=4)
    trained.save(tmp_path / "m.forel")
    shown = repr(forel.load(tmp_path / "m.forel"))
    assert shown.splitlines()[:4] == [
        "Model", f"  path: {tmp_path / 'm.forel'}", "  kind: mixture", "  settings: loss=logistic, 2 experts",
    ]  # fmt: skip
    assert {"rows", "log-loss", "held-out loss", "label", "slots"} <= {
        line.partition(":")[0][2:] for line in shown.splitlines()
    }
    assert "  columns: a, c0, c1, c10, c11, c12, ... (101 in all)" in shown.splitlines()
    assert "<th>slots</th><td>512</td>" in forel.load(tmp_path / "m.forel")._repr_html_()
    assert "path" not in repr(trained)
    evaluated = forel.evaluate(trained, rows)
    assert repr(evaluated).splitlines()[:2] == ["Evaluation", "  rows: 20"]
    assert "<caption>Evaluation</caption>" in evaluated._repr_html_()
    assert len(repr(evaluated.report)) < 300
    assert "CalibrationBin" not in repr(evaluated.report)


@pytest.mark.parametrize("labels", ["abc", "ab"])
def test_any_stored_model_is_printed(labels, interpreted):
    rows = [{"a": k % 3, "key": "uv"[k % 2], "y": labels[k % len(labels)]} for k in range(30)]
    settings = forel.Settings(alpha=0.5)
    stored = forel.train(rows, settings, label="y", bits=9)
    assert ("  classes: a, b, c" in repr(stored).splitlines()) == (len(labels) == 3)
    serving = forel.training.model.Model(forel.store.serving_model(stored), stored.extra)
    assert "  kind: serving model, for predictions only" in repr(serving).splitlines()
    if len(labels) == 2:
        keyed = forel.train(rows, settings, label="y", bits=9, by="key")
        assert "  kind: 2 models by key" in repr(keyed).splitlines()


def test_small_tables_keep_names_and_other_sources_only_if_told(tmp_path, interpreted, monkeypatch):
    rows = [{"city": f"c{k % 5}", "age": k % 17, "bought": k % 2} for k in range(60)]
    table, text = tmp_path / "a.csv", tmp_path / "a.vw"
    pd.DataFrame(rows).to_csv(table, index=False)
    text.write_text("1 |a b\n-1 |a c\n")

    def named(source, **options):
        return forel.train(source, bits=10, **options).names is not None

    assert named(str(table), label="bought")
    assert named(pd.DataFrame(rows), label="bought")
    assert named((np.eye(9), np.arange(9) % 2))
    assert not named(str(table), label="bought", names=False)
    assert not named(iter(rows), label="bought")
    assert not named(str(text))
    plain = forel.train(str(table), label="bought", bits=10, names=False)
    assert not named(str(table), label="bought", model=plain)
    monkeypatch.setattr("forel.training.train.NAMED_BYTES", 100)
    monkeypatch.setattr("forel.training.train.NAMED_ROWS", 50)
    assert not named(str(table), label="bought")
    assert not named(rows, label="bought")
