"""Lines of VW text as rows, a few at a time: the compiled reader on buffers that are kept between calls."""

import io
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data.block import concatenate
from forel.data.compiled import layout, scanner
from forel.data.options import ReadOptions
from forel.data.problems import excerpt
from forel.data.reader import read
from forel.data.sources.streams import PAD
from forel.data.values import nearest_float32

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
        self._counts, self._hard = np.zeros(layout.SIZE, np.int64), np.zeros((64, 3), np.int64)

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
        counts, resolved, errors = self._counts, np.empty(0), dict[int, str]()
        counts[:] = 0
        while (at := int(counts[layout.AT])) < length:
            before = counts.copy()
            status = self._scan(length, resolved)
            hards = int(counts[layout.HARD])
            if hards > resolved.size:  # numbers that need exact arithmetic: parse the same text again
                if hards > len(self._hard):
                    self._hard = np.zeros((hards, 3), np.int64)
                else:
                    resolved = np.array([self._resolved(*one) for one in self._hard[:hards].tolist()])
                counts[:] = before
                continue
            if status == layout.DONE:
                break
            at, line = int(counts[layout.AT]), int(counts[layout.LINES])
            end = data.find(b"\n", at)
            word = data[at:end].split(maxsplit=1)
            errors[line] = (
                f"got {excerpt(word[0]) if word else 'the end of the line'}, expected {layout.EXPECTED[status]}"
            )
            counts[layout.AT], counts[layout.LINES], resolved = end + 1, line + 1, np.empty(0)
        rows, entries = int(counts[layout.ROWS]), int(counts[layout.ENTRIES])
        spans = self._tags[:rows]
        tagged = bool((spans[:, 1] > spans[:, 0]).any())
        tags = tuple([data[a:b] for a, b in spans.tolist()]) if tagged else (b"",) * rows
        return ParsedLines(
            self._indptr[: rows + 1], self._indices[:entries], self._values[:entries], self._labels[:rows],
            self._importance[:rows], self._lines[:rows], tags, errors,
        )  # fmt: skip

    def _scan(self, length: int, resolved: NDArray[np.float64]) -> int:
        """Call the compiled parser from the place in the counts on."""
        arguments = (
            self._text, length, self._counts, self.options.bits, 0, self._indptr, self._indices, self._values,
            self._labels, self._importance, self._lines, self._tags, self._hard, resolved, *self._no_names,
        )  # fmt: skip
        if self._parse is None:
            before, function = self._counts.copy(), scanner("vw", "parse")
            prepare = getattr(function, "prepared", None)  # a plain function where nothing is compiled
            self._parse = function if prepare is None else prepare(*arguments)
            self._counts[:] = before
        return int(self._parse(*arguments))

    def _resolved(self, start: int, stop: int, double: int) -> float:
        text = bytes(self._view[start:stop])
        return float(text) if double else float(nearest_float32(text))

    def _general(self, data: bytes) -> ParsedLines:
        """Read lines as those of a file, one at a time where one of them is malformed."""
        options = self.options.updated({"format": "vw", "tags": True, "on_error": "raise"})
        errors = dict[int, str]()
        lines = data.split(b"\n")[:-1]
        try:
            return _of_file(data, options, errors)
        except ValueError:
            for number, line in enumerate(lines):
                try:
                    _of_file(line + b"\n", options, errors)
                except ValueError as error:
                    errors[number] = str(error).split(": ", 1)[-1]
        kept = b"".join((b"" if k in errors else line) + b"\n" for k, line in enumerate(lines))
        return _of_file(kept, options, errors)


def _of_file(data: bytes, options: ReadOptions, errors: dict[int, str]) -> ParsedLines:
    with warnings.catch_warnings():  # that few lines do not have all namespaces
        warnings.simplefilter("ignore")
        one = concatenate(read(io.BytesIO(data), options=options))
    lines = np.empty(0, np.int64) if one.lines is None else one.lines - 1
    labels, importance = one.labels.astype(np.float64), one.importance.astype(np.float32)
    tags = one.tags or (b"",) * len(one)
    return ParsedLines(one.indptr, one.indices, one.values, labels, importance, lines, tags, errors)
