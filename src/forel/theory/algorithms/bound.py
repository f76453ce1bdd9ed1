"""A bound on regret: what analysis evaluates on a game, and what an algorithm may know of its own."""

from dataclasses import dataclass

import numpy as np

from forel.notebook import card
from forel.validation import Vector

__all__ = ["Bound"]


@dataclass(frozen=True, eq=False)
class Bound:
    """A bound on regret after every round T: regularization(T) + Σ stability.

    ``result`` names the theorem or formula. A bound whose hypotheses fail is ``void``, with the reason, and has no
    number.

    >>> Bound("Theorem 1", np.array([1.0]), np.array([0.5])).total
    1.5
    >>> print(Bound("Theorem 1", np.array([1.0]), np.array([0.5]), void="the comparator lies outside X"))
    Theorem 1: void, because the comparator lies outside X

    Survey: section 2.3
    """

    result: str
    regularization: Vector
    stability: Vector
    void: str = ""

    @property
    def over_rounds(self) -> Vector:
        """The bound after each round."""
        if self.void:
            raise ValueError(f"{self}; it has no number")
        return self.regularization + np.cumsum(self.stability)

    @property
    def total(self) -> float:
        """The bound after the last round."""
        return float(self.over_rounds[-1])

    def _repr_html_(self) -> str:
        if self.void:
            return card(self.result, [("void", self.void)])
        parts = [("regularization", float(self.regularization[-1])), ("stability", float(self.stability.sum()))]
        return card(self.result, [("bound", self.total), *parts], bound_over_rounds=self.over_rounds)

    def __str__(self) -> str:
        if self.void:
            return f"{self.result}: void, because {self.void}"
        return f"{self.result}: {self.total:.6g} = {self.regularization[-1]:.6g} + {self.stability.sum():.6g}"
