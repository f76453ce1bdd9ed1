r"""The closed-form bounds of the survey's section 3, in R, G and T alone, with their constants.

They follow from the theorems by further inequalities; ``theorem_1`` and ``theorem_2`` are tighter. Each is
void if a gradient is larger than assumed, the comparator is outside the set it holds for, another algorithm played, or
a point that was played is not an argmin.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.algorithms.algorithm import first_larger
from forel.theory.algorithms.delayed import huber
from forel.theory.analysis.bounds import Bound
from forel.theory.analysis.declarations import first_above, first_better
from forel.theory.analysis.game import Trace
from forel.theory.analysis.optimality import first_suboptimal_round
from forel.theory.geometries import Entropy, Euclidean, Geometry
from forel.theory.norms import L1, L2, LINF, Norm
from forel.theory.rates import DiagonalAdaGrad
from forel.validation import Vector, constants, positive, vector, whole

__all__ = [
    "adagrad_proximal_formula",
    "delay_tolerant_formula",
    "dual_averaging_formula",
    "entropic_formula",
    "local_norm_bound",
    "proximal_formula",
    "strongly_convex_formula",
    "tuned_formula",
]


def _formula(trace: Trace, x: Vector, result: str, over_rounds: Vector, reasons: list[str]) -> Bound:
    void = next((reason for reason in (*reasons, _penalty(trace, x)) if reason), "")
    try:
        void = (
            void
            or first_suboptimal_round(trace.suboptimality)
            or trace.misdeclared
            or first_above(trace, x)
            or first_better(trace, x)
        )
    except ValueError as unproved:
        void = str(unproved)
    return Bound(result, over_rounds, np.zeros_like(over_rounds), void)


def _rounds(trace: Trace) -> Vector:
    return np.arange(1.0, trace.rounds + 1)


def _comparator(trace: Trace, x: Vector, radius: float, norm: Norm = L2) -> str:
    vector("x", x, trace.points.shape[1])
    if not trace.algorithm.feasible.contains(x):
        return "the comparator lies outside X"
    if norm(x) > radius * (1 + 1e-12):
        return f"the comparator has norm {norm(x):.6g}, more than R = {radius:.6g}"
    return ""


def _penalty(trace: Trace, x: Vector) -> str:
    """Return the reason, if the penalty is not 0 at the comparator or at a point that was played."""
    return "there is a penalty" if any(trace.algorithm.penalty(p) for p in (vector("x", x), *trace.points)) else ""


def _rate(trace: Trace, geometry: Geometry, expected: Vector, first: int) -> str:
    """Return the reason, if geometry or strengths differ from those the formula assumes."""
    if trace.initial.geometry != geometry:
        return f"the geometry is not {geometry}"
    used = [np.max(getattr(state, "strength", math.nan)) for state in trace.states[first : first + expected.size]]
    return "" if np.allclose(used, expected, rtol=1e-9, atol=0.0) else "the rate is not the one the formula is for"


def _centered(trace: Trace) -> str:
    return "the regularizers are not around x_1" if trace.algorithm.proximal else ""


def _proximal(trace: Trace) -> str:
    return "" if trace.algorithm.proximal else "the regularizers are not proximal"


def tuned_formula(trace: Trace, x: Vector, radius: float, lipschitz: float, horizon: int) -> Bound:
    r"""Return $\frac{RG}{2}\sqrt{T'} + \frac{RG}{2}\frac{T}{\sqrt{T'}}$, which is $RG\sqrt T$ at T = T', for $\eta = R/(G\sqrt{T'})$.

    >>> from forel.theory.algorithms import gradient_descent
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(gradient_descent(0.5), [Linear([1.0])] * 4)
    >>> tuned_formula(trace, np.array([-1.0]), radius=1.0, lipschitz=1.0, horizon=4).total
    2.0

    Survey: section 3.1
    """  # noqa: E501
    half = positive("radius", radius) * positive("lipschitz", lipschitz) / 2
    root = math.sqrt(whole("horizon", horizon, low=1))
    strengths = np.full(trace.rounds, lipschitz * root / radius)
    reasons = [
        _comparator(trace, x, radius),
        first_larger(trace.errors, lipschitz, L2),
        _rate(trace, Euclidean(), strengths, 0),
    ]
    return _formula(
        trace, x, "section 3.1, RG√T at the tuned horizon", half * root + half * _rounds(trace) / root, reasons
    )


def dual_averaging_formula(trace: Trace, x: Vector, radius: float, lipschitz: float) -> Bound:
    r"""Return $\frac{\sqrt2}{2}(R + \|x^*\|_2^2/R)G\sqrt T$, which is at most $\sqrt2RG\sqrt T$ for $\|x^*\| \le R$.

    >>> from forel.theory.algorithms import dual_averaging
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(dual_averaging(1.0, 1.0), [Linear([1.0]), Linear([1.0])])
    >>> dual_averaging_formula(trace, np.array([-1.0]), 1.0, 1.0).total
    2.0...

    Survey: section 3.2
    """
    length = L2(vector("x", x, trace.points.shape[1]))
    radius, lipschitz = positive("radius", radius), positive("lipschitz", lipschitz)
    total = math.sqrt(2) / 2 * (radius + length**2 / radius) * lipschitz * np.sqrt(_rounds(trace))
    strengths = math.sqrt(2) * lipschitz * np.sqrt(_rounds(trace)) / radius
    reasons = [
        _comparator(trace, x, math.inf),
        first_larger(trace.errors, lipschitz, L2),
        _rate(trace, Euclidean(), strengths, 0),
        _centered(trace),
    ]
    return _formula(trace, x, "section 3.2, √2·RG√T", total, reasons)


def proximal_formula(trace: Trace, x: Vector, radius: float, lipschitz: float) -> Bound:
    r"""Return $2\sqrt2RG\sqrt T$, for FTRL-Proximal over a set inside the ball of radius R.

    >>> from forel.theory.algorithms import ftrl_proximal
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(ftrl_proximal(1.0, 1.0), [Linear([1.0]), Linear([1.0])])
    >>> proximal_formula(trace, np.array([-1.0]), 1.0, 1.0).total
    4.0...

    Survey: section 3.3
    """
    radius, lipschitz = positive("radius", radius), positive("lipschitz", lipschitz)
    strengths = lipschitz * np.sqrt(_rounds(trace)) / (math.sqrt(2) * radius)
    reasons = [
        _comparator(trace, x, radius),
        first_larger(trace.errors, lipschitz, L2),
        _inside(trace, radius, L2),
        _rate(trace, Euclidean(), strengths, 1),
        _proximal(trace),
    ]
    return _formula(
        trace, x, "section 3.3, 2√2·RG√T", 2 * math.sqrt(2) * radius * lipschitz * np.sqrt(_rounds(trace)), reasons
    )


def _inside(trace: Trace, radius: float, norm: Norm) -> str:
    outside = any(norm(p) > radius * (1 + 1e-9) for p in trace.points)
    return f"a point that was played is outside the ball of radius {radius:.6g}" if outside else ""


def _beyond_radii(what: str, x: Vector, radii: Vector) -> str:
    i = int(np.argmax(np.abs(x) / radii))
    return f"{what} has {x[i]:.6g} at index {i}, more than R = {radii[i]:.6g}" if abs(x[i]) > radii[i] else ""


def adagrad_proximal_formula(trace: Trace, x: Vector, radius: ArrayLike) -> Bound:
    r"""Return $\sum_i 2\sqrt2R_i\sqrt{\sum_t g_{t,i}^2}$, that of diagonal AdaGrad, for one R or one each.

    >>> from forel.theory.algorithms import adagrad_ftrl_proximal
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(adagrad_ftrl_proximal(1.0), [Linear([3.0, 0.0]), Linear([4.0, 0.0])])
    >>> adagrad_proximal_formula(trace, np.array([-1.0, 0.0]), 1.0).total
    14.14...

    Survey: section 3.4
    """
    sizes = np.broadcast_to(constants("radius", radius, "positive numbers", low=math.ulp(0.0)), trace.points.shape[1])
    rate, point = trace.algorithm.rate, vector("x", x, sizes.size)
    outside = _beyond_radii("the comparator", point, sizes * (1 + 1e-12))
    for t, played in enumerate(trace.points, start=1):
        outside = outside or _beyond_radii(f"the point of round {t}", played, sizes * (1 + 1e-9))
    fits = trace.algorithm.proximal and isinstance(rate, DiagonalAdaGrad)
    if isinstance(rate, DiagonalAdaGrad):
        fits = fits and not np.any(rate.offset) and not np.any(rate.beta)
        fits = fits and np.allclose(rate.scale, math.sqrt(2) * sizes, rtol=1e-9, atol=0.0)
    reasons = [_comparator(trace, x, math.inf), outside, "" if fits else "the rate is not the one the formula is for"]
    return _formula(
        trace,
        x,
        "section 3.4, 2√2·R√Σg²",
        2 * math.sqrt(2) * np.sqrt(np.cumsum(trace.errors**2, axis=0)) @ sizes,
        reasons,
    )


def delay_tolerant_formula(trace: Trace, x: Vector, radius: float, lipschitz: float, delay: int) -> Bound:
    r"""Return $\sum_i \sqrt2 R\sqrt{(D+1)(2D+1)G^2 + \sum_t 2q_{t,i}}$, for delay-tolerant AdaGrad and $|x^*_i| \le R$.

    The additive constant is our own, as :func:`forel.theory.algorithms.delay_tolerant_adagrad` explains.

    >>> from forel.theory.algorithms import delay_tolerant_adagrad
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(delay_tolerant_adagrad(1.0, 1.0, 1), [Linear([1.0]), Linear([-1.0])], delays=1)
    >>> delay_tolerant_formula(trace, np.array([1.0]), 1.0, 1.0, 1).total
    3.74...

    After Flaspohler et al., "Online learning with optimism and delay" (2021).
    """
    radius, constant = positive("radius", radius), (delay + 1) * (2 * delay + 1) * positive("lipschitz", lipschitz) ** 2
    costs = np.cumsum(huber(np.abs(trace.errors), np.abs(trace.gradients)), axis=0)
    rate = trace.algorithm.rate
    fits = isinstance(rate, DiagonalAdaGrad) and not np.any(rate.beta)
    if isinstance(rate, DiagonalAdaGrad):
        fits = fits and np.allclose(rate.scale, radius / math.sqrt(2), rtol=1e-9, atol=0.0)
        fits = fits and np.allclose(rate.offset, math.sqrt(constant), rtol=1e-9, atol=0.0)
    late = max(getattr(trace.algorithm, "delays", (0,)))
    reasons = [
        _comparator(trace, x, radius, LINF),
        first_larger(trace.gradients, lipschitz, LINF),
        "" if fits else "the rate is not the one the formula is for",
        "" if late <= delay else f"a gradient is {late} rounds late, more than the assumed {delay}",
    ]
    return _formula(trace, x, "delay-tolerant AdaGrad", np.sqrt(2 * (constant + costs)).sum(axis=1) * radius, reasons)


def entropic_formula(trace: Trace, x: Vector, lipschitz: float) -> Bound:
    r"""Return $2\sqrt{(G_\infty^2 + \sum_{t<T}\|g_t\|_\infty^2)\log n}$, for entropic FTRL on the simplex.

    >>> from forel.theory.algorithms import hedge
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Linear
    >>> trace = play(hedge(2), [Linear([1.0, 0.0])] * 4)
    >>> entropic_formula(trace, np.array([0.0, 1.0]), 1.0).total
    3.33...

    Survey: section 3.6
    """
    n, lipschitz = trace.points.shape[1], positive("lipschitz", lipschitz)
    squares = np.abs(trace.errors).max(axis=1) ** 2
    before = lipschitz**2 + np.concatenate([[0.0], np.cumsum(squares)[:-1]])
    reasons = [
        _comparator(trace, x, math.inf),
        first_larger(trace.errors, lipschitz, LINF),
        _rate(trace, Entropy(), np.sqrt(before / math.log(n)), 0),
        _centered(trace),
        _inside(trace, 1.0, L1),
    ]
    return _formula(trace, x, "section 3.6, 2√((G² + Σ‖g‖∞²) log n)", 2 * np.sqrt(before * math.log(n)), reasons)


def local_norm_bound(trace: Trace, x: Vector) -> Bound:
    r"""Return $r_{0:T-1}(x^*) + \frac12\sum_t \eta_{t-1}\sum_i x_{t,i} g_{t,i}^2$, for entropic FTRL and $g_t \ge 0$.

    The norm is that of the entropy's Hessian at x_t: in bandit games, where estimates are as large as 1/x_{t,i}, the
    bounds in L∞ say nothing. Where gradients may be negative, but $\eta_{t-1}g_{t,i} \ge -1$, the factor ½ is 1.

    >>> from forel.theory.algorithms import hedge
    >>> from forel.theory.analysis import entropic_formula, play
    >>> from forel.losses import Linear
    >>> trace = play(hedge(2), [Linear([1.0, 0.0])] * 4)
    >>> local_norm_bound(trace, np.array([0.0, 1.0])).total < entropic_formula(trace, np.array([0.0, 1.0]), 1.0).total
    True

    After Bubeck and Cesa-Bianchi, "Regret analysis of stochastic and nonstochastic multi-armed bandit problems" (2012).
    """
    regularizers = [trace.initial, *(stage.regularizer for stage in trace.stages[:-1])]
    strengths = np.array([np.max(r.strength) for r in regularizers])
    rounds = zip(regularizers, trace.points, trace.gradients, strict=False)
    squares = np.array([r.geometry.local_dual_norm(r.strength, p, g) ** 2 for r, p, g in rounds])
    least = trace.gradients.min(axis=1) / strengths
    terms = np.where((least >= 0).all(), 0.5, 1.0) * squares
    entropic = trace.initial.geometry == Entropy() and np.allclose(trace.points.sum(axis=1), 1.0)
    reasons = [
        _comparator(trace, x, math.inf),
        "" if entropic else "the geometry is not the entropy on distributions",
        _centered(trace),
        "" if trace.leaders is trace.points else "the algorithm takes hints",
        "" if (least >= -1).all() else f"η·g is below −1 in round {int(np.argmin(least >= -1)) + 1}",
    ]
    found = _formula(trace, x, "local norms", np.array([r(x) for r in regularizers]), reasons)
    return Bound(found.result, found.regularization, terms, found.void)


def strongly_convex_formula(trace: Trace, x: Vector, lipschitz: float) -> Bound:
    r"""Return $\frac{G^2}{2}(1 + \log T)$, for 1-strongly convex losses and no regularizer.

    >>> from forel.theory.algorithms import follow_the_leader
    >>> from forel.theory.analysis import play
    >>> from forel.losses import Quadratic
    >>> trace = play(follow_the_leader(), [Quadratic([1.0]), Quadratic([0.5])])
    >>> round(strongly_convex_formula(trace, np.array([0.75]), 1.0).total, 3)
    0.847

    Survey: section 3.7
    """
    weakest = min(added.loss.strong_convexity for added in trace.added)
    idle = not np.any(trace.initial.strength) and not np.any(trace.stages[-1].regularizer.strength)
    reasons = [
        _comparator(trace, x, math.inf),
        first_larger(trace.errors, lipschitz, L2),
        "" if weakest >= 1 else f"a loss is only {weakest:.6g}-strongly convex",
        "" if idle else "the algorithm has a regularizer",
    ]
    return _formula(
        trace,
        x,
        "section 3.7, (G²/2)(1 + log T)",
        positive("lipschitz", lipschitz) ** 2 / 2 * (1 + np.log(_rounds(trace))),
        reasons,
    )
