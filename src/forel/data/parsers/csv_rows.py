"""CSV and TSV text as blocks: compiled code splits rows into cells; the first value of a column decides its kind."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block, Position, Task, completed_task
from forel.data.buffers import Buffers
from forel.data.compiled import layout, scanner
from forel.data.features.hashing import START, hash_names, slots_of_hashes
from forel.data.features.kinds import amount_kind, sign_of
from forel.data.features.names import Names
from forel.data.features.rows import Cells
from forel.data.parsers.column_blocks import block_of_columns
from forel.data.parsers.column_values import (
    FeatureColumn,
    NumberColumn,
    RowProblems,
    Spans,
    StringColumn,
    cell_numbers,
)
from forel.data.parsers.columns import Columns
from forel.data.parsers.csv_header import number_columns, read_header
from forel.data.parsers.label_codes import LabelCodes
from forel.data.problems import OTHER_ENCODING, Malformed, Problems, excerpt
from forel.data.slices import with_slices
from forel.data.sources.streams import LONGEST, PAD, Chunk, Cut, chunk_task, chunks, count, whole_lines
from forel.data.values import common_sign, formatted_number, is_missing, parse_number
from forel.validation import refuse

__all__ = [
    "CsvChunk", "CsvFormat", "CsvRows", "CsvTable", "csv_chunks", "parse_csv", "read_table",
]  # fmt: skip

WIDE, ROWS = 1 << 10, 64  # with more columns than WIDE, a chunk has at least ROWS rows of the header's length
FEED, RETURN, QUOTE = (ord(c) for c in '\n\r"')
LOOKED = 1 << 12  # bytes after a carriage return in which files with line feeds have one


@dataclass(frozen=True, eq=False)
class CsvFormat:
    """The options for reading delimited text."""

    separator: str
    columns: Columns
    line_limit: int = LONGEST

    @cached_property
    def marks(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """The bytes of all marks of missing values, and the end of each; None without marks."""
        words = [mark.strip().encode() for mark in self.columns.options.missing]
        return (np.frombuffer(b"".join(words), np.uint8), np.cumsum([len(w) for w in words])) if words else None

    def normalize(self, rows: "CsvRows") -> None:
        """Make missing cells empty, and use the decimal point."""
        if self.marks is not None:
            scanner("csv_rows", "clear_marks")(rows.text, rows.starts, rows.stops, *self.marks)
        if self.columns.options.decimal == ",":
            scanner("csv_rows", "convert_decimals")(rows.text, rows.starts, rows.stops)


@dataclass(frozen=True, eq=False)
class CsvTable:
    """The header of a file, the options for its rows, the line of the first row, and the columns of text and dates."""

    form: CsvFormat
    header: list[str]
    features: list[str]
    names: Names | None
    file: str
    buffers: Buffers
    line: int = 2
    derived: tuple[str, ...] = ()

    @property
    def decimal(self) -> str:
        """The decimal mark."""
        return self.form.columns.options.decimal

    @cached_property
    def used(self) -> dict[str, int]:
        """The columns whose cells are parsed, with their numbers in the file, in its order."""
        wanted = {self.form.columns.label, self.form.columns.importance, *self.features}
        return {name: k for k, name in enumerate(self.header) if name in wanted}

    @cached_property
    def places(self) -> dict[str, int]:
        """The features, with their numbers among features."""
        return {name: k for k, name in enumerate(self.features)}

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """The hashes of features that are numbers, with which those of categories start."""
        keys = [name.encode() for name in self.features]
        found = hash_names(keys, np.full(len(keys), START, np.uint64))
        return np.where([bool(key) for key in keys], found, np.uint64(START))


@dataclass(frozen=True, eq=False)
class CsvRows:
    """The rows of a chunk as spans of its text, the line of each, and rows of another width."""

    text: NDArray[np.uint8]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    lines: NDArray[np.int64]
    malformed: NDArray[np.int64]

    def words(self, column: int) -> Spans:
        """Return the cells of a column."""
        return Spans(self.text, self.starts[:, column], self.stops[:, column])

    def record_malformed(self, table: CsvTable, line: int, problems: Problems) -> None:
        """Record a problem for each row of another width, or with an open quote."""
        for number, begin, end, cells in self.malformed.tolist():
            text = self.text[begin:end].tobytes()
            plural = "" if cells == 1 else "s"
            got, expected = f"{cells} column{plural} in {excerpt(text)}", f"{len(table.header)}, as in the first row"
            if self.text[end] == RETURN and self.text[end + 1] != FEED and FEED in self.text[end:][:LOOKED]:
                expected = f"{len(table.header)}; a carriage return without a line feed ends the row: remove it"
            if cells == layout.OPEN:
                got = f"an open quote in {excerpt(text)}"
                expected = f"a quote that closes it within {layout.QUOTED:,} bytes"
            problems.record(Malformed(table.file, line + number, None, got, expected))


@dataclass(frozen=True, eq=False)
class CsvChunk:
    """A chunk of rows, with the kinds of columns that are known when it is parsed.

    Parameters
    ----------
    number : of the chunk, from 1 on
    line : number of its first line
    chunk : its text
    kinds : by column
    first_words : the rows of the first word, for columns whose kind this chunk decided
    """

    number: int
    line: int
    chunk: Chunk
    kinds: dict[str, str] = field(default_factory=dict)
    first_words: dict[str, int] = field(default_factory=dict)
    _rows: list[CsvRows] = field(default_factory=list)

    def rows(self, table: CsvTable, problems: Problems) -> CsvRows:
        """Return its cells, which are split once, because that removes quotes from the text."""
        if not self._rows:
            self._rows.append(_split_rows(self.chunk, table, self.line, problems))
        return self._rows[0]


def read_table(stream: Any, form: CsvFormat, names: Names | None, file: str) -> tuple[CsvTable, Any]:
    """Return the columns of a stream, and the stream of its rows."""
    options = form.columns.options
    if options.header:
        columns, rows = read_header(stream, form.separator, file, form.line_limit)
    else:
        columns, rows = number_columns(stream, form.separator, file, form.line_limit, form.columns)
    line = 2 if options.header else 1
    features = form.columns.features(columns)
    form.columns.saw(features)
    derived = tuple(name for name in features if name in form.columns.derived)
    features = [name for name in features if name not in derived]
    return CsvTable(form, columns, features, names, file, Buffers(), line, derived), rows


def csv_chunks(stream: Any, table: CsvTable, problems: Problems, kinds_found: dict[str, str]) -> Iterator[CsvChunk]:
    """Yield the chunks of rows after the header; ``kinds_found`` receives the kinds of features.

    Kinds have to be known before a chunk is parsed. Until they are, chunks are split here, one by one.
    """
    form = table.form
    known = {**form.columns.known, **form.columns.kinds}
    kinds = {name: known[name] for name in table.used if name in known}
    size = form.columns.options.chunk_bytes
    if len(table.header) > WIDE:  # to amortize the work per column and chunk
        size = max(size, ROWS * sum(len(name) + 1 for name in table.header))
    cut, of_labels = _whole_rows(ord(form.separator), len(table.header)), dict[str, str]()
    parts = _numbered(chunks(stream, size, problems, table.file, table.line, cut, form.line_limit), table.line)
    labels = LabelCodes(form.columns).decided(
        parts, partial(_labels, table, problems), of_labels,
        lambda first: _kind_of(first.encode(), table.decimal) == "category",
    )  # fmt: skip
    for part in labels:
        first_words = dict[str, int]()
        if len(kinds) < len(table.used):
            rows = part.rows(table, problems)
            decided, first_words = _decide(rows, table, kinds)
            decided |= {name: kind for name, kind in of_labels.items() if name not in kinds}
            for name in decided.keys() & first_words.keys():
                _warn_of_format(name, rows.words(table.used[name])[first_words[name]], table, problems)
            kinds = {**kinds, **decided} if decided else kinds  # a copy, because earlier chunks refer to the old one
            kinds_found.update(
                (name, kind) for name, kind in sorted(decided.items()) if name in table.places or name in of_labels
            )
        yield replace(part, kinds=kinds, first_words=first_words)


def _numbered(found: Iterable[Chunk], line: int) -> Iterator[CsvChunk]:
    for number, chunk in enumerate(found, 1):
        yield CsvChunk(number, line, chunk)
        line += chunk.lines


def _labels(table: CsvTable, problems: Problems, chunk: CsvChunk) -> Iterator[str]:
    """Yield the labels of a chunk that are not empty."""
    words = chunk.rows(table, problems).words(table.used[str(table.form.columns.label)])
    filled = np.flatnonzero(words.stops > words.starts).tolist()
    yield from (words[k].decode("utf-8", "backslashreplace") for k in filled)


def _kind_of(cell: bytes, decimal: str) -> str:
    """Return the kind of a column by its first value."""
    if (sign := common_sign([cell.decode("utf-8", "replace").strip()], decimal)) is not None:
        return amount_kind(sign)
    try:
        parse_number(cell)
    except ValueError:
        return "category"
    return "number"


def _whole_rows(mark: int, width: int) -> Cut:
    """Return the function that finds the end of the last row; line ends within quotes do not end rows."""
    counts = np.zeros(2, np.int64)

    def cut(text: NDArray[np.uint8], length: int, ended: bool) -> tuple[int, int]:
        if not count(text, length, QUOTE) and not count(text, length, RETURN):
            return whole_lines(text, length)
        after = text[length]
        text[length] = FEED  # a sentinel
        scanner("csv_rows", "ends")(text, length, mark, width, ended, counts)
        text[length] = after
        return int(counts[0]), int(counts[1])

    return cut


def _split_rows(chunk: Chunk, table: CsvTable, line: int, problems: Problems) -> CsvRows:
    """Split the text of a chunk, whose first line has the number ``line``, into cells."""
    text, length, odd = _utf8(chunk.text, chunk.length)
    if odd is not None:
        at = line + count(chunk.text, odd, FEED)
        got = f"the byte {chunk.text[odd]:#04x}, which is not UTF-8"
        problems.warn("encoding", f"{table.file}, line {at}: got {got}, expected text in UTF-8; {OTHER_ENCODING}")
    # Escapes lengthen the text, so quotes may reach fewer rows, and there may be more of these.
    max_lines = chunk.lines if text is chunk.text else count(text, length, FEED) + count(text, length, RETURN)
    # A row has at least one byte per cell; one more row holds malformed ones while they are split.
    width = len(table.header)
    capacity = min(max_lines, length // width) + 1
    starts, stops = (table.buffers.empty((capacity, width), np.int32) for _ in range(2))
    lines, malformed = np.empty(max_lines, np.int64), np.empty((max_lines, 4), np.int64)
    counts = np.zeros(3, np.int64)
    scanner("csv_rows", "split")(text, length, ord(table.form.separator), starts, stops, lines, malformed, counts)
    n, bad, escaped = counts.tolist()
    rows = CsvRows(text, starts[:n], stops[:n], lines[:n], malformed[:bad])
    if escaped:
        scanner("csv_rows", "unescape")(text, rows.starts, rows.stops)
    table.form.normalize(rows)
    return rows


def _utf8(text: NDArray[np.uint8], length: int) -> tuple[NDArray[np.uint8], int, int | None]:
    """Return text that is valid UTF-8, its length, and the first other byte: these become escapes, as in names."""
    try:
        str(text.data[:length], "utf-8")
    except UnicodeDecodeError as wrong:
        escaped = text[:length].tobytes().decode("utf-8", "backslashreplace").encode()
        return np.frombuffer(bytearray(escaped + bytes(PAD)), np.uint8), len(escaped), wrong.start
    return text, length, None


def _decide(rows: CsvRows, table: CsvTable, kinds: dict[str, str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the kinds of columns that have a value in these rows, and the rows of the first words."""
    decided, first_words = dict[str, str](), dict[str, int]()
    for name in table.used.keys() - kinds.keys():
        words = rows.words(table.used[name])
        row = next((k for k in map(int, np.flatnonzero(words.stops > words.starts)) if not is_missing(words[k])), None)
        if row is not None:
            decided[name] = _kind_of(words[row], table.decimal)
            if decided[name] == "category":
                first_words[name] = row
    return decided, first_words


