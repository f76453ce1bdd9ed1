"""Tables, JSON lines and dicts: one content in every form gives the same examples, and errors name the place."""

import gzip
import io
import json
import pathlib
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forel.data import Malformed, concatenate, read, slot
from reference_parsers import examples, same

pytestmark = pytest.mark.filterwarnings("ignore:.*which is not UTF-8")

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
BITS = 9


def reference_rows(rows, label="y", importance="w", bits=BITS):
    """The examples of dicts, the obvious way."""
    found = []
    for row in rows:
        entries = {}

        def put(namespace, name, value, entries=entries):
            place = slot(name, namespace, bits)
            entries[place] = np.float32(entries.get(place, np.float32(0)) + np.float32(value))

        def walk(namespace, item, put=put):
            for key, value in item.items():
                inner = f"{namespace}^{key}" if namespace else key
                if isinstance(value, dict):
                    walk(inner, value)
                elif isinstance(value, str | list):
                    for word in [value] if isinstance(value, str) else value:
                        if word:
                            put(inner, word, 1)
                elif value is not None:
                    put(namespace, key, value)

        walk("", {k: v for k, v in row.items() if k not in (label, importance)})
        y, w = row.get(label), row.get(importance)
        found.append((np.float32(np.nan if y is None else y), np.float32(1 if w is None else w), b"", entries))
    return found


def as_csv(rows, separator=","):
    names = list(rows[0])

    def cell(value):
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        text = str(value)
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',\t"\n\r') else text

    lines = [separator.join(cell(v) for v in [row[n] for n in names]) for row in rows]
    return "\n".join([separator.join(names), *lines]).encode()


def as_arrow(table, how):
    sink = io.BytesIO()
    if how == "parquet":
        pq.write_table(table, sink, row_group_size=3)
    elif how == "feather":
        pyarrow.feather.write_feather(table, sink, chunksize=3)
    else:
        maker = pa.ipc.new_file if how == "file" else pa.ipc.new_stream
        with maker(sink, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=3):
                writer.write_batch(batch)
    return io.BytesIO(sink.getvalue())


SCHEMA = pa.schema(
    [("n", pa.float64()), ("city", pa.string()), ("k", pa.int64()), ("b", pa.bool_()), ("y", pa.float64()),
     ("w", pa.float64())]
)  # fmt: skip
FORMS = {
    "dicts": lambda rows, table: rows,
    "generator": lambda rows, table: (row for row in rows),
    "jsonl": lambda rows, table: io.BytesIO(b"\n".join(json.dumps(row).encode() for row in rows)),
    "csv": lambda rows, table: io.BytesIO(as_csv(rows)),
    "tsv": lambda rows, table: io.BytesIO(as_csv(rows, "\t")),
    "csv, CRLF, gzip": lambda rows, table: io.BytesIO(gzip.compress(as_csv(rows).replace(b"\n", b"\r\n"))),
    "table": lambda rows, table: table,
    "batch": lambda rows, table: table.combine_chunks().to_batches()[0],
    "reader": lambda rows, table: table.to_reader(max_chunksize=2),
    "pandas": lambda rows, table: table.to_pandas(),
    "pandas, categorical": lambda rows, table: table.to_pandas().astype({"city": "category"}),
    "polars": lambda rows, table: pl.DataFrame(table),
    "dictionary": lambda rows, table: table.set_column(1, "city", table["city"].dictionary_encode()),
    "narrow": lambda rows, table: table.set_column(2, "k", table["k"].cast(pa.int8())),
    "large strings": lambda rows, table: table.set_column(1, "city", table["city"].cast(pa.large_string())),
    "parquet": lambda rows, table: as_arrow(table, "parquet"),
    "feather": lambda rows, table: as_arrow(table, "feather"),
    "file": lambda rows, table: as_arrow(table, "file"),
    "stream": lambda rows, table: as_arrow(table, "stream"),
}
ROWS = [
    {"n": 1.5, "city": "Rome", "k": 3, "b": True, "y": 1.0, "w": 2.0},
    {"n": None, "city": "Oslo", "k": -7, "b": False, "y": 0.0, "w": None},
    {"n": -0.25, "city": None, "k": None, "b": None, "y": None, "w": 0.5},
    {"n": 1e-3, "city": 'Sankt "P", 3', "k": 0, "b": True, "y": 1.0, "w": 1.0},
    {"n": 0.1, "city": "Zürich", "k": 3, "b": None, "y": 0.0, "w": 0.0},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_one_content_in_every_form_gives_the_same_examples(form, block_bytes):
    # NaN of pandas is an error; other forms have nulls or empty cells.
    rows = [{**row, "w": 1.0} if row["w"] is None else row for row in ROWS] if "pandas" in form else ROWS
    source = FORMS[form](rows, pa.Table.from_pylist(rows, SCHEMA))
    given = "tsv" if form == "tsv" else "auto"
    reader = read(source, given, bits=BITS, label="y", importance="w", block_bytes=block_bytes)
    same(examples(reader), reference_rows(ROWS))


WORDS = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=12).filter(
    lambda s: s not in ("", "true", "false") and s == s.strip() and not s[0].isdigit() and s[0] not in '+-.iInNtTfF"'
)
NUMBERS = st.floats(-(2.0**90), 2.0**90, width=32)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "n": st.none() | NUMBERS,
                "city": st.none() | WORDS,
                "k": st.none() | st.integers(-100, 100),
                "b": st.none() | st.booleans(),
                "y": st.none() | st.sampled_from([0.0, 1.0]),
                "w": st.none() | st.floats(0, 10, width=32),
            }
        ),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=60)
