"""The separator of delimited text, given or recognized in the first lines."""

import re

from forel.data.line_formats import LINE_FORMATS
from forel.data.options import ReadOptions
from forel.data.sources.detect import detect_format

__all__ = ["format_of", "separator_of"]

COMMA, OTHERS = ",", ("\t", ";", "|")
LINES = 20  # lines that have to agree
QUOTED = re.compile(rb'"[^"]*("|$)')


def format_of(file: str, options: ReadOptions, beginning: bytes) -> str:
    r"""Return the format of a file: the given one, CSV where options of CSV are given, or the detected one.

    >>> format_of("data", ReadOptions(), b"1|2\n"), format_of("data", ReadOptions(separator="|"), b"1|2\n")
    ('vw', 'csv')
    """
    if options.format != "auto":
        return options.format
    if options.separator is None and options.header:
        return detect_format(file, beginning)
    try:
        found = detect_format(file, beginning)
    except ValueError:
        return "csv"
    by_name = detect_format(file, b",")
    return "csv" if found in LINE_FORMATS and by_name == "csv" else found


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
