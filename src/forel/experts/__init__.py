r"""Prediction with expert advice: many predictors, mixed into one that is nearly as good as the best of them.

A *pool* defines the predictions, their loss and how to combine them; a *rule* weights the experts by their past losses.

===========================================  ===========================================  ==========
pool                                         predictions                                  η
===========================================  ===========================================  ==========
``Probabilities()``, ``LogOdds()``           probabilities of a 1, log-loss               1
``Likelihoods()``                            likelihoods of the outcome, log-loss         1
``squared(a, b)``                            numbers in [a, b], squared loss, mean        1/(b − a)²
``Aggregated(a, b)``                         the same, Vovk's substitution function       4/(b − a)²
``WeightedMean(loss, α)``                    any α-exp-concave loss, mean                 α
``WeightedMean(loss)``                       any convex loss, mean                        0
``Costs()``                                  none: losses are given directly              0
===========================================  ===========================================  ==========

===============================  ============================================================================
rule                             regret at most
===============================  ============================================================================
``ExponentialWeights(η, π)``     log(1/π_k)/η against expert k, log(K)/η with uniform π
``FixedShare(η, α)``             −log(prior of the sequence)/η against every sequence of experts
``AdaHedge()``                   twice the mixability gap, at most √(Σs² log K) + S(4/3 log K + 2); any losses
===============================  ============================================================================

:func:`mix` mixes a table of forecasts, :class:`ExpertMixture` mixes predictors of any kind round by round.

>>> mixed = mix([[0.9, 0.2], [0.8, 0.3], [0.1, 0.5]], [1, 1, 0])
>>> mixed.weights.round(2)
array([[0.5 , 0.5 ],
       [0.82, 0.18],
       [0.92, 0.08],
       [0.96, 0.04]])
"""

from forel.experts.guarantee import Guarantee
from forel.experts.mix import ExpertMixture, MixtureResult, mix
from forel.experts.pools import Aggregated, Costs, Likelihoods, LogOdds, Pool, Probabilities, WeightedMean, squared
from forel.experts.rules import AdaHedge, ExponentialWeights, FixedShare, Rule, best_switching

__all__ = [
    "AdaHedge",
    "Aggregated",
    "Costs",
    "ExpertMixture",
    "ExponentialWeights",
    "FixedShare",
    "Guarantee",
    "Likelihoods",
    "LogOdds",
    "MixtureResult",
    "Pool",
    "Probabilities",
    "Rule",
    "WeightedMean",
    "best_switching",
    "mix",
    "squared",
]
