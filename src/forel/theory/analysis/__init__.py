"""The analysis: play the game, measure regret, evaluate the theorems."""

from forel.theory.analysis.batch import Batch, mean, online_to_batch, passes, sampled
from forel.theory.analysis.bounds import (
    Bound,
    bound,
    nonadaptive,
    theorem_1,
    theorem_2,
    theorem_10,
    theorem_12,
    theorem_14,
)
from forel.theory.analysis.closing import (
    adagrad_proximal_formula,
    dual_averaging_formula,
    entropic_formula,
    proximal_formula,
    strongly_convex_formula,
    tuned_formula,
)
from forel.theory.analysis.decompose import Decomposition, conjugate, measured, standard, strong
from forel.theory.analysis.game import Adversary, Trace, play

__all__ = [
    "Adversary",
    "Batch",
    "Bound",
    "Decomposition",
    "Trace",
    "adagrad_proximal_formula",
    "bound",
    "conjugate",
    "dual_averaging_formula",
    "entropic_formula",
    "mean",
    "measured",
    "nonadaptive",
    "online_to_batch",
    "passes",
    "play",
    "proximal_formula",
    "sampled",
    "standard",
    "strong",
    "strongly_convex_formula",
    "theorem_1",
    "theorem_2",
    "theorem_10",
    "theorem_12",
    "theorem_14",
    "tuned_formula",
]
