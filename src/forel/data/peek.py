"""A summary of the first rows of a source: format, columns, kinds, missing values, and a guess of the label."""

import csv
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from io import BytesIO, StringIO
from itertools import islice
from typing import Any

import numpy as np

from forel.data.features.dates import AMBIGUOUS, date_order
from forel.data.labels import LabelWords, kind_of_words, word_sign
from forel.data.options import ReadOptions
from forel.data.parsers.arrow_batches import arrow_batches, parquet_batches
from forel.data.parsers.csv_header import distinct_names, separator_of
from forel.data.problems import Malformed, excerpt
from forel.data.reader import format_of, read
from forel.data.sources.files import single_sources
from forel.data.sources.streams import open_stream
from forel.data.values import common_sign, is_missing, parse_number, plain_number
from forel.validation import refuse, whole

__all__ = ["ColumnSummary", "Summary", "peek"]

BYTES = 1 << 20  # of text that are read
MOST_MARKS = 3  # different words among the numbers of a column that may be marks of missing values
LARGEST = 3.4028234663852886e38  # of float32
MOST_TITLES, ALIKE = 10, 3  # lines before the names of columns, and lines from there on with as many values
EXAMPLES, LONGEST = 3, 24  # values shown of a column, and their characters
TEXT_WORDS = 2.5  # words of a value, on average, from which on a column is text
FEWEST_IDS = 20  # rows, for a column with another value in each of them to have identifiers
MOST_CLASSES = 100  # of a column that may be the label
LARGEST_CLASS = 1000  # of two whole numbers that are classes and not amounts
MOST_MALFORMED = 0.5  # of the rows that are read, which a command may skip
HEADED = 0.9  # of the values of a column that are numbers, for a word above them to be its name
# Common names of labels, the most certain first.
LABELS = (
    "label", "target", "y", "class", "click", "clicked", "churn", "churned", "outcome", "response", "is_spam",
    "spam", "survived", "species", "fraud", "is_fraud", "converted", "conversion", "default", "bought", "purchased",
    "subscribed", "exited", "attrition", "diagnosis", "category", "topic", "rating", "quality", "cnt", "count", "price",
    "income",
)  # fmt: skip
AMOUNTS = frozenset({"rating", "quality", "cnt", "count", "price", "income"})  # features as often as labels
Row = Mapping[str, Any]


@dataclass(frozen=True)
class ColumnSummary:
    """A column in the first rows.

    Parameters
    ----------
    name : of the column
    kind : "number", "category", "text" or "date"
    distinct, missing : numbers of distinct and of missing values
    examples : the first distinct values
    marks : marks of missing values, which options have to name: in a column of categories, or a few words among numbers
    mixed : whether many words are among the numbers, so that options have to name a column of categories
    order : the order of day, month and year of dates that need one, or which two it may be
    """

    name: str
    kind: str
    distinct: int
    missing: int
    examples: tuple[str, ...]
    marks: tuple[str, ...] = ()
    mixed: bool = False
    order: str = ""


