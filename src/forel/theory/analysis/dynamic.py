"""Dynamic regret: Mirror Descent against a path of comparators."""

import numpy as np
from numpy.typing import ArrayLike

from forel.theory.algorithms import Bound, MirrorDescent
from forel.theory.analysis.declarations import EPS, SOLVED, first_above, first_unaccounted
from forel.theory.analysis.game import Trace
from forel.theory.analysis.optimality import first_suboptimal_round
from forel.theory.geometries import Euclidean
from forel.theory.penalties import NONE
from forel.theory.rates import Constant, strength_increment
from forel.theory.regularizers import Regularizer, gradient_at
from forel.validation import Matrix, Strength, Vector

__all__ = ["dynamic_bound", "path_formula"]


def dynamic_bound(trace: Trace, path: ArrayLike) -> Bound:
    r"""Return Theorem 12 with $u_t$ in round t, and what it takes to move the comparator on.

    $$B_{r_0}(u_1, x_1) + \sum_t B_{r_t}(u_t, x_t) + \tfrac12\sum_t \|g_t\|^2_{(t),\star}
    + \sum_{t \ge 2} \bigl(B_{r_{0:t-1}}(u_t, x_t) - B_{r_{0:t-1}}(u_{t-1}, x_t)\bigr)$$

    It is false for lazy projection, and void for all but Mirror Descent without a penalty.

    Parameters
    ----------
    trace : a game of Mirror Descent
    path : u_1, …, u_T, a row each

    >>> from forel.losses import Linear
    >>> from forel.theory.algorithms import greedy_projection
    >>> from forel.theory.analysis import play
    >>> from forel.theory.sets import Box
    >>> trace = play(greedy_projection(0.5, Box(-1, 1)), [Linear([1.0])] * 4 + [Linear([-1.0])] * 4)
    >>> path = np.repeat([[-1.0], [1.0]], 4, axis=0)
    >>> trace.regret(path), dynamic_bound(trace, path).total
    (6.5, 7.0)

    After Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent" (2003), and Hall and
    Willett, "Dynamical models and tracking regret in online convex programming" (2013).
    """
    name, algorithm, rows = "dynamic regret", trace.algorithm, trace.path(path)
    if not isinstance(algorithm, MirrorDescent) or algorithm.penalty is not NONE or algorithm.observes:
        return Bound(name, void="the algorithm is not Mirror Descent without penalty and features")
    stability = 0.5 * trace.squared_norms[1]
    void = "" if np.isfinite(stability).all() else "the objective has no strength where a gradient is not zero"
    void = void or first_suboptimal_round(trace.suboptimality) or trace.misdeclared
    void = void or first_unaccounted(trace, stability) or first_above(trace, rows) or _first_better(trace, rows)
    if not all(algorithm.feasible.contains(u, 1e-9) for u in rows):
        void = "the comparator lies outside X"
    if void:
        return Bound(name, void=void)
    spent = []
    for t, u in enumerate(rows):
        before, after = trace.states[t], trace.states[t + 1]

        def divergence(strength: Strength, v: Vector, state: object = before) -> float:
            return Regularizer.around(algorithm.geometry, strength, state.x, state.image)(v)  # type: ignore[attr-defined]

        moved = divergence(before.strength, u) - (divergence(before.strength, rows[t - 1]) if t else 0.0)
        spent.append(moved + divergence(strength_increment(before.strength, after.updated), u))
    return Bound(name, np.cumsum(spent), stability)


def _first_better(trace: Trace, path: Matrix) -> str:
    """Return the first round whose step is not optimal towards the comparator, as it is in X, as a reason."""
    geometry, allowed = trace.initial.geometry, SOLVED * float(trace.squared_norms[1].sum())
    rounds = zip(trace.gradients, trace.states, trace.states[1:], path, strict=False)
    for t, (g, before, after, u) in enumerate(rounds, start=1):
        images = [gradient_at(geometry, after.updated, state.x, state.image) for state in (after, before)]
        slope, size = g + images[0] - images[1], np.abs(g) + np.abs(images[0]) + np.abs(images[1])
        if not slope @ (u - after.x) >= -allowed - EPS * float(size @ (np.abs(u) + np.abs(after.x))):
            return f"the comparator of round {t} lies outside X, or its step is not optimal"
    return ""


def path_formula(trace: Trace, path: ArrayLike, diameter: float) -> Bound:
    r"""Return $\frac{\|u_1 - x_1\|^2}{2\eta} + \frac D\eta\sum_{t \ge 2}\|u_t - u_{t-1}\| + \frac\eta2\sum\|g_t\|^2$, for greedy projection.

    Parameters
    ----------
    trace : a game of greedy projection with a constant rate η
    path : u_1, …, u_T, a row each
    diameter : D, of X

    >>> from forel.losses import Linear
    >>> from forel.theory.algorithms import greedy_projection
    >>> from forel.theory.analysis import play
    >>> from forel.theory.sets import Box
    >>> trace = play(greedy_projection(0.5, Box(-1, 1)), [Linear([1.0])] * 4 + [Linear([-1.0])] * 4)
    >>> path_formula(trace, np.repeat([[-1.0], [1.0]], 4, axis=0), diameter=2.0).total
    11.0

    After Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent" (2003); the constants are
    those of :func:`dynamic_bound`.
    """  # noqa: E501
    exact, rows, rate = dynamic_bound(trace, path), trace.path(path), trace.algorithm.rate
    name, void = "dynamic regret, by the length of the path", exact.void
    if not void and not (isinstance(rate, Constant) and trace.initial.geometry == Euclidean()):
        void = "the rate is not constant, or the geometry not Euclidean"
    if not void and trace.algorithm.feasible.diameter(rows.shape[1]) > diameter * (1 + 1e-12):
        void = f"the set has a diameter of more than {diameter:.6g}"
    if void or not isinstance(rate, Constant):
        return Bound(name, void=void)
    steps = np.concatenate([[0.0], np.linalg.norm(np.diff(rows, axis=0), axis=1)])
    first = float(np.sum((rows[0] - trace.points[0]) ** 2)) / (2 * rate.eta)
    return Bound(
        name, first + diameter / rate.eta * np.cumsum(steps), rate.eta / 2 * np.sum(trace.gradients**2, axis=1)
    )
