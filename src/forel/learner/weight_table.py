"""Margins from a table of weights, which are computed once until the model changes, and the number of weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.kernels.reference import constants
from forel.learner.lanes import BLOCK, Lanes
from forel.learner.rows import Rows

__all__ = ["WeightTable", "WeightTables", "count_nonzeros"]


class WeightTable:
    r"""The weights of some lanes, computed for a feature when it first occurs in a row to predict.

    The kernel computes the weights of all lanes for every feature of every row. A table computes those of the lanes
    that are needed, once per feature. Memory of other features is not committed.

    Parameters
    ----------
    lanes : the state, of several lanes, which must not change while the table is used
    chosen : the lanes to predict with
    version : version of the state

    >>> from forel.learner.linear import Linear, Settings, rows_of
    >>> model = Linear(2, Settings(alpha=(0.1, 1.0)))
    >>> _ = model.learn(np.eye(2), [1, 0])
    >>> rows = rows_of([[1.0, 2.0], [3.0, 0.0]], 2, np.float32)
    >>> np.allclose(WeightTable(model.copied_lanes(), np.array([1])).margins(rows), model.margins(rows)[:, [1]])
    True
    """

    def __init__(self, lanes: Lanes, chosen: NDArray[np.int64], version: int = 0) -> None:
        self.version, self._lanes, self._chosen = version, lanes, chosen
        width = -(-chosen.size // 8) * 8  # a multiple of the numbers of a vector
        self._weights, self._bias = np.zeros((lanes.features, width), lanes.dtype), np.zeros(width, lanes.dtype)
        self._bias[: chosen.size] = lanes.weights_at(np.array([lanes.features]))[0, chosen]
        self._limit = constants(lanes.spec)["LIMIT"]
        self._computed = np.zeros(lanes.features, bool)
        self._complete = False  # whether the weights of all features are computed
        # Scales of features whose weights are computed, infinite where all weights are 0, and the smallest of them.
        self._scales = np.zeros(lanes.features if lanes.settings.rate == "scale_free" else 0, lanes.dtype)
        self._least_scale = lanes.dtype.type(np.inf)

    def margins(self, rows: Rows) -> NDArray[Any]:
        r"""Return the margins $\sum_i w_i v_i + b$ of every row, a column for each lane."""
        margins = self.margins_within_scales(rows)
        return self._margins_above_scales(rows) if margins is None else margins

    def margins_within_scales(self, rows: Rows) -> NDArray[Any] | None:
        """Return the margins, with the same rounding as those of the kernel; None if a value exceeds its scale."""
        if not self._complete:
            self._compute(rows.indices[: rows.indptr[-1]])
        margins, above = self._product(rows, self._bias)
        return None if above else margins

    def _product(self, rows: Rows, bias: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return the margins of rows, and the number of values above the scales of their features."""
        from forel.learner.kernels.kernel import routine

        out = np.empty((rows.number, self._chosen.size), self._lanes.dtype)
        table = self._weights, bias, self._scales, self._least_scale, self._limit
        with np.errstate(over="ignore", invalid="ignore"):
            above = routine("table_margins", "table_margins")(*rows, *table, out)
        return out, int(above)

    def _compute(self, indices: NDArray[Any]) -> None:
        """Compute the weights of features for which they are not known."""
        lanes = self._lanes
        if indices.size >> 2 >= lanes.features:  # with all of them, this call and later ones need not look for new ones
            new = np.flatnonzero(~self._computed)
        else:
            new = _distinct(indices[~self._computed[indices]], lanes.features)
        # Lanes of the table's padding keep weights of 0.
        width = self._weights.shape[1]
        lanes.kernel.chosen_weights(new, self._chosen, width, *lanes.arrays, lanes.totals, self._weights.ravel())
        if self._scales.size:
            scales = lanes.scales[new]
            self._scales[new] = scales = np.where(scales > 0, scales, np.inf)
            self._least_scale = min(self._least_scale, scales.min(initial=np.inf))
        # After the weights: other threads may use the table.
        self._computed[new] = True
        self._complete = bool(self._computed.all()) if indices.size >> 2 >= lanes.features else False

    def _margins_above_scales(self, rows: Rows) -> NDArray[Any]:
        """Return margins of rows with values above the scales of their features.

        With a scale-free rate, such a value changes the scale before the prediction, so that the weight depends on the
        value. The kernel computes the terms of margins of such values.
        """
        lanes, indices = self._lanes, rows.indices[: rows.indptr[-1]]
        values = rows.values[: indices.size]
        above = np.flatnonzero(np.abs(values) > self._scales[indices])
        owners = np.searchsorted(rows.indptr, above, side="right") - 1
        affected, starts = np.unique(owners, return_index=True)
        part = Rows(np.append(starts, above.size).astype(np.int64), indices[above], values[above])
        out = np.empty((affected.size, lanes.lanes), lanes.dtype)
        lanes.predict(part, out)
        constant = np.repeat(self._bias[None, : self._chosen.size], rows.number, axis=0)
        constant[affected] = out[:, self._chosen]
        values = values.copy()
        values[above] = 0
        margins, _ = self._product(Rows(rows.indptr, indices, values), np.zeros_like(self._bias))
        with np.errstate(over="ignore"):
            margins += constant
        return np.clip(margins, -self._limit, self._limit, out=margins)


class WeightTables:
    """The tables of a model, of which the last two are kept until the state changes.

    >>> from forel.learner.settings import Settings
    >>> lanes, tables = Lanes(3, Settings(alpha=(0.1, 1.0)), 2), WeightTables()
    >>> first = tables.table(lanes, np.array([0]), 0)
    >>> first is tables.table(lanes, np.array([0]), 0), first is tables.table(lanes, np.array([0]), 2)
    (True, False)
    """

    def __init__(self) -> None:
        self.kept: dict[bytes, WeightTable] = {}

    def table(self, lanes: Lanes, chosen: NDArray[np.int64], version: int) -> WeightTable:
        """Return the table of some lanes."""
        key = chosen.tobytes()
        table = self.kept.get(key)
        if table is None or table.version != version:
            last = [item for item in self.kept.items() if item[1].version == version][-1:]
            table = WeightTable(lanes, chosen, version)
            self.kept = {**dict(last), key: table}  # at once: other threads may use it
        return table


def count_nonzeros(lanes: Lanes, among: slice = slice(None)) -> int:
    """Return the number of non-zero weights of features in some lanes, counted block by block.

    >>> from forel.learner.settings import Settings
    >>> lanes = Lanes(3, Settings(alpha=(0.1, 1.0)), 2)
    >>> lanes.state[1, 0] = 1.0, 2.0
    >>> count_nonzeros(lanes), count_nonzeros(lanes, slice(1))
    (2, 1)
    """
    if lanes.scales.size <= lanes.features:  # a search for seen coordinates would take longer than all weights
        return sum(int(np.count_nonzero(weights[:, among])) for _, weights in lanes.blocks(0, lanes.features))
    seen = lanes.seen
    seen = seen[: np.searchsorted(seen, lanes.features)]  # without the bias
    blocks = (seen[start : start + BLOCK] for start in range(0, seen.size, BLOCK))
    return sum(int(np.count_nonzero(lanes.weights_at(block)[:, among])) for block in blocks)


def _distinct(indices: NDArray[Any], features: int) -> NDArray[np.int64]:
    """Return the distinct indices in order."""
    if indices.size < features >> 4:  # marking features would take longer than sorting
        return np.unique(indices).astype(np.int64)
    used = np.zeros(features, bool)
    used[indices] = True
    return np.flatnonzero(used)
