"""Odd raw files are read, or refused by a sentence that names the line and what to do."""

import importlib.util
import io
import pathlib
import re
import warnings

import numpy as np
import pytest

from forel.data import Malformed, read
from forel.data.pipeline import ordered_blocks

_spec = importlib.util.spec_from_file_location("odd_files", pathlib.Path(__file__).with_name("odd_files.py"))
odd_files = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(odd_files)


def rows_of(path, one, **options):
    label = {} if one.label is None else {"label": one.label}
    return sum(map(len, ordered_blocks(read(str(path), **one.options, **label, **options), 1)))


@pytest.mark.parametrize("one", odd_files.ODD_FILES, ids=lambda one: one.name)
def test_an_odd_file_is_read_or_refused_with_a_remedy(one, tmp_path):
    path = tmp_path / one.name
    path.write_bytes(one.content)
    said, found = "", None
    with warnings.catch_warnings(record=True, action="always") as warned:
        try:
            found = rows_of(path, one)
        except ValueError as wrong:
            said = str(wrong)
    said = " ".join([said, *(str(each.message) for each in warned)]).replace(str(path), "")
    assert found == one.rows, said
    for pattern in one.says:
        assert re.search(pattern, said), said
    assert one.says or not said
    if one.remedy is not None:
        assert 0 < rows_of(path, one, **one.remedy) <= 41


def test_a_corpus_is_written_to_a_folder(tmp_path):
    written = odd_files.write_odd_files(tmp_path)
    assert len(written) == len(odd_files.ODD_FILES) > 80
    assert all(pathlib.Path(path).read_bytes() == one.content for path, one in written.items())


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16-le", "cp1252", "utf-8-sig"])
def test_text_of_other_encodings_is_that_of_utf_8(encoding, tmp_path):
    text = "".join(f"{k % 2} |ort Zürich{k % 7} größe:{k}.5\n" for k in range(5000))
    wanted = np.concatenate([block.indices for block in read(io.BytesIO(text.encode()), "vw")])
    path = tmp_path / "a.vw"
    path.write_bytes(text.encode(encoding))
    reader = read(str(path), encoding=encoding, block_bytes=10_000)
    assert np.array_equal(np.concatenate([block.indices for block in reader]), wanted)


def test_encodings_that_are_none_are_refused(tmp_path):
    for wrong in ("latin-9000", "rot13", 3):
        with pytest.raises(ValueError, match=r"encoding: got .*, expected that of text, such as 'latin-1'"):
            read(b"", encoding=wrong)
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n\x81,1\n")
    with pytest.raises(
        Malformed, match=r"got the bytes 81, which are not cp1252, expected text of this encoding; give another one"
    ):
        list(read(str(path), encoding="cp1252"))


def test_rows_before_the_damage_of_a_compressed_file_are_read():
    import gzip

    data = gzip.compress(b"".join(b"%d |a x%d\n" % (k % 2, k) for k in range(100_000)))
    for end in (-1, -9, len(data) // 2):
        reader = read(io.BytesIO(data[:end]), "vw", on_error="skip")
        rows = sum(map(len, reader))
        assert rows == 100_000 if end == -1 else 40_000 < rows < 100_000 or end == -9
        assert reader.problems.count == 1
        assert f"line {rows + 1}: got the end of the compressed file is missing" in reader.problems.messages[0]
    twice = gzip.compress(b"1 |a x\n") + gzip.compress(b"0 |a y\n") + bytes(512)
    assert sum(map(len, read(io.BytesIO(twice), "vw"))) == 2


def test_words_among_numbers_as_labels_are_malformed_in_every_format(tmp_path):
    rows = [{"x": 1.0, "t": "a b", "y": 5} for _ in range(1000)]
    rows.insert(500, {"x": 1.0, "t": "a", "y": "Not yet rated"})
    for options in ({}, {"text": ["t"]}):
        with pytest.raises(Malformed, match="line 501, column 'y': got str 'Not yet rated', expected a number"):
            list(read(rows, label="y", **options))
        reader = read(rows, label="y", on_error="skip", **options)
        assert {label for block in reader for label in block.labels.tolist()} == {5.0}


def test_numbers_among_words_as_labels_are_malformed_too():
    rows = [{"x": 1.0, "y": word} for word in ("yes", "no", 1)]
    with pytest.raises(Malformed, match="line 3, column 'y': got str '1', expected 'no' or 'yes'; "):
        list(read(rows, label="y"))
