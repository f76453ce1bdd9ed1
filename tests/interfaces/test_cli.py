"""The command line: help, names of options, and errors that name options."""

import io
import json
import os
import pathlib
import re
from dataclasses import fields

import numpy as np
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import COMMANDS, DEV, app, load_command, main
from forel.cli.commands import documented
from forel.cli.options import FLAGS, ReadingFlags, TrainOptions
from forel.cli.outputs import reporter
from forel.cli.vowpal import NAMES
from forel.data import ReadOptions
from forel.learner.settings import Settings
from forel.store.atomic import temporary_path
from forel.training.metrics import Metrics
from forel.training.model import load
from forel.training.train import train

ROWS = "1 |f a b\n0 |f b c\n" * 20
FEW = ("--bits", 6)  # uncompiled kernels go over all slots to count weights that are not zero


def run(*arguments, **environment):
    return CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", **environment}).invoke(app, [str(a) for a in arguments])


def path(command):
    """Return the words of a command."""
    return ["dev", command] if command in DEV else [command]


@pytest.fixture
def rows(tmp_path, interpreted):
    (tmp_path / "a.vw").write_text(ROWS)
    return tmp_path / "a.vw"


@pytest.mark.parametrize("command", COMMANDS | DEV)
def test_help_fits_a_terminal_of_80_columns_and_40_lines(command):
    parameters = load_command(command).params
    brief = run(*path(command), "--help").stdout
    complete = run(*path(command), "--help-all").stdout if "--help-all" in brief else brief
    assert max(map(len, (brief + complete).splitlines())) <= 80
    assert len(brief.splitlines()) < 40
    names = {word for line in complete.splitlines() for word in re.split(r"[ ,]+", line[:28]) if word.startswith("-")}
    assert {name for one in parameters for name in one.opts if name.startswith("-")} <= names
    if complete != brief:  # each common option has a line
        options = [line for line in brief.partition("\n\n  Example")[2].splitlines()[2:] if not line.endswith(":")]
        assert not [line for line in options if not re.match(r"  \S.{0,24}  \S.*\.$", line)]


def test_every_option_is_documented_and_reading_flags_are_read_options():
    flags = {flag.name for flag in fields(ReadingFlags)}
    assert flags - {"threads", "data"} <= {field.name for field in fields(ReadOptions)}  # where rows are, and who reads
    assert flags == set(documented(ReadingFlags)[1]) == set().union(*FLAGS.values())
    assert {field.name for field in fields(TrainOptions)} - {"reading"} == set(documented(TrainOptions)[1])
    for name in COMMANDS | DEV:
        assert all(one.help for one in load_command(name).params)
        if name in FLAGS:
            assert set(FLAGS[name]) <= {parameter.name for parameter in load_command(name).params}
    assert set(FLAGS) <= set(COMMANDS)


