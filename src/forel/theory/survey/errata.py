"""Errors in the survey, each with the corrected statement and where forel implements it."""

from typing import NamedTuple

__all__ = ["ERRATA", "Erratum"]


class Erratum(NamedTuple):
    """An error in the survey: its location, the printed and the corrected statement, the reason, the implementation."""

    location: str
    printed: str
    corrected: str
    reason: str
    implementation: str


ERRATA = (
    Erratum(
        "Figure 1, first update",
        "argmin_x g_{1:t}·x_t + …",
        "argmin_x g_{1:t}·x + …",
        "the minimum is over x; the same misprint is in Corollary 6 (f_t(x) = g_t·x_t) and before equation (implicit)",
        "forel.theory.algorithms.named.gradient_descent",
    ),
    Erratum(
        "Figure 1, entropic update",
        "the regularizer has the factor 1/(2η_t)",
        "1/η_t",
        "its closed form exp(−η_t g_{1:t}) and section 3.6 both have 1/η_t",
        "forel.theory.algorithms.named.hedge",
    ),
    Erratum(
        "Lemma 3",
        "the dual norm of √σ_{0:t}‖x‖ is ‖x‖/√σ_{0:t}",
        "‖x‖_⋆/√σ_{0:t}",
        "only the L2 norm is its own dual",
        "forel.theory.norms.ScaledNorm",
    ),
    Erratum(
        "section 3.3",
        "r_t is proximal for t > 1",
        "for t ≥ 1",
        "r_{0:1} would have no strength after round 1, where η_1 = √2R/G is used",
        "forel.theory.algorithms.named.ftrl_proximal",
    ),
    Erratum(
        "section 3.4, diagonal bound",
        "½Σ ‖Q_{1:t}^{−½} g_t‖₂",
        "½Σ ‖Q_{1:t}^{−½} g_t‖₂²",
        "it is Theorem 2, in which the norm is squared",
        "forel.theory.analysis.bounds.theorem_2",
    ),
    Erratum(
        "section 3.7",
        "½Σ ‖g_t‖²_(t),⋆ = ½Σ ‖g_t‖²/t, with ‖g_t‖ ≤ G",
        "½Σ ‖g_t‖²_⋆/t, with ‖g_t‖_⋆ ≤ G",
        "the losses are strongly convex in any norm, and gradients are measured in its dual",
        "forel.theory.analysis.formulas.strongly_convex_formula",
    ),
    Erratum(
        "section 4.1, remark after Lemma 5",
        "with h_{1:T}(x_{T+1}) − h_{1:T}(x*) the lemma is an equality",
        "h_{0:T}(x_{T+1}) − h_{0:T}(x*)",
        "x_{T+1} minimizes h_{0:T}, so only that difference is non-positive; without r_0 the two sides differ by "
        "r_0(x_{T+1}) − r_0(x*)",
        "forel.theory.analysis.decomposition.strong_ftrl_lemma",
    ),
    Erratum(
        "Corollary 8",
        "φ_1 + ψ + Ψ is strongly convex with respect to ‖·‖",
        "φ_1 + ψ is, without Ψ",
        "the proof applies Lemma 7 to φ_1 and φ_1 + ψ; with φ_1 = 0, ψ = gx and Ψ = x²/2 the printed claim states "
        "g²/2 ≤ 0",
        "forel.theory.analysis.gradient_norms.squared_norms",
    ),
    Erratum(
        "section 4.3, primal-dual proof of Theorem 1",
        "r⋆_{1:t−1} and r⋆_{1:t}",
        "r⋆_{0:t−1} and r⋆_{0:t}",
        "r_0 is part of the objective, and often all of its strength in round 1",
        "forel.theory.analysis.decomposition.conjugate_lemma",
    ),
    Erratum(
        "Theorem 10",
        "h_{0:t}, which contains α_{1:t}Ψ, is strongly convex with respect to ‖·‖_(t)",
        "r_{0:t} + α_{1:t−1}Ψ is, without this round's penalty",
        "it follows from Corollary 8; with r = 0, α = 1, Ψ = x²/2 and g = (1, −1) regret is 1.5 and the printed bound "
        "0.75. In its second claim α_t need not be non-increasing",
        "forel.theory.analysis.bounds.theorem_10",
    ),
    Erratum(
        "Theorem 12",
        "the conditions are those of Theorem 10",
        "‖·‖_(t) is a norm in which r_{0:t} is strongly convex",
        "of earlier penalties Mirror Descent keeps tangents, which have no curvature, and this round's does not count",
        "forel.theory.analysis.bounds.theorem_12",
    ),
    Erratum(
        "section 6.2, one-dimensional example",
        "FTRL selects 0 for every t > G/(2λ) + ½",
        "with the alternating gradients of appendix D, it does from round 13 on (G = 11, T = 16, λ = ½); with the "
        "adversary as section 6.2 words it, it plays 0 in rounds 13 and 14, receives −G twice, and leaves 0 in round "
        "15 (x_15 = 4.875)",
        "an adversary that answers −G whenever x_t ≤ 0 does not alternate once x_t = 0",
        "forel.theory.survey.figures.figure_4",
    ),
    Erratum(
        "section 6.3, before Theorem 12",
        "r^B_{0:T}(x*) = Σ_{t=1}^T B_{r_t}(x*, x_t)",
        "r_0(x*) + Σ_{t=1}^T B_{r_t}(x*, x_t)",
        "r^B_0 = r_0, which is all there is when the rate is constant",
        "forel.theory.analysis.bounds.theorem_12",
    ),
    Erratum(
        "section 6.3, proof of Theorem 12",
        "the stability terms subtract r_t(x_t), sums start at h_1, and the last bounds Ψ̄_{1:t}(x*)",
        "r^B_t(x_t), which is 0; h_0; and Ψ̄_{1:T}(x*)",
        "the algorithm analyzed is FTRL-Proximal with the regularizers r^B_t, after T rounds",
        "forel.theory.algorithms.mirror_descent.MirrorDescent",
    ),
    Erratum(
        "appendix B, proof of Lemma 7",
        "φ_1 is strongly convex because it differs from φ_2 by a linear function",
        "φ_1′ = φ_1 + ψ − b·x is",
        "φ_1 differs from φ_2 by ψ, which may have all of the curvature",
        "forel.theory.survey.lemmas.lemma_7",
    ),
    Erratum(
        "Figure 6, greedy column, FTRL form (Theorem 19)",
        "argmin (g_{1:t} + g^(Ψ)_{1:t−1})·x + R(x) with R = r + I_X",
        "R(x) = B_r(x, x_1) + I_X(x)",
        "the other forms of the column start from ∇r(x_1), this one from 0, which is the same only where ∇r(x_1) is "
        "0 or constant on X: for r = x²/2 on [1, 2] and g_1 = −½ it selects x_2 = 1, the others 1.5",
        "forel.theory.algorithms.forms.GREEDY",
    ),
    Erratum(
        "appendix C.2",
        "r is continuously differentiable on X",
        "on all of its domain",
        'the projection forms take ∇r at u_{t+1}, which lies outside X; "when I_X = I_X" in the proof of Theorem 19 '
        "is meant to say Ψ = I_X",
        "forel.theory.algorithms.forms.unconstrained",
    ),
    Erratum(
        "appendix D",
        "λ = G/(2T − 1) ensures x_T = 0",
        "for odd T; G/(2T − 3) for every T",
        "x_T = 0 requires |g_{1:T−1}| ≤ (T − 1)λ, and for even T the left side is ½(G + λ), not ½(G − λ)",
        "forel.theory.analysis.adversaries.l1_example_alternating",
    ),
)