def test_generated_tables_equal_the_reference(rows):
    table = pa.Table.from_pylist(rows, SCHEMA)
    for form in ("dicts", "jsonl", "csv", "table", "polars", "stream"):
        source = FORMS[form](rows, table)
        given = form if form in ("jsonl", "csv") else "auto"
        same(examples(read(source, given, bits=BITS, label="y", importance="w")), reference_rows(rows))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | NUMBERS | st.text(max_size=4) | st.lists(st.text(max_size=3)),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=3).filter(lambda k: k not in ("y", "w")), JSON, max_size=5), max_size=6)
)
@settings(max_examples=150)
def test_nested_objects_are_namespaces(rows):
    text = b"".join(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n\n" for row in rows)
    wanted = reference_rows(rows)
    same(examples(read(rows, bits=BITS)), wanted)
    same(examples(read(io.BytesIO(text), "jsonl", bits=BITS, block_bytes=9)), wanted)


def test_a_namespace_means_the_same_in_text_and_in_dicts():
    text = read(io.BytesIO(b"1 |a x:2 y | z:3 |city Rome"), "vw")
    dicts = read([{"a": {"x": 2, "y": True}, "z": 3, "city": "Rome"}])
    assert examples(text)[0][3] == examples(dicts)[0][3]


# Columns.


def test_columns_are_kept_ignored_and_coded():
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    for form in ("dicts", "csv", "table"):
        source = lambda form=form: FORMS[form](ROWS, table)  # noqa: E731
        kept = examples(read(source(), bits=BITS, label="y", keep=["n", "city"]))
        less = examples(read(source(), bits=BITS, label="y", ignore=["k", "b", "w"]))
        wanted = reference_rows([{k: row[k] for k in ("n", "city", "y")} for row in ROWS])
        same(kept, wanted)
        same(less, wanted)
        coded = examples(read(source(), bits=BITS, keep=["k"], categories=["k"]))
        assert [set(row) for *_, row in coded] == [
            set() if row["k"] is None else {slot(str(row["k"]), "k", BITS)} for row in ROWS
        ]


@pytest.mark.parametrize("wrong", [{"label": "z"}, {"importance": "z"}, {"keep": ["z"]}, {"ignore": ["z"]}])
def test_columns_that_are_not_there_are_refused(wrong):
    for source in (pa.table({"a": [1]}), io.BytesIO(b"a,b\n1,2\n")):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}: got 'z', expected one of the columns a"):
            list(read(source, **wrong))


def test_rows_have_their_lines_when_others_are_left_out():
    text = b'{"a": 1}\n\n{"a": 1e39}\n{"a": 2}\n'
    assert concatenate(read(io.BytesIO(text), "jsonl", on_error="skip")).lines.tolist() == [1, 4]
    rows = [{"a": v, "c": v} for v in (1.0, 3e38, 2.0, 1e39, 3.0)]
    for form in ("dicts", "table"):
        reader = read(FORMS[form](rows, pa.Table.from_pylist(rows)), bits=1, on_error="skip")
        assert concatenate(reader).lines.tolist() == [1, 3, 5]


