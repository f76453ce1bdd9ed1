"""Labels that are words: which one is positive, at every door, kept with the model."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forel
from forel.data import ReadOptions, concatenate, read
from forel.data.features.kinds import validate_kinds
from forel.data.labels import LabelWords, choose_words
from forel.data.pipeline import ordered_blocks

SETTINGS = forel.Settings(alpha=1.0)
PAIRS = [
    ("no", "yes"), ("false", "true"), ("ham", "spam"), ("<=50K", ">50K"), ("N", "Y"), ("No.", "Yes."), ("bad", "good"),
    ("not paid", "any"), ("negative", "positive"),
]  # fmt: skip


def table(words, header="x,y"):
    return f"{header}\n".encode() + "".join(f"{k % 3},{word}\n" for k, word in enumerate(words)).encode()


def labels(text, **options):
    reader = read(io.BytesIO(text), "csv", **{"bits": 8, "label": "y", **options})
    return [label for block in ordered_blocks(reader, 0) for label in block.labels.tolist()]


@pytest.mark.parametrize(("negative", "positive"), PAIRS)
def test_the_positive_word_does_not_depend_on_the_order(negative, positive):
    for words in ([negative, positive, positive], [positive, negative, positive]):
        expected = [float(word == positive) for word in words]
        assert labels(table(words)) == expected
        assert labels(table([f" {word} " for word in words])) == expected
        assert choose_words(words) == LabelWords(negative, positive)


@given(st.text("abAB<>", min_size=1, max_size=3), st.text("abAB<>", min_size=1, max_size=3))
def test_words_are_ordered_in_one_way(a, b):
    if a != b:
        found = choose_words([a, b])
        assert found == choose_words([b, a, b])
        assert {found.negative, found.positive} == {a, b}
        assert LabelWords.of_kind(found.kind) == found
        assert validate_kinds({"y": found.kind})


def test_the_positive_word_is_an_option():
    words = ["a", "b", "c", "a"]
    assert labels(table(words), positive="a") == [1, 0, 0, 1]
    assert labels(table(["1", "2", "2.0"]), positive="2") == [0, 1, 1]
    assert labels(table(["no", "yes"]), positive="no") == [1, 0]


def test_other_words_are_errors_that_name_the_option():
    with pytest.raises(ValueError, match=r"label: got 'a' in the first rows, expected at least two words.*--positive"):
        labels(table(["a", "a"]))


def in_every_format(words):
    rows = [{"x": float(k % 3), "y": word} for k, word in enumerate(words)]
    frame, file = pa.Table.from_pylist(rows), io.BytesIO()
    parquet.write_table(frame, file, row_group_size=300)
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    small = pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(max_chunksize=7))
    dates = {**rows[0], "when": "2024-01-31"}, *rows[1:]
    return {
        "csv": (io.BytesIO(table(words)), {"format": "csv"}),
        "quoted": (io.BytesIO("".join(f'"{w}","a ""b"" c"\n' for w in ("y", *words)).encode()), {"format": "csv"}),
        "jsonl": (io.BytesIO(text), {"format": "jsonl"}),
        "text": (io.BytesIO(text), {"format": "jsonl", "text": "x"}),
        "dicts": (rows, {}),
        "dates": (dates, {"date": "when"}),
        "frame": (pd.DataFrame(rows), {}),
        "batches": (small, {}),
        "parquet": (file, {"format": "parquet"}),
    }


FORMS = list(in_every_format(["no", "yes"]))


@pytest.mark.parametrize("size", [1000, 1 << 21])
@pytest.mark.parametrize("form", FORMS)
def test_as_many_rows_decide_in_every_format(form, size):
    def read_all(words, **options):
        source, given = in_every_format(words)[form]
        return concatenate(read(source, label="y", bits=8, block_bytes=size, **given, **options)).labels.tolist()

    late = ["no", "yes"] * 512 + ["nno"]  # which does not become a class
    with pytest.raises(ValueError, match=r"line 102[56], column 'y': got .*'nno', expected 'no' or 'yes'; .*classes="):
        read_all(late)
    assert read_all(late, on_error="skip") == [0, 1] * 512
    assert read_all([*late[:-1], "maybe"], classes="auto") == [*[0, 1] * 512, 2]
    assert read_all(["b", "c"] * 511 + ["a", "b"]) == [*[0, 1] * 511, 2, 0]  # in order of appearance
    assert read_all(["b"] * 3000 + ["a"]) == [1] * 3000 + [0]  # sorted


def test_missing_labels_stay_missing():
    assert np.isnan(labels(table(["no", "NA", "yes"]))).tolist() == [False, True, False]


def test_one_known_word_in_the_first_rows_is_enough():
    text = table(["no"] * 900 + ["yes"] * 100)
    assert sum(labels(text, block_bytes=500)) == 100
    assert sum(labels(table(["yes"] * 900 + ["no"] * 100), block_bytes=500)) == 900


@pytest.mark.parametrize("dictionary", [False, True])
def test_tables_have_the_same_labels(dictionary):
    import pyarrow as pa

    words = ["ham", None, "spam", " ham"]
    column = pa.array(words).dictionary_encode() if dictionary else pa.array(words)
    held = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": column})
    reader = read(held, bits=8, label="y")
    (block,) = reader
    np.testing.assert_array_equal(block.labels, np.float32([0, np.nan, 1, 0]))
    assert LabelWords.of_kind(reader.kinds.known["y"]) == LabelWords("ham", "spam")
    (block,) = read(pa.table({"x": [1.0, 2.0], "y": [1, 2]}), bits=8, label="y", positive="2")
    assert block.labels.tolist() == [0, 1]


@pytest.mark.parametrize("as_lines", [False, True])
def test_dicts_have_the_same_labels(as_lines):
    rows = [{"x": 1.0, "y": "spam"}, {"x": 2.0}, {"x": 3.0, "y": "ham"}]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    reader = read(io.BytesIO(text), "jsonl", bits=8, label="y") if as_lines else read(rows, bits=8, label="y")
    (block,) = reader
    np.testing.assert_array_equal(block.labels, np.float32([1, np.nan, 0]))
    assert LabelWords.of_kind(reader.kinds.known["y"]) == LabelWords("ham", "spam")
    assert [b.labels.tolist() for b in read([{"y": "a"}, {"y": "b"}, {"y": "c"}], bits=8, label="y")] == [[0, 1, 2]]


def test_a_model_stores_its_label_words_for_every_interface(tmp_path, interpreted):
    rows = [{"word": w, "y": y} for w, y in (("win", "spam"), ("hello", "ham"), ("cash", "spam"))] * 20
    text = b"word,y\n" + "".join(f"{row['word']},{row['y']}\n" for row in rows).encode()
    trained = forel.train(io.BytesIO(text), SETTINGS, format="csv", label="y", bits=8)
    assert trained.label_words == LabelWords("ham", "spam")
    numbers = [{**row, "y": float(row["y"] == "spam")} for row in rows]
    same = forel.train(numbers, SETTINGS, label="y", bits=8)
    np.testing.assert_array_equal(same.learner.weights, trained.learner.weights)
    trained.save(tmp_path / "m.forel")
    stored = forel.load(tmp_path / "m.forel")
    for source in (rows, [row for row in rows if row["y"] == "spam"]):
        found = forel.evaluate(stored, source).report
        assert found.mean_label == pytest.approx(np.mean([row["y"] == "spam" for row in source]))
    more = forel.train(rows, model=stored)
    assert more.label_words == trained.label_words


def test_predictions_ignore_labels_that_cannot_be_read(tmp_path, interpreted):
    rows = [{"x": float(k % 2), "y": k % 2} for k in range(40)]
    trained = forel.train(rows, SETTINGS, label="y", bits=8)
    import pyarrow as pa

    expected = forel.predict(trained, [{"x": 1.0}, {"x": 0.0}])
    odd = [{"x": 1.0, "y": "?"}, {"x": 0.0, "y": "what"}]
    sources = {
        "dicts": odd,
        "csv": io.BytesIO(b"x,y\n1,?\n0,what\n"),
        "mixed": io.BytesIO(b"x,y\n1,1\n0,what\n"),
        "table": pa.table({"x": [1.0, 0.0], "y": ["a", "b"]}),
    }
    for source in sources.values():
        np.testing.assert_array_equal(forel.predict(trained, source), expected)
    with pytest.raises(ValueError, match="column 'y': got 'what', expected a number"):
        forel.evaluate(trained, io.BytesIO(b"x,y\n1,1\n0,what\n"), format="csv")


def test_kinds_of_labels_are_validated():
    with pytest.raises(ValueError, match="kinds"):
        ReadOptions(kinds={"y": "labels [1, 2]"})
    with pytest.raises(ValueError, match="kinds"):
        ReadOptions(kinds={"y": "label"})


LARGE = [10000009.6, 10000000.4, -0.1, 1e30]


@pytest.mark.parametrize("form", ["vw", "svmlight", "csv", "jsonl", "dicts", "table"])
def test_labels_are_the_nearest_doubles(form):
    rows = [{"x": 1.0, "y": label} for label in LARGE]
    text = {
        "vw": "".join(f"{y!r} |a x\n" for y in LARGE),
        "svmlight": "".join(f"{y!r} 1:2\n" for y in LARGE),
        "csv": "x,y\n" + "".join(f"1,{y!r}\n" for y in LARGE),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
    }
    source = {"dicts": rows, "table": pa.Table.from_pylist(rows)}.get(form)
    source = io.BytesIO(text[form].encode()) if source is None else source
    label = {} if form in ("vw", "svmlight") else {"label": "y"}
    found = concatenate(read(source, form if form in text else None, **label))
    assert found.labels.tolist() == LARGE


def test_a_label_close_to_another_one_is_reported_in_small_files_too():
    text = "x,y\n" + "1,no\n1,yes\n" * 100 + "1,nno\n"
    with pytest.warns(UserWarning, match="got the class 'nno' in very few rows, close to 'no'"):
        list(read(io.BytesIO(text.encode()), "csv", label="y"))
