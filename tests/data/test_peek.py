"""The summary of the first rows: format, separator, header, kinds, missing values, label and command."""

import io
import json
import shlex
import subprocess
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from forel.cli.app import app
from forel.cli.peek import _quoted
from forel.data.labels import LabelWords
from forel.data.peek import peek
from tests.data.odd_files import ODD_FILES

BANK = (
    b'"age";"job";"default";"balance";"y"\n58;"admin";"no";21,5;"no"\n44;"tech";"yes";29;"no"\n33;"";"no";2,2;"yes"\n'
)
ADULT = b"39, State-gov, Male, <=50K\n50, ?, Male, >50K\n38, Private, Female, <=50K\n"
SPAM = b"ham\tGo until there\nspam\tFree entry, now\nham\tSee you\n"
CLICKS = b"0\t1\t\t68fd1e64\n1\t\t5\t68fd1e64\n0\t2\t7\t05db9164\n"


def summary(text, **options):
    return peek(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def test_semicolons_decimal_commas_and_a_header():
    found = summary(BANK)
    assert (found.format, found.separator, found.options.header, found.options.decimal) == ("csv", ";", True, ",")
    assert [column.kind for column in found.columns] == ["number", "category", "category", "number", "category"]
    assert [column.missing for column in found.columns] == [0, 1, 0, 0, 0]
    assert found.columns[3].examples == ("21,5", "29", "2,2")
    assert (found.label, found.words) == ("y", LabelWords("no", "yes"))
    assert found.arguments() == ["-", "--label", "y", "--decimal", ",", "--model", "model.forel"]


def test_no_header_and_marks_of_missing_values():
    found = summary(ADULT)
    assert (found.format, found.separator, found.options.header) == ("csv", ",", False)
    assert (found.label, found.words) == ("c4", LabelWords("<=50K", ">50K"))
    assert found.columns[1].marks == ("?",)
    assert found.arguments()[1:] == ["--label", "c4", "--no-header", "--missing", "?", "--model", "model.forel"]


def test_repeated_words_are_not_a_header():
    found = summary(SPAM)
    assert (found.format, found.options.header, found.label) == ("tsv", False, "c1")
    assert found.words == LabelWords("ham", "spam")
    assert found.arguments()[1:5] == ["--separator", "tab", "--label", "c1"]  # a column alone has no separator
    found = summary(CLICKS)
    assert "--separator" not in found.arguments()
    assert (found.options.header, found.label, found.words) == (False, "c1", None)


def test_numbers_are_labels_of_regression():
    found = summary(b"day,temp,cnt\nmon,3,17\ntue,4,40\nwed,5,33\n")
    assert (found.label, found.regression) == ("cnt", True)
    assert found.arguments()[-4:] == ["--loss", "squared", "--model", "model.forel"]


def test_few_words_are_classes(tmp_path):
    rows = [f"{k % 7},{('setosa', 'virginica', 'versicolor')[k % 3]}" for k in range(30)]
    found = summary("\n".join(rows).encode())
    assert (found.label, found.classes, found.words, found.regression) == ("c2", 3, None, False)
    assert found.arguments()[1:4] == ["--label", "c2", "--no-header"]
    (tmp_path / "iris.data").write_text("\n".join(rows))
    done = CliRunner().invoke(app, ["peek", str(tmp_path / "iris.data")])
    assert "Labels: 3 classes." in done.stdout


def test_identifiers_are_left_out():
    rows = "".join(f"{k:04d}-XYZ,{k % 5},{'Yes' if k % 3 else 'No'}\n" for k in range(40))
    found = summary(b"customerID,tenure,Churn\n" + rows.encode())
    assert (found.label, found.ignore) == ("Churn", ("customerID",))
    assert "--ignore" in found.arguments()


def test_columns_that_count_the_rows_are_left_out():
    rows = "".join(f"{k},{k},{3 * k % 40},{k % 2}\n" for k in range(7, 47))
    found = summary(b"instant,row,hash,y\n" + rows.encode())
    assert (found.label, found.ignore) == ("y", ("instant", "row"))
    assert summary(b"hour,y\n" + b"".join(b"%d,%d\n" % (k, k % 2) for k in range(12))).ignore == ()
    swapped = [*range(10), 11, 10, *range(12, 30)]
    assert summary(b"n,x,y\n" + b"".join(b"%d,1,%d\n" % (k, k % 2) for k in swapped)).ignore == ()


def test_names_of_labels_in_any_spelling_and_no_amounts_as_labels():
    rows = "".join(f"{30 + k % 9},${900 * (k % 3)},{('yes', 'NO', 'Yes', 'no')[k % 4]},{k % 2}\n" for k in range(40))
    found = summary(b"Age,Income,Churned?,Member\n" + rows.encode())
    assert (found.formatted, found.label, found.words) == (("Income",), "Churned?", LabelWords("no", "yes"))


def test_options_override_detection():
    found = summary(b"a~b\n1~-\n0~2\n", separator="~", label="b", missing=["-"])
    assert [column.name for column in found.columns] == ["a", "b"]
    assert found.columns[1].missing == 1
    assert found.arguments()[1:5] == ["--separator", "~", "--label", "b"]
    assert summary(ADULT, header=False, rows=2).rows == 2


def test_tables_and_json_lines(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"x": 1.5, "city": "Rome", "click": 1}, {"x": None, "city": "Oslo", "click": 0}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("t.parquet", "t.jsonl"):
        found = peek(tmp_path / name)
        assert [(c.name, c.kind, c.missing) for c in found.columns] == [
            ("x", "number", 1), ("city", "category", 0), ("click", "number", 0),
        ]  # fmt: skip
        assert (found.rows, found.label) == (2, "click")
    assert summary(b"1 |a b\n0 |a c\n").columns == ()


def test_the_command_line_prints_the_summary_and_the_command(tmp_path):
    (tmp_path / "bank.csv").write_bytes(BANK)
    run = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke
    shown = run(app, ["peek", str(tmp_path / "bank.csv")])
    assert shown.exit_code == 0
    for text in ("separator semicolon, header, decimal comma", "balance", "'yes' is positive", "--label y --decimal ,"):
        assert text in shown.stdout
    found = json.loads(run(app, ["peek", str(tmp_path / "bank.csv"), "--json"]).stdout)
    assert (found["label"], found["positive"], found["separator"]) == ("y", "yes", ";")
    assert run(app, ["peek", str(tmp_path / "nosuch.csv")]).exit_code == 2


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"a\n", b"a,b\n", b'"\n', b"1\n2\n", b"\xff,\xfe\n1,2\n", b"a,b\n1\n1,2,3\n"]
)
def test_unusual_text_gives_a_summary_or_a_plain_error(text):
    try:
        assert summary(text, format="csv").rows >= 0
    except ValueError as error:
        assert ": got" in str(error), error  # noqa: PT017