def _warn_of_format(name: str, cell: bytes, table: CsvTable, problems: Problems) -> None:
    """Warn of numbers that become categories because of how they are written."""
    word, options = cell.decode("utf-8", "replace").strip(), table.form.columns.options
    remedy = formatted_number(word)
    if remedy is not None and options.strict and not options.unlabelled and name in table.places:
        expected = f"a number, or categories=[{name!r}] if it is a word"
        problems.warn(
            name, f"column {name!r}: got {word!r}, which is read as a category, expected {expected}; {remedy}"
        )


def parse_csv(
    stream: Any, form: CsvFormat, problems: Problems, names: Names | None, file: str, start: Position,
    kinds_found: dict[str, str],
) -> Iterator[Task]:  # fmt: skip
    """Yield a task for each chunk of rows after ``start``, and at the end the problems of reading chunks.

    ``kinds_found`` receives the kinds of features.
    """
    try:
        table, stream = read_table(stream, form, names, file)
    except Malformed as wrong:
        problems.record(wrong)
        yield completed_task(None, problems)
        return
    if (transform := form.columns.options.transform) is not None:
        transform.check(table.features)
    for chunk in csv_chunks(stream, table, problems, kinds_found):
        if chunk.number > start.blocks:
            after = Position(start.file, chunk.number)
            yield partial(chunk_task, partial(_parse, table, chunk), chunk.chunk, problems.on_error, after)
    yield completed_task(None, problems)


