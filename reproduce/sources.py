"""Rows of these measurements: data files, and synthetic clicks."""

import io
import pathlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data import read
from forel.data.clicks import write_clicks
from forel.learner.rows import Rows

__all__ = ["BITS", "Table", "clicks", "read"]

BITS = 20


class Table(NamedTuple):
    """Blocks of rows, and their labels as 0 and 1."""

    blocks: list[tuple[Rows, NDArray[Any]]]

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(labels.size for _, labels in self.blocks)


def load_table(source: pathlib.Path | io.BytesIO) -> Table:
    """Return a whole file in memory, with hashed features."""
    found = []
    for block in read(source, bits=BITS):
        rows = Rows(*(np.array(part) for part in block.rows))  # a reader may reuse its memory
        found.append((rows, (np.array(block.labels) > 0).astype(np.float64)))
    return Table(found)


def clicks(rows: int, seed: int = 0) -> Table:
    """Return synthetic clicks with 39 categories per row."""
    file = io.BytesIO()
    write_clicks(file, rows, "vw", seed)
    file.seek(0)
    return load_table(file)
