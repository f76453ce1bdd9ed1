"""CSV and TSV to blocks by compiled code: rows are cut into cells, and its first value decides what a column is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.assemble import Cells
from forel.data.block import Block
from forel.data.buffers import Buffers
from forel.data.cells import Column, Faults, Words, block_of, start_of
from forel.data.columns import Columns
from forel.data.compiled import layout
from forel.data.contents import Numbers, Strings, numeric, targets
from forel.data.crosses import CHUNK, Step
from forel.data.decimals import nearest
from forel.data.header import header
from forel.data.names import Names
from forel.data.place import Place
from forel.data.problems import Gathered, Malformed, Problems, shown
from forel.data.scanners import scanner
from forel.data.sources import LONGEST, PAD, Chunk, Cut, chunks, count, whole_lines
from forel.data.spelling import number_in, says_nothing
from forel.data.tasks import Task, found
from forel.validation import refuse

__all__ = ["Separated", "parse_separated"]

WIDE, ROWS = 1 << 10, 64  # columns from which on a chunk has so many rows, if rows are as long as the header
FEED, RETURN, QUOTE = (ord(c) for c in '\n\r"')


@dataclass(frozen=True, eq=False)
class Separated:
    """What rows with separators between their cells are read by."""

    separator: str
    columns: Columns
    bits: int
    block_bytes: int
    step: Step | None = None
    line_limit: int = LONGEST

    @property
    def mark(self) -> int:
        """The separator as a byte."""
        return ord(self.separator)


def parse_separated(
    stream: Any, form: Separated, problems: Problems, names: Names | None, file: str, start: Place,
    kinds_found: dict[str, str] | None = None,
) -> Iterator[Task]:  # fmt: skip
    """Yield the parsing of each chunk of rows from ``start`` on, and at last what was met where they are read.

    What a column is has to be known before a chunk is parsed; so until all are, chunks are split here, one by one.
    ``kinds_found`` takes what columns of features turned out to be.
    """
    try:
        there = header(stream, form.separator, file, form.line_limit)
    except Malformed as wrong:
        problems.meet(wrong)
        yield found(None, problems)
        return
    table = _Table(form, there, form.columns.features(there), names, file, Buffers())
    if form.step is not None:
        form.step.check(table.features)
    told = {**form.columns.known, **form.columns.kinds}
    kinds = {name: told[name] for name in table.used if name in told}
    size = form.block_bytes if form.step is None else min(form.block_bytes, CHUNK)
    if len(there) > WIDE:  # what is done once for each column and chunk should not count
        size = max(size, ROWS * sum(len(name) + 1 for name in there))
    line = 2
    rows_of = chunks(stream, size, problems, file, line, _whole_rows(form.mark, len(there)), form.line_limit)
    for number, chunk in enumerate(rows_of, 1):
        rows, since = None, dict[str, int]()
        if len(kinds) < len(table.used):
            rows = _split(chunk, table)
            decided, since = _decide(rows, table, kinds)
            kinds = {**kinds, **decided} if decided else kinds  # a new one, because earlier chunks still have the old
            if kinds_found is not None:
                kinds_found.update((name, decided[name]) for name in table.places.keys() & decided.keys())
        if number > start.blocks:
            met = Problems(problems.on_error)
            yield partial(_task, table, chunk, rows, kinds, since, line, met, Place(start.file, number))
        line += chunk.lines
    yield found(None, problems)


@dataclass(frozen=True, eq=False)
class _Table:
    """A table with a header, and how it is read."""

    form: Separated
    there: list[str]
    features: list[str]
    names: Names | None
    file: str
    buffers: Buffers

    @cached_property
    def used(self) -> dict[str, int]:
        """The columns whose cells matter, and where they are, in this order."""
        wanted = {self.form.columns.label, self.form.columns.importance, *self.features}
        return {name: k for k, name in enumerate(self.there) if name in wanted}

    @cached_property
    def places(self) -> dict[str, int]:
        """The features, and where they are among features."""
        return {name: k for k, name in enumerate(self.features)}


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a chunk as spans of its text, the line of each, and what rows of another width were like."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    lines: NDArray[np.int64]
    wrong: NDArray[np.int64]

    def words(self, column: int) -> Words:
        """Return the cells of a column."""
        return Words(self.text, self.starts[:, column], self.stops[:, column])


def _whole_rows(mark: int, width: int) -> Cut:
    """Return what finds the end of the last row, which line ends within quotes are not."""
    counts = np.zeros(2, np.int64)

    def cut(text: NDArray[np.uint8], length: int, ended: bool) -> tuple[int, int]:
        if not count(text, length, QUOTE) and not count(text, length, RETURN):
            return whole_lines(text, length)
        after = text[length]
        text[length] = FEED  # which stops a search
        scanner("separated", "ends")(text, length, mark, width, ended, counts)
        text[length] = after
        return int(counts[0]), int(counts[1])

    return cut


def _split(chunk: Chunk, table: _Table) -> _Rows:
    text, length = _utf8(chunk.text, chunk.length)
    # In text that was escaped, quotes may reach less far, and there may be more rows.
    held = chunk.lines if text is chunk.text else count(text, length, FEED) + count(text, length, RETURN)
    # A row has a byte for each of its cells at least, and the last place is for rows that turn out wrong.
    width = len(table.there)
    most = min(held, length // width) + 1
    starts, stops = (table.buffers.empty((most, width), np.int32) for _ in range(2))
    lines, wrong = np.empty(held, np.int64), np.empty((held, 4), np.int64)
    counts = np.zeros(3, np.int64)
    scanner("separated", "split")(text, length, table.form.mark, starts, stops, lines, wrong, counts)
    n, bad, tied = counts.tolist()
    rows = _Rows(text, starts[:n], stops[:n], lines[:n], wrong[:bad])
    if tied:
        scanner("separated", "untie")(text, rows.starts, rows.stops)
    return rows


def _utf8(text: NDArray[np.uint8], length: int) -> tuple[NDArray[np.uint8], int]:
    """Return text that is UTF-8 for certain: other bytes come as escapes, as they do in names."""
    try:
        str(text.data[:length], "utf-8")
    except UnicodeDecodeError:
        escaped = text[:length].tobytes().decode("utf-8", "backslashreplace").encode()
        return np.frombuffer(bytearray(escaped + bytes(PAD)), np.uint8), len(escaped)
    return text, length


def _decide(rows: _Rows, table: _Table, kinds: dict[str, str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return of columns whether they are of words or numbers, if there is a value, and the row of a first word."""
    decided, since = dict[str, str](), dict[str, int]()
    for name in table.used.keys() - kinds.keys():
        words = rows.words(table.used[name])
        row = next((k for k in _filled(words) if not says_nothing(words[k])), None)
        if row is not None:
            try:
                number_in(words[row])
                decided[name] = "number"
            except ValueError:
                decided[name], since[name] = "category", row
    return decided, since


