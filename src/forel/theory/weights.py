r"""Weights $\alpha_t$: how much of a penalty Ψ each round brings, from round 1 on.

In round t the objective holds $\alpha_{1:t} \Psi(x)$. How strong a unit of it is belongs to the penalty, not here.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.validation import Vector, constants, frozen, whole

__all__ = ["EveryRound", "Given", "Once", "Weights"]


class Weights(Protocol):
    r"""A sequence $\alpha_1, \alpha_2, \ldots \ge 0$ and its sums; $\alpha_0 = 0$.

    Bounds on composite objectives are larger for weights that increase.
    """

    @property
    def non_increasing(self) -> bool:
        """Whether no round weighs more than the one before it."""
        ...

    def __call__(self, t: int) -> float:
        """Return α_t."""
        ...

    def total(self, t: int) -> float:
        """Return α_{1:t}, 0 before round 1."""
        ...


@dataclass(frozen=True)
class Once:
    r"""The penalty in round 1 only: $\alpha_1 = 1$, then 0, so that $\alpha_{1:t} = 1$.

    >>> weights = Once()
    >>> weights(1), weights(2), weights.total(10)
    (1.0, 0.0, 1.0)

    Survey: section 5
    """

    non_increasing: ClassVar[bool] = True

    def __call__(self, t: int) -> float:
        """Return 1 in round 1, 0 in others."""
        return float(whole("t", t) == 1)

    def total(self, t: int) -> float:
        """Return 1 from round 1 on."""
        return float(whole("t", t) >= 1)


@dataclass(frozen=True)
class EveryRound:
    r"""The penalty in every round, as a batch problem has it: $\alpha_t = 1$, $\alpha_{1:t} = t$.

    >>> weights = EveryRound()
    >>> weights(1), weights(2), weights.total(10)
    (1.0, 1.0, 10.0)

    Survey: section 5
    """

    non_increasing: ClassVar[bool] = True

    def __call__(self, t: int) -> float:
        """Return 1 in every round."""
        return float(whole("t", t) >= 1)

    def total(self, t: int) -> float:
        """Return t."""
        return float(whole("t", t))


@dataclass(frozen=True, eq=False)
class Given:
    r"""Weights one by one: $\alpha_1, \ldots, \alpha_k$ as given, then $\alpha_t = \alpha_k$.

    A sequence that increases somewhere makes bounds on composite objectives larger.

    Parameters
    ----------
    values : α_1 to α_k, each at least 0

    >>> weights = Given([1.0, 0.5])
    >>> weights(1), weights(3), weights.total(3), weights.non_increasing
    (1.0, 0.5, 2.0, True)
    >>> Given([1.0, 2.0]).non_increasing
    False

    Survey: section 5
    """

    values: Vector
    non_increasing: bool
    totals: Vector

    def __init__(self, values: ArrayLike) -> None:
        checked = np.atleast_1d(constants("values", values, "numbers of at least 0", low=0.0))
        object.__setattr__(self, "values", frozen(checked))
        object.__setattr__(self, "non_increasing", bool(np.all(checked[1:] <= checked[:-1])))
        object.__setattr__(self, "totals", frozen(np.concatenate(([0.0], np.cumsum(checked)))))

    def __call__(self, t: int) -> float:
        """Return the t-th value, or the last."""
        t = whole("t", t)
        return float(self.values[min(t, self.values.size) - 1]) if t else 0.0

    def total(self, t: int) -> float:
        """Return the sum of the first t values, the last one repeated as needed."""
        t = whole("t", t)
        given = min(t, self.values.size)
        return float(self.totals[given] + (t - given) * self.values[-1])
