"""The header of CSV and TSV: names of columns."""

import csv
from collections.abc import Iterator
from typing import Any

from forel.data.options import repeated
from forel.data.problems import Malformed, excerpt
from forel.data.sources.streams import LONGEST, READ_ERRORS, too_long
from forel.validation import refuse

__all__ = ["read_header"]


def read_header(stream: Any, separator: str, file: str, limit: int = LONGEST) -> list[str]:
    """Read the names of columns and nothing after them; refuse a header of more than ``limit`` bytes."""
    held: list[bytes] = []

    def lines() -> Iterator[str]:
        room = limit
        while line := stream.readline(room + 1):
            room -= len(line)
            if room < 0:
                raise too_long(file, 1, "a header", limit)
            held.append(line)
            yield line.decode("utf-8-sig" if len(held) == 1 else "utf-8")

    try:
        names = next(csv.reader(lines(), delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error) as wrong:
        raise Malformed(file, 1, None, excerpt(held[0]), "a header of column names in UTF-8") from wrong
    except READ_ERRORS as wrong:
        raise Malformed(file, 1, None, str(wrong).rstrip("."), "a whole file") from wrong
    if not names:
        raise Malformed(file, 1, None, "no header", "the names of the columns")
    twice = repeated(names)
    if twice is not None:
        raise refuse("columns", f"{twice} twice", "a name for each column of its own")
    return names
