"""Errors of input, as a newcomer makes them: a sentence that names the place and the remedy."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.store import serving_model

HEADER = "age,city,plan,churn\n"
ROWS = [f"{20 + k % 40},{('Rome', 'Oslo', 'Bern')[k % 3]},{'ab'[k % 2]},{('no', 'yes')[k % 2]}\n" for k in range(60)]

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(HEADER + "".join(ROWS))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "blank.csv").write_text("\n")
    (tmp_path / "header.csv").write_text(HEADER)
    (tmp_path / "numbers.csv").write_text("a,y\n" + "".join(f"{k},{k % 3}\n" for k in range(9)))
    (tmp_path / "values.csv").write_text("a,y\n" + "".join(f"{k},{k + 0.5}\n" for k in range(9)))
    (tmp_path / "other.csv").write_text("length,width\n1,2\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


def run(*words, fails=True):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == (2 if fails else 0), done.output
    return done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rows.csv", "got no label, expected 0 and 1"),
        (
            "rows.csv",
            "; --label names the column of labels, one of age, churn, city, plan (forel peek rows.csv suggests one)",
        ),
        ("rows.csv --label chrn", "--label: got 'chrn', expected one of the columns age, city, plan, churn"),
        (
            "rows.csv --label churn --ignore id",
            "--ignore: got 'id', expected one of the columns age, city, plan, churn",
        ),
        ("empty.csv --label y", "empty.csv, line 1: got an empty file, expected the names of the columns"),
        ("blank.csv --label y", "blank.csv, line 1: got an empty line, expected the names of the columns"),
        ("header.csv --label churn", "source: got no rows, expected at least one"),
        ("folder --label y", "source: got 'folder', expected a file; for all files of a folder add /*"),
        ("none.csv --label y", "source: got 'none.csv', expected a file that is there"),
        ("numbers.csv --label y", "line 4: got the label 2, expected 0 and 1"),
        ("numbers.csv --label y", "; --classes has more than two"),
        ("values.csv --label y", "line 3: got the label 1.5, expected 0 and 1"),
        ("values.csv --label y", ", --loss squared predicts numbers"),
        ("rows.csv --label churn --alpha 1 --lanes 4", "--lanes: is a number of settings to mix, and --alpha is one"),
        ("rows.csv --label churn --bits 40", "--bits: got 40, expected 1 to 31"),
        ("rows.csv --label churn --loss log", "--loss: got 'log', expected one of logistic, hinge"),
    ],
)
def test_training_errors_name_the_place_and_the_remedy(words, message, folder):
    shown = " ".join(run("train", *words.split()).replace("│", " ").split())
    assert message in shown


def test_words_in_place_of_numbers_name_options(folder):
    (folder / "ages.csv").write_text("age,churn\n" + "31,yes\n40,no\n" * 10 + "old,no\n")
    shown = run("train", "ages.csv", "--label", "churn", "--alpha", 0.1, "--bits", 8)
    assert "got 'old', expected a number, as the column's first; or use --categories age" in shown
    arguments = ("--label", "churn", "--alpha", "0.1", "--bits", "8", "--on-error", "skip", "--quiet")
    done = CliRunner().invoke(app, ["train", "ages.csv", *arguments])
    assert "or use --categories age, or --missing for a mark" in " ".join(done.output.split())
    run("train", "ages.csv", "--label", "churn", "--categories", "age", "--alpha", 0.1, "--bits", 8, fails=False)
    (folder / "numbers.csv").write_text("age,churn\n" + "31,yes\n40,no\n" * 10)
    run("train", "numbers.csv", "--label", "churn", "--alpha", 0.1, "--bits", 8, "--model", "m", fails=False)
    shown = run("predict", "ages.csv", "--model", "m", "--strict")
    assert "got 'old', expected a number, as in training; or leave out --strict" in shown


@pytest.mark.filterwarnings("default")
def test_a_positive_label_that_no_row_has_is_a_warning(folder):
    shown = run("train", "rows.csv", "--label", "churn", "--positive", "maybe", "--quiet", fails=False)
    assert "--positive: got 'maybe', which no row has as its label" in shown
    with pytest.warns(UserWarning, match="positive: got 'maybe', which no row has"):
        trained = forel.train("rows.csv", label="churn", positive="maybe", bits=10)
    with warnings.catch_warnings():  # rows of a later day may have none
        warnings.simplefilter("error")
        forel.train("rows.csv", model=trained)


@pytest.mark.filterwarnings("default")
def test_marks_of_missing_values_without_effect_are_a_warning(folder):
    (folder / "rows.jsonl").write_text('{"a": 1, "y": 1}\n{"a": -999, "y": 0}\n' * 9)
    options = ("train", "rows.jsonl", "--label", "y", "--alpha", 0.1, "--bits", 8, "--quiet", "--model", "m")
    shown = run(*options, "--missing", "-999", fails=False)
    assert "forel: --missing: got -999, which is ignored in jsonl; use null there\n" in shown
    assert run("predict", "rows.jsonl", "--model", "m", fails=False) == ""
    with pytest.warns(UserWarning, match="missing: got -999, which is ignored in tables and dicts in memory"):
        forel.train([{"a": 1, "y": 1}], forel.Settings(alpha=0.1), label="y", missing=["-999"], bits=8)


def test_an_option_of_columns_is_named_alone_where_there_are_none(folder):
    (folder / "rows.vw").write_text("1 |f a\n")
    shown = run("train", "rows.vw", "--categories", "city,age")
    assert shown == "forel: --categories: got 'city, age', expected none for vw, which has no columns\n"


def test_rows_to_predict_may_lack_columns(folder):
    options = ["--text", "city", "--ignore", "plan", "--bits", 12, "--quiet"]
    run("train", "rows.csv", "--label", "churn", *options, "--model", "m", fails=False)
    model = forel.load("m")
    whole = forel.predict(model, "rows.csv")
    # Columns that the model does not use, label among them.
    (folder / "used.csv").write_text("age,city\n" + "".join(",".join(row.split(",")[:2]) + "\n" for row in ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (forel.predict(model, "used.csv") == whole).all()
        assert np.allclose(model.predict_many("used.csv"), whole, atol=1e-6)
        assert (forel.predict(model, "used.csv", strict=True) == whole).all()
        run("evaluate", "rows.csv", "--model", "m", "--strict", fails=False)
    # A column that it uses, whose kind an option declares.
    (folder / "age.csv").write_text("age\n" + "".join(row.split(",")[0] + "\n" for row in ROWS))
    with pytest.warns(UserWarning, match="column 'city' is missing"):
        assert len(forel.predict(model, "age.csv")) == len(ROWS)
    with pytest.raises(ValueError, match="text: got 'city', expected one of the columns age"):
        forel.predict(model, "age.csv", strict=True)
    # None at all.
    shown = run("predict", "other.csv", "--model", "m")
    assert "columns: got length, width, expected those of training: age, city" in shown


def test_spaces_around_cells_and_names_do_not_matter(folder):
    spaced = (HEADER + "".join(ROWS)).replace(",", ", ").replace("Rome", "Rome ").replace("Oslo", '" Oslo"')
    spaced = spaced.replace(', "', ',"')  # a quote begins a cell
    (folder / "spaced.csv").write_text(spaced)
    trained = {name: forel.train(f"{name}.csv", label="churn", bits=12, names=True) for name in ("rows", "spaced")}
    plain, other = trained["rows"], trained["spaced"]
    assert (plain.learner.weights == other.learner.weights).all()
    assert {plain.names[k] for k in plain.names} == {other.names[k] for k in other.names}
    assert "city^Oslo" in {plain.names[k] for k in plain.names}
    assert plain.extra["schema"] == other.extra["schema"]
    summary = CliRunner().invoke(app, ["peek", "spaced.csv"]).stdout
    assert "--label churn --model" in summary


def test_rows_that_are_no_dicts_name_a_remedy(folder):
    trained = forel.train("rows.csv", label="churn", bits=10)
    with pytest.raises(ValueError, match=r"got Series, expected a dict of features; its to_dict\(\) is one"):
        trained.predict_one(pd.Series({"age": 31}))
    with pytest.raises(ValueError, match="got list, expected a dict of features; rows of numbers are a numpy array X"):
        forel.train(([[1.0, 2.0], [2.0, 1.0]], [0, 1]), bits=10)


def test_a_cell_of_spaces_is_missing(folder):
    text = 'city,note,y\n  ,a,1\nRome,"  ",0\n'
    (folder / "blanks.csv").write_text(text)
    (block,) = forel.read("blanks.csv", label="y", bits=10)
    assert np.diff(block.indptr).tolist() == [1, 1]


KEYED = "the model of one key, which forel convert MODEL --key KEY writes"
ONE_OF = "model: got 'models by city', expected the model of one key, such as --key Rome"
SERVING = "model: got 'a serving model of float32', expected one that can learn, from which it was converted"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("explain rows.csv --model by", ONE_OF),
        ("convert by --serving -o small", ONE_OF),
        ("convert serving --serving -o small", SERVING),
        ("convert serving --float16 -o small", SERVING),
        ("train rows.csv --start by --label churn", f"--start: got 'models by city', expected {KEYED}"),
        ("train rows.csv --label churn --start serving", "--start: got 'a serving model', expected a complete learner"),
        ("train rows.csv --label churn --by nosuch", "--by: got 'nosuch', expected one of the columns age, "),
        ("train lines.vw --by nosuch", "--by: got 'nosuch', which no row has, expected a column, or a namespace"),
        ("predict numbers.csv --model by", "column of keys: got 'city', expected one of the columns "),
        ("evaluate numbers.csv --model by --label y", "column of keys: got 'city', expected one of the columns "),
        ("evaluate rows.csv --model by --slice nosuch", "--slice: got 'nosuch', expected one of the columns "),
        ("convert by --key Paris -o one", "city: got 'Paris', expected one of the 3 keys, such as 'Rome'"),
        ("convert m --key Paris -o one", "--key: got 'Paris', expected none for one model"),
        ("convert m -o rows.vw", "convert: got 'no conversion', expected --serving, --float16 or --key"),
        ("predict rows.csv --model estimator", "; in Python, forel.load(path).predict_many(rows)"),
        ("explain rows.csv --model estimator", "; in Python, forel.load(path).predict_many(rows)"),
        ("predict lines.vw --model m", "--format: got 'vw', expected one with columns, such as csv or jsonl"),
        ("train numbers.csv --label y --classes 3 --certificate", "one against the rest; use --loss softmax"),
        ("train numbers.csv --label y --classes 3 --share 0.1", "--share: got 0.1, expected none, but for log-loss"),
        ("train rows.csv --label churn --shuffle -p out.txt", "--shuffle is not available with predictions"),
        ("train rows.csv --label churn --positive no --classes 2", "--positive: got 'no', expected none where"),
        ("train rows.csv --label churn --fallback", "--fallback is not available without --by"),
        ("train rows.csv --label churn --resume", "--model: got nothing, expected a file"),
    ],
)
def test_remedies_are_flags(words, message, models):
    shown = run(*words.split())
    assert message in shown
    assert "stored." not in shown


@pytest.fixture
def models(folder):
    """Models of the rows: one, one for each city, of several classes, and of an estimator."""
    one = forel.Settings(alpha=0.5)
    forel.train("rows.csv", one, label="churn", bits=10).save("m")
    forel.save("serving", serving_model(forel.load("m").learner))
    forel.train("rows.csv", one, label="churn", bits=10, by="city").save("by")
    forel.train("numbers.csv", one, label="y", bits=10, classes=3).save("classes")
    frame = pd.DataFrame({"age": [20, 30, 40, 50], "height": [1.6, 1.7, 1.8, 1.9]})
    forel.save("estimator", forel.FTRLClassifier(alpha=0.5).fit(frame, [0, 1, 0, 1]))
    (folder / "lines.vw").write_text("1 |a x\n")
    return folder


def test_the_model_of_one_key_in_a_file(models):
    run("convert", "by", "--key", "Oslo", "-o", "oslo", fails=False)
    run("convert", "by", "--key", "Oslo", "--serving", "-o", "small", fails=False)
    rows = [{"age": 31, "city": "Oslo", "plan": plan} for plan in "ab"]
    expected = forel.predict("by", rows).tolist()
    assert forel.predict("oslo", rows).tolist() == expected
    assert forel.predict("small", rows).tolist() == pytest.approx(expected, rel=1e-5)
    assert forel.train("rows.csv", model="oslo").learner.rounds == 80
    (models / "one.csv").write_text(HEADER + "31,Oslo,a,no\n")
    done = CliRunner().invoke(app, ["explain", "one.csv", "--model", "by", "--key", "Oslo", "--json"])
    assert json.loads(done.output)["prediction"] == pytest.approx(expected[0], rel=1e-5)


def test_values_that_are_not_dates_are_named_so(folder):
    rows = [{"when": f"{1 + k % 28}/1/2024", "n": k, "y": k % 2} for k in range(40)]
    stored = forel.train(rows, forel.Settings(alpha=0.5), label="y", date=["when:dmy"], bits=10)
    with pytest.warns(UserWarning, match="1 of the values of 'when' are not dates"):
        forel.predict(stored, [*rows, {"when": "soon"}])


def test_labels_as_a_second_argument_name_the_place_for_them():
    frame = pd.DataFrame({"age": [20, 30] * 5})
    with pytest.raises(ValueError, match=r"settings: got 'Series', expected Settings.*as \(X, y\)"):
        forel.train(frame, pd.Series([0, 1] * 5))
    with pytest.raises(ValueError, match=r"settings: got 'str', .*; label='age' names a column of labels"):
        forel.train(frame, "age")
    with pytest.raises(ValueError, match="model: got 'DataFrame', expected a learner"):
        forel.save("m", frame)


FRAME = pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]})


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (FRAME.assign(a=[1, "b"]), {}, "column a: got values that are not of one type .*; astype.str. makes words"),
        ((FRAME.assign(a=[1, "b"]), [0, 1]), {}, "column a: got values that are not of one type"),
        (FRAME.assign(a=1j), {}, "column a: got values that are not of one type"),
        ([FRAME, FRAME], {}, "got DataFrame, expected a dict of features; give one frame, such as pandas.concat"),
        ([({"a": 1.0}, 1)], {}, "got tuple, expected a dict of features; labels are values of a key, such as"),
        (FRAME, {"label": 1}, "label: got 1, expected the name of a column, which is text"),
        (FRAME, {"label": [0, 1]}, r"label: got \[0, 1\], expected the name of a column, .* as \(X, y\)"),
        ((FRAME[["a"]], FRAME[["y"]]), {}, r"y: got 'an array of shape \(2, 1\)', expected one dimension"),
        ((np.eye(2), np.eye(2)), {}, r"y: got 'an array of shape \(2, 2\)', expected one dimension, such as y.ravel"),
    ],
)
def test_frames_and_arrays_that_cannot_be_read_name_a_remedy(source, options, message):
    with pytest.raises(ValueError, match=message):
        list(forel.read(source, **options))


@pytest.mark.parametrize("rows", [pd.Series({"age": 1.0}), pa.array([1.0])], ids=["pandas", "pyarrow"])
def test_a_row_or_column_of_a_frame_is_no_table(rows):
    expected = r"expected a table; of a frame, a row is frame.iloc\[\[0\]\] or \[row.to_dict\(\)\], and a column is"
    with pytest.raises(ValueError, match=f"source: got '.*', {expected}"):
        list(forel.read(rows))


def test_one_row_is_a_list_of_one():
    with pytest.raises(ValueError, match=r"source: got 'dict', expected .*; one row is \[row\]$"):
        list(forel.read({"age": 1.0}))


@pytest.mark.parametrize(("name", "here"), [("log_loss", "logistic"), ("mse", "squared"), ("pinball", "quantile")])
def test_losses_of_other_libraries_name_those_of_forel(name, here):
    frame = pd.DataFrame({"age": [20, 30] * 5})
    for act in (
        lambda: forel.Settings(name),
        lambda: forel.FTRLClassifier(loss=name).fit(frame, [0, 1] * 5),
        lambda: forel.FTRLRegressor(loss=name).fit(frame, [0, 1] * 5),
    ):
        with pytest.raises(ValueError, match=f"loss: got '{name}', expected one of .*; {name} is {here} here$"):
            act()


def test_models_of_files_are_those_of_paths(tmp_path):
    from forel.river import LinearRegressor, model_of
    from forel.sklearn import estimator_of

    fitted, learned = forel.FTRLRegressor(alpha=0.5).fit([[1.0], [2.0]], [1.0, 2.0]), LinearRegressor(alpha=0.5)
    learned.learn_one({"a": 1.0}, 2.0)
    for model, restore in ((fitted, estimator_of), (learned, model_of)):
        forel.save(tmp_path / "m.forel", model)
        assert isinstance(restore(tmp_path / "m.forel"), type(model))
        with pytest.raises(ValueError, match="model: got 'int', expected a path or a trained model"):
            restore(3)


@pytest.mark.parametrize("option", ["ignore", "categories", "log", "keep"])
def test_the_name_of_one_column_is_no_list_of_letters(option):
    rows = [{"age": 20 + k % 9, "a": 1.0, "g": 2.0, "e": 3.0, "y": k % 2} for k in range(40)]
    settings = forel.Settings(alpha=0.5)
    trained = [forel.train(rows, settings, label="y", bits=10, **{option: one}) for one in ("age", ["age"])]
    assert trained[0].extra["reading"] == trained[1].extra["reading"]
    assert trained[0].report.loss == trained[1].report.loss
    (table,) = forel.evaluate(trained[0], rows, slices="age").slices
    assert (table.column, len(table.slices)) == ("age", 9)


def test_labels_of_another_kind_than_those_of_the_model_name_no_option_of_training(interpreted):
    model = forel.train([{"x": 1, "y": k % 2} for k in range(9)], forel.Settings(alpha=1.0), label="y", bits=4)
    other = [{"x": 1, "y": 0.5}, {"x": 1, "y": 2.5}]
    for use in (lambda: model.evaluate(other), lambda: model.learn(other), lambda: forel.train(other, model=model)):
        with pytest.raises(ValueError, match=r"line 2: got the label 2.5, expected 0 and 1 .*, which the model was"):
            use()
