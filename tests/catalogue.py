"""One instance or more of everything public, by kind: what the contract tests go through.

A new loss, set, algorithm or estimator registers itself by being listed here; a test fails for a public class that is
not. A kind is an entry of ``CATALOGUE``, and its contract a function in ``test_contract.py``.
"""

import numpy as np

from forel import geometries, losses, norms, penalties, rates, regularizers, sets, weights
from forel.argmin.table import GEOMETRIES
from forel.argmin.table import penalties as penalty_table
from forel.argmin.table import sets as set_table

N = 4
MARGIN_LOSSES = [
    losses.Squared(),
    losses.Absolute(),
    losses.EpsilonInsensitive(0.1),
    losses.Huber(0.5),
    losses.Quantile(0.3),
    losses.Hinge(),
    losses.SquaredHinge(),
    losses.Logistic(),
    losses.Poisson(),
    losses.Softmax(3),
]

# A quadratic whose minimum is found by hand stands for the user's own functions.
OWN = losses.Convex(lambda x: float(x @ x), lambda x: 2 * x, 2.0)

CATALOGUE = {
    "norm": [
        norms.L1,
        norms.L2,
        norms.LINF,
        norms.ScaledNorm(norms.L2, 2.0),
        norms.DiagonalNorm(np.ones(N)),
        norms.MatrixNorm(np.eye(N)),
    ],
    "geometry": list(GEOMETRIES.values()),
    "regularizer": [regularizers.Regularizer.around(geometries.Euclidean(), 2.0, np.ones(N))],
    "set": list(set_table(N).values()),
    "penalty": list(penalty_table(N).values()),
    "weights": [weights.Once(), weights.EveryRound(), weights.Given([3.0, 2.0, 1.0])],
    "margin loss": MARGIN_LOSSES,
    "loss": [
        losses.Linear(np.ones(N)),
        losses.Quadratic(np.ones(N)),
        losses.Example(losses.Logistic(), np.ones(N), 1),
        losses.MulticlassExample(losses.Softmax(2), np.ones(N // 2), 1),
        OWN,
    ],
    "labels": [losses.Interval(), losses.Choice((-1, 1)), losses.Classes(3)],
    "constants": [losses.Constants(1.0)],
    "parts": [penalties.parts(penalties.NONE)],
    "rate": [
        rates.Constant(0.5),
        rates.InverseSqrt(0.5, 1),
        rates.InverseTime(2.0),
        rates.ScalarAdaGrad(1.0, 1.0),
        rates.DiagonalAdaGrad(1.0, beta=1.0),
        rates.MatrixAdaGrad(1.0, 1.0),
        rates.ScaleFree(1.0),
        rates.AsNeeded(2.0),
    ],
    "doubling": [rates.Doubling(1.0, 1.0)],
}
MODULES = [geometries, losses, norms, penalties, rates, regularizers, sets, weights]
