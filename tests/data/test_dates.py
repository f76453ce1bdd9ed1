"""Columns of dates and times: their parts are the same features through every format."""

import io
import json
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import forel
from forel.data import read
from forel.data.features.dates import AMBIGUOUS, date_features, date_order, parse_date
from forel.data.peek import peek
from forel.learner.settings import Settings
from forel.store import serving_model

TIMES = ["2024-01-31 13:45", "2023-07-01T00:00:30", None, "2020-01-01 05:00:00"]
ROWS = [{"when": text, "n": k, "y": k % 2} for k, text in enumerate(TIMES)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", (datetime(2024, 1, 31), False)),
        ("2024/1/31 7:05", (datetime(2024, 1, 31, 7, 5), True)),
        ("2024-01-31 12:05 am", (datetime(2024, 1, 31, 0, 5), True)),
        ("2024-1-31T7:05:09.5Z", (datetime(2024, 1, 31, 7, 5, 9, 500_000, UTC), True)),
        ("31.01.2024 23:59:59", (datetime(2024, 1, 31, 23, 59, 59), True)),
        ("1706709600", (datetime(2024, 1, 31, 14), True)),
        ("1706709600000", (datetime(2024, 1, 31, 14), True)),
        ("20240131", (datetime(2024, 1, 31), False)),
        (" NA ", None),
    ],
)
def test_spellings(text, expected):
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text",
    ["yesterday", "31/01/2024", "2024-13-01", "12", "1-2-3", "2024-01-31 25:00", "2024-01-31 13:05 pm", "1/2/24"],
)
def test_what_is_not_a_date(text):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_date(text)
    assert date_order([text]) != ""


@pytest.mark.parametrize("text", ["2/1/2024", "02.01.2024", "2-1-24", "2024-01-02", "2024/1/2", "1704153600"])
def test_order_of_day_and_month(text):
    number = text.isdecimal()
    assert parse_date(text, "dmy") == (datetime(2024, 1, 2), number)
    month_first = datetime(2024, 1, 2) if text.startswith(("2024", "17")) else datetime(2024, 2, 1)
    assert parse_date(text, "mdy") == (month_first, number)


def test_years_of_two_digits_need_an_order():
    assert [parse_date(f"1/2/{year}", "dmy")[0].year for year in ("68", "69")] == [2068, 1969]
    assert parse_date("24-01-31", "ymd") == (datetime(2024, 1, 31), False)
    for text, order in (("31/01/2024", "mdy"), ("1/2/3", "dmy"), ("1/2024/3", "dmy"), ("31.01.24", "")):
        with pytest.raises(ValueError):  # noqa: PT011
            parse_date(text, order)


def test_order_of_several_dates():
    assert date_order(["1/2/2024", "13/2/2024"]) == "dmy"
    assert date_order(["1/2/2024 7:05 PM", "1/13/2024 12:00 AM"]) == "mdy"
    assert date_order(["1/2/2024", "3/4/2024"]) == AMBIGUOUS
    assert date_order(["1/13/2024", "13/1/2024"]) is None
    assert date_order(["31.01.2024", "2024-01-31"]) == ""


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


def test_every_format_has_an_order():
    table = pd.DataFrame({"when": ["1/2/2024 1:45 PM", "", "12/31/2023 00:05"], "n": [1, 2, 3], "y": [1, 0, 1]})
    iso = table.assign(when=["2024-01-02 13:45", None, "2023-12-31 00:05"])
    expected = features(iso, date=["when"])
    parquet = io.BytesIO()
    table.to_parquet(parquet)
    lines = io.BytesIO(table.to_json(orient="records", lines=True).encode())
    text = io.BytesIO(table.to_csv(index=False).encode())
    for source in (table, text, lines, table.to_dict("records"), io.BytesIO(parquet.getvalue())):
        assert features(source, date=["when:mdy"]) == expected
    for wrong in (["when", "when:mdy"], ["n:dmy"]):
        with pytest.raises(ValueError, match=r"date|got '1', expected a date with the order dmy"):
            features(table, date=wrong)


def test_a_model_stores_the_order(tmp_path, interpreted):
    rows = [{"when": f"{1 + k % 12}/{1 + k % 28}/2023", "n": k % 3, "y": k % 2} for k in range(60)]
    trained = forel.train(rows, Settings(alpha=1.0), label="y", date=["when:mdy"], bits=12)
    expected = forel.predict(trained, rows)
    forel.save(tmp_path / "m", trained.learner, trained.extra)
    assert forel.predict(forel.load(tmp_path / "m"), pd.DataFrame(rows)).tolist() == expected.tolist()
    forel.save(tmp_path / "s", serving_model(trained.learner), trained.extra)
    serving = forel.load(tmp_path / "s")
    assert [serving.predict_one(row) for row in rows] == pytest.approx(expected.tolist(), rel=1e-5)


def test_a_model_stores_which_columns_are_dates(tmp_path, interpreted):
    trained = forel.train(sources()["frame"], Settings(alpha=1.0), label="y", bits=12)
    assert trained.extra["reading"]["kinds"]["when"] == "date"
    expected = forel.predict(trained, ROWS)
    for source in sources().values():
        assert forel.predict(trained, source) == pytest.approx(expected, rel=1e-6)  # features in another order
    forel.save(tmp_path / "m", serving_model(trained.learner), trained.extra)
    serving = forel.load(tmp_path / "m")
    assert [serving.predict_one(row) for row in ROWS] == pytest.approx(expected.tolist(), rel=1e-5)


def test_other_words_are_malformed_with_their_line():
    text = b"when,n,y\n2024-01-31,1,0\nsoon,2,1\n2024-02-01,3,1\n"
    with pytest.raises(ValueError, match="line 3, column 'when': got 'soon', expected a date, such as 2024-01-31"):
        features(io.BytesIO(text), date=["when"])
    reader = read(io.BytesIO(text), "csv", label="y", date=["when"], on_error="skip")
    (block,) = reader
    message = "column 'when': got '1/2/2024', expected a date, .*; or use date=.'when:dmy'. for 31/01/2024"
    with pytest.raises(ValueError, match=message):
        features(io.BytesIO(b"when,y\n1/2/2024,1\n"), date=["when"])
    with pytest.raises(ValueError, match="expected a date with the order mdy, such as 01/31/2024"):
        features([{"when": "13/1/2024", "y": 1}], date=["when:mdy"])
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


def test_peek_shows_the_order_of_dates():
    text = b"day,due,cnt\n02/01/2011,3/4/11,985\n28/01/2011,5/6/11,801\n03/02/2011,7/8/11,12\n"
    found = peek(io.BytesIO(text))
    assert [(column.kind, column.order) for column in found.columns] == [
        ("date", "dmy"), ("date", AMBIGUOUS), ("number", ""),
    ]  # fmt: skip
    arguments = found.arguments()
    assert arguments[arguments.index("--date") + 1] == "day:dmy"
    again = peek(io.BytesIO(text), date=["due:mdy"]).arguments()
    assert again[again.index("--date") + 1] == "due:mdy,day:dmy"
