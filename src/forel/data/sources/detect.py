"""Formats, and their detection by the name of a file or its first bytes; and files that are no data."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forel.validation import refuse

__all__ = ["BINARY", "FORMATS", "LINE_FORMATS", "LineSyntax", "detect_format", "refuse_foreign"]

SVMLIGHT = re.compile(rb"\s*[-+]?[0-9.]+(e[-+]?[0-9]+)?(\s+qid:\d+)?(\s+\d+:[-+0-9.e]+)*\s*(#.*)?", re.IGNORECASE)


@dataclass(frozen=True)
class LineSyntax:
    """A text format with one example per line, whose parser is the module of its name in ``forel.data.compiled``.

    Parameters
    ----------
    suffixes : suffixes of the names of files
    matches : whether a line, the first one of a file, may be of this format
    namespaces : whether features have namespaces, by which they are crossed and sliced, and examples have tags
    """

    suffixes: tuple[str, ...]
    matches: Callable[[bytes], Any]
    namespaces: bool = False


def _is_vw(line: bytes) -> Any:
    # A comment of svmlight may have a bar, and bars in a line without spaces separate columns.
    return re.match(rb"\||.*\s.*\|.*|.*\|.*\s", line.strip()) and not SVMLIGHT.fullmatch(line)


LINE_FORMATS = {
    "vw": LineSyntax(("vw",), _is_vw, namespaces=True),
    "svmlight": LineSyntax(("svm", "svmlight", "libsvm"), SVMLIGHT.fullmatch),
}

# The first bytes of a file, what it is, and how to read it.
FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (rb"PK\x03\x04", "a ZIP archive or a spreadsheet", "the file in it, or one in CSV"),
    (rb"\xd0\xcf\x11\xe0", "a workbook of an old Excel", "one in XLSX or CSV"),
    (rb"BZh[1-9]", "a file compressed by bzip2", "one that is plain, or compressed by gzip or zstd"),
    (rb"\xfd7zXZ\x00", "a file compressed by xz", "one that is plain, or compressed by gzip or zstd"),
    (rb".{257}ustar", "a tar archive", "the file in it, such as by tar -xf"),
    (rb"\s*<(!doctype|html|\?xml)|\s*<!--", "a page in HTML or XML", "a file with columns, such as CSV"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8|%PDF-", "an image or a document", "a file with columns, such as CSV"),
    (rb"\x93NUMPY", "an array of numpy", "a file with columns; in Python, numpy.load(file) can be given"),
    (rb"\x80[\x02-\x05][\x95c}\](]", "a pickle of Python", "a file with columns, such as Parquet or CSV"),
    (rb"SQLite format 3", "a database of SQLite", "a table of it, in CSV"),
    (rb"(\xef\xbb\xbf)?\s*\[\s*[\[{]", "an array of JSON", "one object in a line; jq -c '.[]' FILE writes them"),
    (
        rb"(\xef\xbb\xbf)?\s*\{\s*\n",
        "an object of JSON in several lines",
        "one object in a line; jq -c . FILE writes them",
    ),
    (rb'.{8}\{"__metadata__":\{"forel":', "a model of forel", "data to read"),
)
BINARY = ("parquet", "arrow")
FORMATS = (*LINE_FORMATS, "csv", "tsv", "jsonl", *BINARY)
SUFFIXES = {
    **{suffix: name for name, syntax in LINE_FORMATS.items() for suffix in syntax.suffixes},
    "csv": "csv",
    "tsv": "tsv",
    "xlsx": "csv",  # the first sheet
    "xlsm": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}


def refuse_foreign(name: str, beginning: bytes) -> None:
    """Raise ValueError if the first bytes of a file show that it is in a format that cannot be read.

    >>> refuse_foreign("clicks.csv", b"site,click")
    >>> refuse_foreign("a.json", b'[{"site": "news", "click": 1},')
    Traceback (most recent call last):
    ValueError: files: got a.json, an array of JSON, expected one object in a line; jq -c '.[]' FILE writes them
    """
    for pattern, what, expected in FOREIGN:
        if re.match(pattern, beginning, re.DOTALL | re.IGNORECASE):
            raise ValueError(f"files: got {name}, {what}, expected {expected}")


def detect_format(name: str, beginning: bytes) -> str:
    r"""Detect the format of a file from its name, or else from its first bytes.

    >>> detect_format("clicks.vw.gz", b""), detect_format("-", b"1 3:0.5 7:1\n"), detect_format("data", b"price,city\n")
    ('vw', 'svmlight', 'csv')
    """
    refuse_foreign(name, beginning)
    stem = re.sub(r"\.(gz|zst|zstd|zip)$", "", os.path.basename(name).lower())
    suffix = stem.rpartition(".")[2] if "." in stem else ""
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if beginning.startswith(b"PAR1"):
        return "parquet"
    if beginning.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    lines = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    # The last line may be incomplete, unless it is the only one.
    text = [line for line in (lines[:-1] or lines) if line.strip() and not line.lstrip().startswith(b"#")]
    first = text[0] if text else b""
    if first.lstrip().startswith(b"{"):
        return "jsonl"
    for name_of_format, syntax in LINE_FORMATS.items():
        if syntax.matches(first):
            return name_of_format
    for mark, found in ((b"\t", "tsv"), (b",", "csv"), (b";", "csv"), (b"|", "csv")):
        if mark in first:
            return found
    raise refuse("format", f"{name} with an unknown suffix and beginning", f"one of {', '.join(FORMATS)}")
