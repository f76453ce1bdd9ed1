r"""Rates that depend on the round only, not on the gradients."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from forel.theory.norms import L2, Norm
from forel.theory.rates.rate import check_gradient_bound
from forel.validation import Shape, Vector, non_negative, positive, vector, whole

__all__ = ["Constant", "InverseSqrt", "InverseTime", "Rounds", "Unregularized"]


class Rounds(NamedTuple):
    """The state of a rate that depends on the round only: the dimension, and the round."""

    n: int
    t: int


def _begin(n: int) -> Rounds:
    return Rounds(whole("n", n, low=1), 0)


def _next(state: Rounds, g: Vector) -> Rounds:
    vector("g", g, state.n)
    return Rounds(state.n, state.t + 1)


@dataclass(frozen=True)
class Unregularized:
    r"""No strength in any round, $\eta_t = \infty$: Follow-The-Leader, which relies on the curvature of the losses.

    >>> rate = Unregularized()
    >>> rate.strength(rate.init(3))
    0.0

    Survey: section 3.7
    """

    shape: ClassVar[Shape] = "scalar"
    gradient_bound: ClassVar[float] = math.inf
    gradient_norm: ClassVar[Norm] = L2

    def init(self, n: int) -> Rounds:
        """Return round 0."""
        return _begin(n)

    def update(self, state: Rounds, g: Vector, curvature: float = 0.0) -> Rounds:
        """Count the round."""
        return _next(state, g)

    def strength(self, state: Rounds) -> float:
        """Return 0."""
        return 0.0


@dataclass(frozen=True)
class Constant:
    r"""The same rate in every round, $\eta_t = \eta$.

    Parameters
    ----------
    eta : positive

    >>> rate = Constant(0.5)
    >>> rate.strength(rate.init(3))
    2.0

    Survey: section 3.1
    """

    shape: ClassVar[Shape] = "scalar"
    eta: float
    gradient_bound: float = field(default=math.inf, kw_only=True)
    gradient_norm: Norm = field(default=L2, kw_only=True)

    def __post_init__(self) -> None:
        positive("eta", self.eta)
        check_gradient_bound(self.gradient_bound)

    def init(self, n: int) -> Rounds:
        """Return round 0."""
        return _begin(n)

    def update(self, state: Rounds, g: Vector, curvature: float = 0.0) -> Rounds:
        """Count the round."""
        return _next(state, g)

    def strength(self, state: Rounds) -> float:
        """Return 1/η."""
        return 1 / self.eta


@dataclass(frozen=True)
class InverseSqrt:
    r"""The rate $\eta_t = c / \sqrt{t + \text{offset}}$, for all horizons at once.

    Parameters
    ----------
    scale : c, positive
    offset : at least 0; with 0 there is no strength before round 1, which only a proximal regularizer allows

    >>> rate = InverseSqrt(scale=2.0, offset=1)
    >>> rate.strength(rate.init(3))
    0.5

    Survey: sections 3.2 and 3.3
    """

    shape: ClassVar[Shape] = "scalar"
    scale: float
    offset: float = 0.0
    gradient_bound: float = field(default=math.inf, kw_only=True)
    gradient_norm: Norm = field(default=L2, kw_only=True)

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        non_negative("offset", self.offset)
        check_gradient_bound(self.gradient_bound)

    def init(self, n: int) -> Rounds:
        """Return round 0."""
        return _begin(n)

    def update(self, state: Rounds, g: Vector, curvature: float = 0.0) -> Rounds:
        """Count the round."""
        return _next(state, g)

    def strength(self, state: Rounds) -> float:
        """Return √(t + offset)/c."""
        return math.sqrt(state.t + self.offset) / self.scale


@dataclass(frozen=True)
class InverseTime:
    r"""The rate $\eta_t = 1/(\mu t)$, for losses that are all μ-strongly convex.

    Parameters
    ----------
    curvature : μ, positive

    >>> import numpy as np
    >>> rate = InverseTime(curvature=2.0)
    >>> rate.strength(rate.update(rate.init(1), np.array([1.0])))
    2.0

    Survey: section 3.7
    """

    shape: ClassVar[Shape] = "scalar"
    gradient_bound: ClassVar[float] = math.inf
    gradient_norm: ClassVar[Norm] = L2
    curvature: float

    def __post_init__(self) -> None:
        positive("curvature", self.curvature)

    def init(self, n: int) -> Rounds:
        """Return round 0, without strength."""
        return _begin(n)

    def update(self, state: Rounds, g: Vector, curvature: float = 0.0) -> Rounds:
        """Count the round."""
        return _next(state, g)

    def strength(self, state: Rounds) -> float:
        """Return μt."""
        return self.curvature * state.t
