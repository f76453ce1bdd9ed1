"""Lower bounds of a loss that are tight at a point: functions that an algorithm may be run on instead of the loss.

With $\\bar f \\le f$ and equality at $x_t$, regret against $\\bar f$ is never less than regret against f.
"""

from numpy.typing import ArrayLike

from forel.losses.functions import Linear, Loss, Quadratic
from forel.validation import number, refuse, vector

__all__ = ["linear_bound", "quadratic_bound"]


def linear_bound(loss: Loss, x: ArrayLike) -> Linear:
    r"""Return the linearization $\bar f(u) = f(x) + g \cdot (u - x)$ with $g \in \partial f(x)$.

    Parameters
    ----------
    loss : any convex f
    x : where the bound is tight

    >>> import numpy as np
    >>> bound = linear_bound(Quadratic([0.0], curvature=2.0), [3.0])
    >>> bound(np.array([3.0])), bound(np.array([0.0]))
    (9.0, -9.0)

    Survey: section 2.1
    """
    at = vector("x", x)
    g = vector("subgradient(x)", loss.subgradient(at), n=at.size)
    return Linear(g, number("loss(x)", loss(at)) - float(g @ at))


def quadratic_bound(loss: Loss, x: ArrayLike, curvature: float | None = None) -> Quadratic:
    r"""Return $\bar f(u) = f(x) + g \cdot (u - x) + \frac\sigma2 \|u - x\|_2^2$ with $g \in \partial f(x)$.

    Parameters
    ----------
    loss : a strongly convex f
    x : where the bound is tight
    curvature : σ; the strong convexity of the loss if None. A larger value must hold at all points that are played

    >>> import numpy as np
    >>> loss = Quadratic([0.0], curvature=2.0)
    >>> quadratic_bound(loss, [3.0])(np.array([0.0])), quadratic_bound(loss, [3.0], curvature=1.0)(np.array([0.0]))
    (0.0, -4.5)

    Survey: section 3.7
    """
    at = vector("x", x)
    expected = "a positive number; a loss without strong convexity has no such bound, so use linear_bound"
    sigma = number("curvature", loss.strong_convexity if curvature is None else curvature, expected)
    if sigma <= 0:
        raise refuse("curvature", sigma, expected)
    g = vector("subgradient(x)", loss.subgradient(at), n=at.size)
    return Quadratic(at, sigma, g, number("loss(x)", loss(at)))
