"""Dual averaging: FTRL around x_1, with linearized losses."""

from numpy.typing import ArrayLike

from forel.theory.algorithms.ftrl import FTRL
from forel.theory.geometries import Diagonal, Euclidean, FullMatrix
from forel.theory.penalties import NONE, ElasticNet, Penalty
from forel.theory.rates import MatrixAdaGrad, adagrad_dual_averaging_rate, dual_averaging_rate
from forel.theory.sets import FeasibleSet, Reals
from forel.theory.weights import EveryRound, Once, Weights

__all__ = ["adagrad_dual_averaging", "dual_averaging", "matrix_dual_averaging", "regularized_dual_averaging"]

EVERYWHERE = Reals()
ONCE, EVERY_ROUND = Once(), EveryRound()


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
