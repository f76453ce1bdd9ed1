r"""A stream of clicks with known truth: rows of categories, most of them rare, whose clicks follow a logistic model.

Each row has one category of each of 39 columns; column k has $2^{4 + 16k/38}$ of them, and the logarithm of a
category's number is uniform. One weight in ten is not zero. As VW text a category is a feature in its column's
namespace, as CSV a word in its column, so that both are the same examples, in the same slots.
"""

import math
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.checks import refuse, whole

__all__ = ["Clicks", "Truth", "clicks", "write_clicks"]

COLUMNS = string.ascii_letters[:39]
LETTERS = 5  # of a word: each stands for four bits of a category's number
BLOCK = 1 << 14
SLOTS = 1 << 20
BIAS = -1.0


@dataclass(frozen=True, eq=False)
class Clicks:
    """Some rows: the numbers of their categories, a column each; their clicks; and the chances these had."""

    categories: NDArray[np.uint32]
    labels: NDArray[np.bool_]
    chances: NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What was written: rows, clicks, and the average log-loss of the true chances, which no model can hope to beat."""

    rows: int
    clicks: int
    loss: float


def clicks(rows: int, seed: int = 0) -> Iterator[Clicks]:
    """Yield a stream of clicks in blocks.

    >>> blocks = list(clicks(20_000, seed=1))
    >>> blocks[0].categories.shape, sum(len(b.labels) for b in blocks)
    ((16384, 39), 20000)
    """
    rng = np.random.default_rng(whole("seed", seed))
    truth = np.where(rng.random(SLOTS) < 0.1, rng.normal(size=SLOTS), 0.0).astype(np.float32)
    bits = (4 + 16 * np.arange(len(COLUMNS)) / (len(COLUMNS) - 1)).astype(np.float32)
    offset = np.arange(1, len(COLUMNS) + 1, dtype=np.uint32) * np.uint32(2654435769)
    left = whole("rows", rows, low=1)
    while left > 0:
        size = min(BLOCK, left)
        left -= size
        numbers = np.exp2(rng.random((size, len(COLUMNS)), dtype=np.float32) * bits).astype(np.uint32) - np.uint32(1)
        mixed = (numbers + offset) * np.uint32(2246822519)
        margins = BIAS + truth[(mixed ^ mixed >> np.uint32(15)) % np.uint32(SLOTS)].sum(axis=1, dtype=np.float64)
        chances = 1 / (1 + np.exp(-margins))
        yield Clicks(numbers, rng.random(size) < chances, chances)


def write_clicks(stream: Any, rows: int, format: str = "vw", seed: int = 0) -> Truth:
    r"""Write a stream of clicks to a binary file object, as VW text or CSV.

    >>> import io
    >>> file = io.BytesIO()
    >>> truth = write_clicks(file, 100, "csv")
    >>> file.getvalue()[:33], truth.rows, round(truth.loss, 2)
    (b'click,a,b,c,d,e,f,g,h,i,j,k,l,m,n', 100, 0.43)
    """
    if format not in ("vw", "csv"):
        raise refuse("format", format, "vw or csv")
    if format == "csv":
        stream.write(f"click,{','.join(COLUMNS)}\n".encode())
    hit, loss = 0, 0.0
    for block in clicks(rows, seed):
        stream.write(_text(block, format))
        hit += int(block.labels.sum())
        loss -= float(np.log(np.where(block.labels, block.chances, 1 - block.chances)).sum())
    return Truth(rows, hit, loss / rows if rows else math.nan)


def _text(block: Clicks, format: str) -> bytes:
    """Return the lines of a block: bytes at the same places in each, so that whole columns of text are set at once."""
    head, cell = ("1 ", " |{} ") if format == "vw" else ("1", ",")
    line = head + "".join(cell.format(name) + "a" * LETTERS for name in COLUMNS) + "\n"
    text = np.tile(np.frombuffer(line.encode(), np.uint8), (block.labels.size, 1))
    if format == "vw":
        text[~block.labels, :2] = (ord("-"), ord("1"))
    else:
        text[:, 0] = ord("0") + block.labels.astype(np.uint8)
    width = len(cell.format("a")) + LETTERS
    cells = text[:, len(head) : -1].reshape(block.labels.size, len(COLUMNS), width)
    for k in range(LETTERS):
        cells[:, :, width - 1 - k] += (block.categories >> np.uint32(4 * k) & np.uint32(15)).astype(np.uint8)
    text[:, len(head) : -1] = cells.reshape(block.labels.size, -1)
    return text.tobytes()
