r"""The algorithm protocol: three pure functions over an explicit state.

    state = algorithm.init(n)              # before round 1
    x = algorithm.play(state)              # x_t
    state = algorithm.update(state, loss)  # observe f_t, choose r_t

An algorithm that uses the features of the next example has a property ``observes`` and one more
step, called before ``play``:

    state = algorithm.observe(state, features)

``added`` returns what a round added to the objective, $h_t = f_t + \alpha_t\Psi + r_t$, which
is all that the analysis needs from an algorithm. One whose proof is another has a method
``bound(trace, x)``, which is asked first; its points are then played again, and compared.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from forel.losses import Loss
from forel.notebook import card
from forel.theory.geometries import Geometry
from forel.theory.norms import Norm
from forel.theory.penalties import Penalty
from forel.theory.rates import Rate
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet
from forel.theory.weights import Weights
from forel.validation import Matrix, Strength, Unsupported, Vector

__all__ = ["Algorithm", "Bound", "Observer", "Round", "check_curvature", "check_shapes"]


class Round(NamedTuple):
    """What one round added to the objective, h_t = loss + weight·penalty + regularizer.

    The loss is the one the algorithm ran on, which may be a lower bound of the true one; the penalty is Ψ itself, or
    its tangent (with weight 1) where the algorithm keeps only that. Where the algorithm observes, the regularizer holds
    what observing the next round's features added, and ``strength`` is 1/η_t without that: the norm in which bounds
    measure g_t. A ``hint`` m_t is a guess of g_t that x_t was found with, as if it were a gradient; norms then measure
    g_t − m_t.

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.losses import Linear
    >>> descent, loss = gradient_descent(1.0), Linear([2.0])
    >>> before = descent.init(1)
    >>> descent.added(before, loss, descent.update(before, loss)).g
    array([2.])

    Survey: section 5
    """

    g: Vector
    loss: Loss
    weight: float
    penalty: Penalty | Loss
    regularizer: Regularizer
    strength: Strength | None = None
    hint: Vector | None = None


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
    regularization: Vector = field(default_factory=lambda: np.zeros(0))
    stability: Vector = field(default_factory=lambda: np.zeros(0))
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


class Algorithm(Protocol):
    """A way to choose x_1, x_2, … from f_1, f_2, …"""

    @property
    def rate(self) -> Rate[Any]:
        """η_t."""
        ...

    @property
    def penalty(self) -> Penalty:
        """Ψ."""
        ...

    @property
    def weights(self) -> Weights:
        """α_t."""
        ...

    @property
    def feasible(self) -> FeasibleSet:
        """X."""
        ...

    @property
    def proximal(self) -> bool:
        """Whether each r_t is smallest at x_t."""
        ...

    def init(self, n: int) -> Any:
        """Return the state before round 1."""
        ...

    def play(self, state: Any) -> Vector:
        """Return the point to play next."""
        ...

    def update(self, state: Any, loss: Loss) -> Any:
        """Return the state after observing a loss."""
        ...

    def initial(self, state: Any) -> Regularizer:
        """Return r_0, from the state before round 1."""
        ...

    def added(self, before: Any, loss: Loss, after: Any) -> Round:
        """Return what the round between two states added to the objective."""
        ...


class Observer(Algorithm, Protocol):
    """An algorithm with the optional step ``observe``."""

    @property
    def observes(self) -> bool:
        """Whether it uses features; if not, ``observe`` returns the state unchanged."""
        ...

    def observe(self, state: Any, features: Vector) -> Any:
        """Return the state after observing the features of the next example, before its point is played."""
        ...


def first_larger(gradients: Matrix, lipschitz: float, norm: Norm) -> str:
    """Return the first round whose gradient is larger than assumed, as a reason why a bound is void."""
    for t, g in enumerate(gradients, start=1):
        if norm(g) > lipschitz * (1 + 1e-12):
            return f"the gradient of round {t} has norm {norm(g):.6g}, more than the assumed {lipschitz:.6g}"
    return ""


def check_curvature(rate: Rate[Any], keeps_curvature: bool, who: str) -> None:
    """Raise Unsupported if the rate needs the losses' curvature and the losses are linearized."""
    if getattr(rate, "needs_curvature", False) and not keeps_curvature:
        raise Unsupported(
            f"rate: {rate} adds only what the curvature of the losses lacks, and {who} linearizes them; use "
            "curvature_adaptive(diameter), FTRL with surrogate=QuadraticBound(), or a rate such as ScalarAdaGrad"
        )


def check_shapes(rate: Rate[Any], geometry: Geometry) -> None:
    """Raise Unsupported if rate and geometry have strengths of different shapes."""
    if rate.shape != geometry.shape:
        fitting = {"scalar": "Euclidean()", "diagonal": "Diagonal()", "matrix": "FullMatrix()"}[rate.shape]
        raise Unsupported(
            f"rate, geometry: {rate} has a {rate.shape} strength, {geometry} takes a {geometry.shape} one; "
            f"use geometry={fitting}, or a {geometry.shape} rate"
        )
