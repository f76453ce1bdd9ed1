"""Lemmas 3, 4, 5, 7, 9, 13, 15, 16 and Corollaries 6 and 8, recomputed."""

from collections.abc import Callable, Iterator

import numpy as np

from forel.losses import Quadratic
from forel.theory.algorithms import FTRL, Algorithm, adagrad_ftrl_proximal, dual_averaging, ftrl_proximal, hedge
from forel.theory.analysis import Decomposition, Trace, conjugate_lemma, standard_ftrl_lemma, strong_ftrl_lemma
from forel.theory.argmin import Argmin
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, Geometry, SquaredPNorm
from forel.theory.norms import L2, ScaledNorm
from forel.theory.penalties import NONE, ElasticNet, Penalty, l1, squared_l2
from forel.theory.rates import DiagonalAdaGrad, sum_over_roots
from forel.theory.regularizers import Regularizer
from forel.theory.sets import Box, FeasibleSet, Reals, Simplex, l2_ball
from forel.theory.survey.games import N, comparators, traces
from forel.theory.survey.result import Outcome, Result, largest
from forel.validation import Strength, Vector

__all__ = ["LEMMAS"]

EVERYWHERE = Reals()
# Extended convex functions φ_σ + Ψ + I_X, with the strength in which they are strongly convex.
FUNCTIONS: list[tuple[str, Geometry, Strength, Penalty, FeasibleSet]] = [
    ("quadratic", Euclidean(), 2.0, NONE, EVERYWHERE),
    ("diagonal", Diagonal(), np.linspace(1, 3, N), NONE, EVERYWHERE),
    ("matrix", FullMatrix(), np.eye(N) + 0.3, NONE, EVERYWHERE),
    ("quadratic, L1, ball", Euclidean(), 2.0, l1(0.3), l2_ball(0.5)),
    ("quadratic, squared L2", Euclidean(), 2.0, squared_l2(5.0), EVERYWHERE),
    ("diagonal, elastic net, box", Diagonal(), np.linspace(1, 3, N), ElasticNet(0.2, 0.1), Box(-0.3, 0.5)),
    ("entropy", Entropy(), 1.5, NONE, Simplex()),
    ("p-norm, L1", SquaredPNorm(1.4), 1.5, l1(0.2), EVERYWHERE),
]


def _vectors(count: int, seed: int) -> Iterator[Vector]:
    yield from np.random.default_rng(seed).normal(size=(count, N))


def _value(play: Argmin, strength: Strength, x: Vector) -> float:
    return play.geometry.value(strength, x) + play.penalty(x)


def lemma_3() -> Outcome:
    """Compare the dual norm of a running sum with ‖g‖/√σ_{0:t}.

    Survey: Lemma 3
    """
    total, sigmas = Regularizer.around(Euclidean(), 0.5, np.zeros(N)), [0.5, 0.0, 2.0, 1.0]
    for point, sigma in zip(_vectors(4, 1), sigmas, strict=True):
        total = total + Regularizer.around(Euclidean(), sigma, point)
    g = next(_vectors(1, 2))
    return Outcome(total.dual_norm(g), L2(g) / np.sqrt(0.5 + sum(sigmas)), "‖g‖_(t),⋆ = ‖g‖/√σ_{0:t}")


def lemma_4() -> Outcome:
    """Compare both sides for constant, random and doubling sequences.

    Survey: Lemma 4
    """
    rng = np.random.default_rng(0)
    cases = {"constant": np.ones(100_000), "random": rng.random(1000), "growing": 2.0 ** np.arange(60)}
    return largest(Outcome(*sum_over_roots(a), name) for name, a in cases.items())


def _decompositions(lemma: Callable[[Trace, Vector], Decomposition]) -> Iterator[Outcome]:
    algorithms: dict[str, Algorithm] = {
        "dual averaging": dual_averaging(1.0, 1.0),
        "FTRL-Proximal": ftrl_proximal(1.0, 1.0),
        "AdaGrad FTRL-Proximal, L1": adagrad_ftrl_proximal(1.0, l1(0.05)),
        "hedge": hedge(N),
        "unconstrained": FTRL(DiagonalAdaGrad(0.5, beta=1.0), Diagonal(), proximal=True),
    }
    for name, algorithm in algorithms.items():
        for adversary, trace in traces(algorithm, rounds=40):
            for x in comparators(trace):
                parts = lemma(trace, x)
                case = f"{name}, {adversary}"
                # A remainder or a gap in the equality that should not be there must not pass as a small regret.
                wrong = parts.error > 1e-9 or parts.remainder > 1e-9 * (1 + abs(parts.bound))
                wrong |= bool(trace.suboptimality.any())
                yield Outcome(float("nan") if wrong else parts.regret, parts.bound, case)


def lemma_5() -> Outcome:
    """Compare regret with regularization and stability, at every comparator, and check the equality.

    Survey: Lemma 5
    """
    return largest(_decompositions(strong_ftrl_lemma))


def corollary_6() -> Outcome:
    """Compare each round of the conjugate form with the Strong FTRL Lemma.

    Survey: Corollary 6
    """
    worst = 0.0
    for algorithm in (dual_averaging(1.0, 1.0), adagrad_ftrl_proximal(1.0, l1(0.05)), hedge(N)):
        for _, trace in traces(algorithm, rounds=40):
            x = trace.points[-1]
            gap = conjugate_lemma(trace, x).stability - strong_ftrl_lemma(trace, x, "losses").stability
            worst = max(worst, float(np.abs(gap).max()))
    return Outcome(worst, 1e-9, "largest difference between the two sides of a round")


