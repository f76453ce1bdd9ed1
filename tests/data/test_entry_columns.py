"""The columns of entries: the slots of their names, the same in all formats."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forel.data import concatenate, read, slot
from forel.data.block import take_rows
from forel.training.passes import Passes

BITS = 18
ROWS = [
    {"y": 1, "age": 31, "city": "Rome", "when": "2024-01-31", "note": "free entry"},
    {"y": 0, "age": None, "city": "Oslo", "when": "2024-02-01 13:45", "note": "now"},
    {"y": 1, "age": 17.5, "city": None, "when": None, "note": "free now"},
]
OPTIONS = {"label": "y", "date": ["when"], "text": ["note"], "bits": BITS, "columns": True}


def table():
    return pa.Table.from_pylist(ROWS)


def sources():
    frame = pd.DataFrame(ROWS)
    lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    packed = io.BytesIO()
    pq.write_table(table(), packed)
    return {
        "csv": frame.to_csv(index=False).encode(), "jsonl": lines, "parquet": packed.getvalue(), "dicts": ROWS,
        "frame": frame, "table": table(),
    }  # fmt: skip


def expected(row):
    """Return the entries of a row with their columns, found by the names alone."""
    found = {}
    if row["age"] is not None:
        found[slot("age", bits=BITS)] = slot("age", bits=BITS)
    if row["city"] is not None:
        found[slot(row["city"], "city", BITS)] = slot("city", bits=BITS)
    if row["when"] is not None:
        day, _, time = row["when"].partition(" ")
        parts = {"2024-01-31": ["weekday=wed", "month=1"], "2024-02-01": ["weekday=thu", "month=2"]}[day]
        found |= {
            slot(part, "when", BITS): slot("when", bits=BITS) for part in [*parts, *(["hour=13"] if time else [])]
        }
        found[slot("when", bits=BITS)] = slot("when", bits=BITS)
    return found | {slot(word, "note", BITS): -1 for word in row["note"].split()}


@pytest.mark.parametrize("form", sources())
def test_columns_are_those_of_the_names_in_every_format(form):
    source = sources()[form]
    blocks = list(read(io.BytesIO(source) if isinstance(source, bytes) else source,
                       form if isinstance(source, bytes) else None, **OPTIONS))  # fmt: skip
    block = concatenate(blocks)
    assert block.columns.dtype == np.int32
    for whole in (block, concatenate([take_rows(block, np.array([2, 0])), take_rows(block, np.array([1]))])):
        order = [0, 1, 2] if whole is block else [2, 0, 1]
        for k, row in enumerate(order):
            part = slice(*whole.indptr[k : k + 2])
            assert dict(zip(whole.indices[part].tolist(), whole.columns[part].tolist(), strict=True)) == expected(
                ROWS[row]
            )


def test_plain_json_lines_have_columns_with_namespaces_and_lists():
    row = {"age": 31, "city": "Rome", "user": {"plan": "pro", "visits": 3, "device": {"os": "mac"}}, "tags": ["a", "b"]}
    texts = {"jsonl": io.BytesIO(json.dumps(row).encode()), None: [row]}
    for form, source in texts.items():
        (block,) = read(source, form, bits=BITS, columns=True)
        found = dict(zip(block.indices.tolist(), block.columns.tolist(), strict=True))
        user, plan, os, tags = (slot(name, bits=BITS) for name in ("user", "user^plan", "user^device^os", "tags"))
        assert found == {
            slot("age", bits=BITS): slot("age", bits=BITS), slot("Rome", "city", BITS): slot("city", bits=BITS),
            slot("pro", "user^plan", BITS): plan, slot("visits", "user", BITS): user,
            slot("mac", "user^device^os", BITS): os,
            slot("a", "tags", BITS): tags, slot("b", "tags", BITS): tags,
        }  # fmt: skip


def test_equal_slots_keep_the_first_column():
    rows = [{f"c{k}": float(k), f"w{k}": "x"} for k in range(40)] + [{f"c{k}": 1.0 for k in range(40)}]
    frame = pd.DataFrame([{f"c{k}": 1.0 + k for k in range(60)}] * 3)
    for source in (rows, io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows)), frame):
        form = "jsonl" if isinstance(source, io.BytesIO) else None
        for block in read(source, form, bits=4, columns=True):
            assert block.columns.size == block.indices.size
            for start, stop in zip(block.indptr[:-1], block.indptr[1:], strict=True):
                assert len({*block.indices[start:stop].tolist()}) == stop - start
            numbers = block.columns[block.values != 1] == block.indices[block.values != 1]
            assert numbers.all()


def test_other_sources_have_no_columns_and_the_constant_has_none():
    assert next(iter(read(io.BytesIO(b"1 |a b\n"), "vw", columns=True))).columns is None
    assert next(iter(read(ROWS, label="y", interactions=["age*city"], columns=True))).columns is None
    assert next(iter(read(ROWS, label="y"))).columns is None
    (block,) = read([{"age": 3}], bits=BITS, columns=True, constant=True)
    assert block.columns.tolist() == [slot("age", bits=BITS), -1]


@pytest.mark.parametrize("shuffle", [None, 1])
def test_later_passes_have_the_same_columns(tmp_path, shuffle):
    path = tmp_path / "rows.csv"
    path.write_bytes(sources()["csv"])
    options = read(str(path), **OPTIONS).options
    with Passes(str(path), options, number=2, shuffle=shuffle) as passes:
        for number in (1, 2):
            block = concatenate(list(passes.blocks(number)))
            for k, row in enumerate(block.numbers.tolist()):
                part = slice(*block.indptr[k : k + 2])
                found = zip(block.indices[part].tolist(), block.columns[part].tolist(), strict=True)
                assert dict(found) == expected(ROWS[row])
