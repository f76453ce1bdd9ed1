"""Margins from a table of weights, which are computed once until the model changes, and the number of weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.kernels.reference import constants
from forel.learner.lanes import Lanes
from forel.learner.rows import Rows

__all__ = ["WeightTable", "count_nonzeros"]

BLOCK = 1 << 11  # coordinates whose weights are computed at a time, in all lanes


class WeightTable:
    r"""The weights of some lanes, computed for a feature when it first occurs in a row to predict.

    The kernel computes the weights of all lanes for every feature of every row. A table computes them once per feature,
    and multiplies only those of the selected lanes. Memory of other features is not committed.

    Parameters
    ----------
    lanes : the state, which must not change while the table is used
    selected : the lanes to predict with
    version : version of the state

    >>> from forel.learner.linear import Linear, Settings, rows_of
    >>> model = Linear(2, Settings(alpha=(0.1, 1.0)))
    >>> _ = model.learn(np.eye(2), [1, 0])
    >>> rows = rows_of([[1.0, 2.0], [3.0, 0.0]], 2, np.float32)
    >>> np.allclose(WeightTable(model.copied_lanes(), np.array([1])).margins(rows), model.margins(rows)[:, [1]])
    True
    """

    def __init__(self, lanes: Lanes, selected: NDArray[np.intp], version: int = 0) -> None:
        self.selected, self.version = selected, version
        self._lanes = lanes
        self._weights = np.zeros((lanes.features, selected.size), lanes.dtype)
        self._computed = np.zeros(lanes.features, bool)
        self._bias = lanes.weights_at(np.array([lanes.features]))[:, selected]

    def fits(self, selected: NDArray[np.intp], version: int) -> bool:
        """Return whether the table has this version and these lanes."""
        return self.version == version and np.array_equal(self.selected, selected)

    def margins(self, rows: Rows) -> NDArray[Any]:
        r"""Return the margins $\sum_i w_i v_i + b$ of every row, a column for each selected lane."""
        from scipy import sparse  # slow to import

        lanes, indices = self._lanes, rows.indices[: rows.indptr[-1]]
        new = _distinct(indices[~self._computed[indices]], lanes.features)
        for start in range(0, new.size, BLOCK):
            part = new[start : start + BLOCK]
            self._weights[part] = lanes.weights_at(part)[:, self.selected]
        self._computed[new] = True  # after the weights: other threads may use the table
        values, constant = self._above_scale(rows, indices)
        matrix = sparse.csr_array((values, indices, rows.indptr), shape=(rows.number, lanes.features))
        with np.errstate(over="ignore", invalid="ignore"):
            margins: NDArray[Any] = matrix @ self._weights + constant
        limit = constants(lanes.spec)["LIMIT"]
        np.clip(margins, -limit, limit, out=margins)
        np.nan_to_num(margins, copy=False, nan=0.0)
        return margins

    def _above_scale(self, rows: Rows, indices: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the values to multiply by weights of the table, and the constants to add to the margins of rows.

        With a scale-free rate, a value above the scale of its feature changes the scale before the prediction, so that
        the weight depends on the value. The kernel computes the terms of margins of such values.
        """
        lanes, values = self._lanes, rows.values[: indices.size]
        if lanes.settings.rate != "scale_free":
            return values, self._bias
        scales = lanes.scales[indices]
        above = np.flatnonzero((np.abs(values) > scales) & (scales > 0))  # without a scale, all weights are 0
        if not above.size:
            return values, self._bias
        owners = np.searchsorted(rows.indptr, above, side="right") - 1
        affected, starts = np.unique(owners, return_index=True)
        part = Rows(np.append(starts, above.size).astype(np.int64), indices[above], values[above])
        out = np.empty((affected.size, lanes.lanes), lanes.dtype)
        lanes.predict(part, out)
        constant = np.repeat(self._bias, rows.number, axis=0)
        constant[affected] = out[:, self.selected]
        values = values.copy()
        values[above] = 0
        return values, constant


def count_nonzeros(lanes: Lanes, among: slice = slice(None)) -> int:
    """Return the number of non-zero weights of features in some lanes, counted block by block.

    >>> from forel.learner.settings import Settings
    >>> lanes = Lanes(3, Settings(alpha=(0.1, 1.0)), 2)
    >>> lanes.state[1, 0] = 1.0, 2.0
    >>> count_nonzeros(lanes), count_nonzeros(lanes, slice(1))
    (2, 1)
    """
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
