"""Detection of formats, by the name of a file or its first bytes."""

import os
import re

from forel.data.line_formats import LINE_FORMATS
from forel.data.sources.foreign import refuse_foreign
from forel.data.sources.row_cache import has_cache_header
from forel.validation import refuse

__all__ = ["BINARY", "FORMATS", "detect_format"]

BINARY = ("parquet", "arrow")
FORMATS = (*LINE_FORMATS, "csv", "tsv", "jsonl", *BINARY)
SUFFIXES = {
    **{suffix: name for name, syntax in LINE_FORMATS.items() for suffix in syntax.suffixes},
    "csv": "csv",
    "tsv": "tsv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}


def detect_format(name: str, beginning: bytes) -> str:
    r"""Detect the format of a file from its name, or else from its first bytes.

    >>> detect_format("clicks.vw.gz", b""), detect_format("-", b"1 3:0.5 7:1\n"), detect_format("data", b"price,city\n")
    ('vw', 'svmlight', 'csv')
    """
    if has_cache_header(beginning):
        return "arrow"  # the reader of Arrow files opens caches too
    refuse_foreign(name, beginning)
    stem = re.sub(r"\.(gz|zst|zstd)$", "", os.path.basename(name).lower())
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
    for mark, found in ((b"\t", "tsv"), (b",", "csv"), (b";", "csv")):
        if mark in first:
            return found
    raise refuse("format", f"{name} with an unknown suffix and beginning", f"one of {', '.join(FORMATS)}")