def test_a_label_that_is_not_found_has_to_be_named(tmp_path):
    table, lines = tmp_path / "no.csv", tmp_path / "rows.vw"
    table.write_text("age,amount\n31,12.5\n22,1.25\n25,7.75\n22,7.5\n")
    lines.write_text("1 |a x\n-1 |a y\n")
    shown = CliRunner().invoke(app, ["peek", str(table)]).stdout
    assert f"No column looks like a label; name it, such as: forel peek {table} --label amount\n" in shown
    assert "Train:" not in shown
    shown = CliRunner().invoke(app, ["peek", str(table), "--label", "amount"]).stdout
    assert f"Train: forel train {table} --label amount --loss squared --model model.forel\n" in shown
    assert "--label" not in CliRunner().invoke(app, ["peek", str(lines)]).stdout


def test_few_whole_numbers_may_be_classes(tmp_path):
    path = tmp_path / "stars.csv"
    path.write_text("size,stars\n" + "".join(f"{k}.5,{1 + k % 5}\n" for k in range(40)))
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["peek", str(path), "--label", "stars"]).stdout
    assert "Labels: 5 whole numbers, whose size counts; for classes, replace --loss squared by --classes auto." in shown
    command = peek(path, label="stars").arguments()
    assert command[3:5] == ["--loss", "squared"]
    other = ["train", *command[:3], "--classes", "auto", "--alpha", "1", "--bits", "6", "--quiet"]
    done = CliRunner().invoke(app, other)
    assert done.exit_code == 0, done.output


