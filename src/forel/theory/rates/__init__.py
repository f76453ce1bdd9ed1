r"""Rates $\eta_t$, each kept as the cumulative strength $1/\eta_t = \sigma_{0:t}$ of the regularizer.

========================================  ==============================================================
``Constant``, ``InverseSqrt``,            depend on the round only
``InverseTime``, ``Unregularized``
``ScalarAdaGrad``, ``DiagonalAdaGrad``,   depend on the gradients: a number, one per coordinate, a matrix
``MatrixAdaGrad``
``ScaleFree``                             depends on features too, invariant to their scale
``CurvatureAdaptive``                     depends on the curvature of the losses, adds what they lack
``Doubling``                              restarts a constant rate, tuned for 1, 2, 4, … rounds
========================================  ==============================================================

The survey's own choices are functions with its constants: ``tuned``, ``dual_averaging_rate``, ``proximal_rate``,
``adagrad_proximal_rate``, ``adagrad_dual_averaging_rate``, ``entropic_rate``.

>>> import numpy as np
>>> rate = adagrad_proximal_rate(radius=np.sqrt(2))
>>> before = rate.init(2)
>>> after = rate.update(before, np.array([2.0, 0.0]))
>>> rate.strength(after), increment(rate, before, after)
(array([1., 0.]), array([1., 0.]))
"""

from forel.theory.rates.adagrad import DiagonalAdaGrad, MatrixAdaGrad, ScalarAdaGrad, sum_over_roots
from forel.theory.rates.curvature_adaptive import CurvatureAdaptive
from forel.theory.rates.presets import (
    Doubling,
    adagrad_dual_averaging_rate,
    adagrad_proximal_rate,
    dual_averaging_rate,
    entropic_rate,
    proximal_rate,
    tuned_rate,
)
from forel.theory.rates.rate import Rate, increment, strength_increment
from forel.theory.rates.scale_free import ScaleFree
from forel.theory.rates.schedule import Constant, InverseSqrt, InverseTime, Unregularized

__all__ = [
    "Constant",
    "CurvatureAdaptive",
    "DiagonalAdaGrad",
    "Doubling",
    "InverseSqrt",
    "InverseTime",
    "MatrixAdaGrad",
    "Rate",
    "ScalarAdaGrad",
    "ScaleFree",
    "Unregularized",
    "adagrad_dual_averaging_rate",
    "adagrad_proximal_rate",
    "dual_averaging_rate",
    "entropic_rate",
    "increment",
    "proximal_rate",
    "strength_increment",
    "sum_over_roots",
    "tuned_rate",
]
