"""Values of columns by which metrics are sliced, one for each row of a block."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.values import is_null

__all__ = ["TAG", "SliceRecorder", "line_slices", "slice_text", "with_slices"]

TAG = "tag"  # the column of tags in VW text; any other name is a namespace


def with_slices(block: Block, lines: NDArray[np.int64], columns: Sequence[Sequence[bytes]]) -> Block:
    """Return a block with the values of its rows.

    Parameters
    ----------
    block : some rows of a table, with their lines
    lines : the line of each row of the table, increasing
    columns : values of each row of the table, for each column; empty where one is missing

    >>> block = Block(np.array([0, 1]), np.int32([4]), np.float32([1]), np.float32([1]), lines=np.array([3]))
    >>> with_slices(block, np.array([2, 3]), [[b"Oslo", b"Rome"]]).slices
    array([[b'Rome']], dtype=object)
    """
    values = np.empty((len(columns), lines.size), object)
    for k, column in enumerate(columns):
        values[k] = column
    return replace(block, slices=values[:, np.searchsorted(lines, np.asarray(block.lines))])


def slice_text(value: Any) -> bytes:
    """Return a value of a dict or table as text; empty if it is missing.

    >>> slice_text("Rome"), slice_text(3), slice_text(2.0), slice_text(True), slice_text(None), slice_text(float("nan"))
    (b'Rome', b'3', b'2', b'true', b'', b'')
    """
    if is_null(value):
        return b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower().encode()
    whole = isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53
    return str(int(value) if whole else value).encode("utf-8", "backslashreplace")


def line_slices(text: bytes, namespace: str, rows: NDArray[np.int64]) -> list[bytes]:
    r"""Return the first feature of a namespace in some lines of VW text; empty if a line has none.

    Parameters
    ----------
    text : lines
    namespace : its name
    rows : numbers of lines, from 0

    >>> line_slices(b"1 |a x:2 y |b z\n0 |ab x |b:3 q\n", "b", np.array([0, 1]))
    [b'z', b'q']
    """
    lines, name = text.split(b"\n"), re.escape(namespace.encode())
    first = re.compile(rb"\|" + name + rb"(?::[^\x00-\x20|]*)?[\x00-\x20]+([^\x00-\x20|:]+)")
    matches = (first.search(lines[row]) for row in rows.tolist())
    return [b"" if match is None else match[1] for match in matches]


class SliceRecorder:
    """Keeps the values of rows on their way to a parser, and adds them to the blocks that it returns.

    Parameters
    ----------
    names : of the columns

    >>> recorder = SliceRecorder(("city",))
    >>> rows = list(recorder.dicts([(1, {"city": "Rome", "x": 1.0}), (2, {"x": 2.0})]))
    >>> block = Block(np.arange(3), np.int32([4, 4]), np.float32([1, 2]), np.float32([1, 0]), lines=np.array([1, 2]))
    >>> [one.slices.tolist() for one in recorder.blocks([block])]
    [[[b'Rome', b'']]]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._lines = list[int]()
        self._columns: list[list[bytes]] = [[] for _ in names]

    def dicts(self, items: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Yield numbered dicts, whose values are kept."""
        for line, item in items:
            self._lines.append(line)
            for name, column in zip(self.names, self._columns, strict=True):
                column.append(slice_text(item.get(name)) if isinstance(item, Mapping) else b"")
            yield line, item

    def batches(self, numbered: Iterable[tuple[Any, NDArray[np.int64]]], hidden: Collection[str] = ()) -> Iterator[Any]:
        """Yield record batches with their lines, without the ``hidden`` columns, which only slices use."""
        for batch, lines in numbered:
            self._lines += lines.tolist()
            for name, column in zip(self.names, self._columns, strict=True):
                if name in batch.schema.names:  # if not, the parser raises
                    column += map(slice_text, batch.column(name).to_pylist())
            kept = [name for name in batch.schema.names if name not in hidden]
            yield (batch.select(kept) if hidden else batch), lines

    def blocks(self, parsed: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks of rows that were kept, in their order, with their values."""
        for block in parsed:
            lines = np.array(self._lines)
            yield with_slices(block, lines, self._columns)
            done = int(np.searchsorted(lines, np.asarray(block.lines)[-1:], side="right").max(initial=0))
            del self._lines[:done]
            for column in self._columns:
                del column[:done]
