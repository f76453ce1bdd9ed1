"""The curves and pairs of columns that the best expert on curves has learned, with names, as a reader sees them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forel.learner.learner import Learner

__all__ = ["ColumnCurve", "Curves", "PairSpread", "column_curves"]


@dataclass(frozen=True)
class ColumnCurve:
    """What a column adds to a margin, linear between knots.

    ``spread`` is the standard deviation of ``values`` over the knots, ``missing`` what a missing value adds.
    """

    column: str
    knots: tuple[float, ...]
    values: tuple[float, ...]
    missing: float
    spread: float


@dataclass(frozen=True)
class PairSpread:
    """Two columns or categories, and the standard deviation of what they add together over the grid of their knots."""

    first: str
    second: str
    spread: float


@dataclass(frozen=True)
class Curves:
    """Curves and pairs of one expert, those of the largest spread first."""

    expert: str
    columns: tuple[ColumnCurve, ...]
    pairs: tuple[PairSpread, ...]


def column_curves(learner: Learner, name: Callable[[int], str], top: int = 20) -> Curves | None:
    """Return the curves and the strongest pairs of the best expert on curves; None if there is none.

    Parameters
    ----------
    learner : a learner of one margin
    name : function from slots to names of columns and categories
    top : how many pairs

    >>> from forel.data.features import curves
    >>> from forel.learner.grid import default_grid
    >>> from forel.learner.rows import CoalescedRows
    >>> rows = CoalescedRows(np.arange(6), np.zeros(5, np.int32), np.float32([0, 1, 2, 3, 4]))
    >>> learner = Learner(1, default_grid(loss="squared"), curves=curves.Curves.of(rows, [0]))
    >>> for _ in range(9):
    ...     _ = learner.learn(rows, [4.0, 1.0, 0.0, 1.0, 4.0])
    >>> found = column_curves(learner, lambda slot: "x").columns[0]
    >>> found.knots, np.subtract(found.values, found.values[2]).round().tolist()
    ((0.0, 1.0, 2.0, 3.0, 4.0), [4.0, 1.0, 0.0, 1.0, 4.0])
    """
    experts = None if learner.mixture is None else learner.mixture.curve_experts
    if experts is None or learner.mixture is None:
        return None
    ledger, curves, count = learner.mixture.ledger, experts.curves, len(experts.names)
    best = int(np.argmin(ledger.losses[ledger.inputs - count : ledger.inputs]))
    weights = experts.weights_at(np.arange(curves.width))[:, best]
    ends, columns, start = np.cumsum(curves.sizes), [], 1
    for slot, stop, size in zip(curves.columns.tolist(), ends.tolist(), curves.sizes.tolist(), strict=True):
        knots, own = curves.knots[stop - size : stop], weights[start : start + size + 2]
        reach = knots[-1] - knots[0]
        values = own[0] * ((knots - knots[0]) / (reach or 1.0) - 0.5) + own[1:-1]
        given = tuple(knots.tolist()), tuple(values.tolist()), float(own[-1])
        columns.append(ColumnCurve(name(slot), *given, float(values.std())))
        start += size + 2
    start, pairs = curves.single, []
    slots = np.concatenate((curves.columns, curves.categories)).tolist()
    for a, b in curves.pairs.tolist():
        shape = int(curves.coarse[a]), int(curves.coarse[b])
        grid: NDArray[np.float64] = np.zeros((shape[0] + 1, shape[1] + 1))
        grid[1:, 1:] = weights[start : start + shape[0] * shape[1]].reshape(shape)
        pairs.append(PairSpread(name(slots[a]), name(slots[b]), float(grid.std())))
        start += shape[0] * shape[1]
    columns.sort(key=lambda one: -one.spread)
    pairs.sort(key=lambda one: -one.spread)
    return Curves(experts.names[best], tuple(columns), tuple(pairs[:top]))
