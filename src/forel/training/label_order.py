"""Warnings about the order of labels.

Learning in order, a model forgets the class that came first; and where labels follow one another, a row's neighbours
tell its label, so that progressive and held-out losses say how well the stream is followed, not how good the final
model is.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forel.markup import counted
from forel.training.run import Observer, Step

__all__ = ["LabelOrder", "LabelOrderWarning", "Remedies"]

MIN_ROWS = 100  # a warning needs at least this many rows
MAX_SHARE_OF_CHANGES = 0.05  # of the number that random order would have; with fewer changes, labels are sorted
MAX_PARTS = 64  # of the stream, whose rows and positive labels are counted
PARTS_OF_BLOCK = 8
MAX_CLASSES = 1024
MIN_ERRORS, MIN_RATIO = 8.0, 1.5  # difference of quarters in standard errors, and their ratio
MIN_CORRELATION = 0.5  # of a label with the one before, or with the number of its row


class LabelOrderWarning(UserWarning):
    """Labels come sorted, follow one another, or differ between the first and the last rows."""


class Remedies(NamedTuple):
    """What to advise: how rows are shuffled, how the last ones are held out, and how a mixture follows a drift."""

    shuffle: str = "shuffle=0"
    share: str | None = "fixed_share=0.001"
    holdout_after: str | None = "holdout_after=N"  # None where no losses are reported


class LabelOrder(Observer):
    """Counts how often the class changes, compares parts of the first pass, and correlates labels with those before.

    Parameters
    ----------
    shuffled : whether rows come in random order, so that there is no warning

    >>> order = LabelOrder()
    >>> order.add(np.repeat([0.0, 1.0], 60))
    >>> order.warning()
    'labels are sorted: 1 change in 120 rows, where random order has about 60; shuffle=0 learns in random order'
    """

    name = "label order"

    def __init__(self, shuffled: bool = False) -> None:
        self._shuffled, self._classes, self._changes = (
            shuffled,
            True,
            0,
        )  # whether labels can be classes, and their changes
        self._counts = np.zeros(MAX_CLASSES + 1, np.int64)  # of each class, from −1 on
        self._ends, self._size = [(0, 0)], 1  # rows and positive labels up to the ends of parts, and their least rows
        # Rows, the first label, and the last one. Of labels less the first: themselves, squares, products with the one
        # before, and with the number of the row.
        self._sums = np.zeros(7)

    def after_block(self, step: Step) -> None:
        """Add the labels of a block of the first pass."""
        if step.place.pass_number == 1 and not self._shuffled:
            self.add(step.block.labels[step.block.importance > 0])

    def add(self, labels: Any) -> None:
        """Add the labels of some rows."""
        known = np.asarray(labels, np.float64)
        known = known[~np.isnan(known)]
        if not known.size:
            return
        rows, first, last, *_ = self._sums.tolist() if self._sums[0] else (0, known[0], known[0])
        centered, before = known - first, np.append(last, known[:-1])
        self._sums[:3] = rows + known.size, first, known[-1]
        numbers = np.arange(rows, rows + known.size)
        self._sums[3:] += centered.sum(), centered @ centered, centered @ (before - first), centered @ numbers
        codes = np.clip(known, -2, MAX_CLASSES).astype(np.int64)
        self._classes &= bool(codes.min() >= -1 and codes.max() < MAX_CLASSES and (codes == known).all())
        if self._classes:
            self._changes += int(np.count_nonzero(known != before))
            self._counts += np.bincount(codes + 1, minlength=MAX_CLASSES + 1)
            self._add_parts(int(rows), np.array_split(codes == 1, min(PARTS_OF_BLOCK, codes.size)))

    def _add_parts(self, rows: int, parts: list[NDArray[np.bool_]]) -> None:
        """Add the ends of parts of at least ``_size`` rows; sizes double as parts get many."""
        positive = int(self._counts[2] - sum(map(np.count_nonzero, parts)))
        for part in parts:
            rows, positive = rows + part.size, positive + int(np.count_nonzero(part))
            size = rows - self._ends[-1][0]
            if size >= self._size:
                self._ends.append((rows, positive))
            if len(self._ends) > MAX_PARTS:
                self._ends, self._size = self._ends[::2], 2 * max(self._size, size)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the counts as JSON and arrays."""
        known = [self._classes, self._changes, [list(end) for end in self._ends], self._size]
        return known, {"counts": self._counts, "sums": self._sums}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the counts by those that :meth:`pack` returned."""
        self._classes, self._changes, self._ends, self._size = known
        self._counts, self._sums = arrays["counts"].astype(np.int64), np.array(arrays["sums"])

    def warning(self, classes: int | None = None, remedies: Remedies | None = None) -> str | None:
        """Return a warning if labels are sorted, or if the last rows have far more or fewer positive ones.

        Parameters
        ----------
        classes : the number of classes of the model; None for two classes, or numbers
        remedies : what to advise; None for arguments of :func:`forel.train`
        """
        remedies, rows = Remedies() if remedies is None else remedies, int(self._sums[0])
        if self._shuffled or rows < MIN_ROWS:
            return None
        two = self._classes and not self._counts[3:].any()
        if not self._classes or not (two or classes):
            return None if classes else self._correlation(remedies)
        expected = rows - float(np.square(self._counts / rows).sum()) * rows
        if self._changes >= MAX_SHARE_OF_CHANGES * expected or expected < 10:
            return (self._difference(rows, remedies) or self._correlation(remedies)) if two else None
        return (
            f"labels are sorted: {counted(self._changes, 'change')} in {rows:,} rows, where random order has "
            f"about {expected:,.0f}; {remedies.shuffle} learns in random order"
        )

    def _difference(self, rows: int, remedies: Remedies) -> str | None:
        """Return a warning if the last quarter of the rows has far more or fewer positive labels than the first."""
        n, p = next((end for end in self._ends if 4 * end[0] >= rows), (rows, 0))
        m, q = next(((rows - n, self._counts[2] - p) for n, p in self._ends[::-1] if 4 * (rows - n) >= rows), (rows, 0))
        if n + m > rows:  # too few parts
            return None
        first, last, both = p / n, q / m, (p + q) / (n + m)
        error = math.sqrt(both * (1 - both) * (1 / n + 1 / m))
        low, high = sorted((first, last))
        if not error or high - low < MIN_ERRORS * error or high < MIN_RATIO * low:
            return None
        share = "" if remedies.share is None else f", and {remedies.share} follows a stream that drifts"
        return (
            f"the last quarter of the rows differs from the first: {last:.3g} of its labels are positive, against "
            f"{first:.3g}; {remedies.shuffle} learns in random order{share}"
        )

    def _correlation(self, remedies: Remedies) -> str | None:
        """Return a warning if labels correlate with those before or with their rows, and losses are reported."""
        n, _, _, total, squares, products, numbers = self._sums.tolist()
        mean = total / n
        variance = squares - n * mean**2
        if remedies.holdout_after is None or not variance > 1e-12 * squares:
            return None
        before = (products - n * mean**2) / variance
        trend = (numbers - n * mean * (n - 1) / 2) / math.sqrt(variance * (n**3 - n) / 12)
        if not max(before, abs(trend)) >= max(MIN_CORRELATION, MIN_ERRORS / math.sqrt(n)):
            return None
        return (
            f"labels follow one another (correlation {before:.2f} with the label before, {trend:.2f} with the number "
            "of the row): losses of the run say how well the stream is followed, not how good the final model is; "
            f"{remedies.shuffle} learns in random order, {remedies.holdout_after} holds out the last rows"
        )
