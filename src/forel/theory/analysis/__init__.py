"""The analysis: play the game, measure regret, evaluate the theorems."""

from forel.theory.analysis.batch import Batch, average_loss, online_to_batch, passes, sampled
from forel.theory.analysis.bounds import (
    Bound,
    bound,
    nonadaptive_bound,
    theorem_1,
    theorem_2,
    theorem_10,
    theorem_12,
    theorem_14,
)
from forel.theory.analysis.decomposition import (
    Decomposition,
    conjugate_lemma,
    standard_ftrl_lemma,
    strong_ftrl_lemma,
    surrogate_regret,
)
from forel.theory.analysis.dual import LossFloor, loss_floor
from forel.theory.analysis.dynamic import dynamic_bound, path_formula
from forel.theory.analysis.formulas import (
    adagrad_proximal_formula,
    delay_tolerant_formula,
    dual_averaging_formula,
    entropic_formula,
    local_norm_bound,
    proximal_formula,
    strongly_convex_formula,
    tuned_formula,
)
from forel.theory.analysis.game import Adversary, Trace, play

__all__ = [
    "Adversary",
    "Batch",
    "Bound",
    "Decomposition",
    "LossFloor",
    "Trace",
    "adagrad_proximal_formula",
    "average_loss",
    "bound",
    "conjugate_lemma",
    "delay_tolerant_formula",
    "dual_averaging_formula",
    "dynamic_bound",
    "entropic_formula",
    "local_norm_bound",
    "loss_floor",
    "nonadaptive_bound",
    "online_to_batch",
    "passes",
    "path_formula",
    "play",
    "proximal_formula",
    "sampled",
    "standard_ftrl_lemma",
    "strong_ftrl_lemma",
    "strongly_convex_formula",
    "surrogate_regret",
    "theorem_1",
    "theorem_2",
    "theorem_10",
    "theorem_12",
    "theorem_14",
    "tuned_formula",
]
