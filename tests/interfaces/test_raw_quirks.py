"""Quirks of raw files: repeated and empty names of columns, labels in several spellings, formatted numbers."""

import io
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.data import read
from forel.data.labels import LabelWords, choose_words, kind_of_words
from forel.data.parsers.csv_header import distinct_names
from forel.data.peek import peek
from forel.learner.settings import Settings

ONE = Settings(alpha=1.0)
pytestmark = pytest.mark.usefixtures("interpreted")


def labels_of(text, **options):
    return np.concatenate([block.labels for block in read(io.BytesIO(text.encode()), "csv", **options)]).tolist()


def test_repeated_and_empty_names_of_columns_get_names_of_their_own(tmp_path):
    path = tmp_path / "bank.csv"
    path.write_bytes(b"\xef\xbb\xbfage; hours ;hours;y;\r\n" + b"30;1;2;yes;\r\n40;3;4;no;\r\n" * 30)
    found = peek(path)
    assert found.options.header
    assert [column.name for column in found.columns] == ["age", "hours", "hours.1", "y", "c5"]
    assert found.label == "y"
    trained = forel.train(path, ONE, label="y", bits=8)
    assert set(trained.extra["schema"]) == {"age", "hours", "hours.1"}
    assert trained.extra["schema"]["hours.1"]["high"] == 4.0


def test_a_numbered_name_is_not_that_of_another_column():
    assert distinct_names(["a", "a", "a.1", "c5", "", "a"]) == ["a", "a.2", "a.1", "c5", "c5.1", "a.3"]
    assert distinct_names(["", "", "c1"]) == ["c1.1", "c2", "c1"]


def test_a_first_row_of_words_without_a_header_is_still_recognized():
    found = peek(io.BytesIO(b"red,red,yes\nblue,red,no\nred,blue,yes\n"))
    assert not found.options.header


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_of_spaces_are_not_rows(end):
    text = end.join(["y,x", "1,2", "", "   ", "0,3", " ", ""])
    assert labels_of(text, label="y") == [1.0, 0.0]
    reader = read(
        io.BytesIO(end.join(["y,x", "1,2", '"7"', "7", "  8 ", ""]).encode()), "csv", label="y", on_error="skip"
    )
    assert sum(map(len, reader)) == 1
    assert [message.split(":")[0] for message in reader.problems.messages] == [f"stream, line {k}" for k in (3, 4, 5)]


def test_labels_that_differ_only_in_case_are_two_classes():
    text = "y,x\nYes,1\nno,2\nYES,3\nNo,4\nyes,5\n"
    assert labels_of(text, label="y") == [1.0, 0.0, 1.0, 0.0, 1.0]
    assert labels_of("y,x\nNO,1\nNo,2\nno,3\n", label="y") == [0.0, 0.0, 0.0]
    assert labels_of(text, label="y", positive="NO") == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert kind_of_words(["HAM", "ham", "Spam"]) == LabelWords("ham", "Spam").kind
    assert choose_words(["a", "A"]) == LabelWords("A", "a")  # nothing else tells them apart
    assert (LabelWords("A", "a").encode("a"), LabelWords("A", "a").encode("A")) == (1.0, 0.0)
    assert kind_of_words(["red", "Red", "green", "blue"]) == "classes"
    with pytest.raises(ValueError, match="maybe"):
        LabelWords("no", "yes").encode("maybe")


def test_peek_names_the_spelling_of_labels_and_columns_of_formatted_numbers(tmp_path):
    path = tmp_path / "churn.csv"
    rows = [f'{k}-X,${20 + k}.50,"{k},{k:03d}.25",{k}%,{("Yes", "no", "NO")[k % 3]}\n' for k in range(1, 40)]
    path.write_text("id,monthly,total,rate,churn\n" + "".join(rows))
    found = peek(path)
    assert found.formatted == ("monthly", "total", "rate")
    assert (found.words, found.classes) == (LabelWords("no", "Yes"), None)
    run = CliRunner().invoke
    assert "Read as numbers: monthly, total, rate, without signs" in run(app, ["peek", str(path)]).output
    as_json = json.loads(run(app, ["peek", str(path), "--json"]).output)
    assert as_json["formatted_numbers"] == ["monthly", "total", "rate"]
    assert peek(io.BytesIO(b"a,b\nx1,1\n7,2\ny2,3\n")).formatted == ()


