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
        self._rows, self._changes = 0, 0
        self._last: float | None = None
        self._two, self._classes, self._shuffled = True, True, shuffled  # whether labels can be two, or more, classes
        self._counts = np.zeros(MAX_CLASSES + 1, np.int64)  # of each class, from −1 on
        self._size = 1  # least number of rows of a part
        self._parts: list[tuple[int, int]] = []  # rows and positive labels of consecutive parts
        self._numbers = Correlations()

    def after_block(self, step: Step) -> None:
        """Add the labels of a block of the first pass."""
        if step.place.pass_number == 1 and not self._shuffled:
            self.add(step.block.labels[step.block.importance > 0])

    def add(self, labels: Any) -> None:
        """Add the labels of some rows."""
        known = np.asarray(labels)
        if (missing := np.isnan(known)).any():
            known = known[~missing]
        if not known.size:
            return
        self._numbers.add(known.astype(np.float64))
        if not self._classes:
            return
        codes = np.clip(known, -2, MAX_CLASSES).astype(np.int64)
        low, high = int(codes.min()), int(codes.max())
        self._classes = low >= -1 and high < MAX_CLASSES and bool((codes == known).all())
        if not self._classes:
            return
        self._changes += int(np.count_nonzero(known[1:] != known[:-1])) + (self._last not in (None, known[0]))
        self._rows, self._last = self._rows + known.size, float(known[-1])
        self._counts += np.bincount(codes + 1, minlength=MAX_CLASSES + 1)
        self._two = high <= 1 and self._two
        for part in np.array_split(codes == 1, min(PARTS_OF_BLOCK, codes.size)):
            self._add_part(part.size, int(np.count_nonzero(part)))

    def _add_part(self, rows: int, positive: int) -> None:
        """Add rows to the last part, or as a part of their own if that has its size; sizes double as parts get many."""
        if self._parts and self._parts[-1][0] < self._size:
            before, known = self._parts.pop()
            rows, positive = rows + before, positive + known
        self._parts.append((rows, positive))
        if len(self._parts) > MAX_PARTS:
            pairs = zip(self._parts[::2], [*self._parts[1::2], (0, 0)], strict=False)
            self._parts = [(n + m, p + q) for (n, p), (m, q) in pairs]
            self._size = 2 * max(self._size, rows)

    def pack(self) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Return the counts as JSON and arrays."""
        known = self._rows, self._changes, self._last, self._two, self._classes, self._size
        return [*known, [list(part) for part in self._parts]], {"counts": self._counts, "numbers": self._numbers.sums}

    def unpack(self, known: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the counts by those that :meth:`pack` returned."""
        self._rows, self._changes, self._last, self._two, self._classes, self._size, self._parts = known
        self._counts, self._numbers.sums = arrays["counts"].astype(np.int64), np.array(arrays["numbers"])

    def warning(self, classes: int | None = None, remedies: Remedies | None = None) -> str | None:
        """Return a warning if labels are sorted, or if the last rows have far more or fewer positive ones.

        Parameters
        ----------
        classes : the number of classes of the model; None for two classes, or numbers
        remedies : what to advise; None for arguments of :func:`forel.train`
        """
        remedies = Remedies() if remedies is None else remedies
        if self._shuffled:
            return None
        if not self._classes or not (self._two or classes):
            return None if classes else self._numbers.warning(remedies)
        if self._rows < MIN_ROWS:
            return None
        expected = self._rows - float(np.square(self._counts / self._rows).sum()) * self._rows
        if self._changes >= MAX_SHARE_OF_CHANGES * expected or expected < 10:
            return (self._difference(remedies) or self._numbers.warning(remedies)) if self._two else None
        return (
            f"labels are sorted: {counted(self._changes, 'change')} in {self._rows:,} rows, where random order has "
            f"about {expected:,.0f}; {remedies.shuffle} learns in random order"
        )

    def _difference(self, remedies: Remedies) -> str | None:
        """Return a warning if the last quarter of the rows has far more or fewer positive labels than the first."""
        (n, p), (m, q) = self._end(self._parts), self._end(self._parts[::-1])
        if n + m > self._rows:  # too few parts
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

    def _end(self, parts: list[tuple[int, int]]) -> tuple[int, int]:
        """Return the rows and positive labels of the first parts, with a quarter of all rows."""
        rows = positive = 0
        for n, p in parts:
            if rows and 4 * rows >= self._rows:
                break
            rows, positive = rows + n, positive + p
        return rows, positive


class Correlations:
    """The correlation of labels with those before them, and with the numbers of their rows.

    >>> found = Correlations()
    >>> found.add(np.arange(500.0))
    >>> [round(value, 2) for value in found.values()]
    [0.99, 1.0]
    """

    def __init__(self) -> None:
        # Rows, the first label, and the last one. Of labels less the first: themselves, squares, products with the one
        # before, and with the number of the row.
        self.sums = np.zeros(7)

    @property
    def rows(self) -> int:
        """The number of labels."""
        return int(self.sums[0])

    def add(self, labels: NDArray[np.float64]) -> None:
        """Add labels, none of which is missing."""
        if not self.rows:
            self.sums[1:3] = labels[0]
        rows, first, last, *_ = self.sums.tolist()
        centered, numbers = labels - first, np.arange(rows, rows + labels.size)
        before = np.append(last - first, centered[:-1])
        self.sums[3:] += centered.sum(), centered @ centered, centered @ before, centered @ numbers
        self.sums[0], self.sums[2] = rows + labels.size, labels[-1]

    def values(self) -> tuple[float, float]:
        """Return both correlations; 0 where labels are equal."""
        n, _, _, total, squares, products, numbers = self.sums.tolist()
        mean = total / max(n, 1)
        variance = squares - n * mean**2
        if not variance > 1e-12 * squares:
            return 0.0, 0.0
        trend = (numbers - n * mean * (n - 1) / 2) / math.sqrt(variance * (n**3 - n) / 12)
        return (products - n * mean**2) / variance, trend

    def warning(self, remedies: Remedies) -> str | None:
        """Return a warning if one of them is large, and losses of the run are reported."""
        if self.rows < MIN_ROWS or remedies.holdout_after is None:
            return None
        before, trend = self.values()
        if not max(before, abs(trend)) >= max(MIN_CORRELATION, MIN_ERRORS / math.sqrt(self.rows)):
            return None
        return (
            f"labels follow one another (correlation {before:.2f} with the label before, {trend:.2f} with the number "
            "of the row): losses of the run say how well the stream is followed, not how good the final model is; "
            f"{remedies.shuffle} learns in random order, {remedies.holdout_after} holds out the last rows"
        )