def _filled(words: Words) -> Iterator[int]:
    """Yield the cells that are not empty, a few at first, because most often the first of them decides."""
    start, stop = 0, 16
    while start < words.starts.size:
        yield from ((words.stops[start:stop] > words.starts[start:stop]).nonzero()[0] + start).tolist()
        start, stop = stop, 16 * stop


def _task(
    table: _Table, chunk: Chunk, rows: _Rows | None, kinds: dict[str, str], since: dict[str, int], line: int,
    problems: Problems, after: Place,
) -> tuple[Block, Problems]:  # fmt: skip
    held = rows or _split(chunk, table)
    met = Gathered()
    block = _parse(table, held, kinds, since, line, met)
    met.told(problems)
    return replace(block, size=chunk.length, after=after), problems


def _parse(
    table: _Table, rows: _Rows, kinds: dict[str, str], since: dict[str, int], line: int, met: Gathered
) -> Block:  # fmt: skip
    form, columns = table.form, table.form.columns
    for number, begin, end, cells in rows.wrong.tolist():
        text = rows.text[begin:end].tobytes()
        width = len(table.there)
        got, expected = f"{cells} columns in {shown(text)}", f"{width} columns"
        if cells == layout.OPEN:
            got, expected = f"an open quote in {shown(text)}", f"a quote that closes it within {layout.QUOTED:,} bytes"
        met.meet(Malformed(table.file, line + number, None, got, expected))
    faults = Faults(rows.lines + line, met, table.file)
    numbers = {
        name: _numbers(rows.words(k), exact=columns.kinds.get(name) == "number")
        for name, k in table.used.items()
        if kinds.get(name, "number") != "category"
    }
    for what, name in (("label", columns.label), ("importance", columns.importance)):
        if kinds.get(str(name)) == "category":
            raise refuse(what, f"column {name} of words", "a column of numbers")
    labels, importance = targets(numbers, columns, faults)
    held, mask = Cells.empty(labels.size, len(table.features), table.buffers), np.uint64((1 << form.bits) - 1)
    _hash(table, rows, [name for name in table.features if name not in numbers], held, mask)
    made = []
    for place, name in enumerate(table.features):
        if name in numbers:
            made.append(numeric(numbers[name], name, place, columns, held, mask, faults))
        else:
            # Before its first value, what a column holds means nothing, as it does in a chunk without one.
            held.there[: since.get(name, 0), place] = False
            made.append(Column(name.encode(), rows.words(table.used[name])))
    return block_of(held, made, labels, importance, faults, form.bits, table.names, form.step)


def _hash(table: _Table, rows: _Rows, names: list[str], cells: Cells, mask: np.uint64) -> None:
    """Fill the cells of columns of words."""
    at = np.array([table.used[name] for name in names], np.int64)
    places = np.array([table.places[name] for name in names], np.int64)
    hashes = np.array([start_of(name.encode()) for name in names], np.uint64)
    scanner("separated", "hash_cells")(
        rows.text, rows.starts, rows.stops, at, places, hashes, mask, cells.slots, cells.there
    )


def _numbers(words: Words, exact: bool) -> Numbers:
    """Return the numbers of a column; to be exact takes longer, and only what is computed from them needs it."""
    n = words.starts.size
    wide, kinds = np.empty(n), np.empty(n, np.uint8)
    scanner("separated", "read_cells")(words.text, words.starts, words.stops, exact, wide, kinds)
    strays, unsure = np.zeros(n, bool), (kinds == layout.UNSURE).nonzero()[0]
    for row in unsure.tolist():
        try:
            value = number_in(words[row])
        except ValueError:
            strays[row] = True
            value = None
        kinds[row] = layout.ABSENT if value is None else layout.THERE
        wide[row] = 0.0 if value is None else value
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
        for row in unsure.tolist():
            if wide[row] not in (0.0, 1.0) and np.isfinite(wide[row]):
                # By way of a double it may have been rounded twice; blanks around it are those of text, not of bytes.
                values[row] = nearest(words[row].decode().strip().encode())
    if not np.isfinite(values).all():
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            wide[row] = number_in(words[row])  # as it is written, for a message
    return Numbers(values, kinds == layout.THERE, wide, Strings(words, strays) if strays.any() else None)
