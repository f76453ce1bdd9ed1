"""CSV and TSV rows as blocks of examples."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from forel.data.block import Block, Position, Task, completed_task
from forel.data.compiled import scanner
from forel.data.features.hashing import slots_of_hashes
from forel.data.features.kinds import sign_of
from forel.data.features.names import Names
from forel.data.features.rows import Cells
from forel.data.parsers.cells import FeatureColumn, RowProblems, Spans, block_from_columns
from forel.data.parsers.column_values import NumberColumn, StringColumn, fill_numbers, labels_and_importance
from forel.data.parsers.csv_rows import (
    CsvChunk,
    CsvFormat,
    CsvRows,
    CsvTable,
    cell_numbers,
    csv_chunks,
    read_table,
    split_rows,
)
from forel.data.parsers.derived_columns import with_derived
from forel.data.parsers.label_cells import given_words, has_classes, labels_of
from forel.data.problems import Malformed, Problems
from forel.data.slices import with_slices
from forel.validation import refuse

__all__ = ["parse_csv"]


def parse_csv(
    stream: Any, form: CsvFormat, problems: Problems, names: Names | None, file: str, start: Position,
    kinds_found: dict[str, str] | None = None,
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
            yield partial(_task, table, chunk, Problems(problems.on_error), after)
    yield completed_task(None, problems)


def _task(table: CsvTable, chunk: CsvChunk, problems: Problems, after: Position) -> tuple[Block, Problems]:
    gathered = Problems("later")
    rows = chunk.rows or split_rows(chunk.chunk, table, chunk.line, gathered)
    block = _parse(table, rows, chunk, gathered)
    problems.absorb(gathered)
    if names := table.form.columns.options.slices:
        cells = [rows.words(table.header.index(name)) for name in names]
        values = [[words[k] for k in range(rows.lines.size)] for words in cells]
        block = with_slices(block, rows.lines + chunk.line, values)
    return replace(block, size=chunk.chunk.length, after=after), problems


def _parse(table: CsvTable, rows: CsvRows, chunk: CsvChunk, problems: Problems) -> Block:
    columns, kinds = table.form.columns, chunk.kinds
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
    if columns.label in table.used and (has_classes(columns, kinds) or given_words(columns, kinds) is not None):
        numbers[columns.label] = labels_of(rows.words(table.used[columns.label]), columns, kinds)
    labels = labels_and_importance(numbers, columns, row_problems)
    _hash(table, rows, [name for name in table.features if name not in numbers and name not in filled], cells, mask)
    made = []
    for place, name in enumerate(table.features):
        if name in numbers:
            made.append(fill_numbers(numbers[name], name, place, columns, cells, mask, row_problems))
        elif name in filled:
            made.append(FeatureColumn(name.encode()))
        else:
            # Cells before a column's first value are absent, as they are in a chunk without one.
            cells.present[: chunk.first_words.get(name, 0), place] = False
            made.append(FeatureColumn(name.encode(), rows.words(table.used[name])))
    block = block_from_columns(cells, made, labels, row_problems, columns.options, table.names)
    if not table.derived:
        return block
    every = np.ones(rows.lines.size, bool)
    derived = {name: StringColumn(rows.words(table.header.index(name)), every) for name in table.derived}
    return with_derived(block, derived, columns, row_problems, table.names)


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
