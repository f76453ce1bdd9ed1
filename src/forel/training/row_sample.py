"""A sample of the training rows: what features add to a margin, and whether a column alone predicts the labels."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.training.metrics import Report

__all__ = ["ColumnSpread", "LeakWarning", "RowSample", "auc_warning", "hashes_of", "leak_warning"]

ROWS = 2048  # of the sample
MIN_ROWS, MIN_MINORITY = 200, 20  # with fewer rows, or rows of the rarer label, no column is said to predict the labels
MOST_COLUMNS = 1000
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


class RowSample:
    """A random sample of rows, those with the smallest hashes of their numbers, whatever the blocks.

    >>> sample = RowSample()
    >>> block = Block(np.array([0, 1, 2]), np.int32([4, 4]), np.float32([1, 3]), np.float32([1, 0]))
    >>> sample.add(block)
    >>> sample.moments()
    array([[4.],
           [2.],
           [5.]])
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, NDArray[Any], NDArray[Any], float]] = []  # hash, slots, values and label
        self.seen = 0

    def add(self, block: Block) -> None:
        """Add the rows of a block."""
        numbers = np.arange(self.seen, self.seen + len(block)) if block.numbers is None else block.numbers
        self.seen += len(block)
        hashes = hashes_of(numbers)
        chosen = np.flatnonzero(hashes < self.rows[-1][0]) if len(self.rows) == ROWS else np.arange(len(block))
        for k in chosen[np.argsort(hashes[chosen])][:ROWS].tolist():
            part = slice(block.indptr[k], block.indptr[k + 1])
            row = int(hashes[k]), block.indices[part].copy(), block.values[part].copy(), float(block.labels[k])
            self.rows.append(row)
        self.rows.sort(key=lambda row: row[0])
        del self.rows[ROWS:]

    def _entries(self) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.float64]]:
        """Return the slots of the sample; and of each entry, row by row, the place of its slot and its value."""
        every = np.concatenate([slots for _, slots, _, _ in self.rows] or [np.zeros(0, np.int32)])
        values = np.concatenate([values for _, _, values, _ in self.rows] or [np.zeros(0, np.float32)])
        slots, places = np.unique(every, return_inverse=True)
        return slots, places, values.astype(np.float64)

    def _matrix(self) -> tuple[NDArray[Any], Any]:
        """Return the slots of the sample, and its rows as a sparse matrix with a column for each of them."""
        from scipy.sparse import csr_array  # slow to import

        slots, places, values = self._entries()
        indptr = np.concatenate([[0], np.cumsum([slots.size for _, slots, _, _ in self.rows], dtype=np.int64)])
        return slots, csr_array((values, places, indptr), shape=(len(self.rows), slots.size))

    def moments(self) -> NDArray[np.float64]:
        """Return the slots of the sample, and the means of their values and of the squares of these, a row each."""
        slots, places, values = self._entries()
        count = max(len(self.rows), 1)
        sums = (np.bincount(places, each, slots.size) / count for each in (values, values**2))
        # A feature of a thousandth of the rows adds little, and most features are that rare.
        frequent = np.bincount(places, minlength=slots.size) * 1000 > count
        return np.stack([slots, *sums]).astype(np.float64)[:, frequent]

    def columns(self, model: Any, column_of: Callable[[int], str | None]) -> list[ColumnSpread]:
        """Return how much each column adds to the margins of a model, the largest first.

        If all features have one column, each is a column of its own. Of several classes, that of the largest is used.
        """
        slots, *_ = self._entries()
        names = [column_of(slot) for slot in slots.tolist()]
        known = sorted({name for name in names if name is not None})[:MOST_COLUMNS]
        places = {name: place for place, name in enumerate(known)}
        kept = np.array([k for k, name in enumerate(names) if name in places], int)
        if not self.rows or not kept.size:
            return []
        slots, matrix = self._matrix()
        owners = np.array([places[name] for k in kept.tolist() if (name := names[k]) is not None])
        labels, weights = np.array([label for *_, label in self.rows]), model.weights_at(slots[kept].astype(np.int64))
        found = []
        for place, name in enumerate(known):
            own = kept[owners == place]
            added = matrix[:, own] @ weights[owners == place].astype(np.float64)
            lane = int(added.std(axis=0).argmax())
            alone = _alone(added[:, lane], labels) if added.shape[1] == 1 else None
            found.append(ColumnSpread(name, own.size, float(added[:, lane].std()), alone))
        return sorted(found, key=lambda one: -one.spread)

    def pack(self) -> list[Any]:
        """Return the sample as JSON."""
        rows = [[number, slots.tolist(), values.tolist(), label] for number, slots, values, label in self.rows]
        return [self.seen, rows]

    def restore(self, packed: Sequence[Any]) -> None:
        """Continue from the result of :meth:`pack`."""
        self.seen, rows = packed
        self.rows = [(row[0], np.array(row[1], np.int32), np.array(row[2], np.float32), row[3]) for row in rows]


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