@pytest.mark.parametrize(("vw", "name"), NAMES.items())
def test_long_names_of_vowpal_wabbit_are_those_of_forel(vw, name, rows, tmp_path):
    values = {
        "bits": "9",
        "classes": "2",
        "holdout": "5",
        "holdout-after": "30",
        "interactions": "ff",
        "start": tmp_path / "s.forel",
    }
    value = [] if name == "no-bias" else [values.get(name, tmp_path / "m.forel")]
    if name == "start":
        assert run("train", rows, *FEW, "--alpha", 1, "--model", value[0]).exit_code == 0
    shown = {option: run("train", rows, "--alpha", 1, "--json", *FEW, f"--{option}", *value) for option in (vw, name)}
    assert {done.exit_code for done in shown.values()} == {0}, shown[vw].stderr
    first, second = (re.sub(r'"[a-z_]*(seconds|compiling)[a-z_]*": [^,]*', "", done.stdout) for done in shown.values())
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "-1"], "forel: --alpha: got -1.0, expected positive numbers"),
        (["--bits", "32"], "forel: --bits: got 32, expected 1 to 31"),
        (["--holdout", "1"], "forel: --holdout: got 1, expected 0"),
        (["--passes", "0"], "forel: --passes: got 0, expected"),
        (["--penalty-weight", "twice"], "forel: --penalty-weight: got 'twice', expected"),
        (["--on-error", "ignore"], "forel: --on-error: got 'ignore', expected 'raise' or 'skip'"),
        (["--format", "xml"], "forel: --format: got 'xml', expected auto or one of"),
        (["--line-limit", "0"], "forel: --line-limit: got 0, expected"),
        (["--seed", "-1"], "forel: --seed: got -1, expected"),
        (["--loss", "nosuch"], "forel: --loss: got 'nosuch', expected one of"),
        (
            ["--loss", "quantile:2"],
            "--loss: got 'quantile:2', expected a number strictly between 0 and 1 after the colon",
        ),
        (["--checkpoint", "0", "--model", "m"], "forel: --checkpoint: got 0, expected"),
        (["--alpha", "1", "--ftrl_alpha", "1"], "is given twice, once in VW's spelling; give --alpha once"),
    ],
)
def test_errors_name_options(arguments, message, rows):
    done = run("train", rows, *arguments, COLUMNS="200")
    assert done.exit_code == 2
    assert message in re.sub(r"\s+", " ", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "ctr"], "No such command 'generate'. Did you mean: forel dev generate ctr"),
        (["survey", "--only", "a b"], "No such command 'survey'. Did you mean: forel dev survey --only 'a b'"),
        (["explain", "a.csv", "--model", "m", "--rows", "0"], "--rows: got 0, expected a whole number of at least 1"),
        (["inspect", "m", "--top", "-1"], "--top: got -1, expected a whole number of at least 0"),
    ],
)
def test_errors_of_usage_say_what_to_give(arguments, message):
    done = run(*arguments, COLUMNS="200")
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_seed_changes_the_rounding_noise_and_is_stored(rows, tmp_path):
    models = {}
    for seed in (0, 0, 7):
        path = tmp_path / "m.forel"
        assert run("train", rows, *FEW, "--alpha", 1, "--passes", 3, "--seed", seed, "--model", path).exit_code == 0
        models.setdefault(seed, []).append(path.read_bytes())
        assert forel.load(path).settings.seed == seed
    assert models[0][0] == models[0][1] != models[7][0]


def test_no_bias_is_a_setting_that_a_continued_model_has_to_share(rows, tmp_path):
    first, second = tmp_path / "m.forel", tmp_path / "n.forel"
    assert run("train", rows, *FEW, "--alpha", 1, "--no-bias", "--model", first).exit_code == 0
    assert not forel.load(first).settings.bias
    assert run("train", rows, "--start", first, "--no-bias", "--model", second).exit_code == 0
    assert not forel.load(second).settings.bias
    assert run("train", rows, *FEW, "--alpha", 1, "--model", first).exit_code == 0
    done = run("train", rows, "--start", first, "--no-bias", "--model", second)
    assert done.exit_code == 2


def test_names_that_look_like_codes_of_emoji_are_printed_unchanged(tmp_path, interpreted):
    table, model = tmp_path / "a.csv", tmp_path / "m.forel"
    table.write_text("mood,y\n" + ":heart:,1\nsad,0\n" * 20)
    done = run("train", table, "--label", "y", "--names", "--model", model, "--alpha", 1, *FEW, "--quiet")
    assert done.exit_code == 0, done.output
    for command in (["inspect", model], ["explain", table, "--model", model]):
        assert ":heart:" in run(*command).stdout


def test_inspect_shows_what_each_expert_and_kind_contributes(tmp_path, interpreted):
    table, model = tmp_path / "a.csv", tmp_path / "m.forel"
    table.write_text("mood,y\n" + "glad,1\nsad,0\n" * 20)
    done = run("train", table, "--label", "y", "--model", model, *FEW, "--quiet")
    assert done.exit_code == 0, done.output
    found = json.loads(run("inspect", model, "--json").stdout)["mixture"]
    explained = load(model).inspect().mixture
    assert [one["kind"] for one in found["kinds"]] == ["setting", "filter", "full filter", "mixer", "fixed share"]
    assert [one["without"] for one in found["kinds"]] == [one.without for one in explained.kinds]
    assert found["exact"]
    assert found["settings"][0]["behind"] == 0
    shown = run("inspect", model, "--details", COLUMNS="200").stdout
    for text in (explained.guarantee, "behind the best", "without it", explained.expert_rows()[0][0]):
        assert text in shown


