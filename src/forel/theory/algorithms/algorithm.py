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

from typing import Any, NamedTuple, Protocol

from forel.losses import Loss
from forel.theory.geometries import Geometry
from forel.theory.penalties import Penalty
from forel.theory.rates import Rate
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet
from forel.theory.weights import Weights
from forel.validation import Strength, Unsupported, Vector

__all__ = ["Algorithm", "Observer", "Round", "check_curvature", "check_shapes"]


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
