"""A warning about labels that come sorted: learning in order, a model forgets the class that came first."""

from typing import Any

import numpy as np

__all__ = ["LabelOrder"]

FEWEST, SHARE = (
    100,
    0.05,
)  # rows from which on there is a warning, and the share of the changes expected in random order


class LabelOrder:
    """Counts how often the label of two classes changes from row to row, in the first pass.

    >>> order = LabelOrder()
    >>> order.add(np.repeat([0.0, 1.0], 60))
    >>> order.warning()
    'labels come sorted: 1 change in 120 rows, where random order has about 60; shuffle the rows before training'
    """

    def __init__(self) -> None:
        self._rows, self._changes, self._positive = 0, 0, 0
        self._last: float | None = None
        self._two = True

    def __call__(self, moment: Any) -> None:
        """Add the labels of a block of the first pass."""
        if moment.pass_number == 1:
            self.add(moment.block.labels)

    def add(self, labels: Any) -> None:
        """Add the labels of some rows."""
        known = np.asarray(labels)
        known = known[~np.isnan(known)]
        if not known.size or not self._two:
            return
        self._two = bool(np.isin(known, (-1, 0, 1)).all())
        self._changes += int(np.count_nonzero(known[1:] != known[:-1])) + (self._last not in (None, known[0]))
        self._rows, self._positive = self._rows + known.size, self._positive + int(np.count_nonzero(known == 1))
        self._last = float(known[-1])

    def warning(self) -> str | None:
        """Return a warning if labels come sorted."""
        if not self._two or self._rows < FEWEST:
            return None
        share = self._positive / self._rows
        expected = 2 * share * (1 - share) * self._rows
        if self._changes >= SHARE * expected or expected < 10:
            return None
        changes = f"{self._changes} change{'' if self._changes == 1 else 's'}"
        return (
            f"labels come sorted: {changes} in {self._rows:,} rows, where random order has about {expected:,.0f}; "
            "shuffle the rows before training"
        )