def test_lines_of_progress_need_no_report(rows, monkeypatch, capsys):
    """A report goes over all bins of a histogram; one is made at the end."""
    calls, report = [], Metrics.report
    monkeypatch.setattr(Metrics, "report", lambda self: (calls.append(self), report(self))[1])
    with reporter([str(rows)], 1, False) as progress:
        train(rows, Settings(), bits=6, progress=progress, block_bytes=40)
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert len(lines) > 4
    assert len(calls) == 1
    average, since, before = float(lines[-1][0]), float(lines[-1][1]), float(lines[-2][0])
    first, last = int(lines[-2][2]), int(lines[-1][2])
    assert average * last == pytest.approx(before * first + since * (last - first), rel=1e-4)


def test_a_terminal_that_lacks_characters_shows_all_tables_and_predictions_are_utf_8(
    tmp_path, interpreted, monkeypatch
):
    table, model = tmp_path / "a.csv", tmp_path / "m.forel"
    table.write_text("city,y\n" + "Zürich,süß\nOslo,sour\nBern,salty\n" * 10, encoding="utf-8")

    def printed(*arguments):
        stdout = io.TextIOWrapper(io.BytesIO(), "ascii")
        monkeypatch.setattr("sys.stdout", stdout)
        monkeypatch.setattr("sys.argv", ["forel", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        return stdout.buffer.getvalue()

    options = ("--label", "y", "--slice", "city", "--names", "--model", model, "--lanes", 2, *FEW)
    assert b"| Z?rich" in printed("train", table, *options)
    assert b"s??" in printed("inspect", model)
    assert b"Z?rich" in printed("peek", table)
    assert {"süß", "sour"} <= set(printed("predict", table, "--model", model).decode().split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fallback"], "--fallback is not available without --by"),
    ],
)
def test_remedies_name_options_that_exclude_each_other(arguments, message, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("train", rows, *arguments, *FEW)
    assert done.exit_code == 2
    assert message in done.stderr


def test_one_is_singular_and_zero_has_no_sign(tmp_path, interpreted, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("x,y\n1,1\n")
    (tmp_path / "zero.csv").write_text("x,y\n0,1\n")

    def run(*words):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        return done.output

    shown = run("train", "one.csv", "--label", "y", "--alpha", "0.5", "--bits", "4", "--model", "m")
    assert "\n1 row, 1 feature in all, 1 non-zero weight, " in shown
    assert "; first 1 row\n" in run("peek", "one.csv")
    explained = run("explain", "zero.csv", "--model", "m")
    assert " 0.00000 " in explained
    assert "+0.00000" not in explained
    assert "-0.00000" not in explained


def test_convert_makes_models_smaller(tmp_path, rows):
    model, small = tmp_path / "m.forel", tmp_path / "s.forel"
    assert run("train", rows, *FEW, "--lanes", 2, "--model", model).exit_code == 0
    done = run("convert", model, "--float16", "-o", small)
    assert done.exit_code == 0, done.output
    assert re.search(r"[\d,]+ bytes became [\d,]+: ", done.stdout)
    assert load(small).learner.weights.dtype == np.float16
    for arguments, message in [
        ((rows, "--serving", "-o", small), "not a model of forel"),
        ((small, "--serving", "-o", model), "model: got 'a serving model of float"),
        ((model, "-o", small), "convert: got 'no conversion', expected --serving, --float16 or --key"),
        (("--serving", "-o", model), "Missing argument 'model'"),
    ]:
        done = run("convert", *arguments, COLUMNS="200")
        assert done.exit_code == 2
        assert message in done.stderr


@pytest.mark.parametrize("options", [("--checkpoint", 1000), ("--resume",)])
def test_what_a_killed_first_checkpoint_left_is_removed(options, tmp_path, rows):
    model = tmp_path / "m.forel"
    left = temporary_path(tmp_path / "m.forel.checkpoint")
    pathlib.Path(left).write_bytes(b"half a file")
    assert run("train", rows, *FEW, "--alpha", 1, "--model", model, *options).exit_code == 0
    assert sorted(os.listdir(tmp_path)) == ["a.vw", "m.forel"]


def test_written_predictions_are_those_of_the_model(tmp_path, interpreted, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [f"{x},{12345 + round(3 * x, 2)}" for x in rng.normal(size=50).round(3).tolist()]
    (tmp_path / "big.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    train = ["train", "big.csv", "--label", "y", "--loss", "squared", "--alpha", "1", "--bits", "6", "--quiet"]
    assert run(*train, "--model", "m").exit_code == 0
    written = [float(line) for line in run("predict", "big.csv", "--model", "m").stdout.split()]
    assert written == pytest.approx(load("m").predict_many("big.csv").tolist(), rel=1e-7)
