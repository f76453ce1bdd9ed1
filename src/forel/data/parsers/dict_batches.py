"""Dicts in batches: as JSON lines for compiled code where these are equivalent, otherwise key by key."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from forel.data.block import Block
from forel.data.buffers import Buffers
from forel.data.compiled.layout import PAD
from forel.data.features.kinds import DATE, OrderedKinds
from forel.data.features.names import Names
from forel.data.parsers.cells import RowProblems, Spans
from forel.data.parsers.column_values import StringColumn
from forel.data.parsers.columns import Columns
from forel.data.parsers.derived_columns import with_derived
from forel.data.parsers.dicts import CROSSED, ENTRIES, dict_blocks
from forel.data.parsers.json_keys import special_keys
from forel.data.parsers.json_lines import JsonFormat, read_chunk
from forel.data.problems import ProblemBuffer, Problems
from forel.data.sources.streams import Chunk
from forel.data.values import is_null

__all__ = ["batched_blocks", "json_lines_of"]

TEXT, STRINGS = frozenset((str,)), frozenset((str, type(None)))
EXACT = frozenset((str, int, float, bool, type(None), np.float64))  # types that JSON represents exactly
NULL = b":null"
ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, check_circular=False, separators=(",", ":"))


def batched_blocks(
    items: Iterable[tuple[int, Any]], form: JsonFormat, problems: Problems, names: Names | None, file: str,
    kinds_found: dict[str, str], complete: Callable[[], bool] = lambda: False,
) -> Iterator[Block]:  # fmt: skip
    """Yield blocks of numbered dicts, with the rows of :func:`dict_blocks`; ``kinds_found`` receives kinds of keys.

    A block ends with the dict during which ``complete`` returns True.
    """
    columns, buffers, keys = form.columns, Buffers(), special_keys(form.columns)
    for batch in _batches(items, ENTRIES if form.transform is None else CROSSED, complete):
        lines, dicts = zip(*batch, strict=True)
        derived, others = _derived(dicts, columns)
        text = None if derived is None else json_lines_of(others, columns.importance)
        if derived is not None and text is not None:
            found = ProblemBuffer()
            block, kinds = read_chunk(_chunk(text, len(dicts)), form, keys, buffers, names, file, 0, found)
            if derived:
                row_problems = RowProblems(np.arange(len(dicts)), found, file)
                block = with_derived(block, derived, columns, row_problems, names)
                kinds += [(name, DATE) for name, column in derived.items() if _is_found(name, column, columns)]
                columns.seen.add_keys([name for name, column in derived.items() if column.present.any()])
            if not found.problems:
                found.flush(problems)
                OrderedKinds(kinds_found, columns.known, columns.seen).add(0, kinds)
                yield replace(block, line=lines[0], lines=np.array(lines, np.int64)[block.lines])
                continue
        yield from dict_blocks(batch, columns, form.bits, problems, names, file, form.transform, kinds_found)


def _derived(
    dicts: Sequence[Any], columns: Columns
) -> tuple[dict[str, StringColumn] | None, Sequence[Any]]:  # fmt: skip
    """Return the strings of keys of text and dates, None if other values are among them; and dicts without these."""
    if not columns.derived:
        return {}, dicts
    strings = dict[str, StringColumn]()
    for name in sorted(columns.derived):
        if not columns.uses(name):
            continue
        values: list[Any] = [one.get(name) if isinstance(one, dict) else 0 for one in dicts]
        if not STRINGS.issuperset(map(type, values)):
            values = [None if is_null(value) else value for value in values]
            if not STRINGS.issuperset(map(type, values)):
                return None, dicts
        try:
            texts = [b"" if value is None else value.encode() for value in values]
        except UnicodeEncodeError:
            return None, dicts
        ends = np.cumsum([0, *map(len, texts)])
        joined = np.frombuffer(b"".join(texts) + bytes(PAD), np.uint8)
        strings[name] = StringColumn(
            Spans(joined, ends[:-1], ends[1:]), np.array([v is not None for v in values], bool)
        )
    return strings, [{key: value for key, value in one.items() if key not in strings} for one in dicts]


def _is_found(name: str, column: StringColumn, columns: Columns) -> bool:
    return name not in columns.kinds and name in columns.dates and bool(column.present.any())


def _batches(
    items: Iterable[tuple[int, Any]], entries: int, complete: Callable[[], bool]
) -> Iterator[list[tuple[int, Any]]]:
    """Yield lists of dicts with about ``entries`` keys, or as many as have arrived."""
    batch, size = list[tuple[int, Any]](), 0
    for numbered in items:
        batch.append(numbered)
        size += 1 + (len(numbered[1]) if isinstance(numbered[1], dict) else 0)
        if size >= entries or complete():
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def json_lines_of(items: Sequence[Any], importance: str | None = None) -> bytes | None:
    r"""Return dicts as JSON lines, with null for NaN; None if reading these would not give the same values.

    Parameters
    ----------
    items : the dicts
    importance : the key of importances, of which NaN is an error

    >>> json_lines_of([{"age": 31, "city": "Rome"}, {"age": None}, {"age": float("nan")}])
    b'{"age":31,"city":"Rome"}\n{"age":null}\n{"age":null}\n'
    >>> json_lines_of([{"age": np.float32(31)}]), json_lines_of([{3: 1.0}]), json_lines_of([{"age": float("inf")}])
    (None, None, None)
    """
    for item in items:
        if (
            type(item) is not dict
            or not EXACT.issuperset(map(type, item.values()))
            or not TEXT.issuperset(map(type, item))
        ):
            return None
    encode = fast_encoder()
    try:
        if encode is not None and (lines := encode(items, importance)) is not None:
            return lines
        return "".join([ENCODER.encode(item) + "\n" for item in items]).encode()
    except ValueError:  # numbers that are not finite, or text that is not Unicode
        others = _without_nan(items, importance)
        return None if others is None else json_lines_of(others)


def _without_nan(items: Sequence[dict[str, Any]], importance: str | None) -> list[dict[str, Any]] | None:
    """Return dicts with None for NaN; None if they have no NaN, or one that is an importance."""
    if not _count_nan(items, importance):
        return None
    return [{key: None if value != value else value for key, value in item.items()} for item in items]


def _count_nan(items: Sequence[dict[str, Any]], importance: str | None) -> int:
    """Return the number of values that are NaN; 0 if an importance is."""
    if importance is not None and any(weight != weight for weight in (item.get(importance) for item in items)):
        return 0
    return sum([value != value for item in items for value in item.values()])


@cache
def fast_encoder() -> Callable[[Sequence[Any], str | None], bytes | None] | None:
    """Return a function that encodes dicts as JSON lines by msgspec, several times as fast; None if not installed."""
    try:
        encode_lines = import_module("msgspec").json.Encoder().encode_lines
    except (ImportError, AttributeError):
        return None

    def encode(items: Sequence[Any], importance: str | None = None) -> bytes | None:
        try:
            lines: bytes = encode_lines(items)
        except TypeError:  # numbers of numpy
            return None
        # msgspec writes numbers that are not finite as null, too: NaN is missing, infinity is an error.
        nulls = lines.count(NULL)
        if nulls == 0 or nulls == (missing := sum(list(item.values()).count(None) for item in items)):
            return lines
        return lines if nulls == missing + _count_nan(items, importance) else None

    return encode


def _chunk(text: bytes, lines: int) -> Chunk:
    padded = np.zeros(len(text) + PAD + 8, np.uint8)
    padded[: len(text)] = np.frombuffer(text, np.uint8)
    return Chunk(padded, len(text), lines)
