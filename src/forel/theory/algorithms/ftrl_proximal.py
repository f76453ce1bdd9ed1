"""FTRL-Proximal: each r_t is around x_t, so that it may depend on g_t."""

import math

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.algorithms.ftrl import FTRL
from forel.theory.algorithms.surrogates import QuadraticBound
from forel.theory.geometries import Diagonal, Euclidean, FullMatrix
from forel.theory.penalties import NONE, ElasticNet, Penalty
from forel.theory.rates import CurvatureAdaptive, DiagonalAdaGrad, MatrixAdaGrad, adagrad_proximal_rate, proximal_rate
from forel.theory.sets import Box, FeasibleSet, l2_ball
from forel.theory.weights import Once, Weights
from forel.validation import positive

__all__ = ["ad_click", "adagrad_ftrl_proximal", "curvature_adaptive", "ftrl_proximal", "matrix_ftrl_proximal"]

ONCE = Once()


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
    return FTRL(proximal_rate(radius, lipschitz), Euclidean(), proximal=True, feasible=inside)


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
    return FTRL(rate, Diagonal(), True, penalty=penalty, weights=weights, feasible=inside)


def matrix_ftrl_proximal(radius: float, feasible: FeasibleSet | None = None) -> FTRL:
    r"""Return FTRL-Proximal with the matrix $\eta_t^{-1} = \frac{1}{\sqrt2R}(\sum_{s \le t} g_s g_s^\top)^{1/2}$.

    >>> matrix_ftrl_proximal(radius=1.0).geometry
    FullMatrix()

    Survey: section 3.4
    """
    inside = l2_ball(radius) if feasible is None else feasible
    return FTRL(MatrixAdaGrad(math.sqrt(2) * positive("radius", radius)), FullMatrix(), True, feasible=inside)


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
    return FTRL(DiagonalAdaGrad(alpha, beta=beta), Diagonal(), True, penalty=ElasticNet(l1, l2))


def curvature_adaptive(diameter: float, feasible: FeasibleSet | None = None) -> FTRL:
    """Return FTRL-Proximal on quadratic lower bounds that adds only as much strength as the losses lack.

    Parameters
    ----------
    diameter : D, of the feasible set in the L2 norm
    feasible : X, the ball of that diameter if not given

    >>> curvature_adaptive(diameter=2.0).feasible
    l2_ball(1.0)

    Survey: section 2.3, after Bartlett, Hazan and Rakhlin (2007)
    """
    inside = l2_ball(positive("diameter", diameter) / 2) if feasible is None else feasible
    return FTRL(CurvatureAdaptive(diameter), Euclidean(), True, QuadraticBound(), feasible=inside)
