"""Missing values of dicts: None, NaN, and NA and NaT of pandas are as a key that is left out."""

import io
import math
import warnings

import numpy as np
import pandas as pd
import pytest

import forel
from forel.data import concatenate, read

NULLS = (None, math.nan, np.float32("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT"))
ROW = {"y": 1, "w": 2.0, "n": 4.0, "city": "Rome", "note": "red shoe", "when": "2024-01-31"}
OPTIONS = (
    {},
    {"importance": "w"},
    {"categories": ["n"]},
    {"log": ["n"], "bucket": ["w"]},
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
    with pytest.raises(ValueError, match=r"dicts, line 2, column 'w': got .*, expected a number$"):
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
        assert trained.stored.predict_one(row) == trained.stored.predict_one(known)
        with pytest.raises(ValueError, match="dicts, line 1: got no label"):
            forel.evaluate(trained, [row])
        with pytest.raises(ValueError, match="dicts, line 2: got no label"):
            forel.train([ROW, {**ROW, "y": null}], forel.Settings(alpha=0.5), **options)