def test_what_cannot_be_a_feature_or_a_label_is_refused():
    with pytest.raises(ValueError, match=r"column when: got 'type duration.*ignore=\['when'\] leaves it out"):
        list(read(pa.table({"when": pa.array([1], pa.duration("s"))})))
    with pytest.raises(ValueError, match="importance: got 'column y of type string', expected a column of numbers"):
        list(read(pa.table({"y": ["yes"]}), importance="y"))
    with pytest.raises(ValueError, match="columns: got 'a twice'"):
        list(read(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])))
    for source in (3, {"a": 1}, b"1 | a", None):
        with pytest.raises(ValueError, match="source: got"):
            list(read(source))


def test_a_csv_column_is_what_its_first_value_is_however_much_is_read_at_a_time():
    rows = ["n,c,late"] + ["1,x,"] * 300_000 + ["2.5,7,5", "z,8,6", ",9,z"]
    reader = read(io.BytesIO("\n".join(rows).encode()), "csv", bits=BITS, on_error="skip")
    found = examples(reader)
    assert len(found) == 300_001
    assert found[-1][3] == {slot("n", bits=BITS): 2.5, slot("7", "c", BITS): 1, slot("late", bits=BITS): 5}
    assert reader.problems.messages == [
        f"stream, line {line}, column {name!r}: got 'z', expected a number, as the column's first; or use "
        f"categories=[{name!r}], or missing (--missing) for a mark"
        for line, name in ((300003, "n"), (300004, "late"))
    ]


def test_a_column_that_begins_with_a_word_is_of_categories():
    found = examples(read(io.BytesIO(b"c,d\nx,\n7,8\n"), "csv", bits=BITS))
    assert found[1][3] == {slot("7", "c", BITS): 1, slot("d", bits=BITS): 8}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_are_counted_and_left_out(end):
    text = end.join(["a,b", "", "1,2", "", "", "3", "4,x", "5,6", ""]).encode()
    reader = read(io.BytesIO(text), "csv", on_error="skip")
    assert concatenate(reader).lines.tolist() == [3, 8]
    assert [message.split(":")[0] for message in reader.problems.messages] == [
        "stream, line 6",
        "stream, line 7, column 'b'",
    ]
    with pytest.raises(Malformed, match="line 6: got 1 column in '3', expected 2"):
        list(read(io.BytesIO(text), "csv"))
    assert list(read(io.BytesIO(f"a,b{end}".encode()), "csv")) == []


def test_missing_cells_are_absent():
    text = b"a,b,c\n1,NA,x\nNA,2,NA\nnan,3, \n 4 ,+5,\n"
    assert [row for *_, row in examples(read(io.BytesIO(text), "csv", bits=BITS))] == [
        {slot("a", bits=BITS): 1, slot("x", "c", BITS): 1},
        {slot("b", bits=BITS): 2, slot("NA", "c", BITS): 1},
        {slot("b", bits=BITS): 3},
        {slot("a", bits=BITS): 4, slot("b", bits=BITS): 5},
    ]


def test_quoted_cells_may_hold_line_ends_and_bytes_that_are_no_text():
    text = b'"a b","c"\n1,"x\ny"\n2,caf\xe9\n'
    found = examples(read(io.BytesIO(text), "csv", bits=BITS))
    assert [set(row) - {slot("a b", bits=BITS)} for *_, row in found] == [
        {slot("x\ny", "c", BITS)},
        {slot("caf\\xe9", "c", BITS)},
    ]


# Problems.

