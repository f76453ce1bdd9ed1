"""Algorithms 1 and 2 and Figures 1 to 6, recomputed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from forel.cvx import minimize
from forel.losses import Loss
from forel.theory.algorithms import (
    FTRL,
    Algorithm,
    Exact,
    MirrorDescent,
    QuadraticBound,
    adagrad_ftrl_proximal,
    as_ftrl_proximal,
    dual_averaging,
    fobos,
    follow_the_leader,
    ftrl_proximal,
    gradient_descent,
    hedge,
)
from forel.theory.analysis import Adversary, Trace, play
from forel.theory.analysis.adversaries import l1_example, l1_example_alternating
from forel.theory.analysis.game import Stage
from forel.theory.analysis.streams import classification, quadratics, random_linear
from forel.theory.argmin import project
from forel.theory.geometries import Euclidean
from forel.theory.penalties import l1
from forel.theory.rates import Constant, InverseSqrt
from forel.theory.sets import Box, FeasibleSet, l2_ball
from forel.theory.survey import theorems
from forel.theory.survey.result import Outcome, Result, largest
from forel.theory.weights import EveryRound
from forel.validation import Matrix, Vector

__all__ = ["FIGURES"]

N = 4


def algorithm_1() -> Outcome:
    """Play FTRL on exact logistic losses; the gradient of the whole objective at each point, without what X allows.

    Survey: Algorithm 1
    """
    exact = FTRL(InverseSqrt(0.5, 1), Euclidean(), surrogate=Exact(), feasible=Box(-0.2, 0.2))
    losses = classification(N, 12)
    trace, worst = play(exact, losses), 0.0
    for t, x in enumerate(trace.points[1:], start=1):
        margins = [example.features @ x for example in losses[:t]]
        slopes = [1 / (1 + np.exp(-m)) - example.label for m, example in zip(margins, losses, strict=False)]
        gradient = np.transpose([example.features for example in losses[:t]]) @ slopes + 2 * math.sqrt(t + 1) * x
        at_end = np.abs(x) > 0.2 - 1e-6  # there the objective may fall further, outwards only
        rest = np.where(at_end, np.maximum(gradient * np.sign(x), 0.0), np.abs(gradient))
        worst = max(worst, float(rest.max()))
    return Outcome(worst, 1e-5, "largest entry of a gradient that X does not explain")


def algorithm_2() -> Outcome:
    """Play linearized FTRL with a penalty; each point against the solver's minimum of the whole objective.

    Survey: Algorithm 2
    """
    linearized = adagrad_ftrl_proximal(1.0, l1(0.05), EveryRound())
    return Outcome(
        _suboptimality(play(linearized, classification(N, 12))), 1e-7, "objective above the solver's minimum"
    )


def _suboptimality(trace: Trace) -> float:
    """Return how far the played points are from the minimum of their objectives, found from its parts."""

    def above(stage: Stage, x: Vector) -> float:
        r = stage.regularizer
        factor = r.geometry.factor(r.strength)

        def objective(u: Any) -> Any:
            regularizer = r.geometry.expression(factor, u) - r.linear @ u
            return regularizer + stage.losses.expression(u) + stage.penalties.expression(u)

        best = minimize(x.size, objective, trace.algorithm.feasible.constraints)
        return stage.objective(x) - stage.objective(best)

    return max(0.0, *(above(stage, x) for stage, x in zip(trace.stages, trace.points[1:], strict=True)))


def figure_1() -> Outcome:
    """Compare each update of the figure with its closed form, written out here.

    Survey: Figure 1
    """
    losses = random_linear(N, 100)
    g = np.array([loss.g for loss in losses])
    sums, t = np.cumsum(g, axis=0), np.arange(1, 101)[:, None]
    squares = np.cumsum(np.abs(g).max(axis=1) ** 2)[:, None]
    logits = -np.sqrt(math.log(N)) / np.sqrt(1 + squares) * sums
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    curved, scale = quadratics(N, 100), np.sqrt(2) * 2.0
    mean = np.cumsum([loss.center for loss in curved], axis=0) / t
    expected: dict[str, tuple[Algorithm, Sequence[Loss], Matrix]] = {
        "unprojected gradient descent": (gradient_descent(0.3), losses, -0.3 * sums),
        "Follow-The-Leader": (follow_the_leader(), curved, mean),
        "gradient descent for strongly convex losses": (follow_the_leader(surrogate=QuadraticBound()), curved, mean),
        "dual averaging": (dual_averaging(2.0, 1.0), losses, -2.0 / (np.sqrt(2) * np.sqrt(t + 1)) * sums),
        "entropic FTRL": (hedge(N), losses, weights / weights.sum(axis=1, keepdims=True)),
        "FTRL-Proximal": (ftrl_proximal(2.0, 1.0), losses, _proximal(g, np.sqrt(t) * np.ones(N) / scale, l2_ball(2.0))),
        "AdaGrad FTRL-Proximal": (
            adagrad_ftrl_proximal(2.0),
            losses,
            _proximal(g, np.sqrt(np.cumsum(g**2, axis=0)) / scale, Box(-2, 2)),
        ),
    }
    gaps = {
        name: float(np.abs(play(algorithm, played).points[1:] - points).max())
        for name, (algorithm, played, points) in expected.items()
    }
    name = max(gaps, key=lambda k: gaps[k])
    return Outcome(gaps[name], 1e-9, f"largest difference from its closed form: {name}")


def _proximal(g: Matrix, strengths: Matrix, feasible: FeasibleSet) -> Matrix:
    """Return argmin g_{1:t}·x + Σ (σ_s/2)(x − x_s)² over X from sums of σ_s x_s, projected in the metric Q_{1:t}."""
    x, pulled, total, before = (np.zeros(g.shape[1]) for _ in range(4))
    points = []
    for gradient, strength in zip(g, strengths, strict=True):
        pulled, total, before = pulled + (strength - before) * x, total + gradient, strength
        x = project((pulled - total) / strength, feasible, strength)
        points.append(x)
    return np.array(points)


def figure_2() -> Outcome:
    """Compare Mirror Descent with both lines of its FTRL-Proximal form: Ψ kept for one round, or only its subgradient.

    Survey: Figure 2
    """
    mirror = MirrorDescent(InverseSqrt(0.5, 1), Euclidean(), l1(0.1), EveryRound(), Box(-1, 1))
    form, losses = as_ftrl_proximal(mirror), random_linear(N, 200)
    gap, state, other = 0.0, mirror.init(N), form.init(N)
    for loss in losses:
        state, other = mirror.update(state, loss), form.update(other, loss)
        second_line = (other.linear - other.g - other.slopes) / other.strength
        gap = max(gap, float(np.abs(state.x - other.x).max()), float(np.abs(state.x - second_line).max()))
    return Outcome(gap, 1e-10, "largest difference of points in 200 rounds")


def figure_3() -> Outcome:
    """Compare both algorithms with columns (A), (B) and (C), and their non-zeros, which differ by column (B) alone.

    Survey: Figure 3
    """
    mirror_form, size, wrong = as_ftrl_proximal(fobos(InverseSqrt(0.5, 1), Euclidean(), l1(0.1))), 0.1, 0.0
    native_form = FTRL(InverseSqrt(0.5, 1), Euclidean(), "played", penalty=l1(0.1), weights=EveryRound())
    games = {"mirror": play(mirror_form, random_linear(N, 60)), "native": play(native_form, random_linear(N, 60))}
    for name, trace in games.items():
        slopes = np.zeros(N)
        for t in range(1, trace.rounds + 1):
            strength = 2 * np.sqrt(np.arange(1, t + 2))
            a, c = trace.gradients[:t].sum(axis=0), np.diff(strength) @ trace.points[:t]
            z, charge = (a + slopes - c, size) if name == "mirror" else (a - c, t * size)
            x = -np.sign(z) * np.maximum(np.abs(z) - charge, 0.0) / strength[-1]
            wrong = max(wrong, float(np.abs(x - trace.points[t]).max()))
            slopes = slopes - (z + strength[-1] * x)  # g^(Ψ)_t, which makes column (B) of the next round
    if wrong > 1e-10:
        return Outcome(float("nan"), 0.0, f"columns give points that differ by {wrong}")
    losses = random_linear(50, 300)
    native = play(FTRL(Constant(0.5), Euclidean(), penalty=l1(0.02), weights=EveryRound()), losses)
    mirror = play(fobos(Constant(0.5), Euclidean(), l1(0.02)), losses)
    counts = [float(np.count_nonzero(trace.points[150:])) for trace in (native, mirror)]
    return Outcome(counts[0], counts[1], "non-zeros of Native FTRL ≤ those of Mirror Descent, same rate and penalty")


def figure_4() -> Outcome:
    """Replay the one-dimensional example, in the wordings of section 6.2 and of appendix D.

    Survey: Figure 4
    """
    lipschitz, rounds, penalty = 11.0, 16, l1(0.5)
    eta, box = 2 / math.sqrt(rounds), Box(-2 * lipschitz, 2 * lipschitz)
    native = FTRL(Constant(eta), Euclidean(), penalty=penalty, weights=EveryRound(), feasible=box)
    mirror = MirrorDescent(Constant(eta), Euclidean(), penalty, EveryRound(), box)
    amplitude = (lipschitz - 0.5) / math.sqrt(rounds)
    wrong = []
    for adversary in (l1_example(lipschitz, 0.5), l1_example_alternating(lipschitz, 0.5)):
        x = _path(mirror, adversary, rounds)
        wrong.append(float(np.abs(x[1:] - amplitude * (-1.0) ** np.arange(rounds)).max()))
    alternating = _path(native, l1_example_alternating(lipschitz, 0.5), rounds)
    adaptive = _path(native, l1_example(lipschitz, 0.5), rounds)
    wrong.append(float(np.abs(alternating[12:]).max()))
    wrong.append(float(np.abs(adaptive[[12, 13, 14]] - [0, 0, 4.875]).max()))
    return Outcome(max(wrong), 1e-12, "MD at ±2.625; FTRL 0 from round 13 (appendix D), x_15 = 4.875 (section 6.2)")


def _path(algorithm: Algorithm, adversary: Adversary, rounds: int) -> Vector:
    return play(algorithm, adversary, rounds, 1).points.ravel()


def figure_6() -> Outcome:
    """Compare the forms within both columns.

    Survey: Figure 6
    """
    return largest([theorems.check_18(), theorems.check_19()])


ALGORITHMS, HERE = "forel.theory.algorithms", "forel.theory.survey.figures"
FIGURES = (
    Result("Algorithm 1", "adaptive FTRL on exact losses", f"{ALGORITHMS}.ftrl.FTRL", algorithm_1),
    Result("Algorithm 2", "adaptive linearized FTRL", f"{ALGORITHMS}.surrogates.Linearized", algorithm_2),
    Result("Figure 1", "updates in all branches of the family", f"{HERE}.figure_1", figure_1),
    Result("Figure 2", "Mirror Descent as FTRL-Proximal", f"{HERE}.figure_2", figure_2),
    Result("Figure 3", "Mirror Descent against Native FTRL-Proximal", f"{HERE}.figure_3", figure_3),
    Result("Figure 4", "the one-dimensional L1 example", f"{HERE}.figure_4", figure_4),
    Result("Figure 5", "four unconstrained forms", f"{ALGORITHMS}.forms", theorems.check_17),
    Result("Figure 6", "lazy and greedy columns", f"{HERE}.figure_6", figure_6),
)
