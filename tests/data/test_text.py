"""Columns of text: words, sequences of words and of characters, in the same slots through every format."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import forel
from forel.cli.app import app
from forel.data import ReadOptions, read, slot
from forel.data.features.text import TextFeatures, append_features, parse_char_ngram, word_character
from forel.data.peek import peek
from forel.learner.settings import Settings
from forel.store import serving_model

FORMS = [
    TextFeatures(),
    TextFeatures(ngram=2),
    TextFeatures(ngram=3),
    TextFeatures(char_ngram=(1, 3)),
    TextFeatures(ngram=2, char_ngram=(3, 5)),
]
TEXTS = [
    "Free entry, NOW!",
    "",
    "Ünder die Brücke -- über",
    "don't   stop",
    "中文 字",
    "a",
    None,
    "Σίσυφος ΣΣ K 7.5",
]
ROWS = [{"n": k, "message": text, "y": k % 2} for k, text in enumerate(TEXTS)]
ODD = st.text(st.sampled_from("abYZ 09-_,.'äÖßÉЖπΣς中ſKİȺ𝔘𠀀\u0301\u093f\n\ud7ff\U000e0100"), max_size=30)


def encoded(texts):
    held = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, held)])
    return np.frombuffer(b"".join(held), np.uint8), ends[:-1], ends[1:], np.ones(len(texts), bool)


@pytest.mark.parametrize("form", FORMS)
@given(texts=st.lists(ODD, max_size=4))
def test_compiled_tokens_are_those_of_python(form, texts):
    indptr, hashes = form.hashes(*encoded(texts), "column")
    for k, text in enumerate(texts):
        expected = [slot(token, "column", 31) for token in form.tokens(text)]
        assert (hashes[indptr[k] : indptr[k + 1]] & np.uint64((1 << 31) - 1)).tolist() == expected


def test_text_that_is_not_utf8_ends_within_its_span():
    text = np.frombuffer(b"ab\xe4\xb8 \xff\xf0\x9f", np.uint8)
    indptr, hashes = TextFeatures().hashes(text, np.array([0]), np.array([text.size]), np.array([True]), "c")
    assert indptr.tolist() == [0, hashes.size]


def test_tokens():
    assert TextFeatures(ngram=3).tokens("a b c") == ["a", "a b", "a b c", "b", "b c", "c"]
    assert TextFeatures(char_ngram=(2, 3)).tokens("ab") == ["ab", " a", " ab", "ab", "ab ", "b "]
    assert TextFeatures().tokens("x_y\u200bz e\u0301t") == ["x", "y", "z", "e\u0301t"]
    assert word_character(ord("İ")) == ord("İ")  # two code points in lower case


def sources(tmp_path, rows=ROWS):
    frame = pd.DataFrame(rows)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "rows.parquet")
    return {
        "csv": io.BytesIO(frame.to_csv(index=False).encode()),
        "jsonl": io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode()),
        "dicts": rows,
        "frame": frame,
        "parquet": str(tmp_path / "rows.parquet"),
        "dictionary": table.set_column(1, "message", table["message"].dictionary_encode()),
    }


@pytest.mark.parametrize("options", [{}, {"ngram": 2, "char_ngram": "2-3"}])
def test_every_format_has_the_same_features(tmp_path, options):
    split = ReadOptions(text=["message"], **options).text_features
    expected = []
    for row in ROWS:
        counts = {"n": float(row["n"])}
        for token in split.tokens(row["message"] or ""):
            counts[f"message^{token}"] = counts.get(f"message^{token}", 0.0) + 1
        expected.append(counts)
    for form, source in sources(tmp_path).items():
        reader = read(source, bits=20, label="y", text=["message"], names=True, **options)
        found = [
            {reader.names[int(k)]: float(v) for k, v in zip(row.indices, row.data, strict=True)}
            for block in reader
            for row in block.matrix(1 << 20)
        ]
        assert found == expected, form
        assert reader.names.collisions == 0
    for form, source in sources(tmp_path).items():
        block = next(iter(read(source, bits=20, label="y", text=["message"], **options)))
        slots = np.sort(block.indices[: block.indptr[1]]).tolist()
        names = [("", "n") if name == "n" else name.split("^", 1) for name in expected[0]]
        assert slots == sorted(slot(name, space, 20) for space, name in names), form


def test_rows_that_are_left_out_have_no_tokens():
    text = b"n,message,y\n1,one two,0\nx,three,1\n2,four,1\n"
    (block,) = read(io.BytesIO(text), "csv", bits=20, label="y", text=["message"], on_error="skip")
    assert block.labels.tolist() == [0, 1]
    assert block.indices[block.indptr[1] :].tolist() == [slot("n", bits=20), slot("four", "message", 20)]


def test_equal_slots_are_summed():
    block = next(iter(read([{"message": "go go go", "n": 2}], bits=20, text=["message"])))
    assert sorted(block.values.tolist()) == [2, 3]
    one = np.array([0, 2]), np.array([5, 5], np.uint64), np.float32([1, 1]), -1
    joined = append_features(block, np.array([1]), [one, one], 20)
    assert sorted(joined.values.tolist()) == [2, 3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"char_ngram": "3"}, "char_ngram: got .3., expected none without text"),
        ({"text": ["m"], "ngram": 9}, "ngram: got 9, expected 1 to 8 words"),
        ({"text": ["m"], "char_ngram": "5-3"}, "char_ngram: got '5-3', expected numbers of characters from 1 to 32"),
        ({"text": ["m"], "char_ngram": "x"}, "char_ngram: got 'x', expected numbers of characters, such as 3-5"),
        ({"text": ["m"], "categories": ["m"]}, "categories, log, text, date: got 'm', expected one of these"),
        ({"text": ["m"], "interactions": ["ab"]}, "interactions: got .*, expected none with text or dates"),
    ],
)
def test_invalid_options(options, message):
    with pytest.raises(ValueError, match=message):
        ReadOptions(**options)
    assert parse_char_ngram("4") == (4, 4)


def test_a_missing_column_is_an_error():
    with pytest.raises(ValueError, match="text: got 'message', expected one of the columns n, y"):
        list(read(io.BytesIO(b"n,y\n1,1\n"), "csv", label="y", text=["message"]))


def messages(count=60):
    words = {"spam": "win free cash prize", "ham": "see you at home"}
    rng = np.random.default_rng(2)
    found = []
    for k in range(count):
        label = ("ham", "spam")[int(rng.integers(2))]
        found.append({"text": " ".join([*rng.permutation(words[label].split()), f"id{k}"]), "label": label})
    return found


def test_models_store_how_text_is_split(tmp_path, interpreted):
    rows = messages()
    trained = forel.train(rows, Settings(alpha=1.0), label="label", text=["text"], ngram=2, bits=14)
    assert trained.report.auc > 0.9
    assert trained.extra["reading"]["text"] == ["text"]
    table = pa.Table.from_pylist(rows)
    expected = forel.predict(trained, table)
    assert np.array_equal(expected, forel.predict(trained, rows))
    forel.save(tmp_path / "m", serving_model(trained.learner), trained.extra)
    serving = forel.load(tmp_path / "m")
    assert [serving.predict_one(row) for row in rows] == pytest.approx(expected.tolist(), rel=1e-5)
    names = [part.name for part in serving.explain_one({"text": "free cash"}).contributions]
    assert sorted(names) == ["text^cash", "text^free", "text^free cash"]


def test_peek_and_the_command_line(tmp_path, interpreted, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{row['label']}\t{row['text']}" for row in messages()]
    (tmp_path / "sms.tsv").write_text("\n".join(lines) + "\n")
    found = peek("sms.tsv")
    assert [column.kind for column in found.columns] == ["category", "text"]
    arguments = found.arguments()
    assert arguments[arguments.index("--text") + 1] == "c2"
    done = CliRunner().invoke(app, ["train", *arguments, "--ngram", "2", "--alpha", "1", "-b", "14", "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["report"]["auc"] > 0.9
    assert forel.load("model.forel").read_options.ngram == 2
