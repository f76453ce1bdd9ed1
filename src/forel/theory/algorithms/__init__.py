"""The algorithms of the survey, each a small function that assembles an algorithm from parts.

======================================== ==================================================== ==============
``FTRL``                                 Algorithms 1 and 2, with everything that can vary    sections 1, 5
``follow_the_leader``                    exact, or on quadratics below the losses             section 3.7
``gradient_descent``                     constant rate, no feasible set                       section 3.1
``lazy_projection``, ``greedy_projection``  the same with one, in two ways                    section 3.1
``doubling_trick``                       constant rate, restarted                             section 3.1
``dual_averaging``, ``regularized_…``    centered, 1/√t                                       section 3.2
``ftrl_proximal``                        proximal, 1/√t                                       section 3.3
``adagrad_ftrl_proximal``, ``matrix_…``  proximal, adaptive to gradients                      section 3.4
``ad_click``                             the variant used for ad-click prediction             section 3.4
``adagrad_dual_averaging``, ``matrix_…`` centered, adaptive to gradients                      section 3.5
``hedge``, ``exponentiated_gradient``    entropy on the simplex                               section 3.6
``strongly_convex_descent``              rate 1/(σt)                                          section 3.7
``curvature_adaptive``                   adds strength only where losses lack curvature                  section 2.3
``MirrorDescent``, ``fobos``             the state is the point                               section 6
``Implicit``                             the loss is not linearized                           section 6
``as_ftrl_proximal``                     Mirror Descent in its FTRL-Proximal form             section 6.1
======================================== ==================================================== ==============
"""

from forel.theory.algorithms.algorithm import Algorithm, Bound, Observer, Round
from forel.theory.algorithms.coin_betting import CoinBetting, coin_bound
from forel.theory.algorithms.delayed import Delayed, delay_tolerant_adagrad, delayed
from forel.theory.algorithms.doubling_trick import DoublingTrick, doubling_trick
from forel.theory.algorithms.ftrl import FTRL, follow_the_leader
from forel.theory.algorithms.implicit import Implicit
from forel.theory.algorithms.mirror_as_ftrl import MirrorAsFTRL, as_ftrl_proximal
from forel.theory.algorithms.mirror_descent import MirrorDescent, fobos
from forel.theory.algorithms.named import (
    ad_click,
    adagrad_dual_averaging,
    adagrad_ftrl_proximal,
    curvature_adaptive,
    dual_averaging,
    exp3,
    exponentiated_gradient,
    ftrl_proximal,
    gradient_descent,
    greedy_projection,
    hedge,
    lazy_projection,
    matrix_dual_averaging,
    matrix_ftrl_proximal,
    regularized_dual_averaging,
    strongly_convex_descent,
)
from forel.theory.algorithms.newton import VovkAzouryWarmuth, online_newton_step
from forel.theory.algorithms.private import TreeNoise, private_ftrl, private_regret, zero_concentrated_privacy
from forel.theory.algorithms.squint import Squint
from forel.theory.algorithms.surrogates import Exact, ExpConcave, Linearized, QuadraticBound

__all__ = [
    "FTRL",
    "Algorithm",
    "Bound",
    "CoinBetting",
    "Delayed",
    "DoublingTrick",
    "Exact",
    "ExpConcave",
    "Implicit",
    "Linearized",
    "MirrorAsFTRL",
    "MirrorDescent",
    "Observer",
    "QuadraticBound",
    "Round",
    "Squint",
    "TreeNoise",
    "VovkAzouryWarmuth",
    "ad_click",
    "adagrad_dual_averaging",
    "adagrad_ftrl_proximal",
    "as_ftrl_proximal",
    "coin_bound",
    "curvature_adaptive",
    "delay_tolerant_adagrad",
    "delayed",
    "doubling_trick",
    "dual_averaging",
    "exp3",
    "exponentiated_gradient",
    "fobos",
    "follow_the_leader",
    "ftrl_proximal",
    "gradient_descent",
    "greedy_projection",
    "hedge",
    "lazy_projection",
    "matrix_dual_averaging",
    "matrix_ftrl_proximal",
    "online_newton_step",
    "private_ftrl",
    "private_regret",
    "regularized_dual_averaging",
    "strongly_convex_descent",
    "zero_concentrated_privacy",
]
