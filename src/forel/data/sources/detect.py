"""Which format a file is in: by its name, or by how it begins."""

import os
import re

from forel.data.sources.row_cache import begins_cache
from forel.validation import refuse

__all__ = ["FORMATS", "recognise"]

FORMATS = ("vw", "svmlight", "csv", "tsv", "jsonl", "parquet", "arrow")
SUFFIXES = {
    "vw": "vw",
    "svm": "svmlight",
    "svmlight": "svmlight",
    "libsvm": "svmlight",
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
SVMLIGHT = re.compile(rb"\s*[-+]?[0-9.]+(e[-+]?[0-9]+)?(\s+qid:\d+)?(\s+\d+:[-+0-9.e]+)*\s*(#.*)?", re.IGNORECASE)


def recognise(name: str, beginning: bytes) -> str:
    r"""Return the format of a file from its name, or else from its first bytes.

    >>> recognise("clicks.vw.gz", b""), recognise("-", b"1 3:0.5 7:1\n"), recognise("data", b"price,city,label\n")
    ('vw', 'svmlight', 'csv')
    """
    if begins_cache(beginning):
        return "arrow"  # which a reader looks for a cache in first
    stem = re.sub(r"\.(gz|zst|zstd)$", "", os.path.basename(name).lower())
    suffix = stem.rpartition(".")[2] if "." in stem else ""
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if beginning.startswith(b"PAR1"):
        return "parquet"
    if beginning.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    lines = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    # The last line may be cut off, unless it is all there is.
    text = [line for line in (lines[:-1] or lines) if line.strip() and not line.lstrip().startswith(b"#")]
    first = text[0] if text else b""
    if first.lstrip().startswith(b"{"):
        return "jsonl"
    if SVMLIGHT.fullmatch(first):
        return "svmlight"
    for mark, found in ((b"|", "vw"), (b"\t", "tsv"), (b",", "csv")):
        if mark in first:
            return found
    raise refuse("format", f"{name} with an unknown suffix and beginning", f"one of {', '.join(FORMATS)}")