def _parse(table: CsvTable, chunk: CsvChunk, problems: Problems) -> Block:
    columns, kinds = table.form.columns, chunk.kinds
    rows = chunk.rows(table, problems)
    rows.record_malformed(table, chunk.line, problems)
    row_problems = RowProblems(rows.lines + chunk.line, problems, table.file)
    cells = Cells.empty(rows.lines.size, len(table.features), columns.options.bits, table.buffers)
    mask = np.uint64((1 << columns.options.bits) - 1)
    signs = {name: sign_of(kinds.get(name, "number")) for name in table.used}
    numeric = {name: k for name, k in table.used.items() if signs[name] is not None or kinds.get(name) == "either"}
    # Columns of ordinary numbers, all at once.
    plain = [name for name in numeric if name in table.places and name not in columns.kinds and not signs[name]]
    filled = _fill_numbers(table, rows, plain, cells, mask)
    numbers = {
        name: cell_numbers(
            rows.words(k), name == columns.label or columns.kinds.get(name) == "number", signs[name], table.decimal
        )
        for name, k in numeric.items()
        if name not in filled
    }
    if kinds.get(str(columns.importance)) == "category":
        raise refuse("importance", f"column {columns.importance} of words", "a column of numbers")
    if columns.importance in numbers and not columns.options.unlabelled:
        weights = rows.words(numeric[columns.importance])
        numbers[columns.importance] = _marks_as_words(numbers[columns.importance], weights)
    if columns.label in table.used and (codes := LabelCodes(columns, kinds)).worded:
        numbers[columns.label] = codes.column(rows.words(table.used[columns.label]))
    values: dict[str, NumberColumn | FeatureColumn] = {
        **numbers,
        **{name: FeatureColumn(name.encode()) for name in filled},
    }
    words = [name for name in table.features if name not in values]
    _hash(table, rows, words, cells, mask)
    for name in words:
        # Cells before a column's first value are absent, as they are in a chunk without one.
        cells.present[: chunk.first_words.get(name, 0), table.places[name]] = False
        values[name] = FeatureColumn(name.encode(), rows.words(table.used[name]))
    every = np.ones(rows.lines.size, bool)
    derived = {name: StringColumn(rows.words(table.header.index(name)), every) for name in table.derived}
    block = block_of_columns(values, table.features, derived, cells, columns, row_problems, table.names)
    if slices := columns.options.slices:
        sliced = [rows.words(table.header.index(name)) for name in slices]
        block = with_slices(block, row_problems.lines, [[one[k] for k in range(rows.lines.size)] for one in sliced])
    return block


