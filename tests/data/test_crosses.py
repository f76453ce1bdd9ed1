"""Crosses against a reference implementation, in every format; and their names, limits and refusals."""

import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_parsers
from forel.data import Malformed, concatenate, cross_slot, read, slot
from forel.data.features.crosses import MOST, parse_crosses
from forel.data.pipeline import ordered_blocks
from forel.learner.settings import Settings
from forel.training.model import evaluate, load
from forel.training.train import train
from reference_parsers import VW_LINES, examples

BITS = 9
TERM = st.one_of(
    st.lists(st.sampled_from("ab: c"), min_size=2, max_size=3).map("".join),
    st.lists(st.sampled_from(["a", "apple", "b", "é", ":"]), min_size=2, max_size=3).map("*".join),
    st.lists(st.sampled_from(["apple", "", "b"]), min_size=2, max_size=3).map(tuple),
)


def close(mine, wanted):
    """Compare with the reference parser: sums of one slot may be made in another order."""
    assert len(mine) == len(wanted)
    for a, b in zip(mine, wanted, strict=True):
        assert a[:3] == b[:3]
        assert a[3].keys() == b[3].keys()
        size = max([abs(v) for v in b[3].values()], default=0)
        assert np.allclose(list(a[3].values()), [b[3][k] for k in a[3]], rtol=1e-5, atol=1e-6 * size)


@pytest.mark.filterwarnings("ignore:interactions")  # of namespaces that no row has
@given(st.lists(VW_LINES, max_size=4), st.lists(TERM, min_size=1, max_size=3), st.sampled_from([1, 40, 1 << 20]))
@settings(max_examples=200)
def test_text_is_crossed_as_by_the_reference(lines, terms, block_bytes):
    text = "\n".join(lines).encode()
    reader = read(
        io.BytesIO(text), "vw", bits=20, interactions=terms, on_error="skip", block_bytes=block_bytes, tags=True
    )  # fmt: skip
    mine = list(reader)
    wanted, bad = reference_parsers.read(text, lambda line, bits: reference_parsers.vw_line(line, bits, terms), 20)
    close(examples(mine), wanted)
    assert reader.problems.count == len(bad)
    assert [int(re.search(r"line (\d+)", m)[1]) for m in reader.problems.messages] == bad[:5]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "city": st.none() | st.sampled_from(["Rome", "Oslo"]),
            "price": st.none() | st.sampled_from([0.5, -2.0, 3e20]),
            "crew": st.none() | st.sampled_from([1.0, 4.0]),
            "y": st.just(1.0),
        }
    ),
    min_size=1,
    max_size=5,
)
SCHEMA = pa.schema([("city", pa.string()), ("price", pa.float64()), ("crew", pa.float64()), ("y", pa.float64())])
COLUMN_TERM = st.one_of(
    st.lists(st.sampled_from("cp:"), min_size=2, max_size=3).map("".join),
    st.lists(st.sampled_from(["city", "price", ":"]), min_size=2, max_size=3).map("*".join),
)


def table_reference(rows, terms, bits):
    for row in rows:
        entries = []
        for key, value in row.items():
            if value is not None and key != "y":
                word = isinstance(value, str)
                space, name = (key.encode(), value.encode()) if word else (b"", key.encode())
                entries.append(
                    (key.encode(), reference_parsers.full_hash(space, name), np.float32(1 if word else value))
                )
        found = {}
        try:
            for _, h, value in entries + reference_parsers.crossed(entries, terms):
                reference_parsers.put(found, h & ((1 << bits) - 1), value)
        except reference_parsers.Wrong:
            continue
        yield np.float32(1), np.float32(1), b"", found


@pytest.mark.filterwarnings("ignore:interactions")  # of namespaces that no row has
@given(ROWS, st.lists(COLUMN_TERM, min_size=1, max_size=2))
@settings(max_examples=60)
def test_tables_and_dicts_are_crossed_as_by_the_reference(rows, terms):
    wanted = list(table_reference(rows, terms, 20))
    text = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    for source, form in ((rows, "auto"), (pa.Table.from_pylist(rows, SCHEMA), "auto"), (io.BytesIO(text), "jsonl")):
        for block_bytes in (1, 1 << 20):
            if isinstance(source, io.BytesIO):
                source.seek(0)
            reader = read(
                source, form, bits=20, label="y", interactions=terms, on_error="skip", block_bytes=block_bytes
            )
            close(examples(reader), wanted)
            assert reader.problems.count == len(rows) - len(wanted)


