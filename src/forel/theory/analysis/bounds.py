"""The survey's regret bounds, evaluated on a game that was played; void, with a reason, where a hypothesis fails."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.algorithms import Bound, MirrorAsFTRL, MirrorDescent
from forel.theory.analysis.declarations import first_above, first_better, first_unaccounted
from forel.theory.analysis.decomposition import Against
from forel.theory.analysis.dynamic import dynamic_bound
from forel.theory.analysis.game import Trace, play
from forel.theory.analysis.optimality import first_suboptimal_round
from forel.theory.norms import L2
from forel.theory.penalties import NONE
from forel.validation import Vector, vector

__all__ = ["Bound", "bound", "nonadaptive_bound", "theorem_1", "theorem_2", "theorem_10", "theorem_12", "theorem_14"]

Check = Callable[[Trace], str]  # the reason why a result does not apply
SQUARED = 1e150  # beyond, squares may not be finite


def _evaluate(
    trace: Trace, x: ArrayLike, result: str, against: Against, delayed: bool, factor: float, *checks: Check
) -> Bound:
    """Sum factor·‖g_t‖²_(t),⋆, or with the norm of the round before, and r_{0:T}(x) likewise."""
    x, stability = vector("x", x, trace.points.shape[1]), np.zeros(0)
    result += ", with hints" if trace.leaders is not trace.points else ""
    try:
        void = next((reason for check in checks if (reason := check(trace))), "")
        if not void and not (trace.algorithm.feasible.contains(x) and trace.algorithm.penalty(x) < math.inf):
            void = "the comparator lies outside X"
        stability = stability if void else factor * trace.squared_norms[0 if delayed else 1]
    except ValueError as error:
        void = f"what was declared has no norm: {error}"
    void = void or _infinite(trace, stability) or first_suboptimal_round(trace.suboptimality)
    void = void or trace.misdeclared or first_unaccounted(trace, stability) or first_above(trace, x)
    void = void or first_better(trace, x, stability if delayed else None)
    if void:
        return Bound(result, void=void)
    regularizers = [trace.initial, *(stage.regularizer for stage in trace.stages)]
    lag = 1 if delayed else 0
    values = np.array([regularizer(x) for regularizer in regularizers[1 - lag : trace.rounds + 1 - lag]])
    return Bound(result, values + _penalties(trace, x, against, lag), stability)


def _penalties(trace: Trace, x: Vector, against: Against, lag: int) -> Vector:
    r"""Return what Ψ adds to the bound at each horizon.

    Minus its smallest value c at $x_1, \dots, x_{T+1}$ and x, Ψ is non-negative wherever the proofs need it. Against
    the losses it is a regularizer, $\alpha_{1:T}(\Psi(x) - c)$. In the objective
    $\sum_t \alpha_t(\Psi(x_t) - \Psi(w_{t+1})) \le \alpha_1(\Psi(x_1) - c)$, which is 0 where x_1 minimizes Ψ, for
    weights that do not increase and points w that are those played. For others it is the sum itself; in Theorem 1 the
    comparator takes the place of the last w.
    """
    at_x, played = trace.algorithm.penalty(x), trace.penalty_values
    following = played[1:]
    if trace.leaders is not trace.points:
        following = np.array([trace.algorithm.penalty(w) for w in trace.leaders[1:]])
    smallest = np.minimum(at_x, np.minimum.accumulate(np.minimum(played[1:], following)))
    smallest = np.minimum(smallest, played[0])
    if against == "composite" and not (trace.algorithm.weights.non_increasing and trace.leaders is trace.points):
        weights = np.array(trace.weight_values)
        added: Vector = np.cumsum(_charged(weights, played, following))
        if lag:
            added += _charged(weights, following, at_x)
    elif against == "composite":
        added = trace.weight_totals[1] * (played[0] - smallest)
    else:
        added = np.array(trace.weight_totals[1 - lag : trace.rounds + 1 - lag]) * (at_x - smallest)
    return added


def _charged(weights: Vector, before: Vector, after: Vector | float) -> Vector:
    triples = zip(weights, before, np.broadcast_to(after, weights.shape), strict=False)
    return np.array([a * (b - c) if a else 0.0 for a, b, c in triples])


def _infinite(trace: Trace, stability: Vector) -> str:
    """Return the reason why a round's stability is not finite, if that of one is not."""
    if np.isfinite(stability).all():
        return ""
    t = int(np.argmin(np.isfinite(stability))) + 1
    if L2(trace.added[t - 1].g) > SQUARED:
        return f"the square of the gradient of round {t} is too large for a float; rescale the losses"
    return f"in round {t} the gradient is not zero where the objective has no strength"