def _marks_as_words(numbers: NumberColumn, words: Spans) -> NumberColumn:
    """Return importances of which a mark of a missing value, such as NaN, is no number; an empty cell is absent."""
    marks = ~numbers.present & (words.stops > words.starts)
    for row in np.flatnonzero(marks).tolist():
        marks[row] = bool(words[row].decode("utf-8", "backslashreplace").strip())
    return replace(numbers, non_numbers=StringColumn(words, marks)) if marks.any() else numbers


def _hash(table: CsvTable, rows: CsvRows, names: list[str], cells: Cells, mask: np.uint64) -> None:
    """Fill the cells of categorical columns."""
    at = np.array([table.used[name] for name in names], np.int64)
    places = np.array([table.places[name] for name in names], np.int64)
    scanner("csv_rows", "hash_cells")(
        rows.text, rows.starts, rows.stops, at, places, table.hashes[places], mask, cells.slots, cells.present
    )


def _fill_numbers(table: CsvTable, rows: CsvRows, names: list[str], cells: Cells, mask: np.uint64) -> set[str]:
    """Fill the cells of numeric columns; return those all of whose cells are numbers or absent."""
    at = np.array([table.used[name] for name in names], np.int64)
    places = np.array([table.places[name] for name in names], np.int64)
    odd, slots = np.zeros(len(names), bool), slots_of_hashes(table.hashes[places], table.form.columns.options.bits)
    scanner("csv_rows", "fill_numbers")(
        rows.text, rows.starts, rows.stops, at, places, slots, cells.slots, cells.values, cells.present, odd
    )
    return {name for name, wrong in zip(names, odd.tolist(), strict=True) if not wrong}
