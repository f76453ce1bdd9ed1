"""Files in formats that cannot be read: an error that says what they are, and what to give instead."""

import bz2
import io
import json
import lzma
import pickle
import sqlite3
import sys
import zipfile
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import forel
from forel.data import read
from forel.data.peek import peek

FRAME = pd.DataFrame({"age": range(30), "y": [0, 1] * 15})
CSV = FRAME.to_csv(index=False).encode()


def zipped():
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("rows.csv", CSV)
        archive.writestr("more.csv", CSV)
    return memory.getvalue()


def array():
    memory = io.BytesIO()
    np.save(memory, FRAME.to_numpy())
    return memory.getvalue()


def database(folder):
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("create table rows (age, y)")
    connection.close()
    return (folder / "rows.db").read_bytes()


def model(folder):
    forel.train(FRAME, forel.Settings(alpha=0.5), label="y", bits=8).save(folder / "m")
    return (folder / "m").read_bytes()


UTF_16 = "x,y\n1,0\n2,1\n".encode("utf-16")
RECORDS = FRAME.to_dict("records")
FILES = {
    "a ZIP archive or a spreadsheet": zipped(),
    "a file compressed by bzip2": bz2.compress(CSV),
    "a file compressed by xz": lzma.compress(CSV),
    "an array of numpy": array(),
    "a pickle of Python": pickle.dumps(FRAME),
    "an array of JSON": json.dumps(RECORDS, indent=2).encode(),
    "a database of SQLite": database,
    "a model of forel": model,
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("name", ["rows", "rows.csv"])
def test_the_error_says_what_a_file_is(what, name, tmp_path):
    made = FILES[what]
    path = tmp_path / name
    path.write_bytes(made(tmp_path) if callable(made) else made)
    for reading in (peek, lambda source, **options: list(read(source, **options))):
        with pytest.raises(ValueError, match=f"files: got .*{name}, {what}, expected"):
            reading(str(path), label="y")


@pytest.mark.parametrize(
    "text",
    [
        b"[x],y\n1,0\n2,1\n",
        b"PK,y\n1,0\n",
        b"BZ,y\n1,0\n",
        b"\xef\xbb\xbfx,y\n1,0\n",
        "x,y\n1,0\n2,1\n".encode("utf-16"),
    ],
)
def test_text_that_only_begins_alike_is_read(text):
    assert sum(map(len, read(io.BytesIO(text), label="y"))) == text.count(b"\n") - 1


def test_a_table_that_looks_like_vw_names_the_format():
    text = b"your age|y\n31|1\n40|0\n"
    with pytest.raises(ValueError, match="label: got 'y', expected none for vw, which has no columns; format='csv'"):
        list(read(io.BytesIO(text), label="y"))
    assert (
        sum(map(len, read(io.BytesIO(text), "csv", label="y")))
        == sum(map(len, read(io.BytesIO(text[5:]), label="y")))
        == 2
    )


def archive(text=CSV, **options):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("folder/", b"")
        made.writestr("folder/rows.csv", text, **options)
    return memory.getvalue()


@pytest.mark.usefixtures("interpreted")
def test_the_only_file_of_an_archive_is_read_as_if_it_were_plain(tmp_path):
    whole = CSV * 3
    for name, content in (("rows.csv", whole), ("rows.csv.zip", archive(whole)), ("rows", archive(whole))):
        (tmp_path / name).write_bytes(content)
    options = {"label": "y", "on_error": "skip", "block_bytes": 100}
    plain, named, unnamed = (
        list(read(str(tmp_path / name), **options)) for name in ("rows.csv", "rows.csv.zip", "rows")
    )
    assert plain
    for found in (named, unnamed, list(read(io.BytesIO(archive(whole)), "csv", **options))):
        assert [(b.labels.tolist(), b.values.tolist(), b.line) for b in found] == [
            (b.labels.tolist(), b.values.tolist(), b.line) for b in plain
        ]
    assert peek(str(tmp_path / "rows.csv.zip"), label="y").columns[0].name == "age"


@pytest.mark.usefixtures("interpreted")
def test_files_are_opened_while_another_thread_imports_zipfile(tmp_path, monkeypatch):
    path = tmp_path / "a.vw"
    path.write_text("1 |a b\n")
    monkeypatch.setitem(sys.modules, "zipfile", ModuleType("zipfile"))  # as it is until its code has run
    assert [block.labels.tolist() for block in read(path)] == [[1.0]]


def test_a_damaged_archive_is_an_error_with_its_line(tmp_path):
    content = bytearray(archive(compress_type=zipfile.ZIP_STORED))
    content[content.index(b"\n29,1") + 1] = ord("3")  # a wrong checksum, found at the end
    path = tmp_path / "rows.csv.zip"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows.csv.zip, line \d+: got .* expected a whole file; copy it again"):
        list(read(str(path), label="y"))