PROBLEMS = [
    ("csv", b"a,b\n1,2\n3\n4,5\n", "line 3: got 1 column in '3', expected 2, as in the first row", 2),
    ("csv", b"a,b\n1,2\n3,inf\n", "line 3, column 'b': got inf, expected a number within the range of float32", 1),
    ("csv", b"a,b\n1,2\n3,1e39\n", "line 3, column 'b': got 1e+39, expected a number within the range of float32", 1),
    ("csv", b"a,b\n1,2\n3,1_0\n", "line 3, column 'b': got '1_0', expected a number", 1),
    ("csv", b"a,b\n1,2\n3,4,\xff\n", "line 3: got 3 columns in '3,4,\\xff', expected 2, as in the first row", 1),
    ("csv", b"a,b\n1,2\n3,\xff\n", "line 3, column 'b': got '\\xff', expected a number", 1),
    ("csv", b"", "line 1: got an empty file, expected the names of the columns", 0),
    ("csv", b"\xfe,b\n", "line 1: got '\\xfe,b\\x0a', expected a header of column names in UTF-8; encoding=", 0),
    ("jsonl", b'{"a": 1}\n{"a": }\n', "line 2, column 7: got '}', expected JSON", 1),
    ("jsonl", b'{"a": 1}\n[1]\n', "line 2: got list, expected a dict of features", 1),
    ("jsonl", b'{"a": 1}\n{"a": NaN}\n', "line 2, column 'a': got nan, expected a number; where a value is missing", 1),
    ("jsonl", b'{"a": 1}\n{"a": 1e39}\n', "line 2, column 'a': got 1e+39, expected a number within", 1),
    ("jsonl", b'{"a": 1}\n{"a": {"b": [1]}}\n', "line 2, column 'b': got 1 in a list, expected a string", 1),
    ("jsonl", b'{"a": 1}\n{"a": "\xff"}\n', "line 2, column 8: got '\\xff', expected UTF-8", 1),
    ("jsonl", b'{"a": 1}\n' + b"[" * 100_000 + b"\n", "line 2, column 1: got what Python refuses", 1),
    ("jsonl", b'{"a": 1}\n{"a": ' + b"1" * 5000 + b"}\n", "line 2, column ", 1),
    ("jsonl", b'{"a": 1}\n{"a": 1, "y": [1]}\n', "line 2, column 'y': got list [1], expected a number", 1),
    ("parquet", b"PAR1 and no more", "line 1: got ", 0),
    ("arrow", b"ARROW1 and no more", "line 1: got ", 0),
    ("arrow", b"\xff\xff\xff\xff\x00", "line 1: got ", 0),
]


@pytest.mark.parametrize(("form", "text", "sentence", "rest"), PROBLEMS, ids=lambda p: repr(p)[:40])
def test_an_error_names_file_line_column_and_expectation(form, text, sentence, rest, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(text)
    with pytest.raises(Malformed) as caught:
        list(read(path, form, label="y" if form == "jsonl" else None))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert str(caught.value).startswith(f"{path}, {sentence}")
    assert ", expected " in str(caught.value)
    reader = read(path, form, label="y" if form == "jsonl" else None, on_error="skip")
    assert sum(map(len, reader)) == rest
    assert reader.problems.count == 1


def test_a_negative_importance_and_an_infinite_label_are_problems():
    for form in ("csv", "table", "dicts", "jsonl"):
        rows = [{"a": 1, "y": 1.0, "w": 1.0}, {"a": 1, "y": 1.0, "w": -1.0}, {"a": 1, "y": 1e39, "w": 1.0}]
        table = pa.Table.from_pylist(rows)
        reader = read(FORMS[form](rows, table), label="y", importance="w", on_error="skip", names=True)
        assert concatenate(reader).labels.tolist() == [1.0]
        assert reader.problems.count == 2
        messages = " ".join(reader.problems.messages)
        assert "column 'w': got -1.0, expected an importance of at least 0" in messages
        assert "column 'y': got 1e+39, expected a number within the range of float32" in messages


def test_sums_beyond_float32_are_problems():
    rows = [{"a": 1.0, "c": 1.0}, {"a": 3e38, "c": 3e38}, {"a": 2.0, "c": 2.0}]
    for form in ("dicts", "table"):
        reader = read(FORMS[form](rows, pa.Table.from_pylist(rows)), bits=1, on_error="skip")
        assert slot("a", bits=1) == slot("c", bits=1)
        assert concatenate(reader).values.tolist() == [2.0, 4.0]
        assert "line 2: got values of one slot that are too large together" in reader.problems.messages[0]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_truncation_is_read_or_refused(form, packed):
    text = as_csv(ROWS) if form == "csv" else b"\n".join(json.dumps(row).encode() for row in ROWS)
    whole = examples(read(io.BytesIO(text), form, label="y" if form == "jsonl" else None, bits=BITS))
    raw = gzip.compress(text) if packed else text
    for end in range(5 if packed else 0, len(raw)):
        reader = read(
            io.BytesIO(raw[:end]), form, label="y" if form == "jsonl" else None, bits=BITS, on_error="skip"
        )  # fmt: skip
        found = examples(reader)
        # All examples but the last, which a cut may shorten, are those of the whole; a cut header is another file's.
        if form == "jsonl" or packed or end > text.index(b"\n"):
            same(found[:-1], whole[: max(0, len(found) - 1)])
        assert not packed or reader.problems.count


@pytest.mark.parametrize("how", ["parquet", "feather", "file", "stream"])
def test_every_truncation_of_a_binary_file_is_read_or_refused(how):
    raw = as_arrow(pa.Table.from_pylist(ROWS * 3, SCHEMA), how).getvalue()
    whole = reference_rows(ROWS * 3)
    form = "parquet" if how == "parquet" else "arrow"
    for end in range(0, len(raw), 7):
        reader = read(io.BytesIO(raw[:end]), form, bits=BITS, label="y", importance="w", on_error="skip")
        found = examples(reader)
        assert reader.problems.count or len(found) in (0, len(whole)) or how == "stream"
        same(found, whole[: len(found)])


@pytest.mark.parametrize("offsets", [[0, 1 << 30, 5], [0, -7, 5], [3, 1, 5]])
def test_offsets_that_point_elsewhere_are_not_followed(offsets):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"hello")]
    batch = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.string(), 2, buffers)], names=["a"])
    with pytest.raises(Malformed, match=r"table, line 1: got .*, expected a whole table"):
        list(read(pa.Table.from_batches([batch])))