def _changed(by: Callable[[Vector], tuple[Vector, float]]) -> Iterator[tuple[Outcome, Outcome]]:
    """Yield decrease of the objective and movement of its minimum when ψ = b·(x − x_1) + (c/2)‖x − x_1‖² arrives."""
    for name, geometry, strength, penalty, feasible in FUNCTIONS:
        play = Argmin(geometry, penalty, feasible)
        for z, change in zip(_vectors(5, 3), _vectors(5, 4), strict=True):
            b, curvature = by(change)
            if curvature and not (geometry.quadratic and geometry.shape == "scalar"):
                continue
            first = play(z, strength)
            second = play(z + b - curvature * first, strength + curvature if curvature else strength)

            added = Quadratic(first, curvature, b)

            def total(x: Vector) -> float:
                return float(z @ x) + _value(play, strength, x) + added(x)  # noqa: B023 (called before the next turn)

            norm = ScaledNorm(L2, np.sqrt(strength + curvature)) if curvature else geometry.norm(strength)
            decrease = Outcome(total(first) - total(second), 0.5 * norm.dual(b) ** 2, name)
            yield decrease, Outcome(norm(first - second), norm.dual(b), name)


def lemma_7() -> Outcome:
    """Add a quadratic to a strongly convex function: movement and decrease, equal to the bound for quadratics.

    Survey: Lemma 7
    """
    return largest(outcome for pair in _changed(lambda change: (change, 1.5)) for outcome in pair)


def corollary_8() -> Outcome:
    """Add a linear function and a penalty at once; in the norm of the function without the penalty, as the proof needs.

    Survey: Corollary 8
    """
    outcomes = []
    for name, geometry, strength, penalty, feasible in FUNCTIONS:
        bare, play = Argmin(geometry, NONE, feasible), Argmin(geometry, penalty, feasible)
        for z, b in zip(_vectors(5, 5), _vectors(5, 6), strict=True):
            first, second = bare(z, strength), play(z + b, strength)
            decrease = (z + b) @ (first - second) + _value(play, strength, first) - _value(play, strength, second)
            bound = 0.5 * geometry.norm(strength).dual(b) ** 2 + penalty(first) - penalty(second)
            outcomes.append(Outcome(float(decrease), bound, name))
    return largest(outcomes)


def lemma_9() -> Outcome:
    """Compare how far a conjugate lies above its tangent with half the squared dual norm.

    Survey: Lemma 9
    """
    outcomes = []
    for name, geometry, strength, penalty, feasible in FUNCTIONS:
        play, norm = Argmin(geometry, penalty, feasible), geometry.norm(strength)
        for g, h in zip(_vectors(10, 7), _vectors(10, 8), strict=True):
            above = play.conjugate(h, strength) - play.conjugate(g, strength) - play(-g, strength) @ (h - g)
            outcomes.append(Outcome(float(above), 0.5 * norm.dual(h - g) ** 2, name))
    return largest(outcomes)


def lemma_13() -> Outcome:
    """Compare regret with the weaker lemma, which uses only f_t(x_t) − f_t(x_{t+1}).

    Survey: Lemma 13
    """
    return largest(_decompositions(standard_ftrl_lemma))


def lemma_15() -> Outcome:
    """Compare the distance of two argmins with the dual norm of the difference of their slopes.

    Survey: Lemma 15
    """
    outcomes = []
    for name, geometry, strength, penalty, feasible in FUNCTIONS:
        play, norm = Argmin(geometry, penalty, feasible), geometry.norm(strength)
        for g, h in zip(_vectors(10, 9), _vectors(10, 10), strict=True):
            outcomes.append(Outcome(norm(play(-g, strength) - play(-h, strength)), norm.dual(g - h), name))
    return largest(outcomes)


def lemma_16() -> Outcome:
    """Add a linear function to a strongly convex one: movement and decrease.

    Survey: Lemma 16
    """
    return largest(outcome for pair in _changed(lambda change: (change, 0.0)) for outcome in pair)


DECOMPOSITION, CONVEX, HERE = "forel.theory.analysis.decomposition", "forel.theory.convex", "forel.theory.survey.lemmas"
LEMMAS = (
    Result("Lemma 3", "strengths add up, norms scale by √σ", "=", "forel.theory.norms.ScaledNorm", lemma_3),
    Result("Lemma 4", "Σ a_i/√a_{1:i} ≤ 2√a_{1:n}", "≤", "forel.theory.rates.adagrad.sum_over_roots", lemma_4),
    Result("Lemma 5", "Strong FTRL Lemma", "≤", f"{DECOMPOSITION}.strong_ftrl_lemma", lemma_5),
    Result("Corollary 6", "the same in conjugates", "≤", f"{DECOMPOSITION}.conjugate_lemma", corollary_6),
    Result("Lemma 7", "a convex change of a strongly convex sum", "≤", f"{HERE}.lemma_7", lemma_7),
    Result("Corollary 8", "the same with a penalty added", "≤", f"{HERE}.corollary_8", corollary_8),
    Result("Lemma 9", "strongly convex ⇔ strongly smooth conjugate", "≤", f"{HERE}.lemma_9", lemma_9),
    Result("Lemma 13", "Standard FTRL Lemma", "≤", f"{DECOMPOSITION}.standard_ftrl_lemma", lemma_13),
    Result("Lemma 15", "∇ψ⋆ is the argmin, and Lipschitz", "≤", f"{CONVEX}.conjugate", lemma_15),
    Result("Lemma 16", "a linear change of a strongly convex function", "≤", f"{HERE}.lemma_16", lemma_16),
)
