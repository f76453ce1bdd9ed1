"""The survey's regret bounds, evaluated on a game that was played; void, with a reason, where a hypothesis fails."""

import math
from dataclasses import dataclass

import numpy as np

from forel.algorithms import MirrorAsFTRL, MirrorDescent
from forel.analysis.decompose import Against
from forel.analysis.game import Trace
from forel.checks import Vector, vector

__all__ = ["Bound", "bound", "nonadaptive", "theorem_1", "theorem_2", "theorem_10", "theorem_12", "theorem_14"]


@dataclass(frozen=True, eq=False)
class Bound:
    """A bound on regret after every round T: regularization(T) + Σ stability.

    ``result`` names the theorem or formula. A bound whose hypotheses fail is ``void``, with the reason, and has no
    number.

    >>> Bound("Theorem 1", np.array([1.0]), np.array([0.5])).total
    1.5
    >>> print(Bound("Theorem 1", np.array([1.0]), np.array([0.5]), void="the comparator lies outside X"))
    Theorem 1: void, because the comparator lies outside X

    Survey: section 2.3
    """

    result: str
    regularization: Vector
    stability: Vector
    void: str = ""

    @property
    def over_rounds(self) -> Vector:
        """The bound after each round."""
        if self.void:
            raise ValueError(f"{self}; it has no number")
        return self.regularization + np.cumsum(self.stability)

    @property
    def total(self) -> float:
        """The bound after the last round."""
        return float(self.over_rounds[-1])

    def __str__(self) -> str:
        if self.void:
            return f"{self.result}: void, because {self.void}"
        return f"{self.result}: {self.total:.6g} = {self.regularization[-1]:.6g} + {self.stability.sum():.6g}"


def _evaluate(trace: Trace, x: Vector, result: str, against: Against, delayed: bool, factor: float, void: str) -> Bound:
    """Sum factor·‖g_t‖²_(t),⋆, or with the norm of the round before, and r_{0:T}(x) likewise."""
    x = vector("x", x, trace.points.shape[1])
    if not void and not (trace.algorithm.feasible.contains(x) and trace.algorithm.penalty(x) < math.inf):
        void = "the comparator lies outside X"
    if void:
        return Bound(result, np.zeros(0), np.zeros(0), void)
    stability = factor * trace.squared_norms[0 if delayed else 1]
    if not np.isfinite(stability).all():
        t = int(np.argmin(np.isfinite(stability))) + 1
        reason = f"in round {t} the gradient is not zero where the objective has no strength"
        return Bound(result, np.zeros(0), np.zeros(0), reason)
    regularization = [trace.initial(x), *(stage.regularizer(x) for stage in trace.stages)]
    if against == "losses":
        weights = [trace.algorithm.weights.total(t) for t in range(trace.rounds + 1)]
        penalty = trace.algorithm.penalty(x) if weights[-1] > 0 else 0.0
        regularization = [r + weight * penalty for r, weight in zip(regularization, weights, strict=True)]
    return Bound(result, np.array(regularization[:-1] if delayed else regularization[1:]), stability)


def _composite(trace: Trace) -> str:
    algorithm = trace.algorithm
    if not algorithm.weights.non_increasing:
        return "the weights α_t increase"
    if algorithm.penalty(trace.points[0]) != 0:
        return "the penalty is not 0 at x_1"
    return ""


def theorem_1(trace: Trace, x: Vector, against: Against = "losses") -> Bound:
    r"""Return $r_{0:T-1}(x^*) + \frac12\sum_t \|g_t\|^2_{(t-1),\star}$, for regularizers around any point.

    With a penalty in the regularizer, $\alpha_{1:T-1}\Psi(x^*)$ comes on top.

    >>> from forel.algorithms import dual_averaging
    >>> from forel.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(dual_averaging(1.0, 1.0), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_1(trace, np.array([1.0])).total
    True

    Survey: Theorem 1
    """
    void = "Mirror Descent linearizes its penalty; use theorem_12" if _mirror(trace) else ""
    return _evaluate(trace, x, "Theorem 1", against, True, 0.5, void or _composite(trace))


def theorem_2(trace: Trace, x: Vector) -> Bound:
    r"""Return $r_{0:T}(x^*) + \frac12\sum_t \|g_t\|^2_{(t),\star}$, for proximal regularizers and no penalty.

    >>> from forel.algorithms import ftrl_proximal
    >>> from forel.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(ftrl_proximal(1.0, 1.0), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_2(trace, np.array([1.0])).total
    True

    Survey: Theorem 2
    """
    return _evaluate(trace, x, "Theorem 2", "losses", False, 0.5, _proximal(trace) or _bare(trace))


