"""The rule protocol: weights over experts as three pure functions over a state, and a bound on regret."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.validation import Vector, floats, vector

__all__ = ["Rule", "check_losses", "log_prior"]


class Rule(Protocol):
    """Weights over experts computed from their losses: an algorithm whose points are on the simplex.

    A state has ``rounds``; ``log_weights``, the logarithms of the weights, in which small weights keep full precision;
    and ``void``, the reason why the bound is void, or an empty string.
    """

    @property
    def eta(self) -> float:
        """The η that a pool must have at least for the bound to hold."""
        ...

    @property
    def result(self) -> str:
        """A short description of the bound."""
        ...

    def init(self, n: int) -> Any:
        """Return the state before round 1, for n experts."""
        ...

    def play(self, state: Any) -> Vector:
        """Return the weights for the next round."""
        ...

    def update(self, state: Any, losses: ArrayLike) -> Any:
        """Observe the losses of the experts in this round."""
        ...

    def bound(self, state: Any) -> Vector:
        """Return the bound on regret against each expert."""
        ...


def check_losses(losses: ArrayLike, n: int) -> Vector:
    """Return the losses of n experts as a vector; they may be infinite."""
    array = floats("losses", losses, "a vector of numbers")
    if array.shape != (n,) or not (array > -np.inf).all():
        vector("losses", np.where(array == np.inf, 0.0, array), n)  # raises with the reason
    return array


def log_prior(prior: Vector | None, n: int) -> Vector:
    """Return the logarithms of the prior, uniform by default."""
    if prior is None:
        return np.full(n, -np.log(n))
    if prior.size != n:
        raise ValueError(f"prior: got {prior.size} weights, expected one for each of {n} experts")
    return np.log(prior)
