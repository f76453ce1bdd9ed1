r"""Synthetic clicks from a known logistic model over categories, most of them rare.

Each row has one category of each of 39 columns; column k has $2^{4 + 16k/38}$ of them, and the logarithm of a
category's number is uniform. One weight in ten is not zero. As VW text a category is a feature in its column's
namespace, as CSV a word in its column, so that both are the same examples, in the same slots.

A seed gives the same bytes on every processor: rows come from integer arithmetic and from sums, products and quotients
of floats, each of which IEEE 754 rounds in exactly one way. The exponentials of a mathematics library may differ in
their last bit between processors.
"""

import math
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.validation import refuse, whole

__all__ = ["Clicks", "Truth", "clicks", "write_clicks"]

COLUMNS = string.ascii_letters[:39]
LETTERS = 5  # per word, each for four bits of a category's number
BLOCK = 1 << 12  # rows, so that the arrays of a block fit in cache
SLOTS = 1 << 20
BIAS = -1.0
UNIT = 1 << 16  # fixed point: log2 of odds is a multiple of 1/UNIT, so that sums of weights are exact in any order
TERMS = 12  # the sum of twelve uniform numbers on [0, 1] has variance 1
LN2 = 0.6931471805599453
# Coefficients of 2^x − 1 on [0, 1], from x on; the relative error of 2^x is below 10^−7.
POWERS = tuple(np.array([0.69315174, 0.24015927, 0.05581868, 0.008991, 0.00187932], np.float32))


@dataclass(frozen=True, eq=False)
class Clicks:
    """Some rows: their categories by number, a column each; their clicks; and the click probabilities."""

    categories: NDArray[np.uint32]
    labels: NDArray[np.bool_]
    chances: NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """Rows, clicks, and the average log-loss of the true probabilities, a lower bound in expectation for any model."""

    rows: int
    clicks: int
    loss: float


def clicks(rows: int, seed: int = 0) -> Iterator[Clicks]:
    """Yield a stream of clicks in blocks.

    >>> blocks = list(clicks(20_000, seed=1))
    >>> blocks[0].categories.shape, sum(len(b.labels) for b in blocks)
    ((4096, 39), 20000)
    """
    rng = np.random.default_rng(whole("seed", seed))
    truth = _truth(rng)
    bits = (4 + 16 * np.arange(len(COLUMNS)) / (len(COLUMNS) - 1)).astype(np.float32)
    offset = np.arange(1, len(COLUMNS) + 1, dtype=np.uint32) * np.uint32(2654435769)
    left = whole("rows", rows, low=1)
    while left > 0:
        size = min(BLOCK, left)
        left -= size
        numbers = _exp2(rng.random((size, len(COLUMNS)), dtype=np.float32) * bits).astype(np.uint32) - np.uint32(1)
        mixed = (numbers + offset) * np.uint32(2246822519)
        margins = _fixed(BIAS) + truth[(mixed ^ mixed >> np.uint32(15)) % np.uint32(SLOTS)].sum(axis=1)
        odds = _exp2(np.clip(margins / UNIT, -100, 100).astype(np.float32)).astype(np.float64)
        chances = odds / (1 + odds)
        yield Clicks(numbers, rng.random(size) < chances, chances)


def _truth(rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the weight of each slot in fixed point: one in ten is a sum of uniform numbers, which is nearly normal."""
    chosen = np.flatnonzero(rng.random(SLOTS) < 0.1)
    drawn = rng.integers(UNIT, size=(TERMS, chosen.size), dtype=np.int32)
    truth = np.zeros(SLOTS, np.int32)
    truth[chosen] = _fixed((drawn.sum(axis=0) - TERMS * (UNIT - 1) / 2) / UNIT)
    return truth


def _fixed(logits: Any) -> Any:
    """Return natural logarithms of odds as log2 in fixed point."""
    return np.rint(logits * (UNIT / LN2)).astype(np.int32)


def _exp2(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 2^x for |x| ≤ 100: a polynomial of the fractional part, and the integer part added to the exponent's bits.

    >>> _exp2(np.array([-1, 0, 3, 20], np.float32)).tolist()
    [0.5, 1.0, 8.0, 1048576.0]
    """
    floor = np.floor(x)
    rest = x - floor
    power = np.zeros_like(x)
    for coefficient in (*POWERS[::-1], np.float32(1)):
        power *= rest
        power += coefficient
    bits = power.view(np.int32)
    bits += floor.astype(np.int32) << 23
    return power


def write_clicks(stream: Any, rows: int, format: str = "vw", seed: int = 0) -> Truth:
    r"""Write a stream of clicks to a binary file object, as VW text or CSV.

    >>> import io
    >>> file = io.BytesIO()
    >>> truth = write_clicks(file, 100, "csv")
    >>> file.getvalue()[:33], truth.rows, round(truth.loss, 2)
    (b'click,a,b,c,d,e,f,g,h,i,j,k,l,m,n', 100, 0.45)
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
