r"""A lower bound on the total loss of every point of a set, from the dual problem.

The gradients of any algorithm are a feasible point of the dual: by the Fenchel-Young inequality, for every $\theta_t$,

$$\sum_t f_t(x) \ge \sum_t \bigl(\theta_t g_t \cdot x - f_t^\star(\theta_t g_t)\bigr)
\ge -\sum_t f_t^\star(\theta_t g_t) - \max_{u \in X} \Bigl(-\sum_t \theta_t g_t \cdot u\Bigr) \qquad (x \in X).$$

It needs convexity alone. At $\theta_t = 1$ Fenchel-Young is an equality at $x_t$, so that no conjugate is needed, and
the distance to the algorithm's own loss is the largest linearized regret over X. A smaller $\theta$ tightens the bound
where the conjugate is known.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from forel.losses import Example, Loss, Quadratic
from forel.theory.analysis.game import Trace
from forel.theory.sets import FeasibleSet
from forel.validation import Vector, number

__all__ = ["LossFloor", "conjugate_along", "loss_floor"]

# θ ↦ f⋆(θg) for 0 ≤ θ ≤ 1
ConjugateAlong = Callable[[float], float]


@dataclass(frozen=True, eq=False)
class LossFloor:
    r"""A lower bound on the total loss in X, $-\sum_t f_t^\star(\theta_t g_t) - \max_X(-\sum_t \theta_t g_t \cdot x)$.

    Parameters
    ----------
    theta : the factor of all gradients whose conjugate is known; 1 for the others
    energy : the negative sum of conjugates
    support : the maximum over X
    suffered : the algorithm's own total loss
    void : the reason why there is no bound, empty if there is one

    >>> floor = LossFloor(theta=1.0, energy=5.0, support=2.0, suffered=4.5)
    >>> floor.total, floor.regret
    (3.0, 1.5)
    >>> print(floor)
    every point of X has a total loss of at least 3 (θ = 1)

    Survey: Corollary 6, of which this is the Fenchel side
    """

    theta: float
    energy: float
    support: float
    suffered: float
    void: str = ""

    @property
    def total(self) -> float:
        """The lower bound on the total loss."""
        if self.void:
            raise ValueError(f"{self}; it has no number")
        return self.energy - self.support

    @property
    def regret(self) -> float:
        """The upper bound on regret against every point of X that follows: the duality gap."""
        return self.suffered - self.total

    def __str__(self) -> str:
        if self.void:
            return f"loss floor: void, because {self.void}"
        return f"every point of X has a total loss of at least {_round_down(self.total)} (θ = {self.theta:.3g})"


def loss_floor(trace: Trace, feasible: FeasibleSet | None = None, theta: float | None = None) -> LossFloor:
    r"""Return the lower bound on $\sum_t f_t(x)$ for all x in X that follows from the gradients of a game.

    Every θ gives a bound; by default the best one in [0, 1] is found, a concave maximization in one variable.

    Parameters
    ----------
    trace : a game of any algorithm against convex losses
    feasible : X, the algorithm's own by default
    theta : a fixed θ; 1 uses no conjugate

    >>> from forel.losses import Logistic
    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.theory.sets import l2_ball
    >>> trace = play(gradient_descent(0.5), [Example(Logistic(), [1.0], label) for label in (1, 0, 1, 0)])
    >>> best = sum(loss(np.zeros(1)) for loss in trace.losses)
    >>> loss_floor(trace, l2_ball(1.0), theta=1.0).total <= loss_floor(trace, l2_ball(1.0)).total <= best
    True

    Survey: Corollary 6, of which this is the Fenchel side
    """
    region = trace.algorithm.feasible if feasible is None else feasible
    pairs = [conjugate_along(loss, x) for loss, x in zip(trace.losses, trace.points, strict=False)]
    known = np.array([conjugate is not None for conjugate in pairs])
    conjugates = [conjugate for conjugate in pairs if conjugate is not None]
    tangents = trace.values - np.einsum("ti,ti->t", trace.gradients, trace.points[:-1])
    scaled, fixed = trace.gradients[known].sum(axis=0), trace.gradients[~known].sum(axis=0)
    suffered = math.fsum(trace.values)

    def floor(factor: float) -> LossFloor:
        if factor == 1:  # Fenchel-Young is an equality
            energy = math.fsum(tangents)
        else:
            energy = math.fsum(tangents[~known]) - math.fsum(conjugate(factor) for conjugate in conjugates)
        support = region.support(-(factor * scaled + fixed))
        void = "" if support < math.inf else "X is unbounded along the sum of the gradients"
        return LossFloor(
            factor, energy, support, suffered, void or ("" if energy > -math.inf else "a loss is unbounded")
        )

    if theta is not None:
        return floor(number("theta", theta, "a number from 0 to 1", low=0.0, high=1.0))
    if not conjugates:
        return floor(1.0)
    # Concave in θ, so unimodal in log θ, where a θ near 0 is found as well. Every θ is valid: a search that stops
    # early costs tightness only.
    found = minimize_scalar(lambda u: -_value(floor(math.exp(u))), bounds=(-30.0, 0.0), method="bounded")
    return max((floor(factor) for factor in (1.0, math.exp(found.x), 0.0)), key=_value)


def _value(floor: LossFloor) -> float:
    return -1e300 if floor.void else floor.total


def conjugate_along(loss: Loss, x: Vector) -> ConjugateAlong | None:
    r"""Return $\theta \mapsto f^\star(\theta g)$ for the subgradient g of f at x, None where it is not known.

    For an example it is $\ell^\star(\theta s, y)$ with the slope s, since $f(u) = \ell(a \cdot u, y)$ is at least
    $\theta s\, a \cdot u - \ell^\star(\theta s, y)$.

    >>> along = conjugate_along(Quadratic([1.0], curvature=2.0), np.array([2.0]))
    >>> along(0.0), along(0.5), along(1.0)
    (0.0, 1.25, 3.0)

    Survey: section 4.3
    """
    if isinstance(loss, Quadratic) and np.ndim(loss.curvature) == 0 and loss.curvature > 0:
        g, center, first = loss.subgradient(x), loss.center, loss.g
        curvature, constant = loss.curvature, loss.constant

        def quadratic(theta: float) -> float:
            rest = theta * g - first
            return float(theta * (g @ center) + (rest @ rest) / (2 * curvature) - constant)

        return quadratic
    if not isinstance(loss, Example):
        return None
    margin_loss, label = loss.loss, loss.label
    slope = margin_loss.slope(loss.margin(x), label)
    if margin_loss.conjugate(slope, label) is None:
        return None
    return lambda theta: float(margin_loss.conjugate(theta * slope, label))  # type: ignore[arg-type]


def _round_down(value: float) -> str:
    """Return about six significant digits, rounded down, so that the sentence stays true."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = 5 - math.floor(math.log10(abs(value)))
    return f"{math.floor(value * 10.0**places) / 10.0**places:.12g}"
