"""The first hour: ten kinds of raw files go to an evaluated model with two commands, and answers fit a screen."""

import csv
import gzip
import io
import json
import pathlib
import re
import shlex
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from forel.cli.app import COMMANDS, DEV, app, load_command

ROWS, SCREEN = 240, 40


def run(*words):
    done = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, list(map(str, words)))
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def screen(text):
    """The number of lines of a text on a terminal of 80 columns."""
    return sum(max(1, -(-len(line) // 80)) for line in text.splitlines())


def visits():
    """Rows whose label follows from the site and the price, but for one in eight."""
    rng = np.random.default_rng(0)
    for k in range(ROWS):
        site, price = ("news", "shop", "blog")[rng.integers(3)], round(float(rng.uniform(1, 5000)), 2)
        bought = (site == "shop") ^ (rng.random() < 0.125)
        yield {"when": f"2024-03-{1 + k % 28:02d} 12:{k % 60:02d}", "site": site, "price": price, "bought": bought}


def table(separator=",", price=str, yes=("no", "yes"), header=True, end="\n"):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator=end)
    if header:
        writer.writerow(["when", "site", "price", "bought"])
    writer.writerows([row["when"], row["site"], price(row["price"]), yes[row["bought"]]] for row in visits())
    return file.getvalue()


def zipped(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("visits.csv", text)
    return file.getvalue()


def parquet(rows):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows)), file)
    return file.getvalue()