@dataclass(frozen=True)
class Summary:
    """What the first rows of a file show.

    Parameters
    ----------
    file, format : the file, and its format
    rows : number of rows that were read
    options : how to read the file
    columns : in the order of the file; empty for formats without columns
    label : the column that most likely holds the labels; None if none does
    words : the words of the labels; None if these are numbers, or words of several classes
    classes : number of classes; None for two, and for numbers
    positive : the larger of two labels that are whole numbers other than 0, 1 and -1
    regression : whether the label has more than two values, all numbers, or two that are not whole
    ignore : columns of identifiers, in which every row has another word, and columns that count the rows
    formatted : columns of numbers that are written with signs of currency or percent, or thousands separators
    malformed : number of rows that cannot be read
    problem : what is wrong with the first of these
    given : the options that the caller gave
    """

    file: str
    format: str
    rows: int
    options: ReadOptions
    columns: tuple[ColumnSummary, ...] = ()
    label: str | None = None
    words: LabelWords | None = None
    classes: int | None = None
    positive: str | None = None
    regression: bool = False
    ignore: tuple[str, ...] = ()
    formatted: tuple[str, ...] = ()
    malformed: int = 0
    problem: str = ""
    given: ReadOptions = field(default_factory=ReadOptions, repr=False)

    @property
    def separator(self) -> str | None:
        """The separator of delimited text."""
        return self.options.separator

    @property
    def trainable(self) -> bool:
        """Whether the labels are known, so that there is a command to train."""
        return self.label is not None or not self.columns

    def reading(self) -> dict[str, Any]:
        """Return the options of reading that differ from the defaults."""
        options, given = self.options, self.given
        features = [column for column in self.columns if column.name != self.label]
        # New rows of two columns have one without the label, and then no separator to recognize.
        known = len(self.columns) > 2 or options.separator == ","
        marks = dict.fromkeys((*given.missing, *(mark for c in features for mark in c.marks if "\0" not in mark)))
        mixed = [c.name for c in features if c.kind == "category" and c.mixed and c.name not in given.categories]
        texts = [c.name for c in features if c.kind == "text" and c.name not in given.text]
        new = (c for c in features if c.kind == "date" and c.order != AMBIGUOUS and c.name not in given.dates)
        dates = [f"{column.name}:{column.order}" if column.order else column.name for column in new]
        unlabelled = any(column.name == self.label and column.missing for column in self.columns)
        chosen = {
            "format": None if given.format == "auto" else given.format,
            "encoding": given.encoding,
            "separator": given.separator or (None if known else options.separator),
            "label": self.label,
            "positive": given.positive or self.positive,
            "header": None if options.header else False,
            "decimal": None if options.decimal == "." else options.decimal,
            "missing": list(marks),
            "categories": [*given.categories, *mixed] if mixed else [],
            "text": [*given.text, *texts],
            "date": [*given.date, *dates],
            "ignore": list(self.ignore),
            "on_error": "skip" if self.malformed or unlabelled else None,
        }
        return {name: value for name, value in chosen.items() if value not in (None, [])}

    def arguments(self) -> list[str]:
        """Return the arguments of ``forel train`` for this file."""
        arguments = [f"./{self.file}" if self.file.startswith("-") and self.file != "-" else self.file]
        for name, value in self.reading().items():
            flag = f"--{name.replace('_', '-')}"
            if name == "header":
                arguments.append("--no-header")
            elif isinstance(value, list):
                arguments += [flag, ",".join(value) if name == "missing" else _listed(value)]
            else:
                arguments += [flag, "tab" if value == "\t" else value]
        return [*arguments, *(["--loss", "squared"] if self.regression else []), "--model", "model.forel"]


def _listed(names: Sequence[str]) -> str:
    """Return names separated by commas, those with a comma in quotes."""
    return ",".join(f'"{name}"' if "," in name else name for name in names)


