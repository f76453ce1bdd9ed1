"""Slips of the survey that an implementation meets, with what the derivation says."""

from typing import NamedTuple

__all__ = ["ERRATA", "Erratum"]


class Erratum(NamedTuple):
    """Where it stands, what it says, what is meant, why, and where forel follows the derivation."""

    where: str
    says: str
    meant: str
    because: str
    home: str


ERRATA = (
    Erratum(
        "Figure 1, entropic update",
        "the regularizer has the factor 1/(2η_t)",
        "1/η_t",
        "its closed form exp(−η_t g_{1:t}) and section 3.6 both have 1/η_t",
        "forel.algorithms.hedge.hedge",
    ),
    Erratum(
        "Figure 1, first update",
        "argmin_x g_{1:t}·x_t + …",
        "argmin_x g_{1:t}·x + …",
        "the minimum is over x; the same slip stands in Corollary 6 (f_t(x) = g_t·x_t) and before equation (implicit)",
        "forel.algorithms.gradient_descent.gradient_descent",
    ),
    Erratum(
        "section 3.3",
        "r_t is proximal for t > 1",
        "for t ≥ 1",
        "r_{0:1} would have no strength after round 1, where η_1 = √2R/G is used",
        "forel.algorithms.ftrl_proximal.ftrl_proximal",
    ),
    Erratum(
        "section 3.4, diagonal bound",
        "½Σ ‖Q_{1:t}^{−½} g_t‖₂",
        "½Σ ‖Q_{1:t}^{−½} g_t‖₂²",
        "it is Theorem 2, in which the norm is squared",
        "forel.analysis.bounds.theorem_2",
    ),
    Erratum(
        "section 4.1, remark after Lemma 5",
        "with h_{1:T}(x_{T+1}) − h_{1:T}(x*) the lemma is an equality",
        "h_{0:T}(x_{T+1}) − h_{0:T}(x*)",
        "x_{T+1} minimises h_{0:T}, so only that difference is non-positive; without r_0 the two sides differ by "
        "r_0(x_{T+1}) − r_0(x*)",
        "forel.analysis.decompose.strong",
    ),
    Erratum(
        "sections 4.2 and 6.3",
        "the stability terms of Theorem 12's proof subtract r_t(x_t), and its sums start at h_1",
        "r^B_t(x_t), which is 0, and h_0",
        "the algorithm analysed is FTRL-Proximal with the regularizers r^B_t",
        "forel.algorithms.mirror_descent.MirrorDescent",
    ),
    Erratum(
        "Figure 6, greedy column, FTRL form (Theorem 19)",
        "argmin (g_{1:t} + g^(Ψ)_{1:t−1})·x + R(x) with R = r + I_X",
        "R(x) = B_r(x, x_1) + I_X(x)",
        "the other forms of the column start from ∇r(x_1), this one from 0, which is the same only where ∇r(x_1) is "
        "0 or constant on X: for r = x²/2 on [1, 2] and g_1 = −½ it selects x_2 = 1, the others 1.5",
        "forel.algorithms.forms.GREEDY",
    ),
    Erratum(
        "appendix C.2",
        "r is continuously differentiable on X",
        "on all of its domain",
        'the projection forms take ∇r at u_{t+1}, which lies outside X; "when I_X = I_X" in the proof of Theorem 19 '
        "is meant to say Ψ = I_X",
        "forel.algorithms.forms.steps.unconstrained",
    ),
    Erratum(
        "section 6.2, one-dimensional example",
        "FTRL selects 0 for every t > G/(2λ) + ½",
        "with the alternating gradients of appendix D, it does from round 13 on (G = 11, T = 16, λ = ½); with the "
        "adversary as section 6.2 words it, it plays 0 in rounds 13 and 14, receives −G twice, and leaves 0 in round "
        "15 (x_15 = 4.875)",
        "an adversary that answers −G whenever x_t ≤ 0 does not alternate once x_t = 0",
        "forel.survey.pictures.figure_4",
    ),
)
