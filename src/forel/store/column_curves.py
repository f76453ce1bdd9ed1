"""The curves and pairs of columns that the best expert on curves has learned, with names, as a reader sees them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data.features import curves as features
from forel.learner.learner import Learner

__all__ = ["ColumnCurve", "Curves", "PairSpread", "column_curves", "ends", "short"]

Array = NDArray[np.float64]
FORMULA = (
    "margin = constant + for each column alone(x), linear between knots and beyond them by slope for half of their "
    "range, or missing + for each category of the row its weight + for each pair grid(u, v), bilinear in u and v, or 0 "
    "if one is missing; u of a column is the number of the knot, from 0, linear between knots and constant beyond, "
    "times (rows of grid - 1) / (knots of the column - 1); u of a category is 1"
)


@dataclass(frozen=True)
class ColumnCurve:
    """What a column adds to a margin, linear between knots: with pairs, on average over the knots of the other columns.

    ``spread`` is the standard deviation of ``values`` over the knots, ``missing`` what a missing value adds, ``alone``
    what the column adds at its knots without pairs, and ``slope`` what a unit of it adds beyond them.
    """

    column: str
    knots: tuple[float, ...]
    values: tuple[float, ...]
    missing: float
    spread: float
    alone: tuple[float, ...]
    slope: float

    @property
    def centered(self) -> tuple[float, ...]:
        """The values less their mean."""
        mean = sum(self.values) / len(self.values)
        return tuple(one - mean for one in self.values)


@dataclass(frozen=True)
class PairSpread:
    """Two columns or categories, and the standard deviation of what they add together over the grid of their knots.

    ``values`` has a row for each of ``first_knots``, beyond what the two add by themselves: means over the knots of a
    column are 0. Knots of a category are None: it is absent, then present. ``grid`` has what the
    pair adds with these means: as values, it is bilinear in the numbers of knots, and not in the columns.
    """

    first: str
    second: str
    spread: float
    first_knots: tuple[float, ...] | None
    second_knots: tuple[float, ...] | None
    values: tuple[tuple[float, ...], ...]
    grid: tuple[tuple[float, ...], ...]

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """The texts of both axes."""
        first, second = (
            ["no", "yes"] if knots is None else [short(one) for one in knots]
            for knots in (self.first_knots, self.second_knots)
        )
        return first, second


@dataclass(frozen=True)
class Curves:
    """Curves and pairs of one expert, those of the largest spread first; ``formula`` says how they add up."""

    expert: str
    columns: tuple[ColumnCurve, ...]
    pairs: tuple[PairSpread, ...]
    constant: float
    categories: dict[str, float]
    formula: str = FORMULA

    def plot(self, top: int = 12, pairs: int = 4) -> Any:
        """Plot the first curves, around their means, and the first pairs as heat maps; return matplotlib's figure."""
        import matplotlib.pyplot as plt

        columns, maps = self.columns[:top], self.pairs[:pairs]
        rows = max(-(-(len(columns) + len(maps)) // 4), 1)
        figure, axes = plt.subplots(rows, 4, figsize=(12, 2.4 * rows), layout="constrained", squeeze=False)
        places = iter(axes.flat)
        for curve, ax in zip(columns, places, strict=False):
            ax.sharey(axes[0, 0])
            ax.plot(curve.knots, curve.centered, marker=".")
            ax.set_title(curve.column, parse_math=False)
        for pair, ax in zip(maps, places, strict=False):
            most = float(np.abs(pair.values).max()) or 1.0
            image = ax.pcolormesh(np.transpose(pair.values), cmap="RdBu", vmin=-most, vmax=most)
            for axis, texts in zip((ax.xaxis, ax.yaxis), pair.labels, strict=True):
                axis.set_ticks([k + 0.5 for k in ends(texts)], [texts[k] for k in ends(texts)])
            ax.set_xlabel(pair.first, parse_math=False)
            ax.set_ylabel(pair.second, parse_math=False)
            figure.colorbar(image, ax=ax)
        for ax in places:
            ax.set_axis_off()
        return figure


def column_curves(learner: Learner, name: Callable[[int], str], top: int = 20) -> Curves | None:
    """Return the curves and the strongest pairs of the best expert on curves; None if there is none.

    Parameters
    ----------
    learner : a learner of one margin
    name : function from slots to names of columns and categories
    top : how many pairs

    >>> from forel.learner.grid import default_grid
    >>> from forel.learner.rows import CoalescedRows
    >>> rows = CoalescedRows(np.arange(6), np.zeros(5, np.int32), np.float32([0, 1, 2, 3, 4]))
    >>> learner = Learner(1, default_grid(loss="squared"), curves=features.Curves.of(rows, [0]))
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
    some = experts.state.n_lanes + sum(one.curves > 0 for one in experts.filters)  # without the base rate, the last
    best = int(np.argmin(ledger.losses[ledger.inputs - count : ledger.inputs][:some]))
    weights = experts.weights_at(np.arange(curves.width))[:, best]
    slots = np.concatenate((curves.columns, curves.categories)).tolist()
    # What pairs add on average over the knots of the other column belongs to curves, which are of all rows then.
    start, pairs, curve = curves.single, list[PairSpread](), [np.zeros(int(size)) for size in curves.sizes]
    for (a, b), shape in zip(curves.pairs.tolist(), curves.grids.tolist(), strict=True):
        grid: Array = np.zeros((shape[0] + 1, shape[1] + 1))
        grid[1:, 1:] = weights[start : start + shape[0] * shape[1]].reshape(shape)
        first, second = _averages(curves, a, shape[0]), _averages(curves, b, shape[1])
        rows, along, mean = grid @ second, first @ grid, first @ grid @ second
        for element, added in ((a, rows), (b, along)):
            if element < len(curve):
                size = curve[element].size
                curve[element] += np.interp(np.arange(size), np.linspace(0, size - 1, added.size), added)
        whole, grid = grid, grid + (mean - rows[:, None] - along)
        axes = _coarse(curves, a, shape[0]), _coarse(curves, b, shape[1])
        tables = (tuple(map(tuple, one.tolist())) for one in (grid, whole))
        pairs.append(PairSpread(name(slots[a]), name(slots[b]), float(grid.std()), *axes, *tables))
        start += shape[0] * shape[1]
    ends, columns, start = np.cumsum(curves.sizes), [], 1
    for k, (stop, size) in enumerate(zip(ends.tolist(), curves.sizes.tolist(), strict=True)):
        knots, own = curves.knots[stop - size : stop], weights[start : start + size + 2]
        reach = knots[-1] - knots[0]
        slope = own[0] / (reach or 1.0)
        alone = slope * (knots - knots[0]) - own[0] / 2 + own[1:-1]
        values = alone + curve[k]
        given = tuple(knots.tolist()), tuple(values.tolist()), float(own[-1]), float(values.std())
        columns.append(ColumnCurve(name(slots[k]), *given, tuple(alone.tolist()), float(slope)))
        start += size + 2
    columns.sort(key=lambda one: -one.spread)
    pairs = [one for one in pairs if one.spread > 0]  # none of an expert without pairs
    pairs.sort(key=lambda one: -one.spread)
    categories = {name(slot): float(weights[start + k]) for k, slot in enumerate(curves.categories.tolist())}
    return Curves(experts.names[best], tuple(columns), tuple(pairs[:top]), float(weights[0]), categories)


def short(value: float) -> str:
    """Return a number in at most eight characters.

    >>> [short(one) for one in (-0.00051234, 0.50764, 39.512, 1990, -99_999, 1234567)]
    ['−0.00051', '0.508', '39.5', '1990', '−100k', '1.23M']
    """
    digits = 2 if abs(value) < 0.01 else 3 if abs(value) < 1000 else 4
    size, unit = next(((s, u) for s, u in ((1e6, "M"), (1e4, "k")) if 1e12 > abs(value) >= s), (1.0, ""))
    scale = 1e3 if unit == "k" else size
    return f"{value / scale:.{3 if unit else digits}g}{unit}".replace("-", "−", value < 0)


def ends(labels: list[str]) -> list[int]:
    """Return which labels fit on an axis: the first, the middle and the last one."""
    return sorted({0, len(labels) // 2, len(labels) - 1})


def _averages(curves: features.Curves, element: int, functions: int) -> Array:
    """Return the weights of the mean over the coarse knots of a column; a category's is where it is absent."""
    count = functions + 1
    return np.full(count, 1 / count) if element < curves.sizes.size else np.array([1.0, 0.0])


def _coarse(curves: features.Curves, element: int, functions: int) -> tuple[float, ...] | None:
    """Return the knots of a column in pairs; None for a category."""
    if element >= curves.sizes.size:
        return None
    size, stop = int(curves.sizes[element]), int(curves.sizes[: element + 1].sum())
    places = np.linspace(0, size - 1, functions + 1)
    knots: list[float] = np.interp(places, np.arange(size), curves.knots[stop - size : stop]).tolist()
    return tuple(knots)
