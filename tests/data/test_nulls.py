"""Missing values: in dicts, None, NaN, NA and NaT are as a key that is left out; importances of tables have none."""

import io
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import forel
from forel.data import concatenate, read

NULLS = (None, math.nan, np.float32("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT"))
ROW = {"y": 1, "w": 2.0, "n": 4.0, "city": "Rome", "note": "red shoe", "when": "2024-01-31"}
OPTIONS = (
    {},
    {"importance": "w"},
    {"categories": ["n"]},
    {"log": ["n", "w"]},
    {"text": ["note"], "date": ["when"]},
    {"interactions": ["city*n"]},
    {"slices": ["city", "n"]},
)


def contents(rows, **options):
    block = concatenate(read(rows, label="y", bits=10, **options))
    return [part.tolist() for part in (block.indptr, block.indices, block.values, block.labels, block.importance)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("null", NULLS, ids=repr)
def test_a_null_is_a_key_that_is_left_out(null, options):
    for key in ("n", "city", "note", "when"):
        rows = [ROW, {**ROW, key: null}, ROW]
        absent = [{k: v for k, v in row.items() if v is not null} for row in rows]
        assert contents(rows, **options) == contents(absent, **options)
    if not options:
        assert contents([{"y": 1, "user": {"age": null, "city": "Rome"}}]) == contents(
            [{"y": 1, "user": {"city": "Rome"}}]
        )


def test_records_of_a_frame_are_its_rows():
    frame = pd.DataFrame(
        {"y": [0, 1, 1], "age": [31.0, math.nan, 45.0], "city": ["Rome", None, "Oslo"], "n": pd.array([1, None, 3])}
    )
    assert contents(frame.to_dict("records")) == contents(frame)


@pytest.mark.parametrize("null", [math.nan, pd.NA], ids=repr)
def test_importances_are_not_missing(null):
    with pytest.raises(ValueError, match=r"dicts, line 2, column 'w': got .*, expected a number;"):
        contents([ROW, {**ROW, "w": null}], importance="w")


@pytest.mark.parametrize("option", [{}, {"text": ["note"]}], ids=str)
def test_nan_in_json_text_is_malformed(option):
    text = b'{"y": 1, "n": 2, "note": "a"}\n{"y": 1, "n": NaN}\n'
    with pytest.raises(ValueError, match=r"line 2, column 'n': got nan, expected a number; where .* use null$"):
        contents(io.BytesIO(text), format="jsonl", **option)
    assert len(contents(io.BytesIO(text), format="jsonl", ignore=["n"], **option)[0]) == 3


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("text", [False, True])
def test_models(text):
    rows = [{**ROW, "y": k % 2, "n": math.nan if k % 3 else float(k)} for k in range(30)]
    absent = [{key: value for key, value in row.items() if value == value} for row in rows]
    options = {"label": "y", "bits": 10, **({"text": ["note"]} if text else {})}
    trained, same = (forel.train(source, forel.Settings(alpha=0.5), **options) for source in (rows, absent))
    assert trained.report == same.report
    for null in NULLS:
        row, known = {**ROW, "y": null, "note": null}, {key: ROW[key] for key in ("w", "n", "city", "when")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the text is missing
            assert forel.predict(trained, [row]) == forel.predict(trained, [known])
        assert trained.predict_one(row) == trained.predict_one(known)
        with pytest.raises(ValueError, match="dicts, line 1: got no label"):
            forel.evaluate(trained, [row])
        with pytest.raises(ValueError, match="dicts, line 2: got no label"):
            forel.train([ROW, {**ROW, "y": null}], forel.Settings(alpha=0.5), **options)


TABLE = {"y": [1.0, 0.0, 1.0], "x": [1.0, 2.0, 3.0], "w": [1.0, math.nan, 2.0]}
NULLED = {**TABLE, "w": [1.0, None, 2.0]}


def table_of(form):
    if form == "pandas":
        return pd.DataFrame(TABLE)
    if form == "pandas with NA":
        return pd.DataFrame({**TABLE, "w": pd.array(NULLED["w"], "Float64")})
    if form in ("polars", "arrow"):
        return pl.DataFrame(TABLE) if form == "polars" else pa.table(TABLE)
    X = sparse.csr_array(np.ones((3, 1))) if form == "sparse array" else np.ones((3, 1))
    return (X, TABLE["y"], np.array(TABLE["w"]))


@pytest.mark.parametrize("form", ["pandas", "pandas with NA", "polars", "arrow", "array", "sparse array"])
def test_importances_of_tables_in_memory_are_not_missing(form):
    source, options = table_of(form), {} if "array" in form else {"label": "y", "importance": "w"}
    with pytest.raises(
        ValueError, match=r"line 2, column '\w+': got a missing value, expected a number, such as 1; on"
    ):
        list(read(source, **options))
    reader = read(source, on_error="skip", **options)
    assert [block.importance.tolist() for block in reader] == [[1.0, 2.0]]
    assert reader.problems.count == 1


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_importances_are_one_where_a_cell_is_empty_and_never_nan(form, tmp_path):
    path, options = str(tmp_path / f"rows.{form}"), {"label": "y", "importance": "w"}
    for table in (NULLED, TABLE):
        if form == "csv":
            pd.DataFrame(table).to_csv(path, index=False, na_rep="" if table is NULLED else "NaN")
        elif form == "parquet":
            pl.DataFrame(table).write_parquet(path)
        else:
            pl.DataFrame(table).write_ipc(path)
        if table is NULLED:
            assert [block.importance.tolist() for block in read(path, **options)] == [[1.0, 1.0, 2.0]]
    got = "'NaN'" if form == "csv" else "a missing value"
    with pytest.raises(
        ValueError, match=rf"line \d, column 'w': got {got}, expected a number, such as 1; on_error='skip'"
    ):
        list(read(path, **options))
    skipped = [block.importance.tolist() for block in read(path, on_error="skip", **options)]
    assert skipped == [[1.0, 2.0]]


@pytest.mark.parametrize("form", ["pandas", "csv"])
def test_importances_of_rows_to_predict_may_be_missing(form):
    text = pd.DataFrame(TABLE).to_csv(index=False, na_rep="NaN").encode()
    source = io.BytesIO(text) if form == "csv" else pd.DataFrame(TABLE)
    options = {"format": "csv"} if form == "csv" else {}
    blocks = list(read(source, label="y", importance="w", unlabelled=True, **options))
    assert blocks[0].values.tolist() == [1.0, 2.0, 3.0]
