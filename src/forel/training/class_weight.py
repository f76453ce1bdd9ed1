r"""Rare classes that count as much as common ones: importances by the counts of the classes so far.

A row of class k, the t-th of the first pass, has its importance multiplied by $t / (K n_k)$, where $n_k$ of the t rows
have its class and K is the number of classes. The weights do not depend on blocks, and tend to those that scikit-learn
calculates from all rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forel.data import Block
from forel.training.run import Transform
from forel.validation import refuse

__all__ = ["BalancedClasses"]


class BalancedClasses(Transform):
    """Multiplies importances by t / (K n_k), counted among learned rows; later passes take the counts of the first one.

    Parameters
    ----------
    rule : "balanced", the only one
    classes : how many there are; None for two, of which the negative one has labels of at most 0

    >>> balance = BalancedClasses("balanced", None)
    >>> balance.begin(1)
    >>> labels = np.float32([0, 0, 1, 0])
    >>> balance(Block(np.zeros(5, np.int64), np.int32([]), np.float32([]), labels)).importance.tolist()
    [0.5, 0.5, 1.5, 0.666...]
    """

    name = "class weight"

    def __init__(self, rule: str, classes: int | None) -> None:
        if rule != "balanced":
            raise refuse("class_weight", rule, "balanced")
        self._several, self._counts, self._counting = classes is not None, np.zeros(classes or 2), True

    def begin(self, pass_number: int) -> None:
        """Count rows in the first pass only."""
        self._counting = pass_number == 1

    def __call__(self, block: Block) -> Block:
        """Return a block with other importances."""
        label = (block.labels if self._several else block.labels > 0).astype(np.int64)
        counts = np.broadcast_to(self._counts, (label.size, self._counts.size))
        if self._counting:
            each = np.eye(self._counts.size)[label]
            held_out = False if block.held_out is None else block.held_out
            others = (held_out | (block.importance <= 0))[:, None]
            learned = self._counts + np.cumsum(np.where(others, 0.0, each), axis=0)
            counts = np.where(others, learned + each, learned)  # that of a row has the row itself
            self._counts = learned[-1].copy() if label.size else self._counts
        own = np.take_along_axis(counts, label[:, None], axis=1)[:, 0]
        weight = counts.sum(axis=1) / (self._counts.size * np.maximum(own, 1))
        return replace(block, importance=(block.importance * weight).astype(np.float32))

    def pack(self) -> tuple[Any, dict[str, NDArray[np.float64]]]:
        """Return the counts."""
        return None, {"counts": self._counts}

    def unpack(self, known: Any, arrays: Any) -> None:
        """Continue from the result of :meth:`pack`."""
        self._counts = np.asarray(arrays["counts"], np.float64).copy()