def peek(source: Any, rows: int = 1000, **reading: Any) -> Summary:
    r"""Return a summary of the first rows of a file.

    Parameters
    ----------
    source : a path, a pattern, of which the first file is read, "-" or a binary file object
    rows : number of rows to read
    reading : options of :class:`forel.data.ReadOptions` that are known

    >>> import io
    >>> summary = peek(io.BytesIO(b"39;State-gov;2,5;no\n50;?;13;yes\n38;Private;0,5;no\n"))
    >>> summary.format, summary.separator, summary.options.header, summary.options.decimal, summary.label
    ('csv', ';', False, ',', 'c4')
    >>> summary.columns[1]
    ColumnSummary(name='c2', kind='category', distinct=2, ..., marks=('?',), mixed=False, order='')
    """
    given, most = ReadOptions().updated(reading), whole("rows", rows, low=1)
    first, *_ = single_sources(source)
    if not (isinstance(first, str) or hasattr(first, "read")):
        raise refuse("source", type(source).__name__, "a path or a binary file object")
    file, options, text = first if isinstance(first, str) else "-", given, b""
    with _whole(file), open_stream(first, options.encoding) as stream:
        beginning = stream.peek(1 << 12)
        form = format_of(file, options, beginning)
        if form in ("parquet", "arrow"):
            batches = parquet_batches(stream) if form == "parquet" else arrow_batches(stream)
            records: list[Row] = list(islice((row for batch in batches for row in batch.to_pylist()), most))
            columns = list(records[0]) if records else []
        else:
            text = _whole_lines(stream, most)
            if options.encoding is None and (encoding := _encoding(text)) is not None:
                given = options = replace(given, encoding=encoding)
                text = text.decode(encoding).encode()
            every = list(StringIO(text.decode("utf-8-sig", "backslashreplace"), ""))
            lines = [line for line in every if line.strip()]
            if form in ("csv", "tsv"):
                _check_first(every, file, form, options)
                options = _text_options(form, options, lines, beginning)
                names, table = _delimited(lines, options, most)
                options = options if names is not None else replace(options, header=False)
                table = table[:most] if names is None else table[1:]
                columns = names or [f"c{k + 1}" for k in range(max(map(len, table), default=0))]
                whole_rows = [row for row in table if len(row) == len(columns)] or table
                records = [dict(zip(columns, row, strict=False)) for row in whole_rows]
                if not records:
                    raise ValueError(f"{file}: got a header without rows, expected a row in each line after it")
            else:
                dicts = form == "jsonl"
                records = [row for line in lines[:most] if isinstance(row := _json(line), dict)] if dicts else []
                columns = list(dict.fromkeys(name for row in records for name in row))
    found = replace(_summary(file, form, options, columns, records), given=given)
    if form not in ("csv", "tsv", "jsonl", "parquet", "arrow"):
        found = replace(found, rows=min(len(lines), most))
    # A pipe cannot be read again.
    again = first if isinstance(first, str) and first != "-" else BytesIO(text) if text else None
    return found if again is None or not found.trainable else _checked(found, again, most)


def _checked(found: Summary, source: Any, most: int) -> Summary:
    """Return a summary with the number of rows that training cannot read; raise if these are the most."""
    given = found.given if isinstance(source, str) else replace(found.given, encoding=None)  # bytes are UTF-8 by now
    reader = read(source, options=given, **{**found.reading(), "format": found.format, "on_error": "skip"})
    rows, values, problems = 0, set[float](), reader.problems
    with warnings.catch_warnings(action="ignore"):  # the summary has what they say
        for block in reader:
            missing = np.flatnonzero(np.isnan(block.labels) & (not found.columns))
            for row in missing:
                line = block.line + row if block.lines is None else block.lines[row]
                expected = f"a number; or another format (--format) than {found.format}"
                problems.record(Malformed(block.file, int(line), None, "no label", expected))
            rows += len(block) - len(missing)
            values.update(block.labels.tolist())
            if rows >= most:
                break
    if problems.count > MOST_MALFORMED * (rows + problems.count):
        raise ValueError(problems.messages[0])
    if not found.columns:  # labels are known only now
        labels = [value for value in values if not math.isnan(value)]
        found = replace(found, regression=_numeric_labels(labels, found.options) != (None, False))
    return replace(found, malformed=problems.count, problem=next(iter(problems.messages), ""))


@contextmanager
def _whole(file: str) -> Iterator[None]:
    try:
        yield
    except EOFError as error:
        raise ValueError(f"{file}: got {str(error).rstrip('.')}, expected a whole file") from error


def _whole_lines(stream: Any, most: int) -> bytes:
    """Return the first whole lines of a stream."""
    data = b""
    while len(data) < BYTES and data.count(b"\n") <= most and (more := stream.read1(BYTES - len(data))):
        data += more
    return data[: data.rfind(b"\n") + 1] or data if len(data) >= BYTES else data


