"""Columns of dates and times: their parts are the same features through every format."""

import io
import json
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import forel
from forel.data import read
from forel.data.features.dates import date_features, is_date, parse_date
from forel.data.peek import peek
from forel.learner.settings import Settings
from forel.store import serving_model

TIMES = ["2024-01-31 13:45", "2023-07-01T00:00:30", None, "2020-01-01 05:00:00"]
ROWS = [{"when": text, "n": k, "y": k % 2} for k, text in enumerate(TIMES)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", (datetime(2024, 1, 31), False)),
        ("2024/1/31 7:05".replace("7:05", "07:05"), (datetime(2024, 1, 31, 7, 5), True)),
        ("31.01.2024 23:59:59", (datetime(2024, 1, 31, 23, 59, 59), True)),
        ("1706709600", (datetime(2024, 1, 31, 14), True)),
        ("1706709600000", (datetime(2024, 1, 31, 14), True)),
        ("20240131", (datetime(2024, 1, 31), False)),
        (" NA ", None),
    ],
)
def test_spellings(text, expected):
    assert parse_date(text) == expected


@pytest.mark.parametrize("text", ["yesterday", "31/01/2024", "2024-13-01", "12", "1-2-3", "2024-01-31 25:00"])
def test_what_is_not_a_date(text):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_date(text)
    assert not is_date(text)


def test_parts_and_years_since_2020():
    assert date_features("2021-01-01") == [("weekday=fri", 1.0), ("month=1", 1.0), ("", pytest.approx(366 / 365.25))]
    assert date_features(date(2021, 1, 1)) == date_features("2021-01-01")
    assert date_features(datetime(2021, 1, 1, 3)) == date_features("2021-01-01 03:00")
    zoned = dict(date_features("2024-01-31 01:00+02:00"))
    assert "hour=1" in zoned
    assert zoned[""] == dict(date_features("2024-01-30 23:00"))[""]


def sources():
    table = pa.Table.from_pylist(ROWS)
    frame = pd.DataFrame({**pd.DataFrame(ROWS), "when": pd.to_datetime(pd.Series(TIMES), format="ISO8601")})
    objects = [{**row, "when": None if row["when"] is None else datetime.fromisoformat(row["when"])} for row in ROWS]
    return {
        "csv": io.BytesIO(pd.DataFrame(ROWS).to_csv(index=False).encode()),
        "jsonl": io.BytesIO("".join(json.dumps(row) + "\n" for row in ROWS).encode()),
        "dicts": ROWS,
        "strings": table,
        "datetimes": objects,
        "frame": frame,
    }


def features(source, **options):
    reader = read(source, bits=20, label="y", names=True, **options)
    return [
        {reader.names[int(k)]: float(v) for k, v in zip(row.indices, row.data, strict=True)}
        for block in reader
        for row in block.matrix(1 << 20)
    ]


def test_every_format_has_the_same_features():
    expected = []
    for row in ROWS:
        parts = [] if row["when"] is None else date_features(row["when"])
        named = {f"when^{name}" if name else "when": float(np.float32(value)) for name, value in parts}
        expected.append({"n": float(row["n"]), **named})
    for form, source in sources().items():
        # Types of tables and dicts say that a column is a date.
        options = {} if form in ("datetimes", "frame") else {"date": ["when"]}
        assert features(source, **options) == expected, form


def test_a_model_stores_which_columns_are_dates(tmp_path, interpreted):
    trained = forel.train(sources()["frame"], Settings(alpha=1.0), label="y", bits=12)
    assert trained.reading["kinds"]["when"] == "date"
    expected = forel.predict(trained, ROWS)
    for source in sources().values():
        assert forel.predict(trained, source) == pytest.approx(expected, rel=1e-6)  # features in another order
    forel.save(tmp_path / "m", serving_model(trained.model), trained.extra)
    serving = forel.load(tmp_path / "m")
    assert [serving.predict_one(row) for row in ROWS] == pytest.approx(expected.tolist(), rel=1e-5)


def test_other_words_are_malformed_with_their_line():
    text = b"when,n,y\n2024-01-31,1,0\nsoon,2,1\n2024-02-01,3,1\n"
    with pytest.raises(ValueError, match="line 3, column 'when': got 'soon', expected a date, such as 2024-01-31"):
        features(io.BytesIO(text), date=["when"])
    reader = read(io.BytesIO(text), "csv", label="y", date=["when"], on_error="skip")
    (block,) = reader
    assert (block.labels.tolist(), reader.problems.count) == ([0, 1], 1)
    lenient = features(io.BytesIO(text), date=["when"], strict=False)
    assert lenient[1] == {"n": 2.0}
    with pytest.raises(ValueError, match="column 'when': got str 'soon', expected a date"):
        features([{"when": "soon", "y": 1}], date=["when"])


def test_peek_recognizes_dates():
    found = peek(io.BytesIO(b"day,cnt,who\n2011-01-01,985,a\n2011-01-02,801,b\n2011-01-03,120,a\n"))
    assert [column.kind for column in found.columns] == ["date", "number", "category"]
    arguments = found.arguments()
    assert arguments[arguments.index("--date") + 1] == "day"
