"""CSV with any separator, without a header, with marks of missing values and decimal commas."""

import csv
import io
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forel
from forel.data import ReadOptions, read
from forel.data.parsers.csv_header import separator_of
from forel.data.sources.files import expand_paths, natural_key
from reference_parsers import examples, same

BITS = 12
PLAIN = b"y,n,city,code\n1,2.5,Rome,7\n0,-3,Oslo,8\n1,,Rome,7\n0,4e2,Bern,\n"


def rows(text, **options):
    return list(read(io.BytesIO(text), "csv", **{"bits": BITS, "label": "y", **options}))


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("given", [False, True])
def test_any_separator_gives_the_same_rows(separator, given):
    text = PLAIN.replace(b",", separator.encode())
    options = {"separator": separator} if given else {}
    same(examples(rows(text, **options)), examples(rows(PLAIN)))


def test_a_semicolon_is_recognized_without_a_suffix():
    text = PLAIN.replace(b",", b";")
    same(examples(read(io.BytesIO(text), bits=BITS, label="y")), examples(rows(PLAIN)))


@pytest.mark.parametrize(
    ("text", "decimal", "expected"),
    [
        (b"a,b\n1,2\n", ".", ","),
        (b"a;b,c\n1,x;2\n", ".", ","),  # commas agree, as before
        (b"a;b, c;d\n1;2;3\n", ".", ";"),  # a comma in one name
        (b'"a, b";c\n1;2\n', ".", ";"),
        (b"1,5;2,5\n", ".", ","),
        (b"1,5;2,5\n", ",", ";"),
        (b"a\n1\n", ".", ","),
        (b"a|b;c|d", ".", "|"),
        (b"", ".", ","),
    ],
)
def test_separator_recognized_in_the_first_lines(text, decimal, expected):
    assert separator_of("csv", ReadOptions(decimal=decimal), text) == expected
    assert separator_of("csv", ReadOptions(separator="~"), text) == "~"
    assert separator_of("tsv", ReadOptions(decimal=decimal), text) == "\t"


def test_columns_without_a_header_are_numbered():
    _, _, body = PLAIN.partition(b"\n")
    numbered = b"c1,c2,c3,c4\n" + body
    expected = rows(numbered, label="c1")
    found = rows(body, label="c1", header=False)
    same(examples(found), examples(expected))
    same(examples(rows(b"\xef\xbb\xbf" + body, label="c1", header=False)), examples(expected))
    assert [line - 1 for block in expected for line in block.lines] == [k for block in found for k in block.lines]
    with pytest.raises(ValueError, match="label: got 'y', expected one of the columns c1, c2, c3, c4"):
        rows(body, header=False)


def test_a_file_without_header_and_label_has_the_other_columns():
    body = PLAIN.partition(b"\n")[2]
    kinds = {"c2": "number", "c3": "category", "c4": "number"}
    unlabelled = b"".join(line[2:] for line in body.splitlines(keepends=True))
    options = {"header": False, "label": "c1", "kinds": kinds}
    whole, part = (rows(text, **options, unlabelled=True) for text in (body, unlabelled))
    for a, b in zip(whole, part, strict=True):
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.values, b.values)
        assert np.isnan(b.labels).all()


def test_marks_of_missing_values_are_empty_cells():
    text = b"y,n,city\n1,-999,unknown\n0,2, unknown \n1,3,Rome\n1,-9999,unknown city\n"
    expected = b"y,n,city\n1,,\n0,2,\n1,3,Rome\n1,-9999,unknown city\n"
    same(examples(rows(text, missing=["unknown", "-999"])), examples(rows(expected)))


@pytest.mark.parametrize("mark", ["?", "NA", "NaN", "null", ""])
def test_usual_marks_are_missing_in_numeric_columns(mark):
    text = f"y,n,m\n1,{mark},1\n0,2,{mark}\n".encode()
    same(examples(rows(text)), examples(rows(b"y,n,m\n1,,1\n0,2,\n")))


def test_decimal_commas():
    text = b'y;n;code;words\n1;2,5;-1,5e3;"a, b"\n0;,25;7;1,2,3\n1;1.5;3,;,\n'
    expected = b'y;n;code;words\n1;2.5;-1.5e3;"a, b"\n0;.25;7;1,2,3\n1;1.5;3.;,\n'
    same(examples(rows(text, decimal=",")), examples(rows(expected, separator=";")))


CELLS = st.text("0123456789,.+-e ab", max_size=6)


@given(st.lists(CELLS, min_size=1, max_size=6))
@settings(max_examples=200)
def test_decimal_commas_are_those_of_cells_with_one_comma_and_digits(cells):
    def converted(cell):
        word = cell.strip()
        numeric = set(word) <= set("0123456789+-eE,") and word.count(",") == 1 and len(word) > 1
        return cell.replace(",", ".") if numeric else cell

    def text(values):
        out = io.StringIO()
        csv.writer(out, delimiter=";", lineterminator="\n").writerows([["y", "n"], *([1, v] for v in values)])
        return out.getvalue().encode()

    mine = rows(text(cells), decimal=",", separator=";", categories=["n"])
    same(examples(mine), examples(rows(text(map(converted, cells)), separator=";", categories=["n"])))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "separator: got ';;', expected one ASCII character"),
        ({"separator": '"'}, "separator: got"),
        ({"decimal": ";"}, "decimal: got ';', expected"),
        ({"missing": [" "]}, "missing: got"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ReadOptions(**options)


def test_files_of_a_pattern_are_read_in_natural_order(tmp_path):
    for k in (10, 2, 1):
        (tmp_path / f"part-{k}.csv").write_bytes(PLAIN)
    found = expand_paths(tmp_path / "*.csv")
    assert [os.path.basename(path) for path in found] == ["part-1.csv", "part-2.csv", "part-10.csv"]
    assert sorted(["b1", "a", "a01", "a1", "1"], key=natural_key) == ["1", "a", "a01", "a1", "b1"]


def test_a_model_stores_the_options_of_its_text(tmp_path, interpreted):
    body = b"1;2,5;Rome\n0;-3;unknown\n" * 20
    options = {"header": False, "decimal": ",", "missing": ["unknown"], "separator": ";"}
    trained = forel.train(io.BytesIO(body), forel.Settings(alpha=1.0), format="csv", label="c1", bits=6, **options)
    path = tmp_path / "m.forel"
    trained.save(path)
    stored = forel.load(path)
    assert {name: getattr(stored.read_options, name) for name in options} == {**options, "missing": ("unknown",)}
    (tmp_path / "new.csv").write_bytes(body)
    (tmp_path / "plain.csv").write_bytes(b"c1,c2,c3\n" + b"1,2.5,Rome\n0,-3,\n" * 20)
    usual = {"header": True, "decimal": ".", "separator": ","}
    found = forel.predict(stored, tmp_path / "new.csv")
    np.testing.assert_array_equal(found, forel.predict(stored, tmp_path / "plain.csv", **usual))


def count(text):
    return sum(map(len, read(io.BytesIO(text.encode()), format="csv", unlabelled=True)))


@pytest.mark.parametrize("row", [",,", '"",,', " , ,", '"","",""'])
def test_a_row_of_empty_cells_is_a_row_and_has_a_prediction(row):
    assert count(f"a,b,c\n1,2,u\n{row}\n\n3,4,v\n") == 3


def test_an_empty_line_of_a_column_is_no_row():
    assert (count("a\n1\n\n3\n"), count('a\n1\n""\n3\n')) == (2, 3)
