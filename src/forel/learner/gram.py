r"""The exact floor of squared loss with few features, from sums of products.

For any model x, the slopes $a_t = f_t \cdot x - y_t$ are a point of the dual problem with
$E = \frac12(\sum_t v_t y_t^2 - x^TQx)$ and $G = Qx - b$, where $Q = \sum_t v_t f_t f_t^T$ and $b = \sum_t v_t y_t f_t$.
The model of the smallest loss among those of a norm gives the smallest loss itself.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.learner.dual import DualPoint
from forel.learner.kernels.kernel import routine
from forel.learner.loss_floor import LossFloor
from forel.learner.polish import FACTORS
from forel.validation import Vector

__all__ = ["Gram"]

MOST = 64  # features
EPS, SINGLE = 2.0**-52, 2.0**-23


class Gram:
    """Sums of products of rows with at most 64 features, in their own units.

    Parameters
    ----------
    slots : the number of slots of features
    bias : whether models have a constant feature

    >>> gram = Gram(8, bias=False)
    >>> X, y, one = np.array([1.0, 2.0], np.float32), np.array([1.0, 5.0]), np.ones(2)
    >>> gram.add(np.array([0, 1, 2]), np.int32([3, 3]), X, y, one)
    >>> floor = gram.floors(LossFloor(2, 2.0, 9.0, 1.0, ()), lambda slots: np.ones(slots.size))
    >>> round(floor.at(1.0), 6), round(floor.at(2.2), 6)  # those of the weights 1 and 2.2
    (2.25, 0.45)
    """

    def __init__(self, slots: int, bias: bool) -> None:
        self.bias, self.rows, self.most = bias, 0, False
        self._columns = np.full(slots, -1, np.int16)
        self._slots = np.zeros(0, np.int64)
        self._products = np.zeros((MOST + 2, MOST + 2))

    def add(
        self, indptr: NDArray[Any], slots: NDArray[Any], values: NDArray[Any], labels: Vector, importance: NDArray[Any]
    ) -> None:
        """Add rows; with too many features, forget them all."""
        if self.most:
            return
        if (new := slots[self._columns[slots] < 0]).size:
            new = np.unique(new)
            if self._slots.size + new.size > MOST:
                self.most = True
                self._columns = self._columns[:0]
                return
            self._columns[new] = self._slots.size + np.arange(new.size)
            self._slots = np.append(self._slots, new)
        columns, y = self._columns[slots], np.ascontiguousarray(labels, np.float64)
        weight = np.ascontiguousarray(importance, np.float64)
        routine("gram", "add_products")(indptr, columns, values, y, weight, self._products)
        self.rows += y.size

    def floors(self, floor: LossFloor, scales_of: Any) -> LossFloor:
        """Return a floor with the exact one at some norms; ``scales_of`` are the scales of slots."""
        if self.most or not self.rows or not 0 < floor.norm < math.inf:
            return floor
        order = np.argsort(self._slots)
        kept = np.concatenate([order, [MOST] if self.bias else []]).astype(np.int64)
        scales = np.append(scales_of(self._slots[order]), [1.0] * self.bias)
        inverse = np.divide(1.0, scales, out=np.zeros(scales.size), where=scales > 0)
        products = self._products
        Q = products[np.ix_(kept, kept)] * np.outer(inverse, inverse)
        if self.bias:  # only one half has the sums of features and of the constant
            Q[-1, :-1] = Q[:-1, -1]
        b, c = products[kept, MOST + 1] * inverse, float(products[MOST + 1, MOST + 1])
        return floor.with_points(tuple(self._point(Q, b, c, factor * floor.norm) for factor in FACTORS))

    def _point(self, Q: NDArray[np.float64], b: Vector, c: float, norm: float) -> DualPoint:
        x = _smallest(Q, b, norm)
        quadratic, sizes = float(x @ Q @ x), np.sqrt(np.maximum(np.diag(Q), 0.0))
        reach, most = float(np.abs(x) @ sizes), float(np.linalg.norm(sizes))
        squares = max(quadratic - 2 * float(b @ x) + c, 0.0)
        # Each sum has an error of a unit in the last place for each row, and each value one of float32.
        rounded = 2 * EPS * (self.rows + 64)
        error = rounded * most * (reach + math.sqrt(c)) + SINGLE * math.sqrt(squares) * most
        return DualPoint((c - quadratic) / 2 - rounded * (c + reach**2), float(np.linalg.norm(Q @ x - b)) + error)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays of float64."""
        facts = np.array([self.rows, self.most], np.float64)
        return {"facts": facts, "slots": self._slots.astype(np.float64), "products": self._products.ravel()}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the result of :meth:`pack`."""
        rows, most = arrays["facts"].ravel().tolist()
        self.rows, self.most, self._slots = int(rows), bool(most), arrays["slots"].ravel().astype(np.int64)
        self._products = arrays["products"].reshape(self._products.shape).copy()
        if not self.most:
            self._columns[self._slots] = np.arange(self._slots.size)


def _smallest(Q: NDArray[np.float64], b: Vector, norm: float) -> Vector:
    """Return the model of at most a norm that minimizes ½ xᵀQx − b·x."""
    values, vectors = np.linalg.eigh(Q)
    values, along = np.maximum(values, 0.0), vectors.T @ b
    low, high = 1e-14 * max(float(values[-1]), 1e-300), float(np.linalg.norm(b)) / norm + 1e-300
    for _ in range(200):
        middle = math.sqrt(low * max(high, low))
        inside = float(np.linalg.norm(along / (values + middle))) <= norm
        low, high = (low, middle) if inside else (middle, high)
    return np.asarray(vectors @ (along / (values + high)))
