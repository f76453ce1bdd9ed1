"""Named algorithms of the survey, assembled from parts: gradient descent, dual averaging, FTRL-Proximal and experts.

Dual averaging is FTRL around x_1, with linearized losses. In FTRL-Proximal each r_t is around x_t, so that it may
depend on g_t. On the simplex with the entropy, both FTRL and Mirror Descent are algorithms for experts.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.algorithms.ftrl import FTRL
from forel.theory.algorithms.mirror_descent import MirrorDescent
from forel.theory.algorithms.surrogates import QuadraticBound
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix
from forel.theory.penalties import NONE, ElasticNet, Penalty
from forel.theory.rates import (
    Constant,
    CurvatureAdaptive,
    DiagonalAdaGrad,
    InverseSqrt,
    InverseTime,
    MatrixAdaGrad,
    adagrad_dual_averaging_rate,
    adagrad_proximal_rate,
    dual_averaging_rate,
    entropic_rate,
    proximal_rate,
)
from forel.theory.sets import Box, FeasibleSet, Reals, Simplex, l2_ball
from forel.theory.weights import EveryRound, Once, Weights
from forel.validation import positive, whole

__all__ = [
    "ad_click",
    "adagrad_dual_averaging",
    "adagrad_ftrl_proximal",
    "curvature_adaptive",
    "dual_averaging",
    "exp3",
    "exponentiated_gradient",
    "ftrl_proximal",
    "gradient_descent",
    "greedy_projection",
    "hedge",
    "lazy_projection",
    "matrix_dual_averaging",
    "matrix_ftrl_proximal",
    "regularized_dual_averaging",
    "strongly_convex_descent",
]

EVERYWHERE = Reals()
ONCE, EVERY_ROUND = Once(), EveryRound()


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


def dual_averaging(radius: float, lipschitz: float, feasible: FeasibleSet = EVERYWHERE) -> FTRL:
    r"""Return $x_{t+1} = \arg\min_{x \in X} g_{1:t} \cdot x + \frac{1}{2\eta_t}\|x\|_2^2$, $\eta_t = \frac{R}{\sqrt2G\sqrt{t+1}}$.

    Regret is at most $\frac{\sqrt2}{2}(R + \|x^*\|^2/R)G\sqrt T$ in every round, for gradients of norm at most G.

    >>> dual_averaging(radius=1.0, lipschitz=1.0).proximal
    False

    Survey: section 3.2
    """  # noqa: E501
    return FTRL(dual_averaging_rate(radius, lipschitz), Euclidean(), feasible=feasible)


def regularized_dual_averaging(
    radius: float,
    lipschitz: float,
    l1: ArrayLike = 0.0,
    l2: ArrayLike = 0.0,
    weights: Weights = EVERY_ROUND,
    feasible: FeasibleSet = EVERYWHERE,
) -> FTRL:
    r"""Return RDA, dual averaging with $\alpha_{1:t}(\lambda_1\|x\|_1 + \frac{\lambda_2}{2}\|x\|_2^2)$ kept in closed form.

    >>> from forel.losses import Linear
    >>> rda = regularized_dual_averaging(1.0, 1.0, l1=0.5)
    >>> rda.play(rda.update(rda.init(2), Linear([0.4, -0.9])))
    array([0. , 0.2])

    Survey: sections 3.2 and 5
    """  # noqa: E501
    rate = dual_averaging_rate(radius, lipschitz)
    return FTRL(rate, Euclidean(), penalty=ElasticNet(l1, l2), weights=weights, feasible=feasible)


def adagrad_dual_averaging(
    radius: ArrayLike,
    lipschitz: float,
    penalty: Penalty = NONE,
    weights: Weights = ONCE,
    feasible: FeasibleSet = EVERYWHERE,
) -> FTRL:
    r"""Return dual averaging with $\eta_{t,i} = R/\sqrt{G^2 + \sum_{s \le t} g_{s,i}^2}$ for each coordinate.

    The offset G² bounds the next gradient, which a centered $r_t$ must not depend on.

    >>> adagrad_dual_averaging(radius=1.0, lipschitz=1.0).geometry
    Diagonal()

    Survey: section 3.5
    """
    rate = adagrad_dual_averaging_rate(radius, lipschitz)
    return FTRL(rate, Diagonal(), penalty=penalty, weights=weights, feasible=feasible)


def matrix_dual_averaging(radius: float, lipschitz: float, feasible: FeasibleSet = EVERYWHERE) -> FTRL:
    r"""Return dual averaging with the matrix $\eta_t^{-1} = \frac1R(G^2 I + \sum_{s \le t} g_s g_s^\top)^{1/2}$.

    >>> matrix_dual_averaging(radius=1.0, lipschitz=1.0).geometry
    FullMatrix()

    Survey: section 3.5
    """
    return FTRL(MatrixAdaGrad(radius, lipschitz), FullMatrix(), feasible=feasible)


def ftrl_proximal(radius: float, lipschitz: float, feasible: FeasibleSet | None = None) -> FTRL:
    r"""Return $\arg\min_{x \in X} g_{1:t} \cdot x + \sum_s \frac{\sigma_s}{2}\|x - x_s\|_2^2$ with $\eta_t = \frac{\sqrt2R}{G\sqrt t}$.

    Parameters
    ----------
    radius : R, with ‖x‖₂ ≤ R on the feasible set
    lipschitz : G
    feasible : X, the ball of that radius if not given; without a bounded set there is no bound

    >>> ftrl_proximal(radius=1.0, lipschitz=1.0).feasible
    l2_ball(1.0)

    Survey: section 3.3
    """  # noqa: E501
    inside = l2_ball(radius) if feasible is None else feasible
    return FTRL(proximal_rate(radius, lipschitz), Euclidean(), center="played", feasible=inside)


def adagrad_ftrl_proximal(
    radius: ArrayLike, penalty: Penalty = NONE, weights: Weights = ONCE, feasible: FeasibleSet | None = None
) -> FTRL:
    r"""Return FTRL-Proximal with $\eta_{t,i} = \sqrt2 R_\infty/\sqrt{\sum_{s \le t} g_{s,i}^2}$ for each coordinate.

    Parameters
    ----------
    radius : R∞, with |x_i| ≤ R∞ on the feasible set; one number, or one R_i per coordinate
    penalty, weights : Ψ and α_t
    feasible : X, the box of all |x_i| ≤ R_i if not given

    >>> adagrad_ftrl_proximal(radius=1.0).feasible
    Box(-1.0, 1.0)
    >>> adagrad_ftrl_proximal(radius=[0.1, 10.0]).feasible
    Box(array([ -0.1, -10. ]), array([ 0.1, 10. ]))

    Survey: section 3.4
    """
    rate = adagrad_proximal_rate(radius)
    inside = Box(np.negative(radius), radius) if feasible is None else feasible
    return FTRL(rate, Diagonal(), "played", penalty=penalty, weights=weights, feasible=inside)


def matrix_ftrl_proximal(radius: float, feasible: FeasibleSet | None = None) -> FTRL:
    r"""Return FTRL-Proximal with the matrix $\eta_t^{-1} = \frac{1}{\sqrt2R}(\sum_{s \le t} g_s g_s^\top)^{1/2}$.

    >>> matrix_ftrl_proximal(radius=1.0).geometry
    FullMatrix()

    Survey: section 3.4
    """
    inside = l2_ball(radius) if feasible is None else feasible
    return FTRL(MatrixAdaGrad(math.sqrt(2) * positive("radius", radius)), FullMatrix(), "played", feasible=inside)


def ad_click(alpha: float = 0.1, beta: float = 1.0, l1: ArrayLike = 0.0, l2: ArrayLike = 0.0) -> FTRL:
    r"""Return the FTRL-Proximal of ad-click prediction: $\eta_{t,i} = \alpha/(\beta + \sqrt{\sum g_{s,i}^2})$, L1 and L2 once.

    After McMahan et al., "Ad click prediction: a view from the trenches" (2013), whose closed form is
    $x_i = -(z_i - \mathrm{sign}(z_i)\lambda_1)/((\beta + \sqrt{n_i})/\alpha + \lambda_2)$ where $|z_i| > \lambda_1$.

    >>> from forel.losses import Linear
    >>> learner = ad_click(alpha=1.0, beta=1.0, l1=1.0)
    >>> learner.play(learner.update(learner.init(2), Linear([3.0, -0.5])))
    array([-0.5,  0. ])

    Survey: sections 3.4 and 5
    """  # noqa: E501
    return FTRL(DiagonalAdaGrad(alpha, beta=beta), Diagonal(), "played", penalty=ElasticNet(l1, l2))


def curvature_adaptive(diameter: float, feasible: FeasibleSet | None = None) -> FTRL:
    """Return FTRL-Proximal on quadratic lower bounds that adds only as much strength as the losses lack.

    Parameters
    ----------
    diameter : D, of the feasible set in the L2 norm
    feasible : X, the ball of that diameter if not given

    >>> curvature_adaptive(diameter=2.0).feasible
    l2_ball(1.0)

    Survey: section 2.3, after Bartlett, Hazan and Rakhlin, "Adaptive online gradient descent" (2007)
    """
    inside = l2_ball(positive("diameter", diameter) / 2) if feasible is None else feasible
    return FTRL(CurvatureAdaptive(diameter), Euclidean(), "played", QuadraticBound(), feasible=inside)


def hedge(n: int, lipschitz: float = 1.0) -> FTRL:
    r"""Return entropic FTRL, $x_{t+1,i} \propto e^{-\eta_t g_{1:t,i}}$ with $\eta_t = \sqrt{\log n/(G^2 + \sum_{s \le t}\|g_s\|_\infty^2)}$.

    Parameters
    ----------
    n : how many experts
    lipschitz : G, with |g_{t,i}| ≤ G

    >>> from forel.losses import Linear
    >>> experts = hedge(2, lipschitz=1.0)
    >>> experts.play(experts.update(experts.init(2), Linear([1.0, 0.0]))).round(3)
    array([0.357, 0.643])

    Survey: section 3.6
    """  # noqa: E501
    return FTRL(entropic_rate(n, lipschitz), Entropy(), feasible=Simplex())


def exp3(n: int) -> FTRL:
    r"""Return entropic FTRL with $\eta_{t-1} = \sqrt{\log n/(nt)}$: EXP3, if it plays against ``adversaries.bandit``.

    Its expected regret is at most $2\sqrt{nT\log n}$ for losses in [0, 1] that do not depend on its draws.

    >>> exp3(4).rate.scale
    0.588...

    After Auer et al., "The nonstochastic multiarmed bandit problem" (2002); the bound is Theorem 3.1 of Bubeck and
    Cesa-Bianchi, "Regret analysis of stochastic and nonstochastic multi-armed bandit problems" (2012).
    """
    return FTRL(InverseSqrt(math.sqrt(math.log(whole("n", n, low=2)) / n), 1.0), Entropy(), feasible=Simplex())


def exponentiated_gradient(eta: float) -> MirrorDescent:
    r"""Return Mirror Descent with the entropy, $x_{t+1,i} \propto x_{t,i} e^{-\eta g_{t,i}}$.

    >>> from forel.losses import Linear
    >>> multiplicative = exponentiated_gradient(1.0)
    >>> multiplicative.play(multiplicative.update(multiplicative.init(2), Linear([1.0, 0.0]))).round(3)
    array([0.269, 0.731])

    Survey: section 6
    """
    return MirrorDescent(Constant(eta), Entropy(), feasible=Simplex())
