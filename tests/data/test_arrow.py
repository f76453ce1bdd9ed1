"""Arrow arrays, dictionaries and Parquet files: which buffers are read, and which are refused."""

import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forel.data import Malformed, read, slot
from forel.data.parsers.columns import Columns
from reference_parsers import examples, same
from tests.data.test_tables import BITS, reference_rows


@given(
    st.lists(st.binary(max_size=20), min_size=1, max_size=8), st.binary(max_size=9), st.sampled_from(["int32", "int64"])
)
def test_columns_are_hashed_as_names_are_and_no_byte_beyond_them_matters(words, beyond, wide):
    from forel.data.features.hashing import hash_name, hash_spans

    whole = np.frombuffer(b"".join(words) + beyond, np.uint8)
    ends = np.cumsum([0, *map(len, words)]).astype(wide)
    text = whole[: ends[-1]]
    assert hash_spans(text, ends[:-1], ends[1:], hash_name(b"city")).tolist() == [
        hash_name(w, hash_name(b"city")) for w in words
    ]


def test_the_first_value_of_a_column_that_is_empty_at_first_decides_its_kind():
    text = b"y,a,b,c\n1,,,\n0, ,NA,\n1,5,6,Rome\n0,6,7,8\n"
    rows = [row for *_, row in examples(read(io.BytesIO(text), "csv", label="y"))]
    a, b, rome, eight = slot("a"), slot("b"), slot("Rome", "c"), slot("8", "c")
    assert rows == [{}, {}, {a: 5, b: 6, rome: 1}, {a: 6, b: 7, eight: 1}]
    with pytest.raises(ValueError, match=r"line 6, column 'a': got 'x', expected a number"):
        list(read(io.BytesIO(text + b"1,x,2,\n"), "csv", label="y"))


@given(
    st.lists(st.none() | st.integers(0, 100), max_size=40),
    st.integers(0, 20),
    st.sampled_from([pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.null()]),
)
def test_arrays_are_read_where_they_lie(values, start, kind):
    from forel.data.parsers.arrow_batches import plain, valid

    array = pa.array([None] * len(values) if kind == pa.null() else values, kind)[start:]
    there = array.is_valid().to_numpy(zero_copy_only=False)
    assert valid(array).tolist() == there.tolist()
    found = plain(array)
    assert (found is None) == (kind == pa.null())
    if found is not None:
        assert found[there].tolist() == [value for value in array.to_pylist() if value is not None]


