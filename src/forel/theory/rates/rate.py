r"""The rate protocol.

A rate $\eta_t$ is kept as its inverse, the *strength* $1/\eta_t = \sigma_{0:t}$: it starts at $1/\eta_0 = \sigma_0$,
never decreases, and may be 0 (an infinite rate).
"""

import math
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from forel.theory.norms import Norm
from forel.validation import Matrix, Shape, Strength, Vector, constants

__all__ = ["Rate", "check_gradient_bound", "increment", "strength_increment"]

S = TypeVar("S")


class Rate(Protocol[S]):
    r"""A schedule $\eta_t$ as three pure functions over an immutable state.

    A rate may also have ``observe(state, features)``, which returns a state with the features of the next
    example, before its label; algorithms call it before they play.

    ``gradient_bound`` is the largest gradient, in ``gradient_norm``, that the closed-form bound of the rate allows. A
    larger gradient is no error here: it voids that bound. Infinity means that no bound is assumed.
    """

    shape: ClassVar[Shape]

    @property
    def gradient_bound(self) -> float:
        """The bound on the gradients that the rate assumes."""
        ...

    @property
    def gradient_norm(self) -> Norm:
        """The norm of that bound."""
        ...

    def init(self, n: int) -> S:
        """Return the state before round 1, whose strength is 1/η_0."""
        ...

    def update(self, state: S, g: Vector, curvature: float = 0.0) -> S:
        """Return the state after observing g_t, and the strong convexity of f_t that the objective keeps."""
        ...

    def strength(self, state: S) -> Strength:
        """Return 1/η_t: a float, a vector or a matrix, according to ``shape``."""
        ...


def increment(rate: Rate[S], before: S, after: S) -> Strength:
    r"""Return $\sigma_t = 1/\eta_t - 1/\eta_{t-1}$, which is never negative.

    >>> from forel.theory.rates import InverseSqrt
    >>> rate = InverseSqrt(scale=0.5)
    >>> before = rate.init(1)
    >>> increment(rate, before, rate.update(before, np.array([1.0])))
    2.0

    Survey: section 3
    """
    return strength_increment(rate.strength(before), rate.strength(after))


def strength_increment(before: Strength, after: Strength) -> Strength:
    r"""Return the increase from one strength to the next; raise ValueError if it decreases.

    A regularizer of negative strength is not convex and has no bound. Decreases below 1e-12 of the strength count as
    rounding, and as 0.

    >>> strength_increment(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    array([0., 3.])

    Survey: section 2.3
    """
    change = np.subtract(after, before)
    rounding = 1e-12 * np.abs(after)
    if np.ndim(change) == 2:
        return _matrix_growth(change, float(np.max(rounding)) * len(change))
    fallen = change < -rounding
    if np.any(fallen):
        at = f" at index {int(np.argmax(fallen))}" if np.ndim(change) else ""
        raise _fallen(float(np.min(change)), at)
    grown: Strength = np.maximum(change, 0.0)
    return grown if np.ndim(grown) else float(grown)


def _matrix_growth(change: Matrix, rounding: float) -> Matrix:
    # The two roots carry rounding of the size of the whole, under which a small difference need not be semi-definite.
    eigenvalues, basis = np.linalg.eigh(change)
    if eigenvalues[0] < -rounding:
        raise _fallen(float(eigenvalues[0]), " along an eigenvector")
    kept = eigenvalues > rounding / 1e-12 * np.finfo(np.float64).eps
    half = basis[:, kept] * np.sqrt(eigenvalues[kept])
    positive: Matrix = half @ half.T
    return positive


def _fallen(change: float, at: str) -> ValueError:
    return ValueError(
        f"rate: got a strength 1/η that falls by {-change:.6g}{at}, expected one that never falls; a regularizer of "
        "negative strength has no bound"
    )


def check_gradient_bound(gradient_bound: float) -> None:
    """Raise ValueError unless the bound on gradients is positive; infinity means no bound."""
    constants("gradient_bound", gradient_bound, "a positive number or infinity", low=math.ulp(0.0), infinite=True)
