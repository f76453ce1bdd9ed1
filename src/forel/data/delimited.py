"""CSV and TSV as record batches, for files with columns: pyarrow splits, its first value decides what a column is."""

import codecs
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.arrow import call, cast, numbers, strings
from forel.data.header import header
from forel.data.problems import Malformed, Problems, shown
from forel.data.sources import BROKEN, LONGEST
from forel.data.spelling import NOTHING, number_in, says_nothing
from forel.data.tables import Numbered

__all__ = ["delimited"]


def delimited(
    stream: Any, separator: str, known: Mapping[str, str], block_bytes: int, problems: Problems, file: str,
    limit: int = LONGEST,
) -> Iterator[Numbered]:  # fmt: skip
    r"""Yield typed batches of the rows of a stream, with their lines; line ends within quotes do not count.

    ``known`` says which columns are of kind "category" or "number", whatever their first value is.

    >>> import io
    >>> batch, lines = next(delimited(io.BytesIO(b"price,city\n3,Rome\n,Oslo\n"), ",", {}, 1 << 20, Problems(), ""))
    >>> batch.to_pydict(), lines.tolist()
    ({'price': [3.0, None], 'city': [b'Rome', b'Oslo']}, [2, 3])
    """
    import pyarrow as pa
    import pyarrow.csv as pacsv

    try:
        names = header(stream, separator, file, limit)
    except Malformed as wrong:
        problems.meet(wrong)
        return
    skipped: list[int] = []
    refused: list[Any] = []

    def invalid(row: Any) -> str:
        skipped.append(row.number)
        refused.append(row)
        return "error" if problems.on_error == "raise" else "skip"

    kinds = dict(known)
    rows = 0
    try:
        reader = pacsv.open_csv(
            pa.PythonFile(_Text(stream), "r"),
            read_options=pacsv.ReadOptions(
                use_threads=False, block_size=max(block_bytes, 1 << 20), column_names=names
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=separator, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=invalid
            ),
            convert_options=pacsv.ConvertOptions(
                column_types={name: pa.binary() for name in names}, strings_can_be_null=False
            ),
        )  # fmt: skip
        for batch in reader:
            while refused:
                problems.meet(_width(file, refused.pop(0)))
            kept = np.arange(rows, rows + batch.num_rows)
            before = np.array(skipped, np.int64) - np.arange(len(skipped))
            lines = kept + 2 + np.searchsorted(before, kept + 1, side="right")
            rows += batch.num_rows
            yield _typed(batch, lines, kinds, problems, file)
    except pa.ArrowException as wrong:
        if refused and problems.on_error == "raise":
            raise _width(file, refused[0]) from None
        if "Empty CSV" not in str(wrong):
            got = str(wrong).splitlines()[0].rstrip(".")
            problems.meet(Malformed(file, rows + 2, None, got, "rows of CSV; or say a larger block_bytes"))
    except BROKEN as wrong:
        problems.meet(Malformed(file, rows + 2, None, str(wrong).rstrip("."), "a whole file"))
    while refused:
        problems.meet(_width(file, refused.pop(0)))


class _Text:
    """A stream whose bytes are UTF-8 for certain: others come as escapes, as they do in names.

    pyarrow keeps bytes that are not in cells, but cannot report a malformed row with such a byte.
    """

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._held = b""

    def read(self, size: int) -> bytes:
        """Return at most so many bytes, none at the end."""
        while not self._held:
            data = self._stream.read(size)
            self._held = self._decoder.decode(data, final=not data).encode()
            if not data:
                break
        found, self._held = self._held[:size], self._held[size:]
        return found


def _width(file: str, row: Any) -> Malformed:
    text = row.text if isinstance(row.text, bytes) else str(row.text).encode()
    got = f"{row.actual_columns} columns in {shown(text)}"
    return Malformed(file, row.number + 1, None, got, f"{row.expected_columns} columns")


def _typed(
    batch: Any, lines: NDArray[np.int64], kinds: dict[str, str], problems: Problems, file: str
) -> Numbered:  # fmt: skip
    """Return a batch of strings with the columns' own types, without the rows that do not fit."""
    import pyarrow as pa

    arrays = []
    good = ~_empty(batch)
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if kinds.get(name) == "category":
            arrays.append(array)
            continue
        # A column is what its first value is, so that this does not depend on how much is read at a time.
        if name not in kinds and (first := _first(array)) is not None:
            kinds[name] = "category" if _floats(first)[1] else "number"
            if kinds[name] == "category":
                arrays.append(array)
                continue
        values, bad = _floats(array)
        for row in bad:
            if good[row]:
                expected = f"a number, as the column's first; or say categories=[{name!r}]"
                problems.meet(Malformed(file, int(lines[row]), name, shown(array[row].as_py()), expected))
            good[row] = False
        arrays.append(values)
    typed = pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
    return (typed, lines) if good.all() else (typed.filter(pa.array(good)), lines[good])


def _empty(batch: Any) -> NDArray[np.bool_]:
    """Tell which rows have nothing in any cell, as empty lines have."""
    found = np.ones(batch.num_rows, bool)
    for array in batch.columns:
        if not found.any():
            break
        ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
        found &= ends[1:] == ends[:-1]
    return found


def _first(array: Any) -> Any:
    """Return the part of a column that is its first value, or None without one."""
    for row, cell in enumerate(array):
        if not says_nothing(cell.as_py()):
            return array.slice(row, 1)
    return None


def _floats(array: Any) -> tuple[Any, list[int]]:
    """Return the numbers of a column of strings, null where there is nothing, and the rows that are no numbers."""
    import pyarrow as pa
    from pyarrow._compute import SetLookupOptions

    try:
        text = call("utf8_trim_whitespace", cast(array, pa.string()))
        nothing = call("is_in", text, options=SetLookupOptions(strings(NOTHING), skip_nulls=False))
        return cast(call("if_else", nothing, pa.nulls(len(text), pa.string()), text), pa.float64()), []
    except pa.ArrowInvalid:
        return _one_by_one(array)


def _one_by_one(array: Any) -> tuple[Any, list[int]]:
    found: list[float | None] = []
    bad = []
    for row, cell in enumerate(array.to_pylist()):
        try:
            found.append(number_in(cell))
        except ValueError:
            found.append(None)
            bad.append(row)
    return numbers(found), bad