def theorem_1(trace: Trace, x: ArrayLike, against: Against = "losses") -> Bound:
    r"""Return $r_{0:T-1}(x^*) + \frac12\sum_t \|g_t\|^2_{(t-1),\star}$, for regularizers around any point.

    The norm is that of $r_{0:t-1} + f_{1:t} + \alpha_{1:t-1}\Psi$. With a penalty in the regularizer,
    $\alpha_{1:T-1}\Psi(x^*)$ comes on top; with one in the objective, nothing does where weights $\alpha_t$ do
    not increase, and $\sum_t \alpha_t(\Psi(x_t) - \Psi(x_{t+1}))$ where they do.

    >>> from forel.theory.algorithms import dual_averaging
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(dual_averaging(1.0, 1.0), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_1(trace, np.array([1.0])).total
    True

    Survey: Theorem 1
    """
    return _evaluate(trace, x, "Theorem 1", against, True, 0.5, _exact_penalty)


def theorem_2(trace: Trace, x: ArrayLike) -> Bound:
    r"""Return $r_{0:T}(x^*) + \frac12\sum_t \|g_t\|^2_{(t),\star}$, for proximal regularizers and no penalty.

    >>> from forel.theory.algorithms import ftrl_proximal
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(ftrl_proximal(1.0, 1.0), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_2(trace, np.array([1.0])).total
    True

    Survey: Theorem 2
    """
    return _evaluate(trace, x, "Theorem 2", "losses", False, 0.5, _proximal, _bare)


def theorem_10(trace: Trace, x: ArrayLike, against: Against = "composite") -> Bound:
    r"""Return $r_{0:T}(x^*) + \frac12\sum_t \|g_t\|^2_{(t),\star}$ against $g_t \cdot x + \alpha_t\Psi(x)$, for FTRL-Proximal.

    The norm is that of $r_{0:t} + f_{1:t} + \alpha_{1:t-1}\Psi$, without this round's penalty: the survey's statement,
    which counts it, is false where Ψ has curvature. Where weights $\alpha_t$ increase,
    $\sum_t \alpha_t(\Psi(x_t) - \Psi(x_{t+1}))$ comes on top; against the losses alone, $\alpha_{1:T}\Psi(x^*)$ does. Ψ counts from its value at $x_1$; where that is not its smallest,
    $\alpha_1$ times the difference comes on top too.

    >>> from forel.theory.algorithms import ad_click
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(ad_click(l1=0.1), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_10(trace, np.array([1.0]), "losses").total
    True

    Survey: Theorem 10
    """  # noqa: E501
    return _evaluate(trace, x, "Theorem 10", against, False, 0.5, _exact_penalty, _proximal)


def theorem_12(trace: Trace, x: ArrayLike, against: Against = "composite") -> Bound:
    r"""Return $r^B_{0:T}(x^*) + \frac12\sum_t \|g_t\|^2_{(t),\star}$ against $g_t \cdot x + \alpha_t\Psi(x)$, for Mirror Descent.

    The norm is that of $r_{0:t}$: of earlier penalties only tangents are left, whose curvature is none. Otherwise as
    :func:`theorem_10`.

    >>> from forel.theory.algorithms import greedy_projection
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> from forel.theory.sets import Box
    >>> trace = play(greedy_projection(1.0, Box(-1, 1)), [Linear([1.0]), Linear([-1.0])])
    >>> trace.regret(np.array([1.0])) <= theorem_12(trace, np.array([1.0])).total
    True

    Survey: Theorem 12
    """  # noqa: E501
    return _evaluate(trace, x, "Theorem 12", against, False, 0.5, _mirrored)


def theorem_14(trace: Trace, x: ArrayLike) -> Bound:
    r"""Return $r_{0:T}(x^*) + \sum_t \|g_t\|^2_{(t),\star}$, what the Standard FTRL Lemma gives: weaker by a factor 2.

    >>> from forel.theory.algorithms import ftrl_proximal
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(ftrl_proximal(1.0, 1.0), [Linear([1.0]), Linear([-1.0])])
    >>> theorem_2(trace, np.array([1.0])).total < theorem_14(trace, np.array([1.0])).total
    True

    Survey: Theorem 14
    """
    return _evaluate(trace, x, "Theorem 14", "losses", False, 1.0, _proximal, _bare)