def theorem_10(trace: Trace, x: Vector, against: Against = "composite") -> Bound:
    r"""Return $r_{0:T}(x^*) + \frac12\sum_t \|g_t\|^2_{(t),\star}$ against $g_t \cdot x + \alpha_t\Psi(x)$, for FTRL-Proximal.

    Against the losses alone, $\alpha_{1:T}\Psi(x^*)$ comes on top.

    >>> from forel.algorithms import ad_click
    >>> from forel.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(ad_click(l1=0.1), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_10(trace, np.array([1.0]), "losses").total
    True

    Survey: Theorem 10
    """  # noqa: E501
    void = "Mirror Descent linearizes its penalty; use theorem_12" if _mirror(trace) else ""
    return _evaluate(trace, x, "Theorem 10", against, False, 0.5, void or _proximal(trace) or _composite(trace))


def theorem_12(trace: Trace, x: Vector, against: Against = "composite") -> Bound:
    r"""Return $r^B_{0:T}(x^*) + \frac12\sum_t \|g_t\|^2_{(t),\star}$ against $g_t \cdot x + \alpha_t\Psi(x)$, for Mirror Descent.

    Against the losses alone, $\alpha_{1:T}\Psi(x^*)$ comes on top.

    >>> from forel.algorithms import greedy_projection
    >>> from forel.analysis import play
    >>> from forel.losses import Linear
    >>> from forel.sets import Box
    >>> trace = play(greedy_projection(1.0, Box(-1, 1)), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_12(trace, np.array([1.0])).total
    True

    Survey: Theorem 12
    """  # noqa: E501
    void = "" if _mirror(trace) else "the algorithm is not Mirror Descent"
    return _evaluate(trace, x, "Theorem 12", against, False, 0.5, void or _composite(trace))


def theorem_14(trace: Trace, x: Vector) -> Bound:
    r"""Return $r_{0:T}(x^*) + \sum_t \|g_t\|^2_{(t),\star}$, what the Standard FTRL Lemma gives: weaker by a factor 2.

    >>> from forel.algorithms import ftrl_proximal
    >>> from forel.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(ftrl_proximal(1.0, 1.0), [Linear([1.0]), Linear([-1.0])])
    >>> theorem_2(trace, np.array([1.0])).total < theorem_14(trace, np.array([1.0])).total
    True

    Survey: Theorem 14
    """
    return _evaluate(trace, x, "Theorem 14", "losses", False, 1.0, _proximal(trace) or _bare(trace))


def nonadaptive(trace: Trace, x: Vector) -> Bound:
    r"""Return $r_0(x^*) + \frac12\sum_t \|g_t\|_\star^2$, what both theorems say of a regularizer that never changes.

    >>> from forel.algorithms import gradient_descent
    >>> from forel.analysis import play
    >>> from forel.losses import Linear
    >>> nonadaptive(play(gradient_descent(1.0), [Linear([1.0]), Linear([-1.0])]), np.array([1.0])).total
    1.5

    Survey: section 2.3, equation (nonadaptive)
    """
    first = trace.initial.strength
    fixed = all(np.array_equal(stage.regularizer.strength, first) for stage in trace.stages)
    curved = any(stage.added.loss.strong_convexity for stage in trace.stages)
    void = "" if fixed else "the regularizer changes from round to round; use theorem_1 or theorem_2"
    void = void or ("the losses are not linear; use theorem_1" if curved else "")
    return _evaluate(trace, x, "equation (nonadaptive)", "losses", True, 0.5, void or _bare(trace))


def bound(trace: Trace, x: Vector, against: Against = "composite") -> Bound:
    """Return the tightest of the survey's theorems that speaks of the algorithm that played.

    >>> from forel.algorithms import dual_averaging
    >>> from forel.analysis import play
    >>> from forel.losses import Linear
    >>> bound(play(dual_averaging(1.0, 1.0), [Linear([1.0])]), np.array([1.0])).result
    'Theorem 1'

    Survey: section 2.3
    """
    if _mirror(trace):
        return theorem_12(trace, x, against)
    return theorem_10(trace, x, against) if trace.algorithm.proximal else theorem_1(trace, x, against)


def _mirror(trace: Trace) -> bool:
    return isinstance(trace.algorithm, MirrorDescent | MirrorAsFTRL)


def _proximal(trace: Trace) -> str:
    return "" if trace.algorithm.proximal else "the regularizers are not proximal; use theorem_1"


def _bare(trace: Trace) -> str:
    """Return why a theorem without a penalty cannot speak; an indicator that every point satisfies is none."""
    penalty = trace.algorithm.penalty
    return "" if not any(penalty(p) for p in trace.points) else "there is a penalty; use theorem_10 or theorem_12"
