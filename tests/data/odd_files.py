"""A corpus of odd raw files, and what is expected of each: how many rows are read, or which sentence refuses it.

A file is read by ``forel.read(path, label=label, **options)``. A refusal names the file, the line where there is one,
and what to do.
"""

import gzip
import io
import json
import pathlib
import tarfile
import zipfile
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ODD_FILES", "OddFile", "write_odd_files"]

WORDS = [f"{city},{k % 7}.5,{k % 2}" for k, city in zip(range(40), ["Rome", "Oslo", "Bern", "Lima"] * 10, strict=True)]
PLAIN = "\n".join(["city,size,y", *WORDS]) + "\n"
LINES = "".join(f"{2 * (k % 2) - 1} |a w{k % 5} |b x:{k % 3}.5\n" for k in range(40))


@dataclass(frozen=True)
class OddFile:
    """A file, and what is expected when it is read.

    Parameters
    ----------
    name : of the file
    content : its bytes
    label : the column of labels; None for formats that have labels of their own
    rows : number of rows that are read; None if the file is refused
    says : patterns that the refusal or the warning has, in any order
    options : options that a person would give from the start, such as ``header=False``
    remedy : options with which a refused file is read; None if no option helps
    """

    name: str
    content: bytes
    label: str | None = "y"
    rows: int | None = 40
    says: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    remedy: dict[str, Any] | None = None


def _with_row(row: str, place: int = 20, text: str = PLAIN) -> bytes:
    lines = text.splitlines()
    return ("\n".join([*lines[:place], row, *lines[place:]]) + "\n").encode()


def _column(cells: list[str], header: str = "city,size,y") -> bytes:
    """Return rows whose second cells are given, repeated."""
    rows = [f"Rome,{cells[k % len(cells)]},{k // 2 % 2}" for k in range(40)]
    return "\n".join([header, *rows, ""]).encode()


def _labels(labels: list[str]) -> bytes:
    return "\n".join(["x,y", *(f"{k % 3},{labels[k % len(labels)]}" for k in range(40)), ""]).encode()


def _tar_gz() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo("data.csv")
        entry.size = len(PLAIN)
        archive.addfile(entry, io.BytesIO(PLAIN.encode()))
    return file.getvalue()


