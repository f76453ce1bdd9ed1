"""Online gradient descent: one algorithm without a feasible set, two with one."""

from forel.theory.algorithms.ftrl import FTRL
from forel.theory.algorithms.mirror_descent import MirrorDescent
from forel.theory.geometries import Euclidean
from forel.theory.rates import Constant, InverseTime
from forel.theory.sets import FeasibleSet, Reals

__all__ = ["gradient_descent", "greedy_projection", "lazy_projection", "strongly_convex_descent"]

EVERYWHERE = Reals()


def gradient_descent(eta: float) -> FTRL:
    r"""Return constant-rate unprojected online gradient descent, $x_{t+1} = x_t - \eta g_t = -\eta g_{1:t}$.

    >>> from forel.losses import Linear
    >>> descent = gradient_descent(0.5)
    >>> descent.play(descent.update(descent.init(1), Linear([3.0])))
    array([-1.5])

    Survey: section 3.1
    """
    return FTRL(Constant(eta), Euclidean())


def lazy_projection(eta: float, feasible: FeasibleSet) -> FTRL:
    r"""Return gradient descent that projects only to play, $x_{t+1} = \Pi_X(-\eta g_{1:t})$.

    >>> from forel.losses import Linear
    >>> from forel.theory.sets import Box
    >>> lazy = lazy_projection(1.0, Box(-1, 1))
    >>> state = lazy.update(lazy.update(lazy.init(1), Linear([3.0])), Linear([-1.0]))
    >>> lazy.play(state)  # the state keeps how far outside it was
    array([-1.])

    Survey: section 3.1
    """
    return FTRL(Constant(eta), Euclidean(), feasible=feasible)


def greedy_projection(eta: float, feasible: FeasibleSet) -> MirrorDescent:
    r"""Return gradient descent that steps from the projected point, $x_{t+1} = = \Pi_X(x_t - \eta g_t)$.

    >>> from forel.losses import Linear
    >>> from forel.theory.sets import Box
    >>> greedy = greedy_projection(1.0, Box(-1, 1))
    >>> state = greedy.update(greedy.update(greedy.init(1), Linear([3.0])), Linear([-1.0]))
    >>> greedy.play(state)  # the projection discarded how far outside it was
    array([0.])

    Survey: appendix C.2
    """
    return MirrorDescent(Constant(eta), Euclidean(), feasible=feasible)


def strongly_convex_descent(curvature: float = 1.0, feasible: FeasibleSet = EVERYWHERE) -> MirrorDescent:
    r"""Return $x_{t+1} = \Pi_X(x_t - g_t/(\sigma t))$ for σ-strongly convex losses.

    >>> from forel.losses import Quadratic
    >>> descent = strongly_convex_descent()
    >>> state = descent.init(1)
    >>> for center in (4.0, 1.0, 1.0):
    ...     state = descent.update(state, Quadratic([center]))
    >>> descent.play(state)
    array([2.])

    Survey: section 3.7
    """
    return MirrorDescent(InverseTime(curvature), Euclidean(), feasible=feasible)