def test_names_above_numbers_are_a_header_even_if_they_are_values_too():
    rows = b"".join(b"%d,%s,%d\n" % (k, b"blue color red".split()[k % 3], k % 2) for k in range(1, 30))
    found = summary(b"n,color,y\n" + rows)
    assert (found.options.header, found.label) == (True, "y")
    assert [column.name for column in found.columns] == ["n", "color", "y"]


def test_amounts_with_separators_are_no_identifiers():
    rows = b"".join(b'"%d,%03d",%d\n' % (k, 7 * k, k % 2) for k in range(1, 41))
    found = summary(b"revenue,y\n" + rows)
    assert (found.ignore, found.formatted) == ((), ("revenue",))


@pytest.mark.parametrize(
    ("labels", "positive", "regression"),
    [
        ("01", None, False), ("12", "2", False), (("-1", "1"), None, False), ("123", None, True),
        (("10000009.6", "10000000.4"), None, True), (("0.25", "1"), None, False), ("1", None, False),
        ("5", None, True),
    ],
)  # fmt: skip
def test_labels_that_are_numbers_are_classes_or_amounts(labels, positive, regression):
    rows = "".join(f"{k % 5},{labels[k % len(labels)]}\n" for k in range(30))
    found = summary(f"x,y\n{rows}".encode(), label="y")
    assert (found.positive, found.regression) == (positive, regression)


def test_a_row_that_cannot_be_read_is_shown_and_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "1,0\n2,1\n" * 9 + "1,2,3\n")
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["peek", str(tmp_path / "a.csv")]).stdout
    assert "Malformed: 1 row, which --on-error skip leaves out; " in shown
    assert "a.csv, line 20: got 3 columns" in shown
    assert "--label y --on-error skip --model" in shown


def test_tables_that_are_read_as_text_of_vw_name_the_format(tmp_path):
    (tmp_path / "pipes.txt").write_text("x|my y\n" + "3|1\n" * 9)
    (tmp_path / "unlabelled.vw").write_text("|a x\n" * 9)
    for name in ("pipes.txt", "unlabelled.vw"):
        found = CliRunner().invoke(app, ["peek", str(tmp_path / name)])
        assert (found.exit_code, found.stderr.split(":")[1].split(",")[-1]) == (2, " line 1")
        assert "got no label, expected a number; or another --format than vw" in found.stderr.replace("\n", " ")


def test_files_with_odd_names_are_arguments_of_a_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("--dash.csv", "two words.csv"):
        (tmp_path / name).write_text("x,y\n" + "1,0\n2,1\n" * 9)
        shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["peek", "--", name]).stdout
        words = shlex.split(next(line for line in shown.splitlines() if line.startswith("Train: ")))
        assert words[3] == name.replace("--dash", "./--dash")
    (tmp_path / "no label.csv").write_text("x\n" + "".join(f"w{k}\n" for k in range(9)))
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["peek", "no label.csv"]).stdout
    assert "such as: forel peek 'no label.csv' --label x" in shown


