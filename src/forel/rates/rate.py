r"""What a rate is.

A rate $\eta_t$ is kept as its inverse, the *strength* $1/\eta_t = \sigma_{0:t}$: it starts at $1/\eta_0 = \sigma_0$,
never decreases, and may be 0, which an infinite $\eta$ could only say badly.
"""

import math
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from forel.checks import Matrix, Shape, Strength, Vector, constants
from forel.norms import Norm

__all__ = ["Rate", "check_promise", "increment"]

S = TypeVar("S")


class Rate(Protocol[S]):
    r"""A schedule $\eta_t$ as three pure functions over an immutable state.

    ``promised`` is the largest gradient, in ``promised_norm``, for which the closed-form bound that named the rate
    holds. A larger gradient is no error here: it voids that bound. Infinity promises nothing.
    """

    shape: ClassVar[Shape]

    @property
    def promised(self) -> float:
        """The bound on the gradients that the rate was chosen for."""
        ...

    @property
    def promised_norm(self) -> Norm:
        """The norm of that bound."""
        ...

    def init(self, n: int) -> S:
        """Return the state before round 1, whose strength is 1/η_0."""
        ...

    def update(self, state: S, g: Vector, curvature: float = 0.0) -> S:
        """Return the state after observing g_t and the strong convexity of f_t."""
        ...

    def strength(self, state: S) -> Strength:
        """Return 1/η_t: a float, a vector or a matrix, as ``shape`` says."""
        ...


def increment(rate: Rate[S], before: S, after: S) -> Strength:
    r"""Return $\sigma_t = 1/\eta_t - 1/\eta_{t-1}$, which is never negative.

    >>> from forel.rates import InverseSqrt
    >>> rate = InverseSqrt(scale=0.5)
    >>> before = rate.init(1)
    >>> increment(rate, before, rate.update(before, np.array([1.0])))
    2.0

    Survey: section 3
    """
    now = rate.strength(after)
    change: Strength = now - rate.strength(before)
    if rate.shape != "matrix":
        return change
    # The two roots carry rounding of the size of the whole, under which a small difference need not be semi-definite.
    eigenvalues, basis = np.linalg.eigh(change)
    kept = eigenvalues > np.finfo(np.float64).eps * len(eigenvalues) * np.max(np.abs(now))
    half = basis[:, kept] * np.sqrt(eigenvalues[kept])
    positive: Matrix = half @ half.T
    return positive


def check_promise(promised: float) -> None:
    """Refuse a bound on gradients that is not above 0; infinity promises nothing."""
    constants("promised", promised, "a positive number or infinity", low=math.ulp(0.0), infinite=True)