def test_reading_a_table_imports_neither_pandas_nor_the_documentation_of_arrow(tmp_path):
    pq.write_table(pa.table({"y": [1, 0], "n": [0.5, None], "city": ["Rome", "Oslo"]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("y,n,city\n1,0.5,Rome\n0,,Oslo\n")
    code = (
        "import sys; from forel.data import read;"
        "print([len(b.indices) for f in sys.argv[1:] for b in read(f, label='y')],"
        "sorted({'pandas', 'pyarrow.compute'} & set(sys.modules)))"
    )
    line = [sys.executable, "-c", code, str(tmp_path / "t.parquet"), str(tmp_path / "t.csv")]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip() == "[3, 3] []"


@pytest.mark.parametrize("groups", [1 << 20, 3000])
@pytest.mark.parametrize("largest", [1 << 10, 1 << 30])
def test_dictionary_encoded_words_of_parquet_files_are_those_of_the_rows(groups, largest, tmp_path, monkeypatch):
    from forel.data.parsers import arrow_batches

    # Batches of 4096 rows; ids are more than the writer's dictionary takes, so that later ones are not numbered.
    monkeypatch.setattr(arrow_batches, "CELLS", 1)
    monkeypatch.setattr(arrow_batches, "LARGEST", largest)
    rng = np.random.default_rng(0)
    few = [[None, "", "Rome", "Oslo", "a longer name"][k] for k in rng.integers(0, 5, 9000)]
    table = pa.table({"few": few, "none": pa.nulls(9000, pa.string()), "id": [f"id{k}" for k in range(9000)]})
    pq.write_table(table, tmp_path / "t.parquet", dictionary_pagesize_limit=1 << 14, row_group_size=groups)
    with (tmp_path / "t.parquet").open("rb") as stream:
        kinds = [str(batch.schema.field("id").type) for batch in arrow_batches.dictionary_batches(stream, Columns())]
    grown = largest == 1 << 10 and groups > 4096
    assert all(("dictionary" in kind) != grown for kind in kinds)
    for more in ({}, {"interactions": ["few*id"]}):
        wanted = read(table, bits=BITS, names=True, **more)
        found = read(tmp_path / "t.parquet", bits=BITS, names=True, **more)
        same(examples(found), examples(wanted))
        assert {k: found.names[k] for k in found.names} == {k: wanted.names[k] for k in wanted.names}


def coded(words, codes, kind="int32"):
    """A batch with a dictionary-encoded column with arbitrary codes."""
    column = pa.DictionaryArray.from_arrays(pa.array(codes, getattr(pa, kind)()), pa.array(words), safe=False)
    return pa.record_batch({"city": column})


@pytest.mark.parametrize("kind", ["int8", "int32", "uint64"])
def test_dictionaries_may_change_from_batch_to_batch(kind):
    batches = [coded(["Rome", "Oslo"], [0, 1, None], kind), coded(["Rome", "Oslo"], [1, 1, 0], kind),
               coded(["Oslo", "", "Rome"], [0, 1, 2], kind)]  # fmt: skip
    rows = [{"city": city} for batch in batches for city in batch["city"].to_pylist()]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    same(examples(read(reader, bits=BITS)), reference_rows([{k: v for k, v in row.items() if v} for row in rows]))


@pytest.mark.parametrize("codes", [[0, 2], [-1, 0]])
def test_a_word_that_no_dictionary_has_is_refused_before_it_is_looked_up(codes):
    good, bad = coded(["Rome", "Oslo"], [0, 1]), coded(["Rome", "Oslo"], codes)
    reader = pa.RecordBatchReader.from_batches(good.schema, [good, bad])
    with pytest.raises(Malformed, match="not in its dictionary"):
        list(read(reader, bits=BITS))


def test_columns_of_parquet_that_are_not_used_are_not_read(tmp_path):
    table = pa.table({"y": [1, 0], "a": ["x", "y"], "a.b": ["p", "q"], "deep": [{"k": 1}, {"k": 2}], "n": [0.5, 2.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    some = {"label": "y", "ignore": ["a.b", "deep"], "log": ["n"], "bits": BITS}
    kept = {"label": "y", "keep": ["a", "n"], "log": ["n"], "bits": BITS}
    plain = table.select(["y", "a", "n"])
    expected = examples(read(plain, label="y", log=["n"], bits=BITS))
    for options in (some, kept):
        same(examples(read(tmp_path / "t.parquet", **options)), expected)
    with pytest.raises(ValueError, match=r"one of the columns y, a, a\.b, deep, n"):
        list(read(tmp_path / "t.parquet", label="z"))
    with pytest.raises(ValueError, match=r"one of the columns y, a, a\.b, deep, n"):
        list(read(tmp_path / "t.parquet", label="y", ignore=["b"]))


def test_an_open_parquet_file_is_read_though_another_has_its_name_by_now(tmp_path):
    for name, city in (("t", "Rome"), ("other", "Oslo")):
        pq.write_table(pa.table({"city": [city] * 3}), tmp_path / f"{name}.parquet")
    with (tmp_path / "t.parquet").open("rb") as stream:
        (tmp_path / "other.parquet").replace(tmp_path / "t.parquet")
        same(examples(read(stream, bits=BITS)), reference_rows([{"city": "Rome"}] * 3))
