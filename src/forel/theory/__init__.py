"""The survey as code: algorithms assembled from parts, the game, regret, bounds and their proofs.

The vocabulary of a course is here; everything else is in the modules. All of it loads on first use.

>>> from forel.losses import Linear
>>> from forel.theory import FTRL, Euclidean, InverseSqrt, bound, l2_ball, play
>>> learner = FTRL(InverseSqrt(scale=1.0, offset=1), Euclidean(), feasible=l2_ball(1.0))
>>> trace = play(learner, [Linear([1.0, 0.0]), Linear([0.0, -1.0])])
>>> comparator = [0.0, 1.0]
>>> trace.regret(comparator) <= bound(trace, comparator).total
True
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forel.theory import (
        algorithms,
        analysis,
        argmin,
        geometries,
        norms,
        penalties,
        plot,
        rates,
        regularizers,
        sets,
        survey,
        weights,
    )
    from forel.theory.algorithms import (
        FTRL,
        Algorithm,
        CoinBetting,
        Exact,
        Implicit,
        Linearized,
        MirrorDescent,
        QuadraticBound,
        Squint,
        VovkAzouryWarmuth,
        ad_click,
        adagrad_dual_averaging,
        adagrad_ftrl_proximal,
        delay_tolerant_adagrad,
        dual_averaging,
        exponentiated_gradient,
        fobos,
        follow_the_leader,
        ftrl_proximal,
        gradient_descent,
        greedy_projection,
        hedge,
        lazy_projection,
        online_newton_step,
        regularized_dual_averaging,
    )
    from forel.theory.analysis import Bound, Decomposition, Trace, bound, play, strong_ftrl_lemma
    from forel.theory.argmin import Argmin, project
    from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, SquaredPNorm
    from forel.theory.norms import L1, L2, LINF, DiagonalNorm, MatrixNorm, PNorm
    from forel.theory.penalties import ElasticNet, GroupL2, Indicator, l1, l2, squared_l2
    from forel.theory.rates import (
        Constant,
        DiagonalAdaGrad,
        InverseSqrt,
        InverseTime,
        MatrixAdaGrad,
        ScalarAdaGrad,
        ScaleFree,
        Unregularized,
    )
    from forel.theory.regularizers import Regularizer, bregman
    from forel.theory.sets import (
        Affine,
        Box,
        HalfSpace,
        Oracle,
        Polyhedron,
        Reals,
        Simplex,
        intersect,
        l1_ball,
        l2_ball,
        linf_ball,
    )
    from forel.theory.weights import EveryRound, Given, Once

__all__ = [
    "FTRL",
    "L1",
    "L2",
    "LINF",
    "Affine",
    "Algorithm",
    "Argmin",
    "Bound",
    "Box",
    "CoinBetting",
    "Constant",
    "Decomposition",
    "Diagonal",
    "DiagonalAdaGrad",
    "DiagonalNorm",
    "ElasticNet",
    "Entropy",
    "Euclidean",
    "EveryRound",
    "Exact",
    "FullMatrix",
    "Given",
    "GroupL2",
    "HalfSpace",
    "Implicit",
    "Indicator",
    "InverseSqrt",
    "InverseTime",
    "Linearized",
    "MatrixAdaGrad",
    "MatrixNorm",
    "MirrorDescent",
    "Once",
    "Oracle",
    "PNorm",
    "Polyhedron",
    "QuadraticBound",
    "Reals",
    "Regularizer",
    "ScalarAdaGrad",
    "ScaleFree",
    "Simplex",
    "SquaredPNorm",
    "Squint",
    "Trace",
    "Unregularized",
    "VovkAzouryWarmuth",
    "ad_click",
    "adagrad_dual_averaging",
    "adagrad_ftrl_proximal",
    "algorithms",
    "analysis",
    "argmin",
    "bound",
    "bregman",
    "delay_tolerant_adagrad",
    "dual_averaging",
    "exponentiated_gradient",
    "fobos",
    "follow_the_leader",
    "ftrl_proximal",
    "geometries",
    "gradient_descent",
    "greedy_projection",
    "hedge",
    "intersect",
    "l1",
    "l1_ball",
    "l2",
    "l2_ball",
    "lazy_projection",
    "linf_ball",
    "norms",
    "online_newton_step",
    "penalties",
    "play",
    "plot",
    "project",
    "rates",
    "regularized_dual_averaging",
    "regularizers",
    "sets",
    "squared_l2",
    "strong_ftrl_lemma",
    "survey",
    "weights",
]

# Searched in this order, the modules that need least first.
_MODULES = (
    "norms",
    "weights",
    "sets",
    "geometries",
    "rates",
    "penalties",
    "regularizers",
    "argmin",
    "algorithms",
    "analysis",
    "plot",
    "survey",
)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'forel.theory' has no attribute {name!r}; it has {', '.join(__all__)}")
    if name in _MODULES:
        return importlib.import_module(f"forel.theory.{name}")
    modules = (importlib.import_module(f"forel.theory.{module}") for module in _MODULES)
    return next(getattr(module, name) for module in modules if name in module.__all__)


def __dir__() -> list[str]:
    return __all__