@pytest.mark.filterwarnings("ignore:overflow")  # of uncompiled kernels
@pytest.mark.filterwarnings("ignore:.*not UTF-8", "ignore:column", "ignore:label")  # which the corpus expects
@pytest.mark.parametrize("one", ODD_FILES, ids=[one.name for one in ODD_FILES])
def test_the_command_of_an_odd_file_runs_or_the_refusal_says_what_to_do(one, tmp_path, monkeypatch, interpreted):
    monkeypatch.chdir(tmp_path)
    (tmp_path / one.name).write_bytes(one.content)
    run = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke
    given = {name: value for name, value in one.options.items() if name == "encoding"}
    encoding = [word for name, value in given.items() for word in (f"--{name}", value)]
    shown = run(app, ["peek", one.name, *encoding])
    if shown.exit_code:
        assert shown.exit_code == 2, shown.exception
        assert one.name in shown.stderr or "empty file" in shown.stderr
        assert ", expected " in shown.stderr
    elif "No column looks like a label" in shown.stdout:
        assert f"name it, such as: forel peek {one.name} --label " in shown.stdout
    else:
        command = peek(one.name, **given).arguments()
        assert command[1 : 1 + len(encoding)] == encoding
        done = run(app, ["train", *command, "--bits", "6", "--lanes", "2", "--quiet"])
        assert done.exit_code == 0, (command, done.stderr)


@pytest.mark.parametrize("name", ["y z", "it's", "\x1b[31m'\\", "\u202egnp", "$x", "`id`", "über"])
def test_commands_for_a_shell_have_names_as_they_are(name):
    command = f"printf %s {_quoted(name)}"
    assert command.isprintable()
    assert subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout == name.encode()


ROWS = [(str(20 + k), f"{1000 + 7 * k}.5", "yn"[k % 2]) for k in range(12)]


@pytest.mark.parametrize(
    ("first", "mark", "line"),
    [
        ("Sales of 2023;;\n;;\n", ";", 3),
        ("# a sensor\n# its data\n", ",", 3),
        ("sep=;\n", ";", 2),
        ("Sales\n\n", "\t", 3),
    ],
)
def test_lines_before_the_names_of_columns_are_refused(first, mark, line):
    text = first + "".join(mark.join(row) + "\n" for row in [("age", "paid", "bought"), *ROWS])
    with pytest.raises(ValueError, match=rf", line 1: got '.*', expected .* line {line}; tail -n \+{line} FILE"):
        summary(text, format="csv")


@pytest.mark.parametrize("start", ["", ",age,label\n", ",label,\n", '"a\nb",age,label\n'])
def test_columns_without_names_are_no_title(start):
    assert summary(start + "".join(f"{k},{k % 3},{k % 2}\n" for k in range(99)), format="csv").rows >= 99


def test_the_last_column_is_the_label_where_another_has_incomes():
    found = summary("age,income,price\n" + "".join(f"{20 + k},{k * 0.5},{k % 7 + 0.5}\n" for k in range(30)))
    assert found.label == "price"
    found = summary(
        "age,income,smoker\n" + "".join(f"2{k % 9},{k}.5,{('yes', 'No ', 'YES')[k % 3]}\n" for k in range(30))
    )
    assert (found.label, found.words) == ("smoker", LabelWords("No", "yes"))


def test_bars_separate_columns_unless_lines_are_those_of_vw():
    found = summary(b"Product|Price|Units\n" + b"".join(b"a|$%d,154.25|1%d,000\n" % (k + 1, k % 9) for k in range(9)))
    assert (found.format, found.separator, found.options.decimal) == ("csv", "|", ".")
    assert found.formatted == ("Price", "Units")
    assert all(summary(line).format == "vw" for line in ("1 |a b\n", "1 'tag|a b\n", "1 |\n"))


def test_points_between_thousands_are_read_with_decimal_commas():
    found = summary(b"sum;ok\n" + b"".join(b"%d.443,90;%d\n" % (k + 100, k % 2) for k in range(30)))
    assert (found.options.decimal, [column.kind for column in found.columns]) == (",", ["number", "number"])


def test_decimals_are_numbers_and_objects_no_texts(tmp_path):
    rows = [{"sum": Decimal(f"{k}.25"), "ok": k % 2} for k in range(30)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = peek(tmp_path / "a.parquet")
    assert ([column.kind for column in found.columns], found.ignore) == (["number", "number"], ())
    rows = [{"user": {"age": k, "city": "Rome"}, "ok": k % 2} for k in range(30)]
    found = summary("".join(json.dumps(row) + "\n" for row in rows))
    assert found.arguments()[1:] == ["--label", "ok", "--model", "model.forel"]
