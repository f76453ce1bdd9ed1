"""Files that are no data in a known format: archives, other encodings, arrays of JSON, and models."""

import re

__all__ = ["refuse_foreign"]

# The first bytes of a file, what it is, and how to read it.
FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (rb"PK\x03\x04", "a ZIP archive or a spreadsheet", "the file in it, or one in CSV"),
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