LINES = [json.dumps({**row, "bought": int(row["bought"])}) for row in visits()]
SPACED = "\n".join(f"{'1' if row['bought'] else '-1'} |s {row['site']} |p price:{row['price']}" for row in visits())
FILES = {
    "plain.csv": table().encode(),
    "german.csv": table(";", lambda price: f"{price:.2f}".replace(".", ","), ("nein", "ja")).encode("latin-1"),
    "tabs.tsv": table("\t", end="\r\n").encode(),
    "marked.csv": b"\xef\xbb\xbf" + table().encode(),
    "packed.csv.gz": gzip.compress(table().encode(), mtime=0),
    "one.zip": zipped(table()),
    "gaps.csv": table(price=lambda price: "" if int(price) % 5 == 0 else price, yes=("0", "1")).encode(),
    "lines.jsonl": "\n".join(LINES).encode(),
    "rows.parquet": parquet(visits()),
    "clicks.vw": SPACED.encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_a_raw_file_becomes_an_evaluated_model_with_two_commands(name, tmp_path, monkeypatch, interpreted):
    """The command that peek prints is the second one; nothing was told but the name of the file."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path(name).write_bytes(FILES[name])
    shown = run("peek", name)
    assert len(shown.splitlines()) <= SCREEN
    assert all(len(line) <= 80 for line in shown.splitlines() if line.startswith(("│", "┃")))
    train = shlex.split(re.search(r"^Train: forel (.*)$", shown, re.MULTILINE)[1])
    trained = run(*train, "--bits", "8", "--quiet")
    assert float(re.search(r"AUC +│ +([\d.]+)", trained)[1]) > 0.6
    assert len(trained.splitlines()) <= SCREEN
    evaluated = run("evaluate", name, "--model", "model.forel")
    assert float(re.search(r"AUC +│ +([\d.]+)", evaluated)[1]) > 0.7
    for command in (["inspect", "model.forel"], ["explain", name, "--model", "model.forel"]):
        assert len(run(*command).splitlines()) <= SCREEN
    assert len(evaluated.splitlines()) <= SCREEN


def raw(header, row, answers=("no", "yes"), separator=",", encoding="utf-8", end="\n"):
    """Rows whose label, the last column, follows from the price, but for one in nine."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator=end)
    writer.writerow(header)
    prices = [visit["price"] for visit in visits()]
    writer.writerows([*row(k, price), answers[(price > 2500) ^ (k % 9 == 0)]] for k, price in enumerate(prices))
    return file.getvalue().encode(encoding)


AGREE = ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"]
EURO = str.maketrans(",.", ".,")
ODD = {
    "sales.csv": raw(["day", "price", "big"], lambda k, p: [f"{1 + k % 28:02d}.05.2024", f"${p:,.2f}"]),
    "survey.csv": raw(
        ["id", "Q1. Cheap?", "Q2", "again"], lambda k, p: [f"R{k}", AGREE[int(p // 1001)], ["", "a"][k % 2]]
    ),
    "german.csv": raw(
        ["Größe", "Preis", "gut"],
        lambda k, p: [f"{k % 5},5", f"{p:,.2f} €".translate(EURO)],
        ("nein", "ja"),
        ";",
        "cp1252",
    ),
    "excel.csv": raw(
        ["Customer", "Revenue", "left"],
        lambda k, p: [f"C-{k}", f"{p:,.0f}"],
        ("FALSE", "TRUE"),
        ",",
        "utf-8-sig",
        "\r\n",
    ),
    "quoted.tsv": raw(["n", "title", "price", "y"], lambda k, p: [k, f'a "{k % 3}",\n b', p], (0, 1), "\t"),
    "prénom.csv": raw(
        ["prénom", "âge", "reçu"], lambda k, p: [["Zoë", "Ève"][k % 2], p], ("non", "oui"), encoding="latin-1"
    ),
    "events.csv": raw(
        ["id", "at", "t", "is"], lambda k, p: [f"{k:x}-e", f"2024-03-01T12:{k % 60:02d}Z", p], ("ok", "alarm")
    ),
    "gaps.csv": raw(["price", "late"], lambda k, p: [p]).replace(b"no", b"NA", 9),
    "nested.jsonl": "\n".join(
        json.dumps({"user": {"at": visit["site"]}, "price": visit["price"], "tags": ["a"], "y": visit["price"] > 2500})
        for visit in visits()
    ).encode(),
}
POSITIVE = {"german.csv": "'ja'", "prénom.csv": "'oui'", "events.csv": "'alarm'", "gaps.csv": "'yes'"}


@pytest.mark.parametrize("name", ODD)
def test_the_command_for_an_odd_file_runs_as_it_is_printed(name, tmp_path, monkeypatch, interpreted):
    monkeypatch.chdir(tmp_path)
    pathlib.Path(name).write_bytes(ODD[name])
    train = shlex.split(re.search(r"^Train: forel (.*)$", run("peek", name), re.MULTILINE)[1])
    trained = run(*train, "--bits", "8", "--quiet")
    assert name not in POSITIVE or f"Labels: {POSITIVE[name]} is positive" in trained
    skip = ["--on-error", "skip"] if "--on-error" in train else []
    evaluated = run("evaluate", name, "--model", "model.forel", *skip)
    assert float(re.search(r"AUC +│ +([\d.]+)", evaluated)[1]) > 0.7
    assert len(trained.splitlines()) <= SCREEN


def test_answers_about_a_table_of_twelve_columns_fit_a_screen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(600, 9))
    rows = [
        [*map("{:.3f}".format, row), "ab"[k % 2], ("Rome", "Oslo")[k % 3 == 0], int(row[0] + row[1] * row[2] > 0)]
        for k, row in enumerate(numbers.tolist())
    ]
    with open("wide.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*(f"measurement_{k}" for k in range(9)), "kind", "city", "y"], *rows])
    train = shlex.split(re.search(r"^Train: forel (.*)$", run("peek", "wide.csv"), re.MULTILINE)[1])
    answers = [run("peek", "wide.csv"), run(*train, "--bits", "12", "--quiet")]
    about = ["evaluate", "wide.csv", "--model"], ["explain", "wide.csv", "--model"], ["inspect"]
    answers += [run(*command, "model.forel") for command in about]
    assert all("measurement_0" in answers[k] for k in (0, 3, 4))
    for answer in answers:
        assert screen(answer) <= SCREEN, answer


def test_answers_with_more_options_fit_a_screen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with open("wide.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"measurement_{k}" for k in range(9)), "city", "y"])
        for k, row in enumerate(rng.normal(size=(600, 9)).tolist()):
            writer.writerow([*map("{:.3f}".format, row), ("Rome", "Oslo")[k % 3 == 0], int(row[0] > 0)])
    few = ("--bits", "12", "--quiet", "--certificate")
    proved = run("train", "wide.csv", "--label", "y", "--model", "m", *few, "--holdout", "5", "--report", "r.html")
    number = run("train", "wide.csv", "--label", "measurement_0", "--loss", "squared", "--model", "n", *few)
    assert "Certificate: " in proved
    assert "R²" in number
    by_city = run("evaluate", "wide.csv", "--model", "m", "--slice", "city")
    compared = run("compare", "m", "default", "wide.csv", "--label", "y")
    small = run("convert", "m", "--serving", "--output", "s")
    for answer in (proved, number, by_city, compared, small, *(run("inspect", model) for model in "mns")):
        assert screen(answer) <= SCREEN, answer


@pytest.mark.parametrize("command", [(), ("dev",), *((name,) for name in COMMANDS), *(("dev", name) for name in DEV)])
def test_help_fits_a_screen(command):
    """--help has one line for each common option; --help-all has all options, in the same width."""
    for line in run(*command, "--help").splitlines():
        assert len(line) <= 80, line
    assert screen(run(*command, "--help")) < SCREEN
    if command and command != ("dev",) and any(p.name == "help_all" for p in load_command(command[-1]).params):
        everything = run(*command, "--help-all")
        assert len(everything) > len(run(*command, "--help"))
        assert all(len(line) <= 80 for line in everything.splitlines())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_starts_with_what_it_does_and_an_example(name):
    lines = run(name, "--help").splitlines()
    top = "\n".join(lines[:24])
    assert "Usage: forel" in top
    assert re.search(r"Examples?:", top), name
    assert load_command(name).help
