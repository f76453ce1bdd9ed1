"""Second-order algorithms: the online Newton step, and the Vovk–Azoury–Warmuth forecaster."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forel.losses import Example, Loss, Squared
from forel.theory.algorithms.algorithm import Bound, Round
from forel.theory.algorithms.ftrl import FTRL
from forel.theory.algorithms.surrogates import ExpConcave
from forel.theory.geometries import Euclidean
from forel.theory.penalties import NONE, Penalty
from forel.theory.rates import Constant, Rate, Unregularized
from forel.theory.regularizers import Regularizer
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import Once, Weights
from forel.validation import Matrix, Unsupported, Vector, positive, refuse, whole

if TYPE_CHECKING:
    from forel.theory.analysis import Trace

__all__ = ["VovkAzouryWarmuth", "online_newton_step"]


def online_newton_step(
    gamma: float, feasible: FeasibleSet, epsilon: float = 1.0, start: ArrayLike | None = None
) -> FTRL:
    r"""Return the online Newton step, $\arg\min_X \sum_s g_s \cdot x + \frac\gamma2(g_s \cdot (x - x_s))^2 + \frac{\gamma\epsilon}2\|x - x_1\|^2$.

    Its bound is Theorem 1: $\frac{\gamma\epsilon}2\|x^* - x_1\|^2 + \frac1{2\gamma}\sum g_t^\top A_t^{-1} g_t$ with
    $A_t = \epsilon I + \sum_{s \le t} g_s g_s^\top$, whose sum is at most $n\log(1 + \sum\|g_t\|^2/(n\epsilon))$.

    Parameters
    ----------
    gamma : γ, at most ½min(α, 1/(GD)) for α-exp-concave losses with |g·(x − y)| ≤ GD on X
    feasible : X
    epsilon : ε, positive
    start : x_1

    >>> from forel.theory.sets import l2_ball
    >>> online_newton_step(0.5, l2_ball(1.0)).surrogate
    ExpConcave(gamma=0.5)

    After Hazan, Agarwal and Kale, "Logarithmic regret algorithms for online convex optimization" (2007).
    """  # noqa: E501
    rate = Constant(1 / (positive("gamma", gamma) * positive("epsilon", epsilon)))
    return FTRL(rate, Euclidean(), surrogate=ExpConcave(gamma), feasible=feasible, start=start)


def _solved(matrix: Matrix, target: Vector) -> Vector:
    return np.asarray(np.linalg.solve(matrix, target), dtype=np.float64)


class Ridge(NamedTuple):
    """A_t and Σ y a; with the features of the next example, once they are observed."""

    t: int
    matrix: Matrix
    target: Vector
    x: Vector


@dataclass(frozen=True)
class VovkAzouryWarmuth:
    r"""Ridge regression that counts the next features, $x_t = (\lambda I + \sum_{s \le t} a_s a_s^\top)^{-1}\sum_{s < t} y_s a_s$.

    For $\frac12(a_t \cdot x - y_t)^2$ with no bound on labels or features:
    $\mathrm{Regret}_T(x^*) \le \frac\lambda2\|x^*\|^2 + \frac12\sum y_t^2\, a_t^\top A_t^{-1} a_t$.

    Parameters
    ----------
    ridge : λ, positive

    >>> from forel.losses import Example, Squared
    >>> forecaster = VovkAzouryWarmuth(1.0)
    >>> state = forecaster.observe(forecaster.init(1), np.array([1.0]))
    >>> state = forecaster.update(state, Example(Squared(), [1.0], 6.0))
    >>> forecaster.play(state), forecaster.play(forecaster.observe(state, np.array([1.0])))
    (array([3.]), array([2.]))

    After Vovk, "Competitive on-line statistics" (2001), and Azoury and Warmuth, "Relative loss bounds for on-line density
    estimation with the exponential family of distributions" (2001).
    """  # noqa: E501

    ridge: float = 1.0

    rate: ClassVar[Rate[Any]] = Unregularized()
    penalty: ClassVar[Penalty] = NONE
    weights: ClassVar[Weights] = Once()
    feasible: ClassVar[FeasibleSet] = Reals()
    proximal: ClassVar[bool] = False
    observes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)

    def init(self, n: int) -> Ridge:
        """Return the state before round 1."""
        zero = np.zeros(whole("n", n, low=1))
        return Ridge(0, self.ridge * np.eye(n), zero, zero)

    def play(self, state: Ridge) -> Vector:
        """Return x_{t+1}."""
        return state.x

    def observe(self, state: Ridge, features: Vector) -> Ridge:
        """Count the features of the next example."""
        matrix = state.matrix + np.outer(features, features)
        return state._replace(matrix=matrix, x=_solved(matrix, state.target))

    def update(self, state: Ridge, loss: Loss) -> Ridge:
        """Count the label."""
        if not (isinstance(loss, Example) and isinstance(loss.loss, Squared)):
            raise refuse("loss", loss, "an Example of the loss Squared")
        target = state.target + loss.label * loss.features
        return Ridge(state.t + 1, state.matrix, target, _solved(state.matrix, target))

    def initial(self, state: Ridge) -> Regularizer:
        """Return (λ/2)‖x‖²."""
        return Regularizer.around(Euclidean(), self.ridge, np.zeros(state.x.size))

    def added(self, before: Ridge, loss: Loss, after: Ridge) -> Round:
        """Raise Unsupported: what observing features adds is taken back when the label comes."""
        raise Unsupported("the forecaster counts features twice; its bound is VovkAzouryWarmuth.bound")

    def bound(self, trace: "Trace", x: Vector) -> Bound:
        """Return (λ/2)‖x‖² and ½y²·aᵀA⁻¹a for every round."""
        spent = [
            0.5 * loss.label**2 * float(loss.features @ np.linalg.solve(state.matrix, loss.features))
            for loss, state in zip(trace.losses, trace.states, strict=False)
            if isinstance(loss, Example)
        ]
        return Bound("Vovk–Azoury–Warmuth", np.full(trace.rounds, self.ridge / 2 * float(x @ x)), np.array(spent))
