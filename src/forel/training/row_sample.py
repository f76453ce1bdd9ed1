"""Samples of the training rows: what features add to a margin, and whether a column alone predicts the labels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data import Block, concatenate
from forel.data.block import take_rows
from forel.training.metrics import Report

__all__ = [
    "ROWS",
    "ColumnSpread",
    "LeakWarning",
    "Reservoir",
    "auc_warning",
    "bare_rows",
    "column_spreads",
    "hashes_of",
    "leak_warning",
    "moments",
    "packed_rows",
    "unpacked_rows",
]

ROWS = 2048  # of the sample of a run
MIN_ROWS, MIN_MINORITY = 200, 20  # with fewer rows, or rows of the rarer label, no column is said to predict the labels
MOST_COLUMNS = 1000
STORED = {
    "indptr": np.int64, "indices": np.int32, "values": np.float32, "labels": np.float64, "importance": np.float32,
    "numbers": np.int64,
}  # fmt: skip
ALONE = 0.999  # AUC, or squared correlation, from which on a column predicts nearly all


class LeakWarning(UserWarning):
    """A column alone, or the model, predicts nearly all labels, so that columns may be known only after them."""


class ColumnSpread(NamedTuple):
    """How much the features of a column add to a margin.

    Parameters
    ----------
    column : its name
    features : the number of its features in the sample
    spread : the standard deviation over rows of what they add together to the margin
    alone : the AUC of what they add, for two labels, or its squared correlation with labels; None if undefined
    """

    column: str
    features: int
    spread: float
    alone: float | None


class Reservoir:
    """A uniform sample of rows, those with the smallest hashes of their numbers, whatever the blocks.

    Parameters
    ----------
    most : the number of rows

    >>> block = Block(np.arange(4), np.int32([7, 8, 9]), np.ones(3, np.float32), np.ones(3), numbers=np.arange(3))
    >>> sample = Reservoir(2)
    >>> sample.add(block)
    >>> sample.rows()[0].indices
    array([8, 9], dtype=int32)
    """

    def __init__(self, most: int) -> None:
        self.most, self._kept = most, 0
        self._parts = list[tuple[Block, NDArray[Any]]]()  # rows, and their margins
        self._largest = np.uint64(2**64 - 1)  # hash of a row that is still kept

    def add(self, block: Block, some: NDArray[np.bool_] | None = None, margins: NDArray[Any] | None = None) -> None:
        """Add the rows of a block, or some of them, with the margins of all of its rows."""
        assert block.numbers is not None
        chosen = np.flatnonzero((hashes_of(block.numbers) <= self._largest) & (True if some is None else some))
        if chosen.size:
            margins = np.zeros((len(block), 0)) if margins is None else margins
            self._parts.append((bare_rows(block, chosen), np.array(margins[chosen], np.float64)))
            self._kept += chosen.size
        if self._kept > 2 * self.most:
            self.rows()

    def rows(self) -> tuple[Block, NDArray[np.float64]]:
        """Return the sample in the order of the source, and its margins."""
        every = concatenate(block for block, _ in self._parts)
        if every.numbers is None:
            return every, np.zeros((0, 0))
        hashes, margins = hashes_of(every.numbers), np.concatenate([each for _, each in self._parts])
        chosen = np.sort(np.argsort(hashes, kind="stable")[: self.most])
        self._parts, self._kept = [(bare_rows(every, chosen), margins[chosen])], chosen.size
        if chosen.size == self.most:
            self._largest = hashes[chosen].max()
        return self._parts[0]

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays."""
        rows, margins = self.rows()
        return {**packed_rows(rows), "margins": margins}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the result of :meth:`pack`."""
        rows = unpacked_rows(arrays)
        self._parts, self._kept = [(rows, arrays["margins"])] if len(rows) else [], len(rows)
        self.rows()


def bare_rows(block: Block, chosen: NDArray[np.intp]) -> Block:
    """Return some rows of a block, with what learning needs and their numbers."""
    return take_rows(Block(*block.rows, block.labels, block.importance, numbers=block.numbers), chosen)


def packed_rows(rows: Block) -> dict[str, NDArray[Any]]:
    """Return rows as arrays."""
    return {name: getattr(rows, name) for name in STORED if getattr(rows, name) is not None}


def unpacked_rows(arrays: Mapping[str, NDArray[Any]]) -> Block:
    """Return rows from arrays of float64."""
    own: dict[str, Any] = {name: arrays[name].astype(kind) for name, kind in STORED.items() if name in arrays}
    return Block(**own)


def moments(sample: Block) -> NDArray[np.float64]:
    """Return the slots of a sample, and the means of their values and of the squares of these, a row each.

    >>> moments(Block(np.array([0, 1, 2]), np.int32([4, 4]), np.float32([1, 3]), np.float32([1, 0])))
    array([[4.],
           [2.],
           [5.]])
    """
    slots, places, frequency = np.unique(sample.indices, return_inverse=True, return_counts=True)
    values, count = sample.values.astype(np.float64), max(len(sample), 1)
    sums = (np.bincount(places, each, slots.size) / count for each in (values, values**2))
    # A feature of a thousandth of the rows adds little, and most features are that rare.
    return np.stack([slots, *sums]).astype(np.float64)[:, frequency * 1000 > count]


def column_spreads(sample: Block, model: Any, column_of: Callable[[int], str | None]) -> list[ColumnSpread]:
    """Return how much each column adds to the margins of a model on a sample, the largest first.

    If all features have one column, each is a column of its own. Of several classes, that of the largest is used.
    """
    slots, places = np.unique(sample.indices, return_inverse=True)
    names = [column_of(slot) for slot in slots.tolist()]
    known = sorted({name for name in names if name is not None})[:MOST_COLUMNS]
    numbers = {name: number for number, name in enumerate(known)}
    owners = np.array([-1 if name is None else numbers.get(name, -1) for name in names])
    if not known:
        return []
    from scipy.sparse import csr_array  # slow to import

    values = sample.values.astype(np.float64)
    matrix = csr_array((values, places, sample.indptr), shape=(len(sample), slots.size))
    weights = model.weights_at(slots.astype(np.int64)).astype(np.float64)
    found = []
    for name, number in numbers.items():
        own = np.flatnonzero(owners == number)
        added = matrix[:, own] @ weights[own]
        lane = int(added.std(axis=0).argmax())
        alone = _alone(added[:, lane], sample.labels) if added.shape[1] == 1 else None
        found.append(ColumnSpread(name, own.size, float(added[:, lane].std()), alone))
    return sorted(found, key=lambda one: -one.spread)


def leak_warning(columns: Sequence[ColumnSpread]) -> str | None:
    """Return which columns alone predict nearly all labels; None if none does, or there is one column only.

    >>> leak_warning([ColumnSpread("city", 9, 2.0, 0.7), ColumnSpread("paid", 1, 0.1, 0.9995)])
    "the column 'paid' alone predicts nearly all labels; leave it out if it is not known before them"
    """
    found = [one.column for one in columns if one.alone is not None and one.alone > ALONE]
    if not found or len(columns) < 2:
        return None
    named = f"the column {found[0]!r} alone predicts" if len(found) == 1 else f"each of the columns {found} predicts"
    return f"{named} nearly all labels; leave it out if it is not known before them"


def auc_warning(rows: str, report: Report) -> str | None:
    """Return that labels are predicted suspiciously well, if the AUC of enough rows is above 0.999.

    >>> auc_warning("rows held out", Report(400, 400.0, 0.01, 0.02, auc=0.9996, calibration=1.0, mean_label=0.3))
    'the AUC of rows held out is 0.9996: check that all columns are known before the labels'
    """
    if report.auc is None or report.mean_label is None or report.auc <= ALONE or report.rows < MIN_ROWS:
        return None
    share = report.mean_label if report.calibration is not None else (1 + report.mean_label) / 2  # of labels -1 and 1
    if report.rows * min(share, 1 - share) < MIN_MINORITY:
        return None
    return f"the AUC of {rows} is {report.auc:.4f}: check that all columns are known before the labels"


def _alone(added: NDArray[np.float64], labels: NDArray[np.float64]) -> float | None:
    """Return the AUC of numbers for two labels, their squared correlation with others; None for few rows."""
    kinds, counts = np.unique(labels, return_counts=True)
    if labels.size < MIN_ROWS or kinds.size < 2 or not np.ptp(added):
        return None
    if kinds.size > 2:
        return float(np.corrcoef(added, labels)[0, 1] ** 2)
    if counts.min() < MIN_MINORITY:
        return None
    _, ties, sizes = np.unique(added, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[ties]  # of equal numbers their mean
    positive, low = int(counts[1]), int(counts[1]) * (int(counts[1]) + 1) / 2
    area = float(ranks[labels == kinds[1]].sum() - low) / (positive * int(counts[0]))
    return max(area, 1 - area)


def hashes_of(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the finalizer of splitmix64, which maps different numbers to different ones."""
    h = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = h ^ (h >> np.uint64(31))
    return mixed
