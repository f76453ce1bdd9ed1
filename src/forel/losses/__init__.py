"""Losses: functions of a margin and a label, functions of a point, and their lower bounds.

A *margin loss* ℓ(m, y) compares the margin m = a·x of an example with its label. An :class:`Example` turns it into a
:class:`Loss`, a function f of the point x, which is what algorithms see. Settings take a margin loss as an object or by
its name, such as "squared_hinge", which :func:`by_name` finds.

===============================  =========================================  ==============  ====================
margin loss                      ℓ(m, y)                                    labels          prediction
===============================  =========================================  ==============  ====================
``Squared()``                    ½(m − y)²                                  any number      m
``SquaredError()``               (m − y)²                                   any number      m
``Absolute()``                   |m − y|                                    any number      m
``EpsilonInsensitive(epsilon)``  max(0, |m − y| − ε)                        any number      m
``Huber(delta)``                 ½d² up to d = |m − y| = δ, then δ(d − ½δ)  any number      m
``Quantile(q)``                  max(q(y − m), (1 − q)(m − y))              any number      m
``Logistic()``                   log(1 + eᵐ) − ym                           from 0 to 1     1/(1 + e⁻ᵐ)
``Hinge()``                      max(0, 1 − ym)                             −1 or 1         sign of m
``SquaredHinge()``               ½ max(0, 1 − ym)²                          −1 or 1         sign of m
``Poisson()``                    eᵐ − ym                                    at least 0      eᵐ
``Softmax(classes)``             log Σₖ exp(mₖ) − m_y                       0, 1, …, K − 1  exp(mₖ) / Σⱼ exp(mⱼ)
===============================  =========================================  ==============  ====================

At kinks the slope is the subgradient of smallest absolute value. It is 0 where that is a subgradient, so that an
example without loss does not change a model.

>>> float(Hinge().slope(1.0, 1)), float(Absolute().slope(2.0, 2.0))
(0.0, 0.0)
"""

from forel.losses import classification, regression
from forel.losses.classification import *  # noqa: F403
from forel.losses.examples import Example
from forel.losses.functions import Convex, Linear, Loss, Quadratic, Total, linear_bound, quadratic_bound
from forel.losses.labels import Choice, Classes, Interval, Labels
from forel.losses.margin import Constants, MarginLoss
from forel.losses.regression import *  # noqa: F403
from forel.losses.vocabulary import by_name

__all__ = [
    "Choice",
    "Classes",
    "Constants",
    "Convex",
    "Example",
    "Interval",
    "Labels",
    "Linear",
    "Loss",
    "MarginLoss",
    "Quadratic",
    "Total",
    "by_name",
    "linear_bound",
    "quadratic_bound",
]
# Losses are exported by the __all__ of their modules, so that adding one changes nothing here.
__all__ += classification.__all__
__all__ += regression.__all__
