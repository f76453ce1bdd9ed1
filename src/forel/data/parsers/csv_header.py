"""The separator and the header of delimited text: names of columns, or their numbers where there is no header."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any

from forel.data.options import ReadOptions
from forel.data.parsers.columns import Columns
from forel.data.problems import OTHER_ENCODING, Malformed, excerpt
from forel.data.sources.streams import LONGEST, READ_ERRORS, broken_file, read_some, too_long

__all__ = ["distinct_names", "number_columns", "read_header", "separator_of"]

COMMA, OTHERS = ",", ("\t", ";", "|")
LINES = 20  # lines that have to agree
QUOTED = re.compile(rb'"[^"]*("|$)')
BOM = b"\xef\xbb\xbf"


def separator_of(form: str, options: ReadOptions, beginning: bytes) -> str:
    r"""Return the separator of CSV or TSV.

    Text is separated by commas if the header has one, unless its lines differ in their number, or commas are decimal
    marks. Otherwise the separator is the most frequent of tabs, semicolons and pipes in the header.

    >>> separator_of("csv", ReadOptions(), b'age;"job, or none";y\n31;admin;no\n')
    ';'
    """
    if options.separator is not None:
        return options.separator
    if form == "tsv":
        return "\t"
    *lines, _ = QUOTED.sub(b"", beginning).replace(b"\r", b"\n").split(b"\n")
    counts = [{mark: line.count(mark.encode()) for mark in (COMMA, *OTHERS)} for line in lines if line.strip()]
    if not counts:  # one line without an end
        counts = [{mark: QUOTED.sub(b"", beginning).count(mark.encode()) for mark in (COMMA, *OTHERS)}]
    first = counts[0]
    agreed = {mark for mark, n in first.items() if n and all(line[mark] == n for line in counts[:LINES])}
    others = [mark for mark in OTHERS if first[mark] and (mark in agreed or not first[COMMA])]
    if not others or (COMMA in agreed and options.decimal != COMMA):
        return COMMA
    return max(others, key=lambda mark: (mark in agreed, first[mark]))


def read_header(stream: Any, separator: str, file: str, limit: int = LONGEST) -> tuple[list[str], Any]:
    """Return the names of columns, and the stream of the rows; raise if the header has more than ``limit`` bytes."""
    cells, _, rest = _first_row(stream, separator, file, limit)
    return distinct_names(cells), _Joined(rest, stream) if rest else stream


def distinct_names(cells: Sequence[str]) -> list[str]:
    """Return the names of columns in a header: repeated ones with a number, as in pandas, and empty ones by place.

    >>> distinct_names(["hours", " hours ", "age", ""])
    ['hours', 'hours.1', 'age', 'c4']
    """
    given = [cell.strip(" ") for cell in cells]
    reserved, names = {*given}, dict[str, None]()
    for k, name in enumerate(given):
        if name and name not in names:
            names[name] = None
            continue
        wanted = name or f"c{k + 1}"
        numbered = (f"{wanted}.{number}" for number in count(1))
        names[next(one for one in chain([wanted], numbered) if one not in reserved and one not in names)] = None
    return [*names]


def number_columns(
    stream: Any, separator: str, file: str, limit: int = LONGEST, columns: Columns | None = None
) -> tuple[list[str], Any]:
    r"""Return the names c1, c2, ... of the columns of a stream without a header, and the stream of all its rows.

    Where labels are optional and there is one column less than options name, the column of labels is missing.

    >>> import io
    >>> names, rows = number_columns(io.BytesIO(b"1,2\n3,4\n"), ",", "")
    >>> names, rows.read()
    (['c1', 'c2'], b'1,2\n3,4\n')
    """
    cells, line, rest = _first_row(stream, separator, file, limit)
    names = [f"c{k + 1}" for k in range(len(cells))]
    if columns is not None and columns.options.unlabelled and columns.label is not None:
        numbers = [_number(name) for name in (columns.label, *columns.known)]
        if 0 < _number(columns.label) <= max(numbers) == len(cells) + 1:
            names = [name for name in (*names, f"c{len(cells) + 1}") if name != columns.label]
    return names, _Joined(line.removeprefix(BOM) + rest, stream)


def _number(name: str) -> int:
    """Return the number in the name of a column without a header; 0 for other names."""
    return int(name[1:]) if name[:1] == "c" and name[1:].isdecimal() else 0


class _Joined:
    """A stream that begins with some bytes, which have been read already."""

    def __init__(self, first: bytes, rest: Any) -> None:
        self._first, self._rest = memoryview(first), rest

    def readinto(self, view: Any) -> int:
        """Fill a view, and return the number of bytes."""
        if not self._first:
            return read_some(self._rest, view)
        n = min(len(view), len(self._first))
        view[:n] = self._first[:n]
        self._first = self._first[n:]
        return n

    @property
    def paused(self) -> bool:
        """Whether the rest is a pipe that has no further bytes at the moment."""
        return not self._first and getattr(self._rest, "paused", False)

    def read(self) -> bytes:
        """Return all bytes that are left."""
        return bytes(self._first) + bytes(self._rest.read())


def _first_row(stream: Any, separator: str, file: str, limit: int) -> tuple[list[str], bytes, bytes]:
    """Return the cells of the first row, its bytes, and bytes after it that are read already."""
    lines, rest = list[bytes](), b""

    def decoded() -> Iterator[str]:
        nonlocal rest
        left = limit
        while line := rest or stream.readline(left + 1):
            line, rest = _cut_line(line)
            left -= len(line)
            if left < 0:
                raise too_long(file, 1, "a header", limit)
            lines.append(line)
            yield line.decode("utf-8-sig" if len(lines) == 1 else "utf-8").replace("\0", "")

    def refused(expected: str) -> Malformed:
        return Malformed(file, 1, None, excerpt(b"".join(lines)), expected)

    try:
        names = next(csv.reader(decoded(), delimiter=separator), [])
    except UnicodeDecodeError:
        raise refused(f"a header of column names in UTF-8; {OTHER_ENCODING}") from None
    except csv.Error as wrong:
        raise refused(f"a header of column names ({wrong}); give the separator (--separator)") from None
    except READ_ERRORS as wrong:
        raise broken_file(file, 1, wrong) from wrong
    if b"\0" in b"".join(lines):
        remedy = "encoding='utf-16-le' (--encoding) reads UTF-16 without a byte order mark"
        raise refused(f"a header without NUL bytes; {remedy}")
    if not names:
        got = "an empty line" if lines else "an empty file"
        raise Malformed(file, 1, None, got, "the names of the columns; header=False (--no-header) is for rows alone")
    return names, b"".join(lines), rest


def _cut_line(line: bytes) -> tuple[bytes, bytes]:
    """Return a line up to a carriage return that ends it, as on old systems, and the bytes after it."""
    end = line.find(b"\r")
    if end < 0 or (line.endswith((b"\r\n", b"\r")) and end >= len(line) - 2) or line[:end].count(b'"') % 2:
        return line, b""
    return line[: end + 1], line[end + 1 :]