def nonadaptive_bound(trace: Trace, x: ArrayLike) -> Bound:
    r"""Return $r_0(x^*) + \frac12\sum_t \|g_t\|_\star^2$, both theorems for a fixed regularizer.

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> nonadaptive_bound(play(gradient_descent(1.0), [Linear([1.0]), Linear([-1.0])]), np.array([1.0])).total
    1.5

    Survey: section 2.3, equation (nonadaptive)
    """
    return _evaluate(trace, x, "equation (nonadaptive)", "losses", True, 0.5, _nonadaptive, _bare)


def bound(trace: Trace, x: ArrayLike, against: Against = "composite") -> Bound:
    """Return the algorithm's own bound, or the tightest of the survey's theorems that applies to it.

    A comparator may be a path for Mirror Descent, one row for each round, and regret dynamic.

    >>> from forel.theory.algorithms import dual_averaging
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> bound(play(dual_averaging(1.0, 1.0), [Linear([1.0])]), np.array([1.0])).result
    'Theorem 1'

    Survey: section 2.3
    """
    if np.ndim(x) == 2:
        return dynamic_bound(trace, x)
    if (own := getattr(trace.algorithm, "bound", None)) is not None:
        return _own(trace, own, vector("x", x, trace.points.shape[1]), against)
    if not _mirrored(trace):
        return theorem_12(trace, x, against)
    return theorem_10(trace, x, against) if trace.algorithm.proximal else theorem_1(trace, x, against)


def _own(trace: Trace, own: Callable[[Trace, Vector], Bound], x: Vector, against: Against) -> Bound:
    """Return an algorithm's own bound, for points that it does play and a regret that does not refute it."""
    found = own(trace, x)
    if found.void:
        return found
    if np.shape(found.over_rounds) != (trace.rounds,) or np.isnan(found.over_rounds).any():
        return Bound(found.result, void=f"it is not a number for each of {trace.rounds} rounds")
    again = play(getattr(own, "__self__", trace.algorithm), trace.losses, n=x.size).points
    apart = np.abs(again - trace.points).max(axis=1) > 1e-9 * (1 + np.abs(again).max())
    void = f"the point of round {int(np.argmax(apart)) + 1} is not the algorithm's own" if apart.any() else ""
    regrets, penalty = trace.regrets(x), trace.algorithm.penalty
    if penalty is not NONE:
        if against == "losses":
            void = void or "its bound is for regret with the penalty"
        regrets = regrets + np.cumsum(_charged(np.array(trace.weight_values), trace.penalty_values, penalty(x)))
    over = regrets > found.over_rounds + 1e-9 * (1 + np.abs(found.over_rounds))
    void = void or (f"regret is above it after round {int(np.argmax(over)) + 1}" if over.any() else "")
    return Bound(found.result, found.regularization, found.stability, void)


def _mirrored(trace: Trace) -> str:
    mirrored = isinstance(trace.algorithm, MirrorDescent | MirrorAsFTRL)
    return "" if mirrored else "the algorithm is not Mirror Descent"


def _exact_penalty(trace: Trace) -> str:
    return "" if _mirrored(trace) else "Mirror Descent linearizes its penalty; use theorem_12"


def _nonadaptive(trace: Trace) -> str:
    first = trace.initial.strength
    if not all(np.array_equal(stage.regularizer.strength, first) for stage in trace.stages):
        return "the regularizer changes from round to round; use theorem_1 or theorem_2"
    curved = any(stage.added.loss.strong_convexity for stage in trace.stages)
    return "the losses are not linear; use theorem_1" if curved else ""


def _proximal(trace: Trace) -> str:
    """Return the reason why the regularizers are not proximal; observed strength is around x_1, and in no norm."""
    if not trace.algorithm.proximal:
        return "the regularizers are not proximal; use theorem_1"
    if getattr(trace.algorithm, "observes", False):
        return ""
    return f"{trace.not_proximal}; use theorem_1" if trace.not_proximal else ""


def _bare(trace: Trace) -> str:
    """Return the reason, if there is a penalty; an indicator that all points satisfy is none."""
    return "" if not trace.penalty_values.any() else "there is a penalty; use theorem_10 or theorem_12"
