"""Every command with default settings: its JSON can be parsed, and it prints no terminal escapes of names in files."""

import csv
import json
import re
import unicodedata

import numpy as np
import pytest
from typer.testing import CliRunner

from forel.cli.app import COMMANDS, DEV, app, load_command
from forel.theory.survey import Outcome, Result

FEW = ("--bits", "6", "--quiet")  # uncompiled kernels go over all slots to count weights that are not zero
HOSTILE = "\x1b[31mred\x1b]0;title\x07\u202egnp.exe\u2066\x9b2J"


def run(*arguments):
    words = [str(each) for each in arguments]
    done = CliRunner(env={"COLUMNS": "150", "NO_COLOR": "1"}).invoke(app, words)
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done


def parsed(text):
    """Return the value of JSON text, without what only Python takes for JSON, such as NaN."""

    def refuse(constant):
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def table(tmp_path, monkeypatch, interpreted):
    monkeypatch.chdir(tmp_path)
    with open("rows.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"city{HOSTILE}", "number", "y"])
        writer.writerows([f"{HOSTILE}{k % 3}", k / 7, k % 3 % 2] for k in range(40))
    return "rows.csv"


MODELS = {
    "mixture": (),
    "certified": ("--certificate", "--names"),
    "held out": ("--holdout", "4", "--passes", "2"),
    "one setting": ("--alpha", "0.1", "--certificate"),
    "serving": ("--serving",),
    "regression": ("--loss", "squared"),
    "classes": ("--classes", "auto"),
    "softmax": ("--classes", "2", "--loss", "softmax"),
}


def train(table, *options):
    return run("train", table, "--label", "y", "--model", "m", *FEW, *options)


@pytest.mark.parametrize("kind", MODELS)
def test_json_of_commands_about_a_model_can_be_parsed(kind, table):
    assert parsed(train(table, "--json", "--slice", f"city{HOSTILE}", *MODELS[kind]).stdout)["rows"] == 40
    assert parsed(run("inspect", "m", "--json").stdout)["settings"]
    assert parsed(run("evaluate", table, "--model", "m", "--json").stdout)["rows"] == 40
    assert parsed(run("explain", table, "--model", "m", "--json").stdout)["contributions"]
    same = parsed(run("compare", "m", "m", table, "--json").stdout)
    assert (same["rows"], same["better"]) == (40, None)
    assert len(run("predict", table, "--model", "m").stdout.splitlines()) == 40


def test_json_of_rows_without_importance_can_be_parsed(table):
    with open(table, encoding="utf-8") as file:
        lines = [f"{line.rstrip()},{'0' if k else 'w'}" for k, line in enumerate(file)]
    with open("none.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    options = ("--label", "y", "--importance", "w", "--holdout", "3", "--report", "r.html", "--certificate", *FEW)
    found = parsed(run("train", "none.csv", *options, "--model", "m", "--json").stdout)
    assert found["report"]["loss"] is None
    assert parsed(run("inspect", "m", "--json").stdout)["settings"]
    assert parsed(run("evaluate", "none.csv", "--model", "m", "--json").stdout)["loss"] is None
    with open("r.html", encoding="utf-8") as file:
        assert not re.search(r"\bnan\b", file.read())


def test_json_of_models_by_key_can_be_parsed(table):
    assert len(parsed(train(table, "--json", "--by", f"city{HOSTILE}").stdout)["slices"][0]["values"]) == 3
    assert len(parsed(run("inspect", "m", "--json").stdout)["keys"]) == 3
    assert parsed(run("inspect", "m", "--key", f"{HOSTILE}1", "--json").stdout)["settings"]
    assert parsed(run("evaluate", table, "--model", "m", "--json").stdout)["rows"] == 40
    shown = run("explain", table, "--model", "m", "--key", f"{HOSTILE}1", "--json").stdout
    assert parsed(shown)["contributions"]


def test_json_of_other_commands_can_be_parsed(table, monkeypatch):
    assert parsed(run("peek", table, "--json").stdout)["label"] == "y"
    found = Outcome(np.float64(1.0), np.float64("inf"))
    results = [Result("Theorem 0", "numbers of numpy", "forel.validation", lambda: found)]
    monkeypatch.setattr("forel.theory.survey.RESULTS", tuple(results))
    monkeypatch.setattr("forel.theory.survey.EXTENSIONS", ())
    (row,) = parsed(run("dev", "survey", "--json").stdout)
    assert (row["holds"], row["measured"], row["bound"]) == (True, 1.0, None)


def test_every_command_with_json_is_tried_here():
    elsewhere = {"challengers", "log", "replay"}  # tests/serve/test_commands.py
    with_json = {name for name in COMMANDS | DEV if any(p.name == "as_json" for p in load_command(name).params)}
    assert with_json - elsewhere == {"train", "inspect", "evaluate", "explain", "peek", "survey", "compare"}


def test_names_in_files_reach_the_terminal_and_pages_without_escapes(table):
    label = f"city{HOSTILE}"
    outputs = [
        train(table, "--slice", label, "--names", "--certificate", "--report", "r.html"),
        run("peek", table),
        run("peek", table, "--label", label),
        run("inspect", "m"),
        run("explain", table, "--model", "m"),
        run("evaluate", table, "--model", "m", "--slice", label),
        run("convert", "m", "--serving", "--output", "s"),
        run("train", table, "--label", label, "--model", "w", *FEW),
        run("inspect", "w"),
        run("explain", table, "--model", "w"),
        run("evaluate", table, "--model", "w"),
        run("compare", "w", "w", table, "--slice", label),
        run("train", table, "--label", "y", "--by", label, "--model", "k", *FEW),
        run("inspect", "k"),
    ]
    with open("r.html", encoding="utf-8") as file:
        page = file.read()
    for text in (*(done.output + done.stderr for done in outputs), page):
        odd = {c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t"}
        assert not odd, text
    assert all("red" in done.output for done in outputs[:6])


def test_errors_and_warnings_have_no_escapes_of_names_in_files(table):
    for arguments in (
        ("train", table, "--label", HOSTILE),
        ("train", table, "--label", "y", "--log", f"city{HOSTILE}"),
        ("train", table, "--label", f"city{HOSTILE}", "--loss", "squared"),
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 2, done.output
        assert not [c for c in done.stderr if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"], done.stderr


def test_one_row_is_singular(tmp_path, monkeypatch, interpreted):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("city,x,y\nRome,1,1\nOslo,z,0\n")
    trained = run("train", "a.csv", "--label", "y", "--by", "city", "--on-error", "skip", "--model", "m", *FEW)
    page = ("--label", "y", "--on-error", "skip", "--names", "--report", "r.html")
    shown = trained.output + run("train", "a.csv", *page, *FEW).output + run("inspect", "m").output
    assert "Skipped 1 malformed example:" in shown
    assert not re.search(r"\b1 (rows|models|others|examples|features|malformed examples)\b", shown)
    assert not re.search(r"\b1 (rows|examples|features|malformed examples)\b", (tmp_path / "r.html").read_text())