def test_threads_and_blocks_change_nothing_and_names_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        "{} |a x{} y{} |b z{}:{:.2f} | w".format(k % 2, *rng.integers(0, 30, 3), rng.random()) for k in range(3000)
    ]
    path = tmp_path / "a.vw"
    path.write_text("\n".join(lines))
    found, named = [], []
    for threads, size, names in ((0, 1 << 20, False), (3, 500, False), (2, 7000, True), (1, 100, True)):
        reader = read(path, bits=BITS, interactions=["ab", "aab", "::"], block_bytes=size, names=names)
        found.append(concatenate(ordered_blocks(reader, threads)))
        if names:
            named.append(([reader.names[k] for k in reader.names], reader.names.collisions))
    for other in found[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(found[0].rows, other.rows, strict=True))
    assert named[0] == named[1]
    assert set(np.unique(found[0].indices)) == set(reader.names)


def test_names_of_crosses_are_those_of_their_parts():
    row = {"city": "Rome", "tags": ["u", "v"], "price": 3.0}
    text = b"1 |city Rome |tags u v |price price:3"
    for source in ([row], io.BytesIO(text)):
        reader = read(source, interactions=["city*tags", "price*tags*city"], names=True)
        (block,) = reader
        price = ("price", "" if source == [row] else "price")
        shown = "price" if source == [row] else "price^price"
        for word in ("u", "v"):
            pair = ("Rome", "city"), (word, "tags")
            assert reader.names[cross_slot(*pair)] == f"city^Rome*tags^{word}"
            assert reader.names[cross_slot(*pair, price)] == f"{shown}*tags^{word}*city^Rome"
            assert block.matrix(1 << 22)[0, cross_slot(*pair, price)] == 3
        assert len(reader.names) == 8
    table = read(pa.table({"city": ["Rome", None], "price": [3.0, 2.0]}), interactions=["city*price"], names=True)
    list(table)
    assert sorted(table.names[k] for k in table.names) == ["city^Rome", "city^Rome*price", "price"]


def test_rows_that_are_left_out_leave_no_names():
    text = b"1 |a x:3e30 |b y:3e30\n1 |a u |b v\n"
    reader = read(io.BytesIO(text), "vw", interactions=["ab"], names=True, on_error="skip")
    assert len(concatenate(reader)) == 1
    assert sorted(reader.names[k] for k in reader.names) == ["a^u", "a^u*b^v", "b^v"]
    assert reader.problems.messages == [
        "stream, line 1: got crossed values that are too large, expected finite products and sums"
    ]


def test_too_many_crosses_are_a_sentence_and_memory_is_bounded():
    wide = b"1 |a " + b" ".join(b"f%d" % k for k in range(10_000))
    text = b"\n".join([b"1 |a x", b"2 |a u:v", wide, b"1 |a y"])
    for terms, size in ((["aa"], 50_015_000), (["aaa"], 166_716_680_000)):
        reader = read(io.BytesIO(text), "vw", interactions=terms, on_error="skip")
        assert len(concatenate(reader)) == 2
        assert reader.problems.messages == [
            "stream, line 2, column 8: got 'v', expected a number",
            f"stream, line 3: got {size} features with crosses, expected at most {MOST} in an example",
        ]
    with pytest.raises(Malformed, match="line 2, column 8"):
        list(read(io.BytesIO(text), "vw", interactions=["aa"]))
    # Many wide rows come in blocks of their own.
    narrow = b"1 |a " + b" ".join(b"f%d" % k for k in range(1000)) + b"\n"
    sizes = [block.indices.size for block in read(io.BytesIO(narrow * 60), "vw", interactions=["aa"])]
    assert len(sizes) > 4
    assert max(sizes) < 16 * MOST


@pytest.mark.parametrize("wrong", ["a", "abcd", "city", "city*", "*", 3, ("a",), ("a", 1), "a*b*c*d", ""])
def test_what_no_cross_is_is_refused(wrong):
    with pytest.raises(ValueError, match="interactions: got"):
        parse_crosses([wrong])


def test_crosses_are_refused_where_they_cannot_be():
    with pytest.raises(ValueError, match="none for svmlight, which has no namespaces"):
        list(read(io.BytesIO(b"1 2:3"), "svmlight", interactions=["ab"]))
    for name in ("nosuch", "y"):
        with pytest.raises(ValueError, match=f"interactions: got '{name}', expected one of the features a, b"):
            list(read(pa.table({"a": [1], "b": [2], "y": [1]}), label="y", interactions=[f"a*{name}"]))


def test_a_model_stores_its_crosses(tmp_path):
    rows = [{"a": f"x{k % 2}", "b": f"z{k // 2 % 2}", "y": float((k % 2) ^ (k // 2 % 2))} for k in range(400)]
    plain = train(rows, Settings(alpha=1.0), label="y", bits=12)
    trained = train(rows, Settings(alpha=1.0), label="y", bits=12, interactions=(("a", "b"),))
    assert plain.report.loss > 0.6
    assert trained.report.loss < 0.1
    trained.save(tmp_path / "m.forel")
    assert evaluate(load(tmp_path / "m.forel"), rows).report.loss < 0.05
    assert trained.learner.weights[cross_slot(("x1", "a"), ("z0", "b"), bits=12)] > 1
    assert trained.learner.weights[slot("x1", "a", bits=12)] < 1
