"""Margins from a table of weights, which are computed once until the model changes, and the number of weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.kernels.reference import constants
from forel.learner.lanes import BLOCK as LARGE_BLOCK
from forel.learner.lanes import Lanes
from forel.learner.rows import Rows

__all__ = ["WeightTable", "count_nonzeros"]

BLOCK = 1 << 11  # coordinates whose weights are computed at a time, in all lanes


class WeightTable:
    r"""The weights of some lanes, computed for a feature when it first occurs in a row to predict.

    The kernel computes the weights of all lanes for every feature of every row. A table computes them once per feature,
    and multiplies only those of the lanes that are needed. Memory of other features is not committed.

    Parameters
    ----------
    lanes : the state, which must not change while the table is used
    groups : the lanes to predict with; each group has a table of its own
    version : version of the state

    >>> from forel.learner.linear import Linear, Settings, rows_of
    >>> model = Linear(2, Settings(alpha=(0.1, 1.0)))
    >>> _ = model.learn(np.eye(2), [1, 0])
    >>> rows = rows_of([[1.0, 2.0], [3.0, 0.0]], 2, np.float32)
    >>> table = WeightTable(model.copied_lanes(), (np.array([1]), np.array([0])))
    >>> np.allclose(table.margins(rows, 0), model.margins(rows)[:, [1]])
    True
    """

    def __init__(self, lanes: Lanes, groups: tuple[NDArray[np.intp], ...], version: int = 0) -> None:
        self.groups, self.version = groups, version
        self._lanes = lanes
        self._weights = [np.zeros((lanes.features, group.size), lanes.dtype) for group in groups]
        self._bias = lanes.weights_at(np.array([lanes.features]))
        self._computed = np.zeros(lanes.features, bool)
        self._complete = False  # whether the weights of all features are computed
        self._least_scale = np.inf  # the smallest scale above 0 of features whose weights are computed

    def fits(self, groups: tuple[NDArray[np.intp], ...], version: int) -> bool:
        """Return whether the table has this version and these lanes."""
        same = self.version == version and len(self.groups) == len(groups)
        return same and all(np.array_equal(a, b) for a, b in zip(self.groups, groups, strict=True))

    def margins(self, rows: Rows, group: int) -> NDArray[Any]:
        r"""Return the margins $\sum_i w_i v_i + b$ of every row, a column for each lane of a group."""
        from scipy import sparse  # slow to import

        lanes, indices = self._lanes, rows.indices[: rows.indptr[-1]]
        if not self._complete:
            self._compute(indices)
        values, constant = self._above_scale(rows, indices, self.groups[group])
        matrix = sparse.csr_array((values, indices, rows.offsets), shape=(rows.number, lanes.features))
        with np.errstate(over="ignore", invalid="ignore"):
            margins: NDArray[Any] = matrix @ self._weights[group]
            margins += constant
        limit = constants(lanes.spec)["LIMIT"]
        np.clip(margins, -limit, limit, out=margins)
        margins[np.isnan(margins)] = 0.0
        return margins

    def _compute(self, indices: NDArray[Any]) -> None:
        """Compute the weights of features for which they are not known."""
        lanes = self._lanes
        new = _distinct(indices[~self._computed[indices]], lanes.features)
        if new.size > lanes.features >> 2:  # with all of them, later calls need not look for new features
            new = np.flatnonzero(~self._computed)
        for start in range(0, new.size, BLOCK):
            part = new[start : start + BLOCK]
            weights = lanes.weights_at(part)
            for table, group in zip(self._weights, self.groups, strict=True):
                table[part] = weights[:, group]
        if lanes.settings.rate == "scale_free" and new.size:
            scales = lanes.scales[new]
            self._least_scale = min(self._least_scale, float(scales[scales > 0].min(initial=np.inf)))
        # After the weights: other threads may use the table.
        self._computed[new] = True
        self._complete = bool(self._computed.all()) if new.size > lanes.features >> 2 else False

    def _above_scale(
        self, rows: Rows, indices: NDArray[Any], group: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the values to multiply by weights of the table, and the constants to add to the margins of rows.

        With a scale-free rate, a value above the scale of its feature changes the scale before the prediction, so that
        the weight depends on the value. The kernel computes the terms of margins of such values.
        """
        lanes, values, bias = self._lanes, rows.values[: indices.size], self._bias[:, group]
        # Only values above the smallest scale, which is infinite for other rates, are compared with their own.
        above = np.flatnonzero((values > self._least_scale) | (values < -self._least_scale))
        if above.size:
            scales = lanes.scales[indices[above]]
            above = above[(np.abs(values[above]) > scales) & (scales > 0)]  # without a scale, all weights are 0
        if not above.size:
            return values, bias
        owners = np.searchsorted(rows.indptr, above, side="right") - 1
        affected, starts = np.unique(owners, return_index=True)
        part = Rows(np.append(starts, above.size).astype(np.int64), indices[above], values[above])
        out = np.empty((affected.size, lanes.lanes), lanes.dtype)
        lanes.predict(part, out)
        constant = np.repeat(bias, rows.number, axis=0)
        constant[affected] = out[:, group]
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
    if lanes.scales.size <= lanes.features:  # a search for seen coordinates would take longer than all weights
        return sum(int(np.count_nonzero(weights[:, among])) for _, weights in lanes.blocks(0, lanes.features))
    seen = lanes.seen
    seen = seen[: np.searchsorted(seen, lanes.features)]  # without the bias
    blocks = (seen[start : start + LARGE_BLOCK] for start in range(0, seen.size, LARGE_BLOCK))
    return sum(int(np.count_nonzero(lanes.weights_at(block)[:, among])) for block in blocks)


def _distinct(indices: NDArray[Any], features: int) -> NDArray[np.int64]:
    """Return the distinct indices in order."""
    if indices.size < features >> 4:  # marking features would take longer than sorting
        return np.unique(indices).astype(np.int64)
    used = np.zeros(features, bool)
    used[indices] = True
    return np.flatnonzero(used)
