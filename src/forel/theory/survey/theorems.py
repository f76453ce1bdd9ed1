"""Theorems 1, 2, 10, 11, 12, 14 and 17 to 19, recomputed on games."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from forel.theory.algorithms import (
    FTRL,
    Algorithm,
    MirrorDescent,
    ad_click,
    adagrad_dual_averaging,
    adagrad_ftrl_proximal,
    as_ftrl_proximal,
    dual_averaging,
    exponentiated_gradient,
    fobos,
    follow_the_leader,
    ftrl_proximal,
    gradient_descent,
    greedy_projection,
    hedge,
    lazy_projection,
    regularized_dual_averaging,
)
from forel.theory.algorithms.forms import GREEDY, LAZY, UNCONSTRAINED, Form
from forel.theory.analysis import (
    Bound,
    Trace,
    play,
    surrogate_regret,
    theorem_1,
    theorem_2,
    theorem_10,
    theorem_12,
    theorem_14,
)
from forel.theory.analysis.decomposition import Against
from forel.theory.analysis.streams import random_linear
from forel.theory.geometries import Diagonal, Entropy, Euclidean, FullMatrix, Geometry, SquaredPNorm
from forel.theory.penalties import ElasticNet, l1, squared_l2
from forel.theory.rates import Constant, DiagonalAdaGrad, InverseSqrt
from forel.theory.sets import Box, FeasibleSet, Simplex, l1_ball, l2_ball
from forel.theory.survey.games import N, comparators, curved, traces
from forel.theory.survey.result import Outcome, Result, largest
from forel.theory.weights import EveryRound
from forel.validation import Vector

__all__ = ["THEOREMS"]

Theorem = Callable[[Trace, Vector], Bound]
BALL = l2_ball(1.0)


def compared(name: str, trace: Trace, theorem: Theorem, against: Against) -> Iterator[Outcome]:
    """Yield regret and bound against every comparator."""
    for x in comparators(trace):
        limit = theorem(trace, x)
        # A theorem that is void on the games chosen for it counts as failed.
        yield Outcome(surrogate_regret(trace, x, against), float("nan") if limit.void else limit.total, name)


def _bounded(algorithms: Mapping[str, Algorithm], theorem: Theorem, against: Against = "losses") -> Outcome:
    return largest(
        outcome
        for name, algorithm in algorithms.items()
        for adversary, trace in traces(algorithm)
        for outcome in compared(f"{name}, {adversary}", trace, theorem, against)
    )


def check_1() -> Outcome:
    """Compare regret with the bound for regularizers around x_1 and around x_t, and the leader.

    Survey: Theorem 1
    """
    algorithms: dict[str, Algorithm] = {
        "gradient descent": gradient_descent(0.3),
        "lazy projection": lazy_projection(0.3, BALL),
        "dual averaging": dual_averaging(1.0, 1.0),
        "RDA": regularized_dual_averaging(1.0, 1.0, 0.05, 0.1),
        "AdaGrad dual averaging": adagrad_dual_averaging(1.0, 1.0),
        "hedge": hedge(N),
        "proximal": FTRL(InverseSqrt(0.3, 1), Euclidean(), "played", feasible=BALL),
        "proximal, AdaGrad": FTRL(DiagonalAdaGrad(0.5, beta=1.0), Diagonal(), "played"),
        "proximal, curved penalty": FTRL(
            Constant(0.5), Euclidean(), "played", penalty=squared_l2(5.0), weights=EveryRound()
        ),
    }
    leader = curved(follow_the_leader())
    composite = _bounded({"RDA": algorithms["RDA"]}, lambda t, x: theorem_1(t, x, "composite"), "composite")
    return largest(
        [_bounded(algorithms, theorem_1), composite, *compared("leader, curved", leader, theorem_1, "losses")]
    )


def _proximal_ones() -> dict[str, Algorithm]:
    return {
        "FTRL-Proximal": ftrl_proximal(1.0, 1.0),
        "AdaGrad FTRL-Proximal": adagrad_ftrl_proximal(1.0),
        "unconstrained": FTRL(DiagonalAdaGrad(0.5, beta=1.0), Diagonal(), center="played"),
    }


def check_2() -> Outcome:
    """Compare regret with the bound for proximal algorithms and the leader; equal at the last point.

    Survey: Theorem 2
    """
    leader = curved(follow_the_leader())
    games = _bounded(_proximal_ones(), theorem_2)
    return largest([games, *compared("leader, curved", leader, theorem_2, "losses")])


def check_10() -> Outcome:
    """Compare regret with the bound for FTRL-Proximal with penalties, in the objective and in the regularizer.

    Survey: Theorem 10
    """
    penalized: dict[str, Algorithm] = {
        "ad click": ad_click(0.5, 1.0, 0.05, 0.1),
        "every round": adagrad_ftrl_proximal(1.0, l1(0.01), EveryRound()),
        "box": FTRL(InverseSqrt(0.3, 1), Euclidean(), "played", penalty=ElasticNet(0.05, 0.1), feasible=Box(-1, 1)),
        "curved": FTRL(Constant(0.5), Euclidean(), "played", penalty=squared_l2(5.0), weights=EveryRound()),
    }
    objective = _bounded(penalized, lambda t, x: theorem_10(t, x, "composite"), "composite")
    regularizer = _bounded(penalized, lambda t, x: theorem_10(t, x, "losses"), "losses")
    return largest([objective, regularizer])


def check_11() -> Outcome:
    """Play Mirror Descent and its FTRL-Proximal form side by side.

    Survey: Theorem 11
    """
    worst = 0.0
    cases: list[tuple[Geometry, FeasibleSet]] = [
        (Diagonal(), Box(-0.4, 0.4)),
        (Euclidean(), BALL),
        (Euclidean(), Simplex()),
        (Euclidean(), l1_ball(0.5)),
        (Entropy(), Simplex()),
    ]
    for geometry, feasible in cases:
        rate = DiagonalAdaGrad(0.7, 1.0) if geometry.shape == "diagonal" else InverseSqrt(0.7, 1)
        mirror = MirrorDescent(rate, geometry, l1(0.05), EveryRound(), feasible)
        losses = random_linear(N, 400)
        gap = play(mirror, losses).points - play(as_ftrl_proximal(mirror), losses).points
        worst = max(worst, float(np.abs(gap).max()))
    return Outcome(worst, 1e-10, "largest difference of points in 400 rounds, 5 cases")


def check_12() -> Outcome:
    """Compare regret with the bound for Mirror Descent, in the objective and in the regularizer.

    Survey: Theorem 12
    """
    mirrors: dict[str, Algorithm] = {
        "greedy projection": greedy_projection(0.3, BALL),
        "FOBOS": fobos(Constant(0.3), Euclidean(), l1(0.1)),
        "AdaGrad, elastic net": MirrorDescent(DiagonalAdaGrad(0.5, 1.0), Diagonal(), ElasticNet(0.02, 0.1)),
        "exponentiated gradient": exponentiated_gradient(0.3),
        "unconstrained": MirrorDescent(InverseSqrt(0.3, 1), Euclidean()),
    }
    objective = _bounded(mirrors, lambda t, x: theorem_12(t, x, "composite"), "composite")
    regularizer = _bounded(mirrors, lambda t, x: theorem_12(t, x, "losses"), "losses")
    return largest([objective, regularizer])


def check_14() -> Outcome:
    """Compare regret with the bound of the Standard FTRL Lemma.

    Survey: Theorem 14
    """
    return _bounded(_proximal_ones(), theorem_14)


def _forms_differ(
    forms: Mapping[str, Callable[..., Form]], cases: list[tuple[Geometry, FeasibleSet | None]]
) -> Outcome:
    """Return the largest difference between points that different forms select."""
    losses, worst = random_linear(N, 300), 0.0
    for geometry, feasible in cases:
        strength = {"scalar": 2.0, "diagonal": np.linspace(1, 3, N), "matrix": np.diag(np.linspace(1, 3, N)) + 0.2}
        points = []
        for make in forms.values():
            form = make(geometry, strength[geometry.shape], *([] if feasible is None else [feasible]))
            state = form.init(N)
            kept = []
            for loss in losses:
                state = form.update(state, loss)
                kept.append(form.play(state))
            points.append(np.array(kept))
        worst = max(worst, *(float(np.abs(points[0] - other).max()) for other in points[1:]))
    return Outcome(worst, 1e-10, f"largest difference of points in 300 rounds, {len(cases)} cases")


def check_17() -> Outcome:
    """Play the four forms of Figure 5 side by side.

    Survey: Theorem 17
    """
    return _forms_differ(UNCONSTRAINED, [(g, None) for g in (Euclidean(), Diagonal(), FullMatrix(), SquaredPNorm(1.5))])


CONSTRAINED: list[tuple[Geometry, FeasibleSet | None]] = [
    (Euclidean(), l2_ball(0.5)),
    (Euclidean(), l1_ball(0.5)),
    (Diagonal(), Box(-0.2, 0.4)),
    (FullMatrix(), l2_ball(0.5)),
    (Euclidean(), Simplex()),
    (Entropy(), Simplex()),
]


def check_18() -> Outcome:
    """Play the lazy forms of Figure 6 side by side.

    Survey: Theorem 18
    """
    return _forms_differ(LAZY, CONSTRAINED)


def check_19() -> Outcome:
    """Play the greedy forms of Figure 6 side by side.

    Survey: Theorem 19
    """
    return _forms_differ(GREEDY, CONSTRAINED)


ALGORITHMS, BOUNDS = "forel.theory.algorithms", "forel.theory.analysis.bounds"
THEOREMS = (
    Result("Theorem 1", "general FTRL bound", f"{BOUNDS}.theorem_1", check_1),
    Result("Theorem 2", "FTRL-Proximal bound", f"{BOUNDS}.theorem_2", check_2),
    Result("Theorem 10", "composite FTRL-Proximal, both forms", f"{BOUNDS}.theorem_10", check_10),
    Result(
        "Theorem 11",
        "Mirror Descent is FTRL-Proximal",
        f"{ALGORITHMS}.mirror_as_ftrl.MirrorAsFTRL",
        check_11,
    ),
    Result("Theorem 12", "composite Mirror Descent, both forms", f"{BOUNDS}.theorem_12", check_12),
    Result("Theorem 14", "weak FTRL-Proximal bound", f"{BOUNDS}.theorem_14", check_14),
    Result("Theorem 17", "four unconstrained forms are one", f"{ALGORITHMS}.forms.UNCONSTRAINED", check_17),
    Result("Theorem 18", "the lazy forms are one", f"{ALGORITHMS}.forms.LAZY", check_18),
    Result("Theorem 19", "the greedy forms are one", f"{ALGORITHMS}.forms.GREEDY", check_19),
)