@pytest.mark.parametrize("how", ["parquet", "feather", "file", "stream", "csv", "csv, CRLF, gzip", "jsonl"])
def test_flipped_bits_never_crash(how):
    table = pa.Table.from_pylist(ROWS * 3, SCHEMA)
    raw = FORMS[how](ROWS * 3, table).getvalue()
    form = {"feather": "arrow", "file": "arrow", "stream": "arrow", "csv, CRLF, gzip": "csv"}.get(how, how)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        data = bytearray(raw)
        for k in rng.integers(0, len(raw), rng.integers(1, 4)):
            data[k] ^= 1 << rng.integers(0, 8)
        reader = read(io.BytesIO(bytes(data)), form, bits=BITS, on_error="skip")
        try:
            block = concatenate(reader)
        except ValueError:
            refused += 1
            continue
        assert np.isfinite(block.values).all()
        assert block.indices.size == 0 or 0 <= block.indices.min() <= block.indices.max() < 1 << BITS
        refused += reader.problems.count > 0
    assert refused > 10


# Names and real data.


def test_names_of_columns_and_keys():
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    wanted = {"n", "k", "b", *(f"city^{row['city']}" for row in ROWS if row["city"])}
    for form in ("dicts", "csv", "table"):
        reader = read(FORMS[form](ROWS, table), label="y", importance="w", names=True)
        list(reader)
        assert {reader.names[k] for k in reader.names} == wanted
        assert reader.names.collisions == 0
        few = read(FORMS[form](ROWS, table), label="y", importance="w", names=True, bits=2)
        list(few)
        assert len(few.names) == len({slot(*reversed(w.split("^")), bits=2) for w in wanted})
        assert 0 < few.names.collisions <= len(few.names)


def test_examples_that_are_left_out_leave_no_names():
    rows = [{"city": "Rome", "a": 1.0}, {"city": "Oslo", "a": 1e39}, {"city": "Bern", "a": 2.0}]
    for form in ("dicts", "csv", "table", "jsonl"):
        source = FORMS[form](rows, pa.Table.from_pylist(rows))
        reader = read(source, names=True, on_error="skip")
        assert sum(map(len, reader)) == 2
        assert {reader.names[k] for k in reader.names} == {"a", "city^Rome", "city^Bern"}


def test_real_columns_are_those_pandas_reads():
    path = DATA / "bike_sharing.csv.gz"
    if not path.is_file():
        pytest.skip("needs bike_sharing.csv.gz, in shared/data next to the checkout")
    frame = pd.read_csv(path)
    mine = concatenate(read(path, label="cnt", ignore=["casual", "registered", "instant"]))
    assert np.array_equal(mine.labels, frame["cnt"])
    matrix = mine.matrix(1 << 22)
    for name in ("hr", "temp", "windspeed"):
        assert np.array_equal(matrix[:, [slot(name)]].toarray().ravel(), frame[name].astype(np.float32))
    assert matrix[:, [slot("01/01/11", "dteday")]].sum() == (frame["dteday"] == "01/01/11").sum()
