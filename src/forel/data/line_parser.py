"""Lines of VW text as rows, a few at a time: the compiled reader on buffers that are kept between calls."""

import io
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.block import concatenate
from forel.data.compiled import layout, scanner
from forel.data.options import ReadOptions
from forel.data.parsers.lines import malformed, scan_lines
from forel.data.problems import Malformed, Problems
from forel.data.reader import read
from forel.data.sources.streams import PAD

__all__ = ["LineParser", "ParsedLines"]


class ParsedLines(NamedTuple):
    """Rows of lines; arrays are views of the parser's buffers, valid until its next call.

    Parameters
    ----------
    indptr, indices, values : rows in CSR form
    labels, importance : NaN and 1 where a line has none
    lines : the number of each row's line, from 0
    tags : one for each row
    errors : what was expected, by the number of a malformed line, which has no row
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    labels: NDArray[np.float64]
    importance: NDArray[np.float32]
    lines: NDArray[np.int64]
    tags: tuple[bytes, ...]
    errors: dict[int, str]


class LineParser:
    """Parses lines in the text format of Vowpal Wabbit, also single ones fast; not safe for concurrent use.

    Parameters
    ----------
    options : how rows are read; with crosses or columns to leave out, lines take the way of files, which is slower
    capacity : bytes of text for which buffers are allocated at first

    >>> found = LineParser(ReadOptions(bits=18)).parse(b"1 2.0 'id7|a x:3 y\\n|a\\n1 2 3 |a y\\n")
    >>> found.labels, found.tags, found.errors[2]
    (array([ 1., nan]), (b'id7', b''), "got '3', expected '|' after label and importance; ... or begins with '")
    """

    def __init__(self, options: ReadOptions, capacity: int = 1 << 12) -> None:
        self.options = options
        self._plain = options.transform is None and options.keep is None and not options.ignore
        self._parse: Any = None
        self._no_names = np.empty(0, np.uint32), np.empty((0, layout.COLUMNS), np.int64)
        self._grow(capacity)

    def _grow(self, capacity: int) -> None:
        self._capacity = capacity
        self._text: Any = np.zeros(capacity + PAD, np.uint8)
        self._view = memoryview(self._text.data)
        rows = capacity // 2 + 1  # a row takes two bytes at least, as does a feature
        self._indptr, self._lines = np.zeros(rows + 1, np.int64), np.zeros(rows, np.int64)
        self._indices, self._values = np.zeros(rows, np.int32), np.zeros(rows, np.float32)
        self._labels, self._importance = np.zeros(rows), np.zeros(rows, np.float32)
        self._tags = np.zeros((rows, 2), np.int64)
        self._counts = np.zeros(layout.SIZE, np.int64)

    def parse(self, data: bytes) -> ParsedLines:
        """Return the rows of complete lines; malformed lines are reported, and the others read."""
        length = len(data)
        if length and data[-1] != 10:
            data, length = data + b"\n", length + 1
        if not self._plain:
            return self._general(data)
        if length > self._capacity:
            self._grow(max(length, 2 * self._capacity))
        self._view[:length] = data
        self._view[length : length + 8] = bytes(8)
        counts, errors = self._counts, dict[int, str]()
        counts[:] = 0

        def report(status: int) -> None:
            found = malformed(self._text, 0, length, counts, status, "", 0)
            errors[found.line] = _sentence(found)

        scan_lines(partial(self._scan, length), self._text, length, counts, report)
        rows, entries = int(counts[layout.ROWS]), int(counts[layout.ENTRIES])
        spans = self._tags[:rows]
        tagged = bool((spans[:, 1] > spans[:, 0]).any())
        tags = tuple([data[a:b] for a, b in spans.tolist()]) if tagged else (b"",) * rows
        return ParsedLines(
            self._indptr[: rows + 1], self._indices[:entries], self._values[:entries], self._labels[:rows],
            self._importance[:rows], self._lines[:rows], tags, errors,
        )  # fmt: skip

    def _scan(self, length: int, hard: NDArray[np.int64], resolved: NDArray[np.float64]) -> int:
        """Call the compiled parser from the place in the counts on."""
        arguments = (
            self._text, length, self._counts, self.options.bits, self._indptr, self._indices, self._values,
            self._labels, self._importance, self._lines, self._tags, hard, resolved, *self._no_names,
        )  # fmt: skip
        if self._parse is None:
            before, function = self._counts.copy(), scanner("vw", "parse")
            prepare = getattr(function, "prepared", None)  # a plain function where nothing is compiled
            self._parse = function if prepare is None else prepare(*arguments)
            self._counts[:] = before
        return int(self._parse(*arguments))

    def _general(self, data: bytes) -> ParsedLines:
        """Read lines as those of a file."""
        options, problems = self.options.updated({"format": "vw", "tags": True}), Problems("later")
        with warnings.catch_warnings(action="ignore"):  # that few lines do not have all namespaces
            one = concatenate(replace(read(io.BytesIO(data), options=options), problems=problems))
        lines = np.empty(0, np.int64) if one.lines is None else one.lines - 1
        errors = {found.line - 1: _sentence(found) for found in problems.waiting}
        return ParsedLines(*one.rows, one.labels, one.importance, lines, one.tags or (b"",) * len(one), errors)


def _sentence(found: Malformed) -> str:
    return f"got {found.got}, expected {found.expected}"
