"""What a rule for weighing experts is: three pure functions over a state, and a bound on regret."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from forel.validation import Vector, floats, vector

__all__ = ["Rule", "check_losses", "log_prior"]


class Rule(Protocol):
    """Weights over experts that follow from their losses, like an algorithm whose point is on the simplex.

    A state has ``log_weights``, the logarithms of what ``play`` returns: there, what has little weight keeps all its
    digits.
    """

    @property
    def result(self) -> str:
        """The bound, in words."""
        ...

    def check_eta(self, eta: float) -> None:
        """Refuse a way of pooling predictions whose η is too small for the bound to hold."""
        ...

    def init(self, n: int) -> Any:
        """Return the state before round 1, for n experts."""
        ...

    def play(self, state: Any) -> Vector:
        """Return the weights for the next round."""
        ...

    def update(self, state: Any, losses: ArrayLike) -> Any:
        """Observe what each expert lost in this round."""
        ...

    def bound(self, state: Any) -> Vector:
        """Return for each expert how much more than it the mixture can have lost so far."""
        ...

    def void(self, state: Any) -> str:
        """Return why the bound does not hold, or nothing."""
        ...


def check_losses(losses: ArrayLike, n: int) -> Vector:
    """Return the losses of n experts, of which some may be infinite: what happened was impossible for them."""
    array = floats("losses", losses, "a vector of numbers")
    if array.shape != (n,) or not (array > -np.inf).all():
        vector("losses", np.where(array == np.inf, 0.0, array), n)  # says what is wrong
    return array


def log_prior(prior: Vector | None, n: int) -> Vector:
    """Return the logarithms of weights before round 1, those of the uniform distribution if there are none."""
    if prior is None:
        return np.full(n, -np.log(n))
    if prior.size != n:
        raise ValueError(f"prior: got {prior.size} weights, expected one for each of {n} experts")
    return np.log(prior)
