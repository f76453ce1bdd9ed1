"""One instance or more of everything public, by kind: what the contract tests go through.

A new loss, set, algorithm or estimator registers itself by being listed here; a test fails for a public class that is
not. A kind is an entry of ``CATALOGUE``, and its contract a function in ``test_contract.py``.
"""

import numpy as np

from forel import experts, losses
from forel.theory import algorithms, analysis, geometries, norms, penalties, rates, regularizers, sets, weights
from website.combinations import GEOMETRIES
from website.combinations import penalties as penalty_table
from website.combinations import sets as set_table

N = 4
MARGIN_LOSSES = [
    losses.Squared(),
    losses.SquaredError(),
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

BOX = sets.Box(-1, 1)
MIRROR = algorithms.MirrorDescent(
    rates.DiagonalAdaGrad(0.5, 1.0), geometries.Diagonal(), penalties.l1(0.1), weights.EveryRound(), BOX
)
ALGORITHMS = {
    "leader": algorithms.follow_the_leader(),
    "leader of quadratics below": algorithms.follow_the_leader(BOX, algorithms.QuadraticBound()),
    "gradient descent": algorithms.gradient_descent(0.3),
    "lazy projection": algorithms.lazy_projection(0.3, sets.l2_ball(0.5)),
    "greedy projection": algorithms.greedy_projection(0.3, sets.l2_ball(0.5)),
    "greedy on the simplex": algorithms.greedy_projection(0.3, sets.Simplex()),
    "dual averaging": algorithms.dual_averaging(1.0, 1.0),
    "dual averaging, ball": algorithms.dual_averaging(1.0, 1.0, sets.l2_ball(1.0)),
    "dual averaging, simplex": algorithms.dual_averaging(1.0, 1.0, sets.Simplex()),
    "RDA": algorithms.regularized_dual_averaging(1.0, 1.0, 0.05, 0.1),
    "RDA, once": algorithms.regularized_dual_averaging(1.0, 1.0, 0.3, 0.1, weights.Once()),
    "AdaGrad dual averaging": algorithms.adagrad_dual_averaging(1.0, 1.0),
    "matrix dual averaging": algorithms.matrix_dual_averaging(1.0, 1.0),
    "FTRL-Proximal": algorithms.ftrl_proximal(1.0, 1.0),
    "AdaGrad FTRL-Proximal": algorithms.adagrad_ftrl_proximal(1.0),
    "AdaGrad FTRL-Proximal, ball": algorithms.adagrad_ftrl_proximal(1.0, feasible=sets.l2_ball(1.0)),
    "AdaGrad FTRL-Proximal, simplex": algorithms.adagrad_ftrl_proximal(1.0, feasible=sets.Simplex()),
    "AdaGrad FTRL-Proximal, L1": algorithms.adagrad_ftrl_proximal(1.0, penalties.l1(0.02), weights.EveryRound()),
    "matrix FTRL-Proximal": algorithms.matrix_ftrl_proximal(1.0),
    "ad click": algorithms.ad_click(0.5, 1.0, 0.3, 0.1),
    "curvature adaptive": algorithms.curvature_adaptive(2.0),
    "hedge": algorithms.hedge(N, 1.0),
    "exponentiated gradient": algorithms.exponentiated_gradient(0.3),
    "strongly convex descent": algorithms.strongly_convex_descent(),
    "FOBOS": algorithms.fobos(rates.Constant(0.3), geometries.Euclidean(), penalties.l1(0.1)),
    "Mirror Descent": MIRROR,
    "Mirror Descent, elastic net": algorithms.MirrorDescent(
        rates.InverseSqrt(0.5, 1), geometries.Euclidean(), penalties.ElasticNet(0.05, 0.1), weights.Given([2.0, 1.0])
    ),
    "Mirror Descent, p-norm": algorithms.MirrorDescent(rates.ScalarAdaGrad(0.5, 1.0), geometries.SquaredPNorm(1.5)),
    "Mirror Descent as FTRL-Proximal": algorithms.as_ftrl_proximal(MIRROR),
    "p-norm FTRL": algorithms.FTRL(rates.InverseSqrt(0.5, 1), geometries.SquaredPNorm(1.3), center="played"),
    "implicit": algorithms.Implicit(rates.Constant(0.3), geometries.Euclidean()),
    "doubling trick": algorithms.doubling_trick(1.0, 1.0),
}

# Beyond the survey: those that are not of its family, or play by hints.
BEYOND = {
    "delayed": algorithms.delayed(algorithms.delay_tolerant_adagrad(1.0, 1.0, 3), 3),
    "coin betting": algorithms.CoinBetting(10.0, lipschitz=4.0),
    "coin betting, per coordinate": algorithms.CoinBetting(10.0, lipschitz=4.0, per_coordinate=True),
    "Squint": algorithms.Squint(),
    "online Newton step": algorithms.online_newton_step(0.1, sets.l2_ball(1.0)),
    "private FTRL": algorithms.private_ftrl(2.0, 1.0),
    "EXP3": algorithms.exp3(N),
}

ONES = losses.Linear(np.ones(N))
TRACE = analysis.play(algorithms.gradient_descent(1.0), [ONES])
MIXED = experts.mix([[0.9, 0.5], [0.2, 0.5]], [1, 0])
CATALOGUE = {
    "algorithm": [*ALGORITHMS.values(), *BEYOND.values()],
    "trace": [TRACE],
    "analysis": [
        analysis.bound(TRACE, np.zeros(N)),
        analysis.strong_ftrl_lemma(TRACE, np.zeros(N)),
        analysis.online_to_batch(TRACE, np.zeros(N)),
        analysis.loss_floor(TRACE, sets.l2_ball(1.0)),
    ],
    "surrogate": [
        algorithms.Linearized(),
        algorithms.QuadraticBound(),
        algorithms.Exact(),
        algorithms.ExpConcave(0.5),
    ],
    "hint": [algorithms.TreeNoise(1.0)],
    "forecaster": [algorithms.VovkAzouryWarmuth(1.0)],
    "round": [MIRROR.added(MIRROR.init(N), ONES, MIRROR.update(MIRROR.init(N), ONES))],
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
    "own set": [sets.Oracle(np.max, np.minimum)],
    "penalty": list(penalty_table(N).values()),
    "weights": [weights.Once(), weights.EveryRound(), weights.Given([3.0, 2.0, 1.0])],
    "margin loss": MARGIN_LOSSES,
    "loss": [
        losses.Linear(np.ones(N)),
        losses.Quadratic(np.ones(N)),
        losses.Example(losses.Logistic(), np.ones(N), 1),
        losses.Example(losses.Softmax(2), np.ones(N // 2), 1),
        losses.Total.zero(N).plus(losses.Quadratic(np.ones(N))).plus(OWN),
        OWN,
    ],
    "labels": [losses.Interval(), losses.Choice((-1, 1)), losses.Classes(3)],
    "constants": [losses.Constants(1.0)],
    "penalty parts": [penalties.split_penalty(penalties.NONE)],
    "rate": [
        rates.Unregularized(),
        rates.Constant(0.5),
        rates.InverseSqrt(0.5, 1),
        rates.InverseTime(2.0),
        rates.ScalarAdaGrad(1.0, 1.0),
        rates.DiagonalAdaGrad(1.0, beta=1.0),
        rates.MatrixAdaGrad(1.0, 1.0),
        rates.ScaleFree(1.0),
        rates.CurvatureAdaptive(2.0),
    ],
    "doubling": [rates.Doubling(1.0, 1.0)],
    "pool": [
        experts.Probabilities(),
        experts.LogOdds(),
        experts.Likelihoods(),
        experts.Likelihoods(log=True),
        experts.WeightedMean(losses.Absolute()),
        experts.squared(0.0, 1.0),
        experts.Aggregated(0.0, 1.0),
        experts.Costs(),
    ],
    "rule": [
        experts.ExponentialWeights(0.5),
        experts.ExponentialWeights(0.5, np.arange(1.0, N + 1)),
        experts.FixedShare(0.5),
        experts.FixedShare(0.5, 0.1),
        experts.AdaHedge(),
    ],
    "experts": [
        MIXED,
        MIXED.guarantee(),
        experts.ExpertMixture(),
        experts.ExpertMixture(experts.Costs(), experts.AdaHedge()),
    ],
}
MODULES = [algorithms, analysis, experts, geometries, losses, norms, penalties, rates, regularizers, sets, weights]
