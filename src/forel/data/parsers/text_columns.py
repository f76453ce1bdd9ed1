"""Columns of text: their tokens are added to the rows of a block."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.block import Block
from forel.data.features.hashing import hash_names
from forel.data.features.names import Names
from forel.data.features.text import TextFeatures, append_text
from forel.data.options import ReadOptions
from forel.data.parsers.arrow_arrays import is_number, string_spans, valid
from forel.data.parsers.cells import namespace_hash
from forel.data.parsers.column_values import StringColumn

__all__ = ["text_column", "with_text"]


def with_text(
    block: Block,
    columns: Mapping[str, StringColumn],
    options: ReadOptions,
    lines: NDArray[np.int64],
    names: Names | None,
) -> Block:
    """Return a block with the tokens of text columns.

    Parameters
    ----------
    block : the well-formed rows of a table, with other columns
    columns : strings of each row of the table, and which rows have one
    options : how text is split
    lines : lines of all rows of the table
    names : receives the names of tokens; None if names are not kept
    """
    found, split = [], options.text_features
    for name, column in columns.items():
        cells = column.words
        found.append(split.hashes(cells.text, cells.starts, cells.stops, column.present, name))
        if names is not None:
            _record(names, name, column, split, options.bits)
    return append_text(block, lines, found, options.bits)


def text_column(array: Any, name: str) -> StringColumn:
    """Return the strings of a column of an Arrow table."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    array = array.cast(pa.string()) if is_number(array.type) else array
    return StringColumn(string_spans(array, name), valid(array))


def _record(names: Names, name: str, column: StringColumn, split: TextFeatures, bits: int) -> None:
    """Record the names of the tokens of a column."""
    texts = (column.words[k].decode("utf-8", "backslashreplace") for k in np.flatnonzero(column.present).tolist())
    words, key = [word.encode() for text in texts for word in split.tokens(text)], name.encode()
    hashes = hash_names(words, np.full(len(words), namespace_hash(key), np.uint64))
    slots = (hashes & np.uint64((1 << bits) - 1)).astype(np.int64)
    names.add(slots, hashes, lambda k: b"^".join(filter(None, (key, words[k]))))