def _encoding(text: bytes) -> str | None:
    """Return the encoding that text most likely has; None for UTF-8, also with a few damaged characters."""
    with suppress(UnicodeDecodeError):
        text.decode()
        return None
    if b"\0" in text or not text.decode(errors="ignore").isascii():
        return None
    with suppress(UnicodeDecodeError):
        text.decode("cp1252")
        return "cp1252"
    return "latin-1"


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _check_first(lines: list[str], file: str, form: str, options: ReadOptions) -> None:
    """Raise if the first lines have one value each, or none, and the rows after them several: a title or comments."""
    later = "".join(lines[min(MOST_TITLES, len(lines) // 2) :]).encode()
    separator = separator_of(form, replace(options, decimal=","), later)
    cells = [next(csv.reader([line], delimiter=separator), []) for line in lines[: MOST_TITLES + ALIKE]]
    first = next((k for k, row in enumerate(cells) if any(cell.strip() for cell in row[1:])), 0)
    titles = [line for line in lines[:first] if line.strip()]
    if titles and '"' not in titles[0] and len({len(row) for row in cells[first : first + ALIKE]}) == 1:
        expected = f"the names of columns, as in line {first + 1}; tail -n +{first + 1} FILE is the file without title"
        raise Malformed(file, 1, None, excerpt(titles[0].strip().encode()), expected)


def _text_options(form: str, options: ReadOptions, lines: list[str], beginning: bytes) -> ReadOptions:
    """Return the options with a separator, and with decimal commas if numbers have them."""
    european = replace(options, decimal=",")
    separator, other = (separator_of(form, one, beginning) for one in (options, european))
    if other != ",":
        rows = list(islice(csv.reader(lines, delimiter=other), 100))
        cells = list(zip(*(row for row in rows if len(row) == len(rows[0])), strict=True)) if rows else []
        if any(_has_decimal_commas(column[1:] or column) for column in cells):
            return replace(european, separator=other)
    return replace(options, separator=separator)


def _has_decimal_commas(cells: Sequence[str]) -> bool:
    present = [cell.strip() for cell in cells if not is_missing(cell.encode())]
    marked = any(mark in cell for cell in present for mark in ",.")
    return marked and common_sign(present, ",") is not None and common_sign(present) is None


def _delimited(lines: list[str], options: ReadOptions, most: int) -> tuple[list[str] | None, list[list[str]]]:
    """Return the header, None if the first row is not one, and all rows."""
    rows = [row for row in islice(csv.reader(lines, delimiter=options.separator or ","), most + 1) if row]
    if not rows:
        expected = "the names of the columns, and a row in each line after them"
        raise ValueError(f"source: got an empty file, expected {expected}")
    names = distinct_names(rows[0])
    if not options.header:
        return None, rows
    odd = 2 * sum(not name.strip(" ") for name in rows[0]) > len(names)
    if odd or any(_is_number(name, options) for name in names):
        return None, rows
    columns = [[row[k].strip(" ") for row in rows[1:] if k < len(row)] for k in range(len(names))]
    headed = any(_are_numbers(column, options) for column in columns)
    again = any(name in column for name, column in zip(names, columns, strict=True))
    return None if again and not headed else names, rows


def _are_numbers(cells: Sequence[str], options: ReadOptions) -> bool:
    """Return whether nearly all cells with a value are numbers, so that a word above them is a name."""
    present = [cell for cell in cells if not is_missing(cell.encode())]
    return bool(present) and sum(_is_number(cell, options) for cell in present) >= HEADED * len(present)


def _is_number(cell: Any, options: ReadOptions) -> bool:
    if not isinstance(cell, str):
        return isinstance(cell, int | float | Decimal)
    try:
        return parse_number(cell.replace(options.decimal, ".").encode()) is not None
    except ValueError:
        return False


def _summary(file: str, form: str, options: ReadOptions, names: list[str], rows: list[Row]) -> Summary:
    given = {name: [_stripped(row.get(name)) for row in rows] for name in names}
    values = {name: _without_signs(cells, options) for name, cells in given.items()}
    columns = tuple(_column(name, values[name], given[name], options) for name in names)
    plain = {name: [_with_point(cell, options) for cell in cells] for name, cells in given.items()}
    formatted = tuple(
        c.name for c in columns if c.kind == "number" and values[c.name] not in (given[c.name], plain[c.name])
    )
    label = options.label if options.label is not None else _guess(columns, len(rows), formatted)
    labels = next((column for column in columns if column.name == label), None)
    words, worded = None, labels is not None and labels.kind == "category"
    classes = None
    if labels is not None and worded and labels.distinct >= 2:
        found = {str(row.get(labels.name)) for row in rows if row.get(labels.name) is not None}
        words = LabelWords.of_kind(kind_of_words(found))
        classes = labels.distinct if words is None else None
    positive, regression = None, False
    if labels is not None and labels.kind == "number" and options.positive is None:
        positive, regression = _numeric_labels(values[labels.name], options)
    ids = [
        column.name
        for column in columns
        if column.distinct == len(rows) >= FEWEST_IDS and column.name != label and column.name not in formatted
        and (_is_row_number(column.name, rows) if column.kind == "number" else column.kind == "category")
        and not any(" " in example for example in column.examples)
    ]  # fmt: skip
    ignore = tuple(ids) if len(ids) + (label is not None) < len(columns) else ()
    return Summary(
        file, form, len(rows), options, columns, label, words, classes, positive, regression, ignore, formatted
    )


def _numeric_labels(cells: list[Any], options: ReadOptions) -> tuple[str | None, bool]:
    """Return the positive one of two labels if it has to be named, and whether labels are numbers to predict."""
    texts: dict[float, str] = {}
    for cell in cells:
        if cell is not None and _is_number(cell, options) and (text := str(cell).strip()):
            value = parse_number(text.replace(options.decimal, ".").encode())
            texts.setdefault(math.nan if value is None else value, text)
    values = sorted(texts)
    if (len(values) <= 2 and all(0 <= value <= 1 for value in values)) or values in ([-1.0, 1.0], [-1.0]):
        return None, False
    if len(values) == 2 and all(value.is_integer() and abs(value) < LARGEST_CLASS for value in values):
        return texts[values[-1]], False
    return None, True


def _is_row_number(name: str, rows: list[Row]) -> bool:
    """Return whether a column counts the rows: each number is the one before, plus 1."""
    first = str(rows[0].get(name))
    return first.isdecimal() and all(str(row.get(name)) == str(int(first) + k) for k, row in enumerate(rows))


def _stripped(value: Any) -> Any:
    return "" if value is None else value.strip() if isinstance(value, str) else value


def _with_point(cell: Any, options: ReadOptions) -> Any:
    return cell.replace(options.decimal, ".") if isinstance(cell, str) else cell


def _without_signs(cells: list[Any], options: ReadOptions) -> list[Any]:
    """Return amounts as plain numbers, if the first value is one or a number, as training reads them."""
    words = [cell for cell in cells if isinstance(cell, str) and not is_missing(cell.encode())]
    sign = common_sign(words[:1], options.decimal)
    if sign is None and not (words and _is_number(words[0], options)):
        return cells
    return [plain_number(cell, sign or "", options.decimal) if isinstance(cell, str) else cell for cell in cells]


def _column(name: str, cells: list[Any], given: list[Any], options: ReadOptions) -> ColumnSummary:
    marked = [isinstance(cell, str) and (is_missing(cell.encode()) or cell in options.missing) for cell in cells]
    present = [cell for cell, mark in zip(cells, marked, strict=True) if not mark]
    number = bool(present) and all(_is_number(cell, options) for cell in _kind_cells(present))
    words = {cell for cell in present if isinstance(cell, str) and not _is_finite(cell, options)} if number else set()
    mixed = len(words) > MOST_MARKS or any(common_sign([word]) is not None for word in words)
    number = number and not mixed
    distinct = Counter(str(cell) for cell in present if not number or cell not in words)
    marks = {str(cell): None for cell, mark in zip(cells, marked, strict=True) if mark and cell != ""}
    marks = dict.fromkeys(sorted(words)) if number else marks
    missing = sum(marked) + (sum(cell in words for cell in present) if number else 0)
    written = dict(zip(map(str, cells), map(str, given), strict=True))
    first = (written[cell] for cell in islice(distinct, EXAMPLES))
    shown = tuple(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for text in first)
    texts = (str(one) for one in present if not isinstance(one, date))
    order = date_order(texts) if present and not number else None
    dated = order is not None
    kind = "number" if number else "date" if dated else "text" if _is_text(present, len(distinct)) else "category"
    return ColumnSummary(name, kind, len(distinct), missing, shown, tuple(marks), mixed, order or "")


def _is_finite(cell: str, options: ReadOptions) -> bool:
    """Return whether training reads a cell of a column of numbers: one in the range of float32."""
    with suppress(ValueError):
        number = parse_number(cell.replace(options.decimal, ".").encode())
        return number is not None and abs(number) <= LARGEST
    return False


def _is_text(present: list[Any], distinct: int) -> bool:
    """Return whether values are texts: most are different, with several words each."""
    words = sum(len(value.split()) for value in present if isinstance(value, str))
    return len(present) >= 3 and 2 * distinct > len(present) and words >= TEXT_WORDS * len(present)


def _kind_cells(present: list[Any]) -> Iterator[Any]:
    """Yield the values that decide the kind: the first of text, all others."""
    yield from present[:1] if isinstance(present[0], str) else present


def _guess(columns: Sequence[ColumnSummary], rows: int, amounts: Sequence[str]) -> str | None:
    """Return the column of labels: by its name, or the last, first or only one with two values, or with few words."""
    spelled = {c.name: re.sub(r"\W+", "_", c.name.lower()).strip("_") for c in columns}  # Is spam? is is_spam
    named = [(LABELS.index(spelled[c.name]), c) for c in columns if spelled[c.name] in LABELS and c.name not in amounts]
    sure = sorted(((k, c) for k, c in named if LABELS[k] not in AMOUNTS), key=lambda pair: pair[0])
    few = [c for c in columns if c.kind == "category" and 2 < c.distinct <= min(MOST_CLASSES, rows // 5)]
    two = [c for c in columns if c.distinct == 2]
    usual = [c for c in two if {*c.examples} <= {"0", "1", "-1"}]
    usual += [c for c in columns if c.distinct > 1 and all(word_sign(word) for word in c.examples)]  # Yes and yes
    choices: list[Callable[[], ColumnSummary | None]] = [
        lambda: min(((k, c) for k, c in named if c.distinct == 2), key=lambda pair: pair[0], default=(0, None))[1],
        lambda: next((c for _, c in sure if c.kind == "number"), None),
        lambda: next((c for _, c in sure if c in few), None),
        lambda: columns[-1] if columns and columns[-1] in usual else None,
        lambda: min(((k, c) for k, c in named if c.kind == "number"), key=lambda pair: pair[0], default=(0, None))[1],
        lambda: columns[0] if columns and columns[0] in usual else None,
        lambda: columns[-1] if columns and columns[-1] in two else None,
        lambda: columns[0] if columns and columns[0] in two else None,
        lambda: two[0] if len(two) == 1 else None,
        lambda: columns[-1] if columns and columns[-1] in few else None,
        lambda: columns[0] if columns and columns[0] in few else None,
    ]
    return next((found.name for choice in choices if (found := choice()) is not None), None)
