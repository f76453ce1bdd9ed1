"""Conversion between formats: the same features, the same models, and a report of lost content."""

import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from forel.data import concatenate, read
from forel.data.clicks import write_clicks
from forel.data.convert import convert
from forel.learner.linear import Settings
from forel.sklearn import estimator_of
from forel.store import load
from forel.training.scoring import predict_blocks
from forel.training.train import train
from reference_parsers import VW_LINES, examples, same


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clicks")
    for name in ("a.vw", "a.csv"):
        with (made / name).open("wb") as file:
            write_clicks(file, 1000, name[2:], seed=3)
    return made


@pytest.mark.parametrize("source", ["a.vw", "a.csv"])
@pytest.mark.parametrize("to", ["b.vw", "b.jsonl", "b.svm", "b.vw.gz"])
def test_converted_files_train_the_same_model(folder, tmp_path, source, to):
    reading = {"label": "click"} if source == "a.csv" else {}
    bits = {"bits": 16} if to == "b.svm" else {}
    done = convert(folder / source, tmp_path / to, **reading, **bits)
    assert done.rows == 1000
    assert done.problems.count == 0
    assert list(done.lost) == (["names, of which the slots are left"] if to == "b.svm" else [])
    one = train(folder / source, Settings(), bits=16, **reading)
    two = train(tmp_path / to, Settings(), bits=16, **({"label": "label"} if to == "b.jsonl" else {}))
    if to == "b.svm":  # ids are in order, and sums may round otherwise
        assert np.allclose(one.model.weights, two.model.weights, rtol=1e-3, atol=1e-5)
    else:
        assert one.model.state.tobytes() == two.model.state.tobytes()


@given(VW_LINES)
@settings(max_examples=100)
def test_converted_lines_have_every_name_and_value(tmp_path_factory, line):
    folder = tmp_path_factory.getbasetemp()
    text = f"-1 0.1 'tag {line[2:]}|" if "|" in line else f"-1 0.1 'tag |{line[2:]}"
    wanted = examples(read(io.BytesIO(text.encode()), "vw", tags=True))
    for to in ("vw", "jsonl", "svmlight"):
        done = convert(io.BytesIO(text.encode()), folder / f"x.{to}", to, format="vw")
        label = {"label": "label", "importance": "importance"} if to == "jsonl" else {}
        found = examples(read(folder / f"x.{to}", to, tags=to == "vw", **label))
        tag, importance = (b"tag" if to == "vw" else b""), (np.float32(1) if to == "svmlight" else np.float32(0.1))
        same(found, [(y, importance, tag, row) for y, _, _, row in wanted])
        assert {k: v for k, v in done.lost.items() if k in ("tags", "importances")} == (
            {} if to == "vw" else {"tags": 1} if to == "jsonl" else {"importances": 1, "tags": 1}
        )


def test_lost_content_of_a_conversion_is_reported(tmp_path):
    rows = [
        {"label": "a word", "y": 1, "w": 2.0},
        {"city": "New York", "x|y": 1.5, "y": 0},
        {"price": 2.0, "w": 3.0, "": {"importance": 4}},
    ]
    done = convert(rows, tmp_path / "a.vw", label="y", importance="w")
    assert (tmp_path / "a.vw").read_text() == "1 2 |label a_word\n0 |city New_York | x_y:1.5\n| price:2 importance:4\n"
    assert done.lost == {
        "names with bytes that became _": 3,
        "importances of examples without a label": 1,
    }
    with pytest.raises(ValueError, match="a namespace called label or importance"):
        convert(rows, tmp_path / "a.jsonl", label="y", importance="w")
    assert not list(tmp_path.glob("a.jsonl*"))
    convert(rows[1:], tmp_path / "a.jsonl", label="y", importance="w")
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == [
        {"label": 0, "city": "New York", "x|y": 1.5},
        {"importance": 3, "": {"price": 2, "importance": 4}},
    ]
    assert convert(rows[1:], tmp_path / "a.svm", label="y").lost["examples without a label, left out"] == 1


def test_ids_become_names(tmp_path):
    convert(io.BytesIO(b"1 3:1 2000000000:0.5\n"), tmp_path / "a.vw", format="svmlight")
    assert (tmp_path / "a.vw").read_text() == "1 | 3 2000000000:0.5\n"


def test_columns_keep_their_types(tmp_path):
    text = b"n,city,late\n1.5,Rome,\n,\xc3\x96slo,7\n"
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
    for to in ("parquet", "arrow"):
        assert convert(tmp_path / "a.csv.gz", tmp_path / f"a.{to}").rows == 2
        same(examples(read(tmp_path / f"a.{to}")), examples(read(tmp_path / "a.csv.gz")))
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.to_pydict() == {"n": [1.5, None], "city": ["Rome", "Öslo"], "late": [None, 7.0]}
    convert(tmp_path / "a.parquet", tmp_path / "b.arrow")
    assert pa.ipc.open_file(tmp_path / "b.arrow").read_all().equals(table)
    rows = ["n,c"] + ["1,"] * 400_000 + ["2,x"]
    (tmp_path / "late.csv").write_text("\n".join(rows))
    with pytest.raises(ValueError, match="column c: got 'string after double', expected one type; name the column"):
        convert(tmp_path / "late.csv", tmp_path / "late.parquet")
    assert convert(tmp_path / "late.csv", tmp_path / "late.parquet", categories=["c"]).rows == 400_001
    (tmp_path / "a.vw").write_text("1 |a b")
    for source, message in [("a.vw", "source: got 'vw', expected columns for parquet"), ("*.csv*", "got '2 files'")]:
        with pytest.raises(ValueError, match=message):
            convert(str(tmp_path / source), tmp_path / "c.parquet")
    convert(tmp_path / "a.csv.gz", tmp_path / "some.parquet", keep=["n"], label="late")
    assert pq.read_table(tmp_path / "some.parquet").column_names == ["n", "late"]
    with pytest.raises(ValueError, match="ignore: got 'z', expected one of the columns n, city, late"):
        convert(tmp_path / "a.csv.gz", tmp_path / "c.parquet", ignore=["z"])
    with pytest.raises(ValueError, match=r"a name without \.gz: parquet files are compressed already"):
        convert(tmp_path / "a.csv.gz", tmp_path / "c.parquet.gz")
    with pytest.raises(ValueError, match=r"to: got '.*c\.xml', expected one of svmlight, vw"):
        convert(tmp_path / "a.vw", tmp_path / "c.xml")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("c.")]


def test_a_model_file_is_an_estimator_as_it_is(folder, tmp_path):
    trained = train(folder / "a.vw", bits=16)
    trained.save(tmp_path / "m.forel")
    estimator = estimator_of(load(tmp_path / "m.forel"))
    X = concatenate(read(folder / "a.vw", bits=16)).matrix(1 << 16)
    margins = np.concatenate([m for _, m in predict_blocks(trained.stored, folder / "a.vw")])
    assert np.array_equal(estimator.predict(X), (margins > 0).astype(int))