def _zip(*more: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("data.csv", *more):
            archive.writestr(name, PLAIN)
    return file.getvalue()


def _json_rows(**changed: Any) -> list[dict[str, Any]]:
    return [{"city": f"c{k % 4}", "size": k % 7 + 0.5, "y": k % 2, **changed} for k in range(40)]


def _json_lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


SEMICOLONS = "\n".join(["city;size;y", *(f"Rome;{k},5;{k % 2}" for k in range(40)), ""])
LATIN = PLAIN.replace("Bern", "Zürich").encode("latin-1")
QUOTED = {"says": ("line 21", "quote")}

ODD_FILES = (
    # Encodings and line ends
    OddFile("bom.csv", b"\xef\xbb\xbf" + PLAIN.encode()),
    OddFile("bom.vw", b"\xef\xbb\xbf" + LINES.encode(), None),
    OddFile("bom.jsonl", b"\xef\xbb\xbf" + _json_lines(_json_rows())),
    OddFile("utf16.csv", PLAIN.encode("utf-16")),
    OddFile("utf16_without_bom.csv", PLAIN.encode("utf-16-le"), rows=None, says=("NUL", "encoding"),
            remedy={"encoding": "utf-16-le"}),
    OddFile("latin1.csv", LATIN, says=("encoding", "line 4")),
    OddFile("latin1_given.csv", LATIN, options={"encoding": "latin-1"}),
    OddFile("latin1_header.csv", LATIN.replace(b"size", b"gr\xf6\xdfe"), rows=None,
            says=("line 1", "encoding"), remedy={"encoding": "latin-1"}),
    OddFile("latin1.jsonl", b"".join(json.dumps(row, ensure_ascii=False).encode("latin-1") + b"\n"
            for row in _json_rows(city="Zürich")), rows=None, says=("line 1", "encoding"),
            remedy={"encoding": "latin-1"}),
    OddFile("crlf.csv", PLAIN.replace("\n", "\r\n").encode()),
    OddFile("cr.csv", PLAIN.replace("\n", "\r").encode()),
    OddFile("crlf.vw", LINES.replace("\n", "\r\n").encode(), None),
    OddFile("crlf.jsonl", _json_lines(_json_rows()).replace(b"\n", b"\r\n")),
    OddFile("stray_return.csv", _with_row("Ro\rme,2.5,1"), rows=None, says=("line 21", "carriage return")),
    OddFile("nul.csv", _with_row("Ro\0me,2.5,1"), rows=41),
    OddFile("nul_number.csv", _with_row("Rome,2\x005,1"), rows=None, says=("line 21", "size", r"\\x00")),
    # Quotes and ragged rows
    OddFile("stray_quote.csv", _with_row('12" pipe,2.5,1'), rows=41),
    OddFile("open_quote.csv", _with_row('"Rome,2.5,1'), rows=None, says=QUOTED["says"]),
    OddFile("quoted_line_end.csv", _with_row('"Rome\nItaly",2.5,1'), rows=41),
    OddFile("ragged_short.csv", _with_row("Rome,2.5"), rows=None, says=("line 21", "2 columns", "3", "on_error")),
    OddFile("ragged_long.csv", _with_row("Rome,2.5,1,7"), rows=None, says=("line 21", "4 columns", "3", "on_error")),
    OddFile("trailing_separator.csv", PLAIN.replace("\n", ",\n").encode()),
    OddFile("footer.csv", PLAIN.encode() + b"Total: 40 rows\n", rows=None, says=("line 42", "1 column", "on_error"),
            remedy={"on_error": "skip"}),
    OddFile("title_above.csv", b"Sales report 2024\n" + PLAIN.encode(), rows=None, says=("Sales report", "one column")),
    OddFile("comment_above.csv", b"# exported\n" + PLAIN.encode(), rows=None, says=("# exported", "one column")),
    # Separators and headers
    OddFile("semicolons.csv", SEMICOLONS.encode(), says=("size", "decimal")),
    OddFile("semicolons_given.csv", SEMICOLONS.encode(), options={"decimal": ","}),
    OddFile("tabs.csv", PLAIN.replace(",", "\t").encode()),
    OddFile("pipes.csv", PLAIN.replace(",", "|").encode()),
    OddFile("spaces_after_commas.csv", PLAIN.replace(",", ", ").encode()),
    OddFile("no_header.csv", PLAIN.partition("\n")[2].encode(), rows=None, says=("label", "header")),
    OddFile("no_header_given.csv", PLAIN.partition("\n")[2].encode(), "c3", options={"header": False}),
    OddFile("repeated_names.csv", PLAIN.replace("city,size", "a,a").encode()),
    OddFile("repeated_header.csv", _with_row("city,size,y"), rows=None,
            says=("line 21", "header", "on_error")),
    OddFile("empty_names.csv", PLAIN.replace("city,size", ",").encode()),
    OddFile("label_in_capitals.csv", PLAIN.replace("size,y", "size,Y").encode(), rows=None,
            says=("label", "'Y'")),
    OddFile("header_only.csv", b"city,size,y\n", rows=0),
    OddFile("empty.csv", b"", rows=None, says=("empty file",)),
    OddFile("blank_lines.csv", PLAIN.replace("\n", "\n\n").encode()),
    OddFile("without_suffix", PLAIN.encode()),
    # Values
    OddFile("empty_column.csv", _column([""])),
    OddFile("huge_integers.csv", _column(["123456789012345678901234567890", "7"])),
    OddFile("beyond_float32.csv", _column(["1e39", "7"]), rows=None, says=("line 2", "size", "float32")),
    OddFile("infinity.csv", _column(["7", "inf"]), rows=None, says=("line 3", "size", "missing")),
    OddFile("marks.csv", _column(["7", "-"]), rows=None, says=("line 3", "size", "missing"),
            remedy={"missing": ["-"]}),
    OddFile("not_available.csv", _column(["7", "NA", "", "null"])),
    OddFile("currency.csv", _column(["$2.39", "$7.00"])),
    OddFile("percent.csv", _column(["12%", "7.5 %"])),
    OddFile("thousands.csv", _column(['"1,234"', '"12,345"'])),
    OddFile("thousands_among_numbers.csv", _column(["7", '"1,234"'])),
    OddFile("currency_among_numbers.csv", _column(["7", "$8"]), rows=None, says=("line 3", "size", "same sign"),
            remedy={"categories": ["size"]}),
    OddFile("currencies.csv", _column(["$7", "€8"]), rows=None, says=("line 3", "size", "same sign"),
            remedy={"categories": ["size"]}),
    OddFile("dates.csv", _column(["31/01/2024", "01/02/2024"])),
    OddFile("mixed_types.csv", _column(["7", "x7"]), rows=None, says=("line 3", "size", "categories"),
            remedy={"categories": ["size"]}),
    # Labels
    OddFile("yes_no.csv", _labels(["yes", "no"])),
    OddFile("yes_no_spellings.csv", _labels(["yes", "No", "YES", "no "])),
    OddFile("misspelled_label.csv", _labels(["yes", "no"]) + b"7,no\n" * 4000 + b"7,nno\n", rows=None,
            says=("line 4042", "'nno'", "expected 'no' or 'yes'", "misspelled")),
    OddFile("one_two.csv", _labels(["1", "2"])),
    OddFile("true_false.csv", _labels(["True", "False"])),
    OddFile("mixed_labels.csv", _labels(["1", "0", "unknown"]), rows=None, says=("line 4", "'unknown'", "on_error"),
            remedy={"on_error": "skip"}),
    OddFile("missing_labels.csv", _labels(["1", "0", ""])),
    OddFile("currency_labels.csv", _labels(["$2.39", "$7.10", "$8.00"])),
    OddFile("large_labels.csv", _labels(["10000009.6", "10000000.4"])),
    OddFile("one_class.csv", _labels(["maybe"]), rows=None, says=("label", "'maybe'")),
    # JSON
    OddFile("list_of_objects.json", json.dumps(_json_rows()).encode(), rows=None, says=("array of JSON", "jq")),
    OddFile("list_of_objects_indented.json", json.dumps(_json_rows(), indent=2).encode(), rows=None,
            says=("array of JSON", "jq")),
    OddFile("list_of_lists.json", json.dumps([[1, 2], [3, 4]]).encode(), rows=None, says=("array of JSON",)),
    OddFile("indented.json", json.dumps(_json_rows()[0], indent=2).encode(), rows=None,
            says=("one object in a line", "jq")),
    OddFile("lists_in_lines.jsonl", b"[1, 2]\n[0, 3]\n", rows=None, says=("line 1", "a dict of features")),
    OddFile("trailing_commas.jsonl", _json_lines(_json_rows()).replace(b"}\n", b"},\n"), rows=None,
            says=("line 1", "comma")),
    OddFile("true_false.jsonl", _json_lines([{**row, "y": row["y"] > 0} for row in _json_rows()])),
    OddFile("objects_in_a_list.jsonl", _json_lines(_json_rows(items=[{"id": 1}])), rows=None,
            says=("line 1", "items", "ignore"), remedy={"ignore": ["items"]}),
    OddFile("nan.jsonl", _json_lines([*_json_rows(), {"size": float("nan"), "y": 1}]), rows=None,
            says=("line 41", "size", "null")),
    OddFile("word_among_labels.jsonl", _json_lines([*_json_rows(), {"size": 1, "y": "Not yet rated"}]), rows=None,
            says=("line 41", "Not yet rated", "on_error")),
    # Containers and foreign files
    OddFile("plain.csv.gz", gzip.compress(PLAIN.encode())),
    OddFile("compressed_without_suffix.csv", gzip.compress(PLAIN.encode())),
    OddFile("truncated.csv.gz", gzip.compress(PLAIN.encode())[:-1], rows=None, says=("line 42", "whole file")),
    OddFile("half.csv.gz", gzip.compress(PLAIN.encode() * 50)[:60], rows=None, says=("whole file",)),
    OddFile("archive.tar.gz", _tar_gz(), rows=None, says=("tar archive", "file in it")),
    OddFile("archive.tar", gzip.decompress(_tar_gz()), rows=None, says=("tar archive", "file in it")),
    OddFile("archive.zip", _zip()),
    OddFile("mac.csv.zip", _zip("__MACOSX/._data.csv")),
    OddFile("two.zip", _zip("more.csv"), rows=None, says=("ZIP archive", "file in it")),
    OddFile("truncated.csv.zip", _zip()[:-9], rows=None, says=("ZIP archive",)),
    OddFile("page.csv", b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n", rows=None, says=("HTML",)),
    OddFile("picture.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), rows=None, says=("an image",)),
    # Line formats
    OddFile("no_bar.vw", LINES.encode() + b"1 a b\n", None, rows=None, says=("line 41", r"'\|'")),
    OddFile("labels.vw", LINES.encode(), "y", rows=None, says=("label", "vw")),
    OddFile("three_labels.vw", LINES.replace("-1 |", "2 |").encode() + b"3 |a w\n", None, 41),
    OddFile("some_labels.vw", LINES.encode() + b" |a w\n", None, 41),
    OddFile("three_labels.svm", b"0 1:0.5\n1 3:1\n2 1:1\n" * 10, None, 30),
    OddFile("numbers.svm", b"1 1:0.5 7:2\n0 3:1\n", None, rows=2),
    OddFile("header.svm", b"y features\n1 1:0.5\n", None, rows=None, says=("line 1", "a number")),
)  # fmt: skip


def write_odd_files(folder: pathlib.Path) -> dict[str, OddFile]:
    """Write all files to a folder, and return them by path."""
    found = {}
    for one in ODD_FILES:
        path = folder / one.name
        path.write_bytes(one.content)
        found[str(path)] = one
    return found
