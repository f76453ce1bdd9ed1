"""Dicts in batches: as JSON lines for compiled code where these mean the same, otherwise key by key."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from forel.data.block import Block
from forel.data.buffers import Buffers
from forel.data.compiled.layout import PAD
from forel.data.features.kinds import OrderedKinds
from forel.data.features.names import Names
from forel.data.parsers.dicts import CROSSED, ENTRIES, dict_blocks
from forel.data.parsers.json_keys import special_keys
from forel.data.parsers.json_lines import JsonFormat, read_chunk
from forel.data.problems import ProblemBuffer, Problems
from forel.data.sources.streams import Chunk

__all__ = ["batched_blocks", "json_lines_of"]

EXACT = frozenset((str, int, float, bool, type(None), np.float64))  # types that JSON keeps as they are
ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, check_circular=False, separators=(",", ":"))


def batched_blocks(
    items: Iterable[tuple[int, Any]], form: JsonFormat, problems: Problems, names: Names | None, file: str,
    kinds_found: dict[str, str],
) -> Iterator[Block]:  # fmt: skip
    """Yield blocks of numbered dicts, with the rows of :func:`dict_blocks`; ``kinds_found`` receives kinds of keys."""
    columns, buffers, keys = form.columns, Buffers(), special_keys(form.columns)
    for batch in _batches(items, ENTRIES if form.transform is None else CROSSED):
        lines, dicts = zip(*batch, strict=True)
        text = json_lines_of(dicts)
        if text is not None:
            found = ProblemBuffer()
            block, kinds = read_chunk(_chunk(text, len(dicts)), form, keys, buffers, names, file, 0, found)
            if not found.problems:
                found.flush(problems)
                OrderedKinds(kinds_found, columns.known, columns.seen).add(0, kinds)
                yield replace(block, line=lines[0], lines=np.array(lines, np.int64)[block.lines])
                continue
        yield from dict_blocks(batch, columns, form.bits, problems, names, file, form.transform, kinds_found)


def _batches(items: Iterable[tuple[int, Any]], entries: int) -> Iterator[list[tuple[int, Any]]]:
    """Yield lists of dicts with about so many keys."""
    batch, size = list[tuple[int, Any]](), 0
    for numbered in items:
        batch.append(numbered)
        size += 1 + (len(numbered[1]) if isinstance(numbered[1], dict) else 0)
        if size >= entries:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def json_lines_of(items: Sequence[Any]) -> bytes | None:
    r"""Return dicts as JSON lines; None if reading these would not give the same values.

    >>> json_lines_of([{"age": 31, "city": "Rome"}, {"age": None}])
    b'{"age":31,"city":"Rome"}\n{"age":null}\n'
    >>> json_lines_of([{"age": np.float32(31)}]), json_lines_of([{3: 1.0}]), json_lines_of([{"age": float("nan")}])
    (None, None, None)
    """
    for item in items:
        if type(item) is not dict or not EXACT.issuperset(map(type, item.values())) or {*map(type, item)} - {str}:
            return None
    try:
        return "".join([ENCODER.encode(item) + "\n" for item in items]).encode()
    except ValueError:  # numbers that are not finite, or text that is not Unicode
        return None


def _chunk(text: bytes, lines: int) -> Chunk:
    padded = np.zeros(len(text) + PAD + 8, np.uint8)
    padded[: len(text)] = np.frombuffer(text, np.uint8)
    return Chunk(padded, len(text), lines)