@pytest.mark.parametrize(
    ("word", "options"),
    [
        ("n/a", ["--missing", "n/a"]),
        ("-", ["--missing", "-"]),
        ("inf", ["--missing", "inf"]),
        ("1e400", ["--missing", "1e400"]),
        ("TRUE", []),
        ("NaN", []),
        ("12%", ["--categories", "x"]),
        ('"1,234"', []),
    ],
)
def test_the_command_that_peek_prints_reads_words_among_numbers(tmp_path, word, options):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "1,0\n2,1\n3,0\n" * 10 + f"{word},1\n4,1\n")
    arguments = peek(path).arguments()
    assert arguments == [str(path), "--label", "y", *options, "--model", "model.forel"]
    command = ["train", *arguments[:-1], str(tmp_path / "m.forel"), "--alpha", "1", "--bits", "8", "--quiet"]
    assert CliRunner().invoke(app, command).exit_code == 0


@pytest.mark.parametrize(
    ("labels", "mark"), [(("yes", "no"), ""), (("yes", "no"), "NA"), ("10", ""), ("10", "?"), ("10", "n/a")]
)
def test_rows_without_a_label_are_left_out_by_the_command_that_peek_prints(tmp_path, labels, mark):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{k},{labels[k % 2]}\n" for k in range(30)) + f"7,{mark}\n")
    arguments = peek(path).arguments()
    assert arguments == [str(path), "--label", "y", "--on-error", "skip", "--model", "model.forel"]
    command = ["train", *arguments[:-1], str(tmp_path / "m.forel"), "--alpha", "1", "--bits", "8", "--json"]
    found = CliRunner().invoke(app, command)
    assert (found.exit_code, json.loads(found.stdout)["rows"]) == (0, 30)
    refused = CliRunner().invoke(app, ["train", str(path), "--label", "y", "--alpha", "1", "--quiet"]).stderr
    assert "line 32" in refused
    assert mark == "n/a" or "--on-error skip leaves out rows without one" in refused


def test_a_column_of_many_words_that_begins_with_a_number_is_of_categories(tmp_path):
    found = peek(io.BytesIO(b"x,y\n1,0\na,1\nb,0\nc,1\nd,0\n"))
    assert (found.columns[0].kind, found.columns[0].distinct) == ("category", 5)
    assert found.arguments()[3:5] == ["--categories", "x"]


ROWS = [{"y": k % 2, "x": float(k % 7)} for k in range(120)]
SOURCES = {
    "dicts": lambda rows: rows,
    "table": pa.Table.from_pylist,
    "csv": lambda rows: io.BytesIO(
        "\n".join([",".join(rows[0]), *(",".join("" if v is None else str(v) for v in row.values()) for row in rows)])
        .encode()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_a_column_without_values_is_not_new(name):
    source, form = SOURCES[name], {"format": "csv"} if name == "csv" else {}
    empty, new = ([{**row, "z": value} for row in ROWS] for value in (None, 3.5))
    trained = forel.train(source(empty), ONE, label="y", bits=8, **form)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forel.evaluate(trained, source(empty), **form)
        forel.evaluate(trained, source(empty), strict=True, **form)
    with pytest.warns(UserWarning, match="column 'z' is new"):
        forel.evaluate(trained, source(new), **form)


@pytest.mark.parametrize("function", [forel.evaluate, forel.predict])
def test_a_model_comes_before_the_rows(function):
    trained = forel.train(ROWS, ONE, label="y", bits=8)
    with pytest.raises(ValueError, match="model: got 'list', expected a path or a trained model, before the rows"):
        function(ROWS, trained)
